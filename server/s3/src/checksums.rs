//! Checksums of objects and of their parts (S3 API).
//!
//! A multipart upload has a checksum of the whole content (`FULL_OBJECT`) or of the checksums of its parts
//! (`COMPOSITE`), which ends in `-` and the number of parts. Non-goals: verifying request bodies (`incoming`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catalog::object_attributes::StoredChecksum;
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::{Checksum, ChecksumType};
use s3s::{S3ErrorCode, S3Result};

use super::errors::s3_error;

/// Checksum algorithm of S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

pub(super) const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme, Algorithm::Sha1, Algorithm::Sha256];

impl Algorithm {
    /// Parses an algorithm name as in `x-amz-checksum-crc32`, case-insensitively.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        ALGORITHMS.into_iter().find(|it| it.name().eq_ignore_ascii_case(name.trim()))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Crc64Nvme => "crc64nvme",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Returns the name of the checksum header.
    pub(super) fn header(self) -> String {
        format!("x-amz-checksum-{}", self.name())
    }

    /// Returns the length of a checksum in base64.
    pub(super) fn base64_bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 8,
            Self::Crc64Nvme => 12,
            Self::Sha1 => 28,
            Self::Sha256 => 44,
        }
    }

    /// Returns the default [`ChecksumType`] of a multipart upload.
    pub(super) fn default_kind(self) -> &'static str {
        match self {
            Self::Crc64Nvme => ChecksumType::FULL_OBJECT,
            _ => ChecksumType::COMPOSITE,
        }
    }

    /// Rejects combinations that S3 does not define: a full-object SHA, a composite CRC-64.
    pub(super) fn check_kind(self, kind: &str) -> S3Result<()> {
        let is_known = match kind {
            ChecksumType::FULL_OBJECT => !matches!(self, Self::Sha1 | Self::Sha256),
            ChecksumType::COMPOSITE => self != Self::Crc64Nvme,
            _ => false,
        };
        let message = "Unknown checksum algorithm or type";
        is_known.then_some(()).ok_or_else(|| s3_error(S3ErrorCode::InvalidRequest, message))
    }
}

/// Returns the algorithm of the checksum that a request sends or announces.
pub(super) fn announced(headers: &HeaderMap) -> Option<Algorithm> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let named = text("x-amz-checksum-algorithm").and_then(Algorithm::of_name);
    let trailing = text("x-amz-trailer").and_then(|it| it.trim().strip_prefix("x-amz-checksum-"));
    named
        .or_else(|| ALGORITHMS.into_iter().find(|it| headers.contains_key(it.header())))
        .or_else(|| trailing.and_then(Algorithm::of_name))
}

/// Copies the checksum fields that requests, responses and parts of S3 have in common.
macro_rules! copy_checksums {
    ($from:expr => $to:expr) => {
        $to.checksum_crc32 = $from.checksum_crc32.clone();
        $to.checksum_crc32c = $from.checksum_crc32c.clone();
        $to.checksum_crc64nvme = $from.checksum_crc64nvme.clone();
        $to.checksum_sha1 = $from.checksum_sha1.clone();
        $to.checksum_sha256 = $from.checksum_sha256.clone();
    };
}
pub(super) use copy_checksums;

/// Checksum of content that is read in chunks; nothing is computed without an algorithm.
pub(super) struct RunningChecksum {
    algorithm: Option<Algorithm>,
    hasher: Option<ChecksumHasher>,
}

impl RunningChecksum {
    pub(super) fn new(algorithm: Option<Algorithm>) -> Self {
        Self { algorithm, hasher: hasher(|it| Some(it) == algorithm) }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// Returns the checksum in base64.
    pub(super) fn finish(self) -> Option<String> {
        let sums = self.hasher?.finalize();
        value_of(&sums, self.algorithm?).map(str::to_owned)
    }
}

/// Creates a hasher for these algorithms; `None` without any.
pub(super) fn hasher(wants: impl Fn(Algorithm) -> bool) -> Option<ChecksumHasher> {
    if !ALGORITHMS.into_iter().any(&wants) {
        return None;
    }
    Some(ChecksumHasher {
        crc32: wants(Algorithm::Crc32).then(Crc32::new),
        crc32c: wants(Algorithm::Crc32c).then(Crc32c::new),
        crc64nvme: wants(Algorithm::Crc64Nvme).then(Crc64Nvme::new),
        sha1: wants(Algorithm::Sha1).then(Sha1::new),
        sha256: wants(Algorithm::Sha256).then(Sha256::new),
    })
}

/// Returns the checksum of an algorithm among those of a body.
pub(super) fn value_of(sums: &Checksum, algorithm: Algorithm) -> Option<&str> {
    match algorithm {
        Algorithm::Crc32 => sums.checksum_crc32.as_deref(),
        Algorithm::Crc32c => sums.checksum_crc32c.as_deref(),
        Algorithm::Crc64Nvme => sums.checksum_crc64nvme.as_deref(),
        Algorithm::Sha1 => sums.checksum_sha1.as_deref(),
        Algorithm::Sha256 => sums.checksum_sha256.as_deref(),
    }
}

/// Computes the checksum of the checksums of parts, in their order; `None` if a part has none.
pub(super) fn composite<'a>(
    algorithm: Algorithm,
    parts: impl ExactSizeIterator<Item = Option<&'a str>>,
) -> Option<String> {
    let count = parts.len();
    let mut checksum = RunningChecksum::new(Some(algorithm));
    for part in parts {
        checksum.update(&STANDARD.decode(part?).ok()?);
    }
    checksum.finish().map(|value| format!("{value}-{count}"))
}

/// Returns the checksum fields of a response.
pub(super) fn response_of(checksum: Option<&StoredChecksum>) -> Checksum {
    let mut response = Checksum::default();
    let Some(StoredChecksum { algorithm, value }) = checksum else { return response };
    let Some(algorithm) = Algorithm::of_name(algorithm) else { return response };
    let kind =
        if value.contains('-') { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT };
    response.checksum_type = Some(ChecksumType::from_static(kind));
    let value = Some(value.clone());
    match algorithm {
        Algorithm::Crc32 => response.checksum_crc32 = value,
        Algorithm::Crc32c => response.checksum_crc32c = value,
        Algorithm::Crc64Nvme => response.checksum_crc64nvme = value,
        Algorithm::Sha1 => response.checksum_sha1 = value,
        Algorithm::Sha256 => response.checksum_sha256 = value,
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_checksum_hashes_part_checksums() {
        // zlib.crc32 of those of "hello" and of nothing, four bytes each, big-endian.
        let parts = ["NhCmhg==", "AAAAAA=="];
        let of = |parts: &[&str]| {
            let parts: Vec<_> = parts.iter().map(|it| Some(*it)).collect();
            composite(Algorithm::Crc32, parts.into_iter())
        };
        assert_eq!(of(&parts).as_deref(), Some("sL2unA==-2"));
        assert_eq!(composite(Algorithm::Crc32, [Some("NhCmhg=="), None].into_iter()), None);
    }

    #[test]
    fn checksum_algorithms_match_s3() {
        let is_known = |algorithm: Algorithm, kind: &str| algorithm.check_kind(kind).is_ok();
        for algorithm in ALGORITHMS {
            assert!(is_known(algorithm, algorithm.default_kind()), "{algorithm:?}");
            assert!(!is_known(algorithm, "PARTIAL"), "{algorithm:?}");
        }
        assert!(is_known(Algorithm::Crc32, ChecksumType::FULL_OBJECT));
        assert!(!is_known(Algorithm::Sha256, ChecksumType::FULL_OBJECT));
        assert!(!is_known(Algorithm::Crc64Nvme, ChecksumType::COMPOSITE));
    }

    #[test]
    fn checksum_response_includes_its_type() {
        let stored =
            |value: &str| StoredChecksum { algorithm: "sha256".into(), value: value.into() };
        let kind = |value: &str| response_of(Some(&stored(value))).checksum_type.unwrap();
        assert_eq!(kind("abc=").as_str(), "FULL_OBJECT");
        assert_eq!(kind("abc=-3").as_str(), "COMPOSITE");
        assert_eq!(response_of(None), Checksum::default());
    }

    #[test]
    fn checksum_algorithm_is_read_from_header_or_trailer() {
        for (name, value, algorithm) in [
            ("x-amz-checksum-sha1", "a", Some(Algorithm::Sha1)),
            ("x-amz-checksum-algorithm", "CRC64NVME", Some(Algorithm::Crc64Nvme)),
            ("x-amz-trailer", "x-amz-checksum-crc32c", Some(Algorithm::Crc32c)),
            ("x-amz-checksum-mode", "ENABLED", None),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )]);
            assert_eq!(announced(&headers), algorithm, "{name}");
        }
    }
}
