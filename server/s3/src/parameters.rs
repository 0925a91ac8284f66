//! Supported `x-amz-*` headers and query parameters of each operation.
//!
//! Guarantees: a parameter that changes the meaning of a request is supported or rejected, never ignored. Non-goals:
//! the effect of supported parameters.

use http::HeaderMap;
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::acl::check_new_object;
use super::encryption;
use super::errors::{code, s3_error};
use super::signed::SignedQuery;

/// Supported values of a parameter.
#[derive(Clone, Copy)]
enum Values {
    Any,
    /// Only these, case-insensitive; they request the default behaviour.
    Only(&'static [&'static str]),
    /// The account id of the bucket owner.
    Owner,
    /// A canned access control list that the operation checks.
    Acl,
    /// A canned access control list of an object that is stored.
    ObjectAcl,
}

use self::Values::{Acl, Any, ObjectAcl, Only, Owner};

/// All operations.
const EVERY: &[&str] = &[];
/// Operations that create an object.
const BEGIN: &[&str] = &["PutObject", "CopyObject", "CreateMultipartUpload"];
/// Operations whose body becomes content.
const BODY: &[&str] = &["PutObject", "UploadPart"];
/// Operations that read an object.
const READ: &[&str] = &["GetObject", "HeadObject"];
const COPY: &[&str] = &["CopyObject", "UploadPartCopy"];
const LIST: &[&str] = &["ListObjects", "ListObjectsV2", "ListObjectVersions"];
const COMPLETE: &[&str] = &["CompleteMultipartUpload"];
const ACLS: &[&str] = &["CreateBucket", "PutBucketAcl", "PutObjectAcl"];
/// Operations on one version of an object.
const VERSIONED: &[&str] = &[
    "GetObject",
    "HeadObject",
    "DeleteObject",
    "GetObjectAcl",
    "PutObjectAcl",
    "GetObjectTagging",
    "PutObjectTagging",
    "DeleteObjectTagging",
    "GetObjectAttributes",
    "GetObjectRetention",
    "PutObjectRetention",
    "GetObjectLegalHold",
    "PutObjectLegalHold",
];

/// Bucket of a request, for the check of its parameters.
#[derive(Clone, Copy)]
pub(super) struct RequestBucket<'a> {
    pub(super) owner: &'a str,
    pub(super) blocks_public_acls: bool,
}

/// Name, or prefix of names if it ends in `*`; operations that support it; supported values.
type Row = (&'static str, &'static [&'static str], Values);

const HEADERS: &[Row] = &[
    ("x-amz-date", EVERY, Any),
    ("x-amz-content-sha256", EVERY, Any),
    ("x-amz-decoded-content-length", EVERY, Any),
    ("x-amz-trailer", EVERY, Any),
    ("x-amz-sdk-checksum-algorithm", EVERY, Any),
    ("x-amz-user-agent", EVERY, Any),
    ("x-amz-request-payer", EVERY, Any),
    ("x-amz-expected-bucket-owner", EVERY, Owner),
    ("x-amz-source-expected-bucket-owner", COPY, Owner),
    ("x-amz-checksum-crc32", EVERY, Any),
    ("x-amz-checksum-crc32c", EVERY, Any),
    ("x-amz-checksum-crc64nvme", EVERY, Any),
    ("x-amz-checksum-sha1", EVERY, Any),
    ("x-amz-checksum-sha256", EVERY, Any),
    ("x-amz-checksum-algorithm", &["PutObject", "CreateMultipartUpload", "DeleteObjects"], Any),
    ("x-amz-checksum-type", &["CreateMultipartUpload", "CompleteMultipartUpload"], Any),
    ("x-amz-checksum-type", BODY, Only(&["FULL_OBJECT"])),
    ("x-amz-checksum-mode", READ, Any),
    ("x-amz-meta-*", BEGIN, Any),
    ("x-amz-metadata-directive", &["CopyObject"], Any),
    ("x-amz-tagging-directive", &["CopyObject"], Any),
    ("x-amz-tagging", BEGIN, Any),
    ("x-amz-acl", ACLS, Acl),
    ("x-amz-acl", BEGIN, ObjectAcl),
    ("x-amz-storage-class", BEGIN, Only(&["STANDARD"])),
    ("x-amz-copy-source", COPY, Any),
    ("x-amz-copy-source-range", &["UploadPartCopy"], Any),
    ("x-amz-copy-source-if-match", COPY, Any),
    ("x-amz-copy-source-if-none-match", COPY, Any),
    ("x-amz-copy-source-if-modified-since", COPY, Any),
    ("x-amz-copy-source-if-unmodified-since", COPY, Any),
    ("x-amz-mp-object-size", COMPLETE, Any),
    ("x-amz-if-match-size", &["DeleteObject"], Any),
    ("x-amz-if-match-last-modified-time", &["DeleteObject"], Any),
    ("x-amz-object-lock-mode", BEGIN, Any),
    ("x-amz-object-lock-retain-until-date", BEGIN, Any),
    ("x-amz-object-lock-legal-hold", BEGIN, Any),
    (
        "x-amz-bypass-governance-retention",
        &["DeleteObject", "DeleteObjects", "PutObjectRetention"],
        Any,
    ),
    ("x-amz-bucket-object-lock-enabled", &["CreateBucket"], Any),
    ("x-amz-object-ownership", &["CreateBucket"], Only(&["BucketOwnerEnforced"])),
    ("x-amz-object-attributes", &["GetObjectAttributes"], Any),
    ("x-amz-max-parts", &["GetObjectAttributes"], Any),
    ("x-amz-part-number-marker", &["GetObjectAttributes"], Any),
    ("x-amz-optional-object-attributes", LIST, Any),
];

const QUERY: &[Row] = &[
    ("x-id", EVERY, Any),
    ("versionId", VERSIONED, Any),
    ("partNumber", &["GetObject", "HeadObject", "UploadPart", "UploadPartCopy"], Any),
    (
        "uploadId",
        &[
            "UploadPart",
            "UploadPartCopy",
            "CompleteMultipartUpload",
            "AbortMultipartUpload",
            "ListParts",
        ],
        Any,
    ),
    ("response-cache-control", READ, Any),
    ("response-content-disposition", READ, Any),
    ("response-content-encoding", READ, Any),
    ("response-content-language", READ, Any),
    ("response-content-type", READ, Any),
    ("response-expires", READ, Any),
    (
        "prefix",
        &[
            "ListBuckets",
            "ListObjects",
            "ListObjectsV2",
            "ListObjectVersions",
            "ListMultipartUploads",
        ],
        Any,
    ),
    ("delimiter", LIST, Any),
    (
        "encoding-type",
        &["ListObjects", "ListObjectsV2", "ListObjectVersions", "ListMultipartUploads"],
        Any,
    ),
    ("max-keys", LIST, Any),
    ("marker", &["ListObjects"], Any),
    ("list-type", &["ListObjectsV2"], Any),
    ("continuation-token", &["ListObjectsV2", "ListBuckets"], Any),
    ("start-after", &["ListObjectsV2"], Any),
    ("fetch-owner", &["ListObjectsV2"], Any),
    ("key-marker", &["ListObjectVersions", "ListMultipartUploads"], Any),
    ("version-id-marker", &["ListObjectVersions"], Any),
    ("upload-id-marker", &["ListMultipartUploads"], Any),
    ("max-uploads", &["ListMultipartUploads"], Any),
    ("max-parts", &["ListParts"], Any),
    ("part-number-marker", &["ListParts"], Any),
    ("max-buckets", &["ListBuckets"], Any),
    ("bucket-region", &["ListBuckets"], Only(&[super::signed::REGION])),
];

/// Query parameters of other S3 implementations, rejected for every operation. Names that no implementation defines are
/// ignored, as AWS does.
const DEFINED: &[&str] = &["allow-unordered", "metadata", "events", "snapshot", "cascadedelete"];

/// Rejects parameters that an operation does not support. `bucket` is the bucket of the request, if the caller may know
/// of it.
pub(super) fn check(
    operation: &str,
    headers: &HeaderMap,
    query: &SignedQuery,
    bucket: Option<RequestBucket<'_>>,
) -> S3Result<()> {
    encryption::check(operation, headers)?;
    for (name, value) in headers {
        let name = name.as_str();
        if name.starts_with("x-amz-") {
            let value = value.to_str().unwrap_or("\u{fffd}");
            check_one(HEADERS, operation, name, value, bucket)?;
        }
    }
    for (name, value) in query.pairs() {
        let is_known = QUERY.iter().any(|(it, ..)| *it == name);
        if is_known || DEFINED.contains(&name) || changes_a_write(name) {
            check_one(QUERY, operation, name, value, bucket)?;
        }
    }
    Ok(())
}

/// Returns whether a query parameter is a header that some SDKs move into a presigned URL, and that would be lost
/// there.
fn changes_a_write(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-meta-")
        || name.starts_with("x-amz-server-side-encryption")
        || name.starts_with("x-amz-object-lock")
        || name.starts_with("x-amz-grant-")
        || ["x-amz-acl", "x-amz-tagging", "x-amz-storage-class"].contains(&name.as_str())
}

fn check_one(
    rows: &[Row],
    operation: &str,
    name: &str,
    value: &str,
    bucket: Option<RequestBucket<'_>>,
) -> S3Result<()> {
    let is_row = |row: &&Row| {
        let (of, operations, _) = row;
        let is_named = match of.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *of == name,
        };
        is_named && (operations.is_empty() || operations.contains(&operation))
    };
    match rows.iter().find(is_row) {
        Some((.., Any | Acl)) => Ok(()),
        Some((.., ObjectAcl)) => check_new_object(value, bucket),
        Some((.., Owner)) if bucket.is_none_or(|it| it.owner == value) => Ok(()),
        Some((.., Owner)) => {
            Err(s3_error(S3ErrorCode::AccessDenied, "The bucket has another owner than expected"))
        }
        Some((.., Only(values))) if values.iter().any(|it| it.eq_ignore_ascii_case(value)) => {
            Ok(())
        }
        _ => Err(not_understood(name, value)),
    }
}

fn not_understood(name: &str, value: &str) -> S3Error {
    match name {
        "versionId" => {
            s3_error(S3ErrorCode::InvalidArgument, "This operation does not support versionId")
        }
        "x-amz-storage-class" => {
            s3_error(code("InvalidStorageClass"), "The only storage class is STANDARD")
        }
        _ => {
            let value: String = value.chars().take(64).collect();
            let message = format!(
                "This operation does not have the parameter {name} with the value {value:?}"
            );
            S3Error::with_message(S3ErrorCode::NotImplemented, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn outcome(operation: &str, headers: &[(&'static str, &'static str)], query: &str) -> String {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let uri = format!("/b/k?{query}").parse().unwrap();
        let bucket = RequestBucket { owner: "ann", blocks_public_acls: false };
        let headers = HeaderMap::from_iter(headers);
        let checked = check(operation, &headers, &SignedQuery::of(&uri), Some(bucket));
        checked.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
    }

    #[test]
    fn meaningful_headers_are_honored_or_rejected() {
        for (operation, name, value, code) in [
            ("PutObject", "x-amz-server-side-encryption-customer-key", "a", "InvalidArgument"),
            ("PutObject", "x-amz-server-side-encryption", "aws:kms", "NotImplemented"),
            ("PutObject", "x-amz-object-lock-mode", "COMPLIANCE", "ok"),
            ("UploadPart", "x-amz-object-lock-mode", "COMPLIANCE", "NotImplemented"),
            ("PutObject", "x-amz-tagging", "a=b", "ok"),
            ("UploadPart", "x-amz-tagging", "a=b", "NotImplemented"),
            ("PutObject", "x-amz-acl", "public-read", "ok"),
            ("PutObject", "x-amz-acl", "public-read-write", "NotImplemented"),
            ("PutObject", "x-amz-acl", "private", "ok"),
            ("PutBucketAcl", "x-amz-acl", "public-read", "ok"),
            ("GetObject", "x-amz-acl", "private", "NotImplemented"),
            ("PutObject", "x-amz-grant-read", "id=1", "NotImplemented"),
            ("PutObject", "x-amz-website-redirect-location", "/", "NotImplemented"),
            ("PutObject", "x-amz-write-offset-bytes", "5", "NotImplemented"),
            ("PutObject", "x-amz-storage-class", "GLACIER", "InvalidStorageClass"),
            ("PutObject", "x-amz-storage-class", "STANDARD", "ok"),
            ("PutObject", "x-amz-expected-bucket-owner", "bob", "AccessDenied"),
            ("PutObject", "x-amz-expected-bucket-owner", "ann", "ok"),
            ("PutObject", "x-amz-meta-a", "b", "ok"),
            ("PutObject", "x-amz-copy-source", "b/k", "NotImplemented"),
            ("GetObject", "x-amz-server-side-encryption-customer-key", "a", "InvalidArgument"),
            ("PutObject", "x-amz-server-side-encryption", "AES256", "NotImplemented"),
            ("CreateBucket", "x-amz-bucket-object-lock-enabled", "true", "ok"),
            ("DeleteObject", "x-amz-mfa", "1", "NotImplemented"),
            ("DeleteObject", "x-amz-if-match-size", "1", "ok"),
            ("PutObject", "x-amz-if-match-size", "1", "NotImplemented"),
        ] {
            assert_eq!(
                outcome(operation, &[(name, value)], ""),
                code,
                "{operation} {name}: {value}"
            );
        }
    }

    #[test]
    fn foreign_query_parameters_are_ignored() {
        for (operation, query, code) in [
            ("GetObject", "versionId=null", "ok"),
            ("PutObject", "versionId=null", "InvalidArgument"),
            ("GetObject", "partNumber=2", "ok"),
            ("DeleteObject", "partNumber=2", "NotImplemented"),
            ("PutObject", "response-content-type=a", "NotImplemented"),
            ("PutObject", "x-amz-meta-a=b", "NotImplemented"),
            ("PutObject", "x-amz-checksum-crc32=AAAAAA%3D%3D", "ok"),
            ("ListObjectsV2", "allow-unordered=true", "NotImplemented"),
            ("GetObject", "utm_source=a&X-Amz-Signature=b&x-id=GetObject", "ok"),
        ] {
            assert_eq!(outcome(operation, &[], query), code, "{operation} {query}");
        }
    }
}
