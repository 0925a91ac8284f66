//! AWS Signature Version 4, in a header of a request without a body.
//!
//! Guarantees: the signed text is sent byte for byte: the caller encodes path and query with [`escaped`] and sends them
//! unchanged. Non-goals: sending, and the time.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::Credentials;

/// SHA-256 of an empty body.
pub(super) const NO_BODY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Parts of a request that are signed.
pub(super) struct Unsigned<'a> {
    /// Escaped path.
    pub(super) path: &'a str,
    /// Escaped query, with its parameters sorted by name.
    pub(super) query: &'a str,
    /// Headers with lower-case names, sorted. Include `host` and `x-amz-date`.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// Time as in `x-amz-date`: `20130524T000000Z`.
    pub(super) time: &'a str,
    pub(super) region: &'a str,
}

/// Returns the value of `Authorization`.
pub(super) fn authorization(request: &Unsigned<'_>, credentials: &Credentials) -> String {
    let Unsigned { path, query, headers, time, region } = request;
    let date = time.split('T').next().unwrap_or_default();
    let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let canonical = format!("GET\n{path}\n{query}\n{lines}\n{names}\n{NO_BODY}");
    let scope = format!("{date}/{region}/s3/aws4_request");
    let hash = hex(&Sha256::digest(canonical));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
    let first = format!("AWS4{}", credentials.secret_access_key);
    let key = [date, region, "s3", "aws4_request"]
        .iter()
        .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, to_sign.as_bytes()));
    let id = &credentials.access_key_id;
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope},SignedHeaders={names},Signature={signature}")
}

/// Escapes text for a path, where `/` stays, or for a query.
pub(super) fn escaped(text: &str, keeps_slashes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            b'/' if keeps_slashes => escaped.push('/'),
            other => {
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    escaped
}

#[allow(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples from "Authenticating Requests: Using the Authorization Header" in the S3 API reference.
    #[test]
    fn sigv4_matches_the_documented_examples() {
        let credentials = Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let time = "20130524T000000Z";
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let (hash, date) = (("x-amz-content-sha256", NO_BODY), ("x-amz-date", time));
        let ranged = [host, ("range", "bytes=0-9"), hash, date];
        let plain = [host, hash, date];
        for (path, query, headers, expected) in [
            (
                "/test.txt",
                "",
                &ranged[..],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "/",
                "lifecycle=",
                &plain[..],
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "/",
                "max-keys=2&prefix=J",
                &plain[..],
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let request = Unsigned { path, query, headers, time, region: "us-east-1" };
            let signed = authorization(&request, &credentials);
            assert!(signed.ends_with(&format!("Signature={expected}")), "{path}?{query}: {signed}");
            let scope = "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,";
            assert!(signed.contains(scope), "{signed}");
        }
        assert_eq!(hex(&Sha256::digest("")), NO_BODY);
    }

    #[test]
    fn sigv4_escapes_reserved_characters_once() {
        assert_eq!(escaped("a//b c+%20\u{e9}~*", true), "a//b%20c%2B%2520%C3%A9~%2A");
        assert_eq!(escaped("a/b", false), "a%2Fb");
    }
}
