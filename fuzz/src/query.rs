//! Query strings: two parsers agree, and written pairs are read back.
//!
//! Two properties. Any query is parsed as by a second parser in this file, byte by byte. Pairs written with every byte
//! escaped read back unchanged; of several with one name, the last.

use http::Uri;
use http::uri::PathAndQuery;
use protocol::query::Query;

use crate::choice_sequence::ChoiceSequence;

/// Two names of one parameter, as handlers look them up.
const NAMES: [&str; 2] = ["overwrite", "upsert"];

/// Checks the properties.
pub fn run(input: &[u8]) {
    let raw = input.split(|byte| *byte == b'#').next().unwrap_or_default();
    if let Some(query) = query(raw) {
        for names in [&NAMES[..], &["path"], &["a b"], &[""]] {
            agrees(&query, raw, names);
        }
    }
    written(&mut ChoiceSequence::new(input));
}

fn query(raw: &[u8]) -> Option<Query> {
    let path_and_query = PathAndQuery::try_from([b"/b/x?", raw].concat()).ok()?;
    Some(Query::from_uri(&Uri::from(path_and_query)))
}

fn agrees(query: &Query, raw: &[u8], names: &[&str]) {
    let given = last(raw, names);
    let text = given.clone().map(|value| String::from_utf8(value.unwrap_or_default()).ok());
    let read = query.string_allow_empty(names);
    match &text {
        None => assert_eq!(read.ok(), Some(None), "nothing was given"),
        Some(None) => assert_eq!(read.map_err(|refusal| refusal.status().as_u16()), Err(400)),
        Some(Some(text)) => assert_eq!(read.ok().flatten().as_deref(), Some(&**text)),
    }
    let absent_or = text.clone().flatten().filter(|text| !text.is_empty());
    if text != Some(None) {
        assert_eq!(query.string(names).ok(), Some(absent_or));
    }
    let flag = match text.as_ref().map(|text| text.as_deref().map(str::trim)) {
        None => Some(None),
        Some(Some(word)) => match word.to_ascii_lowercase().as_str() {
            "" | "true" | "1" | "yes" | "on" => Some(Some(true)),
            "false" | "0" | "no" | "off" => Some(Some(false)),
            _ => None,
        },
        Some(None) => None,
    };
    assert_eq!(query.flag(names).ok(), flag, "{text:?} as a flag");
}

/// Returns the last value given under one of the names, decoded; the inner option is none for a name without `=`.
fn last(raw: &[u8], names: &[&str]) -> Option<Option<Vec<u8>>> {
    let mut found = None;
    for pair in raw.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let end = pair.iter().position(|byte| *byte == b'=');
        let name = form_decoded(&pair[..end.unwrap_or(pair.len())]);
        if names.iter().any(|wanted| name == wanted.as_bytes()) {
            found = Some(end.map(|end| form_decoded(&pair[end + 1..])));
        }
    }
    found
}

/// Decodes form encoding, byte by byte.
pub(crate) fn form_decoded(raw: &[u8]) -> Vec<u8> {
    let digit = |at: usize| raw.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::new();
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        let escape = if *byte == b'%' { digit(at + 1).zip(digit(at + 2)) } else { None };
        decoded.push(match escape {
            Some((high, low)) => (16 * high + low) as u8,
            None if *byte == b'+' => b' ',
            None => *byte,
        });
        at += if escape.is_some() { 3 } else { 1 };
    }
    decoded
}

fn written(choices: &mut ChoiceSequence<'_>) {
    let names = [NAMES[0], NAMES[1], "a&b=c"];
    let mut pairs = Vec::new();
    while !choices.is_exhausted() {
        pairs.push((choices.one_of(&names), choices.short_text()));
    }
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let written: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    let Some(query) = query(written.join("&").as_bytes()) else { return };
    for asked in [&names[..1], &names[..2], &names[2..]] {
        let last = pairs.iter().rfind(|(name, _)| asked.contains(name)).map(|(_, value)| value);
        assert_eq!(query.string_allow_empty(asked).ok().flatten().as_ref(), last);
    }
}
