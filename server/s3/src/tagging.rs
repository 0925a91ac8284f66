//! Tags of objects: parsing, limits, and the operations that read and replace them.
//!
//! Tags are stored with the attributes of the object. Replacing them stores the object again with the same content, so
//! they are versioned, moved and backed up with it. Guarantees: content, entity tag, type and metadata do not change
//! with the tags; an object that is replaced concurrently does not get them. Non-goals: access by tags.

use catalog::object_attributes::{StoredAttributes, Tags};
use catalog::{Bucket, Scope};
use engine::ObjectName;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, PutObjectTaggingInput, PutObjectTaggingOutput, Tag, TaggingDirective,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::limits::BUCKET_TAGS_BYTES_MAX;
use service::state::AppState;

use super::access::caller_of;
use super::errors::{s3_error, to_s3_error};
use super::objects::authorized_object;
use super::rewriting::{Stored, rewrite};
use super::versioning::{find_version, version_id};

/// Maximum tags of an object (S3 API).
const OBJECT_TAGS_MAX: usize = 10;
/// Maximum tags of a bucket (S3 API).
const BUCKET_TAGS_MAX: usize = 50;
/// Maximum characters of a tag key (S3 API).
const KEY_CHARS_MAX: usize = 128;
/// Maximum characters of a tag value (S3 API).
const VALUE_CHARS_MAX: usize = 256;
/// Maximum number of tags, and maximum bytes of UTF-8 of all their keys and values.
type Limits = (usize, usize);
/// Limits of an object: ten tags of the longest keys and values in ASCII.
const OF_OBJECT: Limits = (OBJECT_TAGS_MAX, OBJECT_TAGS_MAX * (KEY_CHARS_MAX + VALUE_CHARS_MAX));
/// Limits of a bucket, whose record holds its tags.
const OF_BUCKET: Limits = (BUCKET_TAGS_MAX, BUCKET_TAGS_BYTES_MAX);
/// Prefix of keys that S3 reserves.
const RESERVED: &str = "aws:";

const TAGGING: &str = "x-amz-tagging";

/// Parses the header `x-amz-tagging`: `key=value` pairs, encoded as the query of a URL. No tags without the header.
pub(super) fn sent_tags(headers: &HeaderMap) -> S3Result<Tags> {
    let mut values = headers.get_all(TAGGING).into_iter();
    let Some(value) = values.next() else { return Ok(Tags::new()) };
    let value = value.to_str().ok().filter(|_| values.next().is_none());
    parse_pairs(value.ok_or_else(malformed_header)?)
}

fn parse_pairs(text: &str) -> S3Result<Tags> {
    let decoded = |text: &str| {
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8();
        decoded.map(std::borrow::Cow::into_owned).map_err(|_| malformed_header())
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(key)?, decoded(value)?))
    });
    let pairs = pairs.collect::<S3Result<Vec<_>>>()?;
    checked(pairs, OF_OBJECT)
}

fn malformed_header() -> S3Error {
    let message =
        "x-amz-tagging must be one header with UTF-8 pairs key=value, encoded as a URL query";
    s3_error(S3ErrorCode::InvalidArgument, message)
}

/// Checks the tag set of an object in the body of a request.
pub(super) fn object_tags(set: Vec<Tag>) -> S3Result<Tags> {
    tags_of(set, OF_OBJECT)
}

/// Checks the tag set of a bucket in the body of a request.
pub(super) fn bucket_tags(set: Vec<Tag>) -> S3Result<Tags> {
    tags_of(set, OF_BUCKET)
}

fn tags_of(set: Vec<Tag>, limits: Limits) -> S3Result<Tags> {
    let pairs = set.into_iter().map(|tag| match tag {
        Tag { key: Some(key), value: Some(value) } => Ok((key, value)),
        _ => Err(s3_error(S3ErrorCode::MalformedXML, "A tag requires a Key and a Value")),
    });
    checked(pairs.collect::<S3Result<Vec<_>>>()?, limits)
}

/// Rejects tag sets beyond the limits of S3.
fn checked(pairs: Vec<(String, String)>, (count_max, bytes_max): Limits) -> S3Result<Tags> {
    let invalid = |message: String| Err(S3Error::with_message(S3ErrorCode::InvalidTag, message));
    let count = pairs.len();
    if count > count_max {
        return invalid(format!("{count} tags: the limit is {count_max}"));
    }
    let mut tags = Tags::new();
    let mut bytes = 0;
    for (key, value) in pairs {
        let is_named = (1..=KEY_CHARS_MAX).contains(&key.chars().count());
        if !is_named || !key.chars().all(is_tag_char) {
            return invalid(format!(
                "A tag key must have 1 to {KEY_CHARS_MAX} letters, digits, spaces and _ . : / = + \
                - @"
            ));
        }
        if value.chars().count() > VALUE_CHARS_MAX || !value.chars().all(is_tag_char) {
            return invalid(format!(
                "A tag value may have up to {VALUE_CHARS_MAX} letters, digits, spaces and _ . : / \
                = + - @"
            ));
        }
        if key.get(..RESERVED.len()).is_some_and(|it| it.eq_ignore_ascii_case(RESERVED)) {
            return invalid(format!("Tag keys that begin with {RESERVED} are reserved"));
        }
        bytes += key.len() + value.len();
        if tags.insert(key, value).is_some() {
            return invalid("Two tags have the same key".to_owned());
        }
    }
    match bytes > bytes_max {
        true => invalid(format!("These tags may have up to {bytes_max} bytes of UTF-8 in total")),
        false => Ok(tags),
    }
}

/// Returns whether S3 allows a character in tags.
fn is_tag_char(c: char) -> bool {
    c.is_alphanumeric() || (c.is_whitespace() && !c.is_control()) || "_.:/=+-@".contains(c)
}

/// Returns the tag set of a response, by key.
pub(super) fn tag_set(tags: &Tags) -> Vec<Tag> {
    let tag = |(key, value): (&String, &String)| Tag {
        key: Some(key.clone()),
        value: Some(value.clone()),
    };
    tags.iter().map(tag).collect()
}

/// Returns the tags of a copy: those of the source, or those that the request sends instead.
pub(super) fn copied_tags(
    directive: Option<&TaggingDirective>,
    sent: &Tags,
    source: &Tags,
) -> Tags {
    match is_replacing(directive) {
        true => sent.clone(),
        false => source.clone(),
    }
}

/// Rejects an unknown directive, and tags that the directive would ignore.
pub(super) fn check_directive(directive: Option<&TaggingDirective>, sent: &Tags) -> S3Result<()> {
    let known = [TaggingDirective::COPY, TaggingDirective::REPLACE];
    if directive.is_some_and(|it| !known.contains(&it.as_str())) {
        let message = "x-amz-tagging-directive must be COPY or REPLACE";
        return Err(s3_error(S3ErrorCode::InvalidArgument, message));
    }
    if !sent.is_empty() && !is_replacing(directive) {
        let message = "x-amz-tagging requires x-amz-tagging-directive: REPLACE; otherwise a copy \
            has the tags of its source";
        return Err(s3_error(S3ErrorCode::InvalidArgument, message));
    }
    Ok(())
}

fn is_replacing(directive: Option<&TaggingDirective>) -> bool {
    directive.map(TaggingDirective::as_str) == Some(TaggingDirective::REPLACE)
}

/// Implements GetObjectTagging.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<GetObjectTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    let GetObjectTaggingInput { bucket, key, version_id: sent_id, .. } = request.input;
    let id = version_id(sent_id.as_deref())?;
    let found = authorized_object(app, &caller, &bucket, &key, Scope::Read);
    let (bucket, parsed) = found.map_err(|error| to_s3_error(&error))?;
    let name = ObjectName::new(bucket.name.clone(), parsed);
    let version = find_version(app, &bucket, &name, &key, id).await?;
    let tag_set = tag_set(&StoredAttributes::of(&version.object).tags);
    let version_id = bucket.versioning.map(|_| version.id.to_string());
    Ok(GetObjectTaggingOutput { tag_set, version_id })
}

/// Implements PutObjectTagging.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutObjectTaggingInput>,
) -> S3Result<PutObjectTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    let PutObjectTaggingInput { bucket, key, tagging, version_id: sent_id, .. } = request.input;
    let tags = object_tags(tagging.tag_set)?;
    let stored = Stored::of(&bucket, &key, sent_id.as_deref())?;
    let change = |_: &Bucket, attributes: StoredAttributes| Ok(attributes.with_tags(tags.clone()));
    let version_id = rewrite(app, &caller, stored, Scope::Upload, change).await?;
    Ok(PutObjectTaggingOutput { version_id })
}

/// Implements DeleteObjectTagging.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteObjectTaggingInput>,
) -> S3Result<DeleteObjectTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    let DeleteObjectTaggingInput { bucket, key, version_id: sent_id, .. } = request.input;
    let stored = Stored::of(&bucket, &key, sent_id.as_deref())?;
    let change = |_: &Bucket, attributes: StoredAttributes| Ok(attributes.with_tags(Tags::new()));
    let version_id = rewrite(app, &caller, stored, Scope::Upload, change).await?;
    Ok(DeleteObjectTaggingOutput { version_id })
}

#[cfg(test)]
mod tests {
    use catalog::object_attributes::VersionMark;
    use catalog::object_lock::{ObjectLock, Retention, RetentionMode};

    use super::*;

    fn code<T>(outcome: S3Result<T>) -> String {
        outcome.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
    }

    #[test]
    fn tagging_header_is_parsed_as_a_query() {
        let tags = parse_pairs("foo=bar&bar&a+b=c%3Dd%2B&caf%C3%A9=").unwrap();
        let pairs: Vec<_> = tags.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(pairs, [("a b", "c=d+"), ("bar", ""), ("caf\u{e9}", ""), ("foo", "bar")]);
        assert_eq!(parse_pairs("").unwrap(), Tags::new());
        assert_eq!(code(parse_pairs("a=%ff")), "InvalidArgument");
        for invalid in ["=a", "a=1&a=2", "aws:a=b", "AWS:a=b", "a=b%00", "a%0A=b", "a=%3Cb%3E"] {
            assert_eq!(code(parse_pairs(invalid)), "InvalidTag", "{invalid}");
        }
    }

    #[test]
    fn tag_limits_count_characters() {
        let pair = |key: usize, value: usize| vec![("é".repeat(key), "ü".repeat(value))];
        assert_eq!(code(checked(pair(128, 256), OF_OBJECT)), "ok");
        assert_eq!(code(checked(pair(129, 0), OF_OBJECT)), "InvalidTag");
        assert_eq!(code(checked(pair(1, 257), OF_OBJECT)), "InvalidTag");
        let many = |count: usize, fill: &str| {
            let value = fill.repeat(VALUE_CHARS_MAX);
            (0..count).map(|at| (format!("{at:0>128}"), value.clone())).collect::<Vec<_>>()
        };
        assert_eq!(code(checked(many(10, "x"), OF_OBJECT)), "ok");
        assert_eq!(code(checked(many(11, "x"), OF_OBJECT)), "InvalidTag");
        assert_eq!(code(checked(many(10, "ü"), OF_OBJECT)), "InvalidTag", "too many bytes");
        assert_eq!(code(checked(many(32, "x"), OF_BUCKET)), "ok");
        let short = |count: usize| (0..count).map(|at| (at.to_string(), String::new())).collect();
        assert_eq!(code(checked(short(50), OF_BUCKET)), "ok");
        assert_eq!(code(checked(short(51), OF_BUCKET)), "InvalidTag");
        assert_eq!(code(checked(many(33, "x"), OF_BUCKET)), "InvalidTag", "too many bytes");
    }

    #[test]
    fn longest_tags_fit_with_other_attributes() {
        let value = "x".repeat(VALUE_CHARS_MAX);
        let tags = (0..OBJECT_TAGS_MAX).map(|at| (format!("{at:0>128}"), value.clone()));
        let tags = checked(tags.collect(), OF_OBJECT).unwrap();
        let declared_type = Some("x".repeat(2_000));
        let mark = VersionMark {
            number: Some(u64::MAX),
            is_null: true,
            is_delete_marker: false,
            modified_ms: Some(u64::MAX),
        };
        let retention = Retention { mode: RetentionMode::Compliance, until_ms: u64::MAX };
        let lock = ObjectLock { retention: Some(retention), hold: true };
        let version = Some(mark);
        let attributes =
            StoredAttributes { declared_type, version, lock, ..StoredAttributes::default() };
        let encoded = attributes.with_tags(tags.clone()).encoded().unwrap();
        assert_eq!(StoredAttributes::parse(&encoded).tags, tags);
    }

    #[test]
    fn tagging_directive_selects_the_tags_of_a_copy() {
        let tags = |text: &str| parse_pairs(text).unwrap();
        let directive = |text: &'static str| Some(TaggingDirective::from_static(text));
        let replace = directive("REPLACE");
        let (sent, source) = (tags("a=1"), tags("b=2"));
        assert_eq!(copied_tags(None, &tags(""), &source), source);
        assert_eq!(copied_tags(replace.as_ref(), &sent, &source), sent);
        assert_eq!(code(check_directive(None, &sent)), "InvalidArgument");
        assert_eq!(code(check_directive(directive("COPY").as_ref(), &tags(""))), "ok");
        assert_eq!(code(check_directive(directive("KEEP").as_ref(), &tags(""))), "InvalidArgument");
    }
}
