//! Protocol headers of resumable uploads, tus 1.0 (<https://tus.io/protocols/resumable-upload>): parsing and
//! formatting.
//!
//! Extensions: creation, creation-with-upload, expiration, checksum, termination. Guarantees: malformed input is
//! rejected with an error that states the valid form; nothing is guessed. Non-goals: upload state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::limits;

/// Header with the protocol version.
pub const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const VERSION: &str = "1.0.0";
const EXTENSIONS: &str = "creation,creation-with-upload,expiration,checksum,termination";
const ALGORITHMS: &str = "sha1,sha256";

/// Client metadata of a file: pairs of a name and a value, in the client's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadMetadata(Vec<(String, String)>);

impl UploadMetadata {
    /// Parses `Upload-UploadMetadata`: comma-separated pairs of a name and its value in base64.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let refuse = || {
            ApiError::bad_header("Upload-Metadata", "must be pairs of a name and a base64 value")
        };
        if text.len() > limits::TUS_METADATA_BYTES_MAX {
            return Err(refuse());
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
            let bytes = STANDARD.decode(value.trim()).map_err(|_| refuse())?;
            let value = String::from_utf8(bytes).map_err(|_| refuse())?;
            if name.is_empty() || pairs.iter().any(|(other, _)| other == name) {
                return Err(refuse());
            }
            pairs.push((name.to_owned(), value));
        }
        Ok(Self(pairs))
    }

    /// Returns the first value that is present and not empty under one of these names.
    pub fn text(&self, names: &[&str]) -> Option<&str> {
        let of = |name: &&str| self.0.iter().find(|(other, _)| other == name);
        names.iter().filter_map(of).map(|(_, value)| value.as_str()).find(|value| !value.is_empty())
    }
}

/// Expected checksum of a chunk, and the hash of the bytes so far.
pub struct ChunkChecksum {
    expected: Vec<u8>,
    running: RunningHash,
}

enum RunningHash {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl ChunkChecksum {
    /// Parses `Upload-Checksum`: the name of an algorithm, and a hash in base64.
    pub fn from_header(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let Some(value) = headers.get("upload-checksum") else { return Ok(None) };
        let refuse = || {
            ApiError::bad_header("Upload-Checksum", "must be sha1 or sha256 and the hash in base64")
        };
        let text = value.to_str().map_err(|_| refuse())?;
        let (algorithm, hash) = text.trim().split_once(' ').ok_or_else(refuse)?;
        let expected = STANDARD.decode(hash.trim()).map_err(|_| refuse())?;
        let (running, bytes) = match algorithm {
            "sha1" => (RunningHash::Sha1(Sha1::new()), 20),
            "sha256" => (RunningHash::Sha256(Sha256::new()), 32),
            _ => return Err(refuse()),
        };
        if expected.len() != bytes {
            return Err(refuse());
        }
        Ok(Some(Self { expected, running }))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.running {
            RunningHash::Sha1(hasher) => hasher.update(bytes),
            RunningHash::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Returns whether the bytes match the checksum.
    pub fn matches(self) -> bool {
        match self.running {
            RunningHash::Sha1(hasher) => hasher.finalize().as_slice() == self.expected,
            RunningHash::Sha256(hasher) => hasher.finalize().as_slice() == self.expected,
        }
    }
}

/// Parses an integer header; `None` if the header is absent.
pub fn number(headers: &HeaderMap, name: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse().ok().filter(|_| is_plain);
    parsed.map(Some).ok_or_else(|| ApiError::bad_header(name, "must be an integer"))
}

/// Rejects an unsupported protocol version.
pub fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(TUS_RESUMABLE) {
        Some(version) if version == VERSION => Ok(()),
        _ => Err(ApiError::tus_version(VERSION)),
    }
}

/// Adds the header with the protocol version.
pub fn insert_version_header(headers: &mut HeaderMap) {
    headers.insert(TUS_RESUMABLE, HeaderValue::from_static(VERSION));
}

/// Returns the supported tus version and extensions.
#[utoipa::path(
    options,
    path = "/api/tus/",
    operation_id = "tusOptions",
    tag = "Resumable uploads",
    security(()),
    responses((status = NO_CONTENT, description = "Supported versions of the tus protocol.", headers(
        ("Tus-Resumable" = String),
        ("Tus-Version" = String),
        ("Tus-Extension" = String),
        ("Tus-Checksum-Algorithm" = String),
        ("Tus-Max-Size" = u64, description = "Maximum file size in bytes."),
    )))
)]
pub fn option_headers(headers: &mut HeaderMap) {
    insert_version_header(headers);
    headers.insert("tus-version", HeaderValue::from_static(VERSION));
    headers.insert("tus-extension", HeaderValue::from_static(EXTENSIONS));
    headers.insert("tus-checksum-algorithm", HeaderValue::from_static(ALGORITHMS));
    headers.insert("tus-max-size", HeaderValue::from(engine::limits::OBJECT_BYTES_MAX));
}
