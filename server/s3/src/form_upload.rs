//! POST Object: browser uploads by HTML forms, signed with a policy document.
//!
//! Guarantees: a form is authorized before a byte of its file is read; the file is streamed into the same pipeline as
//! every upload; fields take bounded memory; a truncated form, or a file outside the bounds of the policy, stores
//! nothing. Non-goals: forms of trug's own API.

use axum::body::Body;
use bytes::Bytes;
use catalog::object_attributes::StoredAttributes;
use catalog::{EventKind, Scope};
use engine::{Batch, ObjectName};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use protocol::error::ApiError;
use protocol::multipart::FormFiles;
use protocol::object_path::{check_writable, parse_bucket_name};
use protocol::public_url::public_url;
use protocol::request_body::BodyLimits;
use quick_xml::escape::escape;
use s3s::dto::{Metadata, Tagging};
use s3s::xml::{Deserialize, Deserializer};
use s3s::{S3Error, S3ErrorCode, S3Result};
use service::admission::charge;
use service::auth::{Caller, PresentedCredentials, presents_key};
use service::own_pages::{RequestOrigin, host_of};
use service::rate_limit::RateClass;
use service::state::AppState;
use service::upload::{StagedFile, receive_part, store_files};

use super::access::check_parameters;
use super::acl::is_made_public;
use super::errors::{s3_error, to_s3_error};
use super::form_signature::FormSignature;
use super::incoming::{Digests, ExpectedBody};
use super::lifecycle::sent_expiry;
use super::object_lock::sent_lock;
use super::objects::{authorized_object, hex, upload_options};
use super::post_policy::{Fields, Policy, field};
use super::signed::SignedQuery;
use super::stored::{self, StoredParts, with_content};
use super::tagging::object_tags;

/// Maximum bytes of names and values of all fields before the file (S3 API).
const FIELDS_BYTES_MAX: usize = 20 * 1_024;
/// Fields specific to S3 forms, one of which precedes the file.
const SIGNED_FIELDS: [&str; 5] =
    ["policy", "x-amz-algorithm", "x-amz-credential", "x-amz-signature", "awsaccesskeyid"];
/// Fields that authorize the form, and are no properties of the object.
const OF_SIGNATURE: [&str; 4] =
    ["x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];
/// Fields that are headers of PutObject, besides `x-amz-*`.
const HEADERS: [HeaderName; 6] = [
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::EXPIRES,
];

/// Rejected form.
pub(super) enum Rejected {
    /// Error of an S3 form.
    S3(S3Error),
    /// Error of a request that is neither an S3 form nor authenticated for trug's own API.
    Native(ApiError),
}

impl From<S3Error> for Rejected {
    fn from(error: S3Error) -> Self {
        Self::S3(error)
    }
}

impl From<ApiError> for Rejected {
    fn from(error: ApiError) -> Self {
        Self::S3(to_s3_error(&error))
    }
}

/// Returns the path, in path style, of a request that may be an S3 form: one for a bucket, without any credential in
/// its head.
pub fn form_path(app: &AppState, head: &Parts) -> Option<String> {
    let Parts { method, uri, headers, .. } = head;
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_form = content_type
        .is_some_and(|value| value.to_ascii_lowercase().starts_with(b"multipart/form-data"));
    if method != Method::POST || uri.query().is_some() || !is_form {
        return None;
    }
    let has_session = || {
        let source = RequestOrigin::from_headers(method, headers, uri);
        app.session_cookie.read(headers).is_some() && source.allows_cookies(method)
    };
    let bucket = bucket_in(app, headers, uri)?;
    let is_anonymous = !headers.contains_key(header::AUTHORIZATION)
        && !presents_key(headers, &protocol::query::Query::from_uri(uri))
        && !has_session();
    is_anonymous.then(|| format!("/{bucket}"))
}

/// Returns the bucket of a path `/{bucket}`, or of the host for a path `/`.
fn bucket_in(app: &AppState, headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let path = uri.path().trim_matches('/');
    let name = match path {
        "" => {
            let host = host_of(headers, uri)?;
            app.dashboard_hosts().bucket_before(host.as_str())?.to_owned()
        }
        _ if path.contains('/') => return None,
        _ => percent_decode_str(path).decode_utf8().ok()?.into_owned(),
    };
    parse_bucket_name(&name).is_ok().then_some(name)
}

/// Stores the file of a form for a bucket.
pub(super) async fn post(
    app: &AppState,
    bucket: &str,
    head: &Parts,
    body: Body,
) -> Result<Response<Bytes>, Rejected> {
    let limits = BodyLimits::new(app.body_bytes_max());
    let mut form = FormFiles::open(&head.headers, body, limits).await.map_err(Rejected::Native)?;
    let mut fields = Fields::new();
    let read = read_fields(&mut form, &mut fields).await;
    if !SIGNED_FIELDS.iter().any(|name| fields.contains_key(*name)) {
        return Err(Rejected::Native(native_refusal(app, head)));
    }
    let Some(file_name) = read? else {
        let message = "A form must have one file, in the field \"file\" after all other fields";
        return Err(s3_error(S3ErrorCode::InvalidArgument, message).into());
    };
    insert_file_name(&mut fields, &file_name);
    let (caller, policy) = authorize(app, head, bucket, &fields)?;
    Ok(store(app, &caller, bucket, &fields, &policy, form).await?)
}

/// Returns the error of trug's own API for an upload without a credential.
fn native_refusal(app: &AppState, head: &Parts) -> ApiError {
    let query = protocol::query::Query::from_uri(&head.uri);
    Caller::authenticate(app, PresentedCredentials::from_request(head), &query)
        .err()
        .unwrap_or_else(ApiError::missing_api_key)
}

/// Reads the fields before the file; returns the name of the file, and `None` for a form without one.
async fn read_fields(form: &mut FormFiles, fields: &mut Fields) -> S3Result<Option<String>> {
    let ours = |error: ApiError| to_s3_error(&error);
    let mut bytes = 0;
    while let Some(part) = form.next_part().await.map_err(ours)? {
        let name = part.field_name.unwrap_or_default().to_ascii_lowercase();
        if name == "file" {
            return Ok(Some(part.file_name.unwrap_or_default()));
        }
        let is_first = !SIGNED_FIELDS.iter().any(|name| fields.contains_key(*name));
        if is_first && part.file_name.is_some() && !is_field(&name) {
            // A file of a form that is not an S3 form.
            return Ok(None);
        }
        let mut value = Vec::new();
        bytes += name.len();
        while let Some(chunk) = form.part_chunk().await.map_err(ours)? {
            bytes += chunk.len();
            if bytes > FIELDS_BYTES_MAX {
                let message = "The fields before the file may have up to 20 KB";
                return Err(s3_error(S3ErrorCode::MaxPostPreDataLengthExceededError, message));
            }
            value.extend_from_slice(&chunk);
        }
        let value = String::from_utf8(value).map_err(|_| {
            s3_error(S3ErrorCode::InvalidArgument, "A field of the form is not UTF-8")
        })?;
        if fields.insert(name, value).is_some() {
            let message = "Duplicate form field";
            return Err(s3_error(S3ErrorCode::InvalidArgument, message));
        }
    }
    Ok(None)
}

/// Returns whether a part may be an S3 field, even with a file name: some HTTP libraries send one with each.
fn is_field(name: &str) -> bool {
    ["key", "acl", "policy", "tagging", "awsaccesskeyid", "signature", "bucket"].contains(&name)
        || name.starts_with("x-amz-")
        || name.starts_with("x-ignore-")
        || name.starts_with("success_action_")
        || HEADERS.iter().any(|header| header.as_str() == name)
}

/// Replaces `${filename}` by the name of the file, without the folders that some browsers send.
fn insert_file_name(fields: &mut Fields, file_name: &str) {
    let file_name = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    for (name, value) in fields {
        if !SIGNED_FIELDS.contains(&name.as_str()) && value.contains("${filename}") {
            *value = value.replace("${filename}", file_name);
        }
    }
}

/// Checks signature, policy and rate limit, in this order.
fn authorize(
    app: &AppState,
    head: &Parts,
    bucket: &str,
    fields: &Fields,
) -> S3Result<(Caller, Policy)> {
    if fields.contains_key("x-amz-security-token") {
        let message = "Temporary credentials are not supported: sign with an API key";
        return Err(s3_error(S3ErrorCode::InvalidToken, message));
    }
    let policy = field(fields, "policy")?;
    let now_ms = app.clock.unix_ms();
    let signature = FormSignature::of(fields, now_ms)?;
    let unknown = || to_s3_error(&ApiError::invalid_api_key());
    let id = catalog::ApiKeyId::parse(signature.key_id()).ok_or_else(unknown)?;
    app.catalog.api_keys().active(&id).ok_or_else(unknown)?;
    let secret = app.catalog.api_keys().s3_secret(&id);
    let secret = secret.ok_or_else(|| S3Error::new(S3ErrorCode::ServiceUnavailable))?;
    if !signature.matches(&secret, policy) {
        let message = "The signature of the policy does not match the secret access key";
        return Err(s3_error(S3ErrorCode::SignatureDoesNotMatch, message));
    }
    let policy = Policy::parse(policy)?;
    policy.check(bucket, fields, now_ms)?;
    let ours = |error: ApiError| to_s3_error(&error);
    let caller =
        Caller::from_signature(app, &id, PresentedCredentials::from_request(head)).map_err(ours)?;
    caller.require_plan(app.endpoint()).map_err(ours)?;
    charge(app, RateClass::Upload, &caller).map_err(ours)?;
    Ok((caller, policy))
}

/// Returns the headers of the equivalent PutObject.
fn headers_of(fields: &Fields) -> S3Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = if name == "acl" { "x-amz-acl" } else { name };
        let is_header = name.starts_with("x-trug-")
            || name.starts_with("x-amz-") && !OF_SIGNATURE.contains(&name);
        if !is_header && !HEADERS.iter().any(|header| header.as_str() == name) {
            continue;
        }
        let value = HeaderValue::try_from(value).ok();
        let pair = HeaderName::try_from(name).ok().zip(value);
        let message = "A field of the form cannot be a header";
        let (name, value) = pair.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the properties of the object that a form describes.
fn described_by(
    fields: &Fields,
    headers: &HeaderMap,
    key: &engine::ObjectKey,
) -> S3Result<StoredAttributes> {
    let metadata = fields.iter().filter_map(|(name, value)| {
        Some((name.strip_prefix("x-amz-meta-")?.to_owned(), value.clone()))
    });
    let sent_key = field(fields, "key")?;
    let described =
        stored::described(headers, Some(metadata.collect::<Metadata>()), sent_key, key)?;
    let Some(tagging) = fields.get("tagging") else { return Ok(described) };
    let malformed = |_| {
        let message = "The field \"tagging\" is not the XML of a tag set";
        s3_error(S3ErrorCode::MalformedXML, message)
    };
    let mut xml = Deserializer::new(tagging.as_bytes());
    let tagging = Tagging::deserialize(&mut xml).map_err(malformed)?;
    xml.expect_eof().map_err(malformed)?;
    Ok(described.with_tags(object_tags(tagging.tag_set)?))
}

async fn store(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    fields: &Fields,
    policy: &Policy,
    mut form: FormFiles,
) -> S3Result<Response<Bytes>> {
    let ours = |error: ApiError| to_s3_error(&error);
    let sent_key = field(fields, "key")?;
    let headers = headers_of(fields)?;
    let none = SignedQuery::of(&Uri::from_static("/"));
    let account = &caller.account().id;
    check_parameters(app, account, parse_bucket_name(bucket).ok(), "PutObject", &headers, &none)?;
    let (bucket, key) =
        authorized_object(app, caller, bucket, sent_key, Scope::Upload).map_err(ours)?;
    check_writable(&key).map_err(ours)?;
    let described = StoredAttributes {
        lock: sent_lock(&headers, &bucket, app.clock.unix_ms())?,
        is_public: is_made_public(app, caller, &headers, &bucket)?,
        expires_ms: sent_expiry(&headers, app.clock.unix_ms())?,
        ..described_by(fields, &headers, &key)?
    };
    let (received, digests) =
        receive_file(app, &bucket, &described, &headers, policy, &mut form).await?;
    let (md5, checksum) = digests.finish()?;
    let etag = hex(&md5);
    let attributes = with_content(&described, etag.clone(), checksum, StoredParts::default());
    let received = received.with_attributes(attributes);
    let keys = [key.clone()];
    let options = upload_options(EventKind::CreatedByPost, caller);
    store_files(app, &bucket, &options, Batch::new(), vec![received], &keys).await.map_err(ours)?;
    Ok(response(app, fields, &ObjectName::new(bucket.name.clone(), key), sent_key, &etag))
}

/// Receives the file, and reads the form to its end.
async fn receive_file(
    app: &AppState,
    bucket: &catalog::Bucket,
    described: &StoredAttributes,
    headers: &HeaderMap,
    policy: &Policy,
    form: &mut FormFiles,
) -> S3Result<(StagedFile, Digests)> {
    let ours = |error: ApiError| to_s3_error(&error);
    let (bytes_min, bytes_max) = policy.length_bounds();
    let mut digests = Digests::new(ExpectedBody::from_headers(headers, None));
    let mut check = |piece: &[u8]| {
        digests.update(piece);
        match digests.bytes() > bytes_max {
            true => Err(ApiError::file_too_large(bytes_max)),
            false => Ok(()),
        }
    };
    let declared_type = described.declared_type.clone();
    let received =
        receive_part(app, bucket, declared_type, form, &mut check).await.map_err(ours)?;
    if digests.bytes() < bytes_min {
        let message = "The file is smaller than the policy allows";
        return Err(s3_error(S3ErrorCode::EntityTooSmall, message));
    }
    form.skip_to_end().await.map_err(ours)?;
    Ok((received, digests))
}

/// Returns the response that `success_action_redirect` or `success_action_status` selects.
fn response(
    app: &AppState,
    fields: &Fields,
    name: &ObjectName,
    sent_key: &str,
    etag: &str,
) -> Response<Bytes> {
    let location = public_url(app.public_url.as_str(), name);
    let bucket = name.bucket.as_str();
    let redirect = fields.get("success_action_redirect").or_else(|| fields.get("redirect"));
    let redirect = redirect.and_then(|to| redirect_to(to, bucket, sent_key, etag));
    let status = fields.get("success_action_status").map(String::as_str);
    let (status, location, body) = match (redirect, status) {
        (Some(to), _) => (StatusCode::SEE_OTHER, to, String::new()),
        (None, Some("200")) => (StatusCode::OK, location, String::new()),
        (None, Some("201")) => {
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><PostResponse><Location>{}</Location><Bucket>{bucket}</Bucket>\
                 <Key>{}</Key><ETag>&quot;{etag}&quot;</ETag></PostResponse>",
                escape(&*location),
                escape(sent_key),
            );
            (StatusCode::CREATED, location, body)
        }
        _ => (StatusCode::NO_CONTENT, location, String::new()),
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(location).ok().map(|it| (header::LOCATION, it)));
    headers.extend(HeaderValue::try_from(format!("\"{etag}\"")).ok().map(|it| (header::ETAG, it)));
    if status == StatusCode::CREATED {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    }
    response
}

/// Returns the redirect URL with the stored object in its query; `None` if the field is not a web URL.
fn redirect_to(field: &str, bucket: &str, key: &str, etag: &str) -> Option<String> {
    let uri: Uri = field.parse().ok()?;
    let is_of_web = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let separator = if uri.query().is_some() { '&' } else { '?' };
    let (address, etag) = (field.split('#').next()?, encoded(&format!("\"{etag}\"")));
    let (bucket, key) = (encoded(bucket), encoded(key));
    is_of_web.then(|| format!("{address}{separator}bucket={bucket}&key={key}&etag={etag}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn file_name_is_inserted_without_folders() {
        for (sent, name) in
            [("a.txt", "a.txt"), ("C:\\x\\a.txt", "a.txt"), ("../../a", "a"), ("x/", "")]
        {
            let mut form = fields(&[("key", "up/${filename}"), ("policy", "${filename}")]);
            insert_file_name(&mut form, sent);
            assert_eq!(form["key"], format!("up/{name}"));
            assert_eq!(form["policy"], "${filename}");
        }
    }

    #[test]
    fn success_action_redirect_requires_http_url() {
        let to = |field: &str| redirect_to(field, "pics", "a b", "0f");
        let query = "bucket=pics&key=a%20b&etag=%220f%22";
        assert_eq!(to("https://a.example/x"), Some(format!("https://a.example/x?{query}")));
        assert_eq!(to("http://a.example/?y=1#z"), Some(format!("http://a.example/?y=1&{query}")));
        for invalid in ["", "/x", "javascript:alert(1)", "ftp://a/x", "https://a/\r\nb: c"] {
            assert_eq!(to(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn form_fields_map_to_upload_headers() {
        let form = fields(&[
            ("key", "a"),
            ("acl", "private"),
            ("content-type", "image/png"),
            ("x-amz-date", "20300101T000000Z"),
            ("x-amz-meta-a", "b"),
            ("submit", "Upload"),
        ]);
        let headers = headers_of(&form).unwrap();
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["x-amz-acl"], "private");
        let broken = headers_of(&fields(&[("cache-control", "a\r\nb: c")])).unwrap_err();
        assert_eq!(broken.code().as_str(), "InvalidArgument");
    }

    #[test]
    fn tagging_field_is_parsed_as_tag_set() {
        let key = engine::ObjectKey::parse("a").unwrap();
        let described = |tagging: &str| {
            described_by(&fields(&[("key", "a"), ("tagging", tagging)]), &HeaderMap::new(), &key)
        };
        let tag = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
        assert_eq!(described(tag).unwrap().tags["a"], "1");
        for broken in ["a=1", "", "<Tagging><TagSet>"] {
            assert_eq!(described(broken).unwrap_err().code().as_str(), "MalformedXML", "{broken}");
        }
    }
}
