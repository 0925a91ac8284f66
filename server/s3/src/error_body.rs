//! Error body elements that `s3s` does not write: resource, request id, region.
//!
//! Non-goals: codes and messages.

use http::StatusCode;
use http::header::{self, HeaderMap};
use quick_xml::escape::escape;

use super::signed::REGION;

const END: &str = "</Error>";
const REGION_IS_WRONG: &str = "<Code>AuthorizationHeaderMalformed</Code>";

/// Returns the error body with these elements; `None` if the body is no error.
pub(super) fn complete(
    status: StatusCode,
    body: &[u8],
    resource: &str,
    request_id: &str,
) -> Option<String> {
    let is_refusal = status.is_client_error() || status.is_server_error();
    let text = std::str::from_utf8(body).ok().filter(|_| is_refusal)?;
    let (start, _) = text.split_once(END)?;
    let region = match start.contains(REGION_IS_WRONG) {
        true => format!("<Region>{REGION}</Region>"),
        false => String::new(),
    };
    let (resource, request_id) = (escape(resource), escape(request_id));
    Some(format!(
        "{start}{region}<Resource>{resource}</Resource><RequestId>{request_id}</RequestId>\
         <HostId>{request_id}</HostId>{END}"
    ))
}

/// Inserts the request id under the names that SDKs log.
pub(super) fn add_request_id(headers: &mut HeaderMap, request_id: &str) {
    if let Ok(value) = header::HeaderValue::try_from(request_id) {
        headers.insert("x-amz-id-2", value.clone());
        headers.insert("x-amz-request-id", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"<?xml?><Error><Code>NoSuchKey</Code></Error>";

    #[test]
    fn error_body_has_resource_and_request_id() {
        let completed = complete(StatusCode::NOT_FOUND, BODY, "/b/<a>", "r1").unwrap();
        assert!(completed.contains("<Resource>/b/&lt;a&gt;</Resource><RequestId>r1</RequestId>"));
        assert!(completed.starts_with("<?xml?><Error><Code>") && completed.ends_with("</Error>"));
        assert!(!completed.contains("Region"));
        let malformed = b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>";
        let completed = complete(StatusCode::BAD_REQUEST, malformed, "/", "r1").unwrap();
        assert!(completed.contains("<Region>us-east-1</Region>"));
    }

    #[test]
    fn non_error_body_is_unchanged() {
        assert_eq!(complete(StatusCode::OK, BODY, "/b", "r1"), None);
        assert_eq!(complete(StatusCode::NOT_FOUND, b"", "/b", "r1"), None);
    }
}
