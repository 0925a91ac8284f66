//! Conditional requests: lists of entity tags are parsed as they were written, and the precondition rules are
//! consistent.
//!
//! Two properties. A list written from the input's tags matches a version exactly when one of them is its entity tag.
//! For any header values: whatever satisfies `If-Match` is matched by `If-None-Match` too, HEAD behaves like GET, and
//! the date that a response carries is satisfied by the same version.

use http::Method;
use http::header::{
    HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};
use protocol::conditional::{
    IfRange, PreconditionResult, Validators, evaluate_preconditions, http_date,
};

use crate::choice_sequence::ChoiceSequence;

/// Entity tag of the current version.
const OWN: &str = "abc";

/// Checks the property.
pub fn run(input: &[u8]) {
    let mut choices = ChoiceSequence::new(input);
    // HTTP dates cannot express years after 9999.
    let current = Validators::new(OWN, choices.number() % 253_402_300_799_000);
    let modified_ms = ChoiceSequence::new(input).number() % 253_402_300_799_000;
    dates(&current, modified_ms);
    if let Ok(value) = HeaderValue::from_bytes(choices.clone().remaining()) {
        any_value(&value, &current);
    }
    written_list(&mut choices, &current);
}

fn dates(current: &Validators, modified_ms: u64) {
    let date = |ms: u64| HeaderValue::try_from(http_date(ms)).expect("a date is a header's value");
    let (own, before) = (date(modified_ms), date(modified_ms.saturating_sub(1_000)));
    assert_eq!(current.last_modified_header().as_ref(), Some(&own));
    let is_earlier = modified_ms >= 1_000;
    let get = |name: HeaderName, value: &HeaderValue| weigh(&Method::GET, name, value, current);
    assert_eq!(get(IF_MODIFIED_SINCE, &own), PreconditionResult::NotModified);
    assert_eq!(get(IF_UNMODIFIED_SINCE, &own), GO);
    assert_eq!(get(IF_RANGE, &own), GO);
    if is_earlier {
        assert_eq!(get(IF_MODIFIED_SINCE, &before), GO);
        assert_eq!(get(IF_UNMODIFIED_SINCE, &before), PreconditionResult::PreconditionFailed);
        assert_eq!(get(IF_RANGE, &before), GO_WHOLE);
    }
}

const GO: PreconditionResult = PreconditionResult::Proceed { range: IfRange::Matches };
const GO_WHOLE: PreconditionResult = PreconditionResult::Proceed { range: IfRange::Mismatch };

fn any_value(value: &HeaderValue, current: &Validators) {
    for name in [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE] {
        let get = weigh(&Method::GET, name.clone(), value, current);
        assert_eq!(get, weigh(&Method::HEAD, name.clone(), value, current), "HEAD is as GET");
        let possible: &[PreconditionResult] = match name {
            IF_MATCH | IF_UNMODIFIED_SINCE => &[GO, PreconditionResult::PreconditionFailed],
            IF_RANGE => &[GO, GO_WHOLE],
            _ => &[GO, PreconditionResult::NotModified],
        };
        assert!(possible.contains(&get), "{name}: {get:?}");
        let delete = weigh(&Method::DELETE, name, value, current);
        assert_ne!(delete, PreconditionResult::NotModified, "only a read can be answered so");
    }
    let strong = weigh(&Method::GET, IF_MATCH, value, current) == GO;
    let weak =
        weigh(&Method::GET, IF_NONE_MATCH, value, current) == PreconditionResult::NotModified;
    assert!(weak || !strong, "{value:?} is the same strongly and not weakly");
    let headers = headers(IF_MATCH, value);
    assert_eq!(
        evaluate_preconditions(&Method::GET, &headers, None),
        PreconditionResult::PreconditionFailed
    );
}

/// Checks a written list of tags, which may include the current one, with arbitrary separators.
fn written_list(choices: &mut ChoiceSequence<'_>, current: &Validators) {
    let mut list = String::new();
    let (mut is_weak_there, mut is_strong_there) = (false, false);
    while !choices.is_exhausted() {
        let (shape, tag) = (choices.byte(), choices.one_of(&[OWN, "abd", "a,b", "", "W/", "*"]));
        let is_weak = shape % 2 == 1;
        is_weak_there |= tag == OWN;
        is_strong_there |= tag == OWN && !is_weak;
        let between =
            if list.is_empty() { "" } else { [",", ", ", " ,", ",,\t"][shape as usize / 64] };
        list += &format!("{between}{}\"{tag}\"", if is_weak { "W/" } else { "" });
    }
    let Ok(value) = HeaderValue::try_from(list) else { return };
    let strong = weigh(&Method::GET, IF_MATCH, &value, current);
    assert_eq!(strong == GO, is_strong_there, "{value:?}");
    let weak = weigh(&Method::GET, IF_NONE_MATCH, &value, current);
    assert_eq!(weak == PreconditionResult::NotModified, is_weak_there, "{value:?}");
}

fn weigh(
    method: &Method,
    name: HeaderName,
    value: &HeaderValue,
    current: &Validators,
) -> PreconditionResult {
    evaluate_preconditions(method, &headers(name, value), Some(current))
}

fn headers(name: HeaderName, value: &HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([(name, value.clone())])
}
