//! Encryption headers. Server-side encryption is not implemented; invalid headers are reported as such first.
//!
//! Source: S3 API, PutObject and "Using server-side encryption with customer-provided keys".
//!
//! Guarantees: a client learns that its headers contradict each other before it learns that encryption is not
//! supported. Non-goals: rejecting valid headers, which `parameters` does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use s3s::crypto::{Checksum as _, Md5};
use s3s::{S3ErrorCode, S3Result};

use super::errors::s3_error;

const METHOD: &str = "x-amz-server-side-encryption";
const KMS_KEY: &str = "x-amz-server-side-encryption-aws-kms-key-id";
const METHODS: [&str; 3] = ["AES256", KMS, "aws:kms:dsse"];
const KMS: &str = "aws:kms";
/// Algorithm, key and MD5 of a customer key: for the object, and for the source of a copy.
const CUSTOMER_KEYS: [[&str; 3]; 2] = [
    [
        "x-amz-server-side-encryption-customer-algorithm",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-server-side-encryption-customer-key-md5",
    ],
    [
        "x-amz-copy-source-server-side-encryption-customer-algorithm",
        "x-amz-copy-source-server-side-encryption-customer-key",
        "x-amz-copy-source-server-side-encryption-customer-key-md5",
    ],
];
const KEY_BYTES: usize = 32;

/// Rejects encryption headers that no S3 service accepts for an operation.
pub(super) fn check(operation: &str, headers: &HeaderMap) -> S3Result<()> {
    // A pass over the few headers of a request costs less than a lookup, which validates and hashes the name.
    let sent = |name: &str| {
        let found = headers.iter().find(|(it, _)| it.as_str() == name);
        found.map(|(_, value)| value.to_str().unwrap_or_default())
    };
    let is_read = matches!(operation, "GetObject" | "HeadObject");
    let method = sent(METHOD);
    if is_read && (method.is_some() || sent(KMS_KEY).is_some()) {
        return invalid("Reads of objects have no x-amz-server-side-encryption header");
    }
    if method.is_some_and(|method| !METHODS.contains(&method)) {
        return invalid("x-amz-server-side-encryption must be AES256, aws:kms or aws:kms:dsse");
    }
    if sent(KMS_KEY).is_some() && !method.is_some_and(|method| method.starts_with(KMS)) {
        return invalid("A KMS key id requires x-amz-server-side-encryption: aws:kms");
    }
    for names in CUSTOMER_KEYS {
        match names.map(sent) {
            [None, None, None] => {}
            _ if method.is_some() => {
                return invalid("A customer key excludes x-amz-server-side-encryption");
            }
            [Some("AES256"), Some(key), Some(digest)] if is_key(key, digest) => {}
            [Some("AES256"), Some(_), Some(_)] => {
                return invalid("The customer key must have 256 bits, and its MD5 must match");
            }
            _ => {
                return invalid("A customer key needs the algorithm AES256, the key and its MD5");
            }
        }
    }
    Ok(())
}

/// Returns whether a key, in base64, has 256 bits and this MD5.
fn is_key(key: &str, digest: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|key| {
        let mut md5 = Md5::new();
        md5.update(&key);
        key.len() == KEY_BYTES && STANDARD.encode(md5.finalize()) == digest
    })
}

fn invalid(message: &'static str) -> S3Result<()> {
    Err(s3_error(S3ErrorCode::InvalidArgument, message))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const KEY: &str = "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs=";
    const DIGEST: &str = "DWygnHRtgiJ77HCm+1rvHw==";

    fn is_valid(operation: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        check(operation, &headers.iter().map(pair).collect()).is_ok()
    }

    fn customer(algorithm: &'static str, key: &'static str, digest: &'static str) -> bool {
        let [algorithm_name, key_name, digest_name] = CUSTOMER_KEYS[0];
        let headers = [(algorithm_name, algorithm), (key_name, key), (digest_name, digest)];
        is_valid("PutObject", &headers)
    }

    #[test]
    fn customer_key_needs_algorithm_key_and_matching_md5() {
        assert!(customer("AES256", KEY, DIGEST));
        assert!(!customer("AES128", KEY, DIGEST));
        assert!(!customer("AES256", KEY, "AAAAAAAAAAAAAAAAAAAAAA=="));
        assert!(!customer("AES256", "c2hvcnQ=", "TUuTE7KgwLdQNBSBF/oqxQ=="));
        for name in CUSTOMER_KEYS.into_iter().flatten() {
            assert!(!is_valid("PutObject", &[(name, "AES256")]), "{name}");
        }
    }

    #[test]
    fn encryption_methods_exclude_each_other() {
        for (operation, headers, expected) in [
            ("PutObject", &[(METHOD, "AES256")][..], true),
            ("PutObject", &[(METHOD, "aws:kms"), (KMS_KEY, "k")], true),
            ("PutObject", &[(METHOD, "aes:kms")], false),
            ("PutObject", &[(METHOD, "AES256"), (KMS_KEY, "k")], false),
            ("PutObject", &[(KMS_KEY, "k")], false),
            ("GetObject", &[(METHOD, "aws:kms")], false),
            ("GetObject", &[], true),
        ] {
            assert_eq!(is_valid(operation, headers), expected, "{operation} {headers:?}");
        }
        let [algorithm, ..] = CUSTOMER_KEYS[0];
        assert!(!is_valid("PutObject", &[(METHOD, "AES256"), (algorithm, "AES256")]));
    }
}
