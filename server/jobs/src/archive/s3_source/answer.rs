//! XML responses of a remote S3 service: listing pages and errors.
//!
//! Guarantees: any bytes yield a page or an error message; the result is no larger than the input; no external entity
//! is resolved. Non-goals: requests.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// Maximum characters of each text of an error.
const WORD_CHARS_MAX: usize = 200;

/// Page of `ListObjectsV2`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<ListedObject>,
    /// Continuation token of the next page, if any.
    pub(super) next: Option<String>,
}

/// Object in a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedObject {
    /// Key, normally UTF-8, but untrusted.
    pub(crate) key: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) modified_ms: Option<u64>,
    /// Entity tag with its quotes.
    pub(crate) etag: Option<String>,
}

impl ListedObject {
    /// Returns whether the object is a folder marker of some clients.
    pub(crate) fn is_folder(&self) -> bool {
        self.key.ends_with(b"/")
    }
}

/// Error of a service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) region: String,
}

/// Parses a page.
pub(super) fn page(xml: &[u8]) -> Result<Page, String> {
    let mut page = Page::default();
    let mut at = ListedObject::default();
    let mut size = None;
    let (mut has_root, mut is_truncated, mut is_escaped) = (false, false, false);
    walk(xml, |path, text| {
        let Some(text) = text else {
            match path {
                ["ListBucketResult"] => has_root = true,
                ["ListBucketResult", "Contents"] => {
                    (at, size) = (ListedObject::default(), None);
                }
                _ => {}
            }
            return Ok(());
        };
        match path {
            ["ListBucketResult", "IsTruncated"] => is_truncated = text.trim() == "true",
            ["ListBucketResult", "EncodingType"] => is_escaped = text.trim() == "url",
            ["ListBucketResult", "NextContinuationToken"] => page.next = Some(text.to_owned()),
            ["ListBucketResult", "Contents", "Key"] => at.key = text.as_bytes().to_vec(),
            ["ListBucketResult", "Contents", "Size"] => size = text.trim().parse().ok(),
            ["ListBucketResult", "Contents", "ETag"] => at.etag = Some(text.to_owned()),
            ["ListBucketResult", "Contents", "LastModified"] => {
                let time = text.trim().parse::<jiff::Timestamp>().ok();
                at.modified_ms = time.and_then(|it| u64::try_from(it.as_millisecond()).ok());
            }
            ["ListBucketResult", "Contents"] => {
                let (true, Some(bytes)) = (!at.key.is_empty(), size) else {
                    return Err("an object without a name or size".to_owned());
                };
                page.objects.push(ListedObject { bytes, ..std::mem::take(&mut at) });
            }
            _ => {}
        }
        Ok(())
    })?;
    if !has_root {
        return Err("not a bucket listing".to_owned());
    }
    if !is_truncated {
        page.next = None;
    } else if page.next.as_ref().is_none_or(String::is_empty) {
        return Err("truncated listing without a continuation token".to_owned());
    }
    if is_escaped {
        // The encoding type may follow the keys, so they are decoded at the end.
        for object in &mut page.objects {
            object.key = unescaped(&object.key);
        }
    }
    Ok(page)
}

/// Parses an error; empty if the body is no S3 error.
pub(super) fn refusal(xml: &[u8]) -> Refusal {
    let mut refusal = Refusal::default();
    let read = walk(xml, |path, text| {
        let Some(text) = text else { return Ok(()) };
        match path {
            ["Error", "Code"] => refusal.code = clean(text),
            ["Error", "Message"] => refusal.message = clean(text),
            ["Error", "Region"] => refusal.region = clean(text),
            _ => {}
        }
        Ok(())
    });
    // A truncated body yields the fields parsed so far.
    drop(read);
    refusal
}

/// Sanitizes untrusted text for a message: truncated, and without terminal control characters.
pub(super) fn clean(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let plain = text.trim().chars().map(|c| if steers(c) { '\u{fffd}' } else { c });
    plain.take(WORD_CHARS_MAX).collect()
}

/// Decodes `encoding-type=url`: form encoding, where a space is `+`.
fn unescaped(key: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(key).replace('+', " ");
    percent_decode_str(&text).collect()
}

/// Visits elements by their path: without text at the start of one, with its text at its end.
fn walk(
    xml: &[u8],
    mut tell: impl FnMut(&[&str], Option<&str>) -> Result<(), String>,
) -> Result<(), String> {
    const DEPTH_MAX: usize = 16;
    let broken = |why: &dyn std::fmt::Display| format!("invalid XML: {why}");
    let mut reader = Reader::from_reader(xml);
    let mut path: Vec<String> = Vec::new();
    let mut text = String::new();
    let decoded = |bytes: &[u8]| {
        str::from_utf8(bytes).map(str::to_owned).map_err(|_| broken(&"it is not UTF-8"))
    };
    let mut say = |path: &[String], text: Option<&str>| {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        tell(&path, text)
    };
    loop {
        match reader.read_event().map_err(|why| broken(&why))? {
            Event::Start(start) => {
                if path.len() == DEPTH_MAX {
                    return Err(broken(&"nested too deeply"));
                }
                path.push(decoded(start.local_name().as_ref())?);
                text.clear();
                say(&path, None)?;
            }
            Event::Empty(empty) => {
                path.push(decoded(empty.local_name().as_ref())?);
                say(&path, None)?;
                say(&path, Some(""))?;
                path.pop();
                text.clear();
            }
            Event::End(_) => {
                say(&path, Some(&text))?;
                path.pop();
                text.clear();
            }
            Event::Text(part) => text.push_str(&decoded(&part)?),
            Event::CData(part) => text.push_str(&decoded(&part)?),
            Event::GeneralRef(name) => {
                let c = name.resolve_char_ref().map_err(|why| broken(&why))?;
                let meaning: Cow<'_, str> = match c {
                    Some(c) => c.to_string().into(),
                    None => resolve_predefined_entity(&decoded(&name)?)
                        .ok_or_else(|| broken(&"unknown entity"))?
                        .into(),
                };
                text.push_str(&meaning);
            }
            Event::DocType(_) => return Err(broken(&"document types are not allowed")),
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err(broken(&"unexpected end of data")),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><KeyCount>3</KeyCount>
<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextContinuationToken>a&amp;b==</NextContinuationToken>
<Contents><Key>a+b%2B%01/%C3%A9</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
<ETag>&quot;fba9&#x22;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass>
<Owner><ID>1</ID><Key>no</Key></Owner></Contents>
<Contents><Key><![CDATA[dir/]]></Key><Size> 0 </Size></Contents>
<CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes></ListBucketResult>"#;

    #[test]
    fn s3_list_page_is_parsed() {
        let read = page(LISTING.as_bytes()).unwrap();
        assert_eq!(read.next.as_deref(), Some("a&b=="));
        let [first, second] = read.objects.as_slice() else { panic!("{read:?}") };
        assert_eq!(first.key, "a b+\u{1}/\u{e9}".as_bytes());
        assert_eq!((first.bytes, first.etag.as_deref()), (434_234, Some("\"fba9\"")));
        assert_eq!(first.modified_ms, Some(1_255_369_830_000));
        let dir = ListedObject { key: b"dir/".to_vec(), ..ListedObject::default() };
        assert_eq!(*second, dir);
        // Without an encoding type keys are literal; a listing that is not truncated ends, whatever token it has.
        let plain = LISTING.replace("<EncodingType>url</EncodingType>", "");
        let read = page(plain.replace(">true<", ">false<").as_bytes()).unwrap();
        assert_eq!(read.objects[0].key, b"a+b%2B%01/%C3%A9");
        assert_eq!(read.next, None);
    }

    #[test]
    fn invalid_s3_list_page_is_rejected() {
        let root = |inside: &str| format!("<ListBucketResult>{inside}</ListBucketResult>");
        for (xml, says) in [
            (String::new(), "not a bucket listing"),
            ("<html></html>".into(), "not a bucket listing"),
            ("<ListBucketResult>".into(), "unexpected end"),
            ("<a></b>".into(), "invalid XML"),
            (root("<IsTruncated>true</IsTruncated>"), "without a continuation token"),
            (root("<Contents><Key>x</Key></Contents>"), "without a name or size"),
            (root("<Contents><Key>x</Key><Size>-1</Size></Contents>"), "without a name or size"),
            (root("<Contents><Size>1</Size></Contents>"), "without a name or size"),
            (root("&lol;"), "entity"),
            (root("&#xffffffff;"), "invalid XML"),
            (format!("<!DOCTYPE x [<!ENTITY a 'b'>]>{}", root("")), "document type"),
            ("<a>".repeat(10_000), "too deeply"),
        ] {
            let refused = page(xml.as_bytes()).unwrap_err();
            assert!(refused.contains(says), "{says}: {refused}");
        }
        for end in 0..LISTING.len() {
            assert!(page(&LISTING.as_bytes()[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn s3_error_is_truncated_and_sanitized() {
        let long = "x".repeat(10_000);
        let xml =
            format!("<Error><Code>A\u{1b}[2J</Code><Message>{long}</Message><Region>eu</Region>");
        let read = refusal(xml.as_bytes());
        assert_eq!((read.code.as_str(), read.region.as_str()), ("A\u{fffd}[2J", "eu"));
        assert_eq!(read.message.len(), WORD_CHARS_MAX);
        assert_eq!(refusal(b"\xff<<<"), Refusal::default());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, inside in ".{0,60}") {
            let _ = (page(&bytes), refusal(&bytes));
            let _ = page(format!("<ListBucketResult>{inside}</ListBucketResult>").as_bytes());
        }
    }
}
