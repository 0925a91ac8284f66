//! Request body of an object, verified against the length and checksums that the client sent.
//!
//! Guarantees: a body with a wrong length or checksum ends with an error in place of its end, so that nothing of it is
//! stored; its MD5 is computed on the way; nothing is buffered. Non-goals: signatures, which `s3s` verifies below.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use catalog::object_attributes::StoredChecksum;
use http::HeaderMap;
use http_body::{Body, Frame};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::Checksum;
use s3s::{S3Error, S3ErrorCode, TrailingHeaders};

use super::checksums::{ALGORITHMS, Algorithm, hasher, value_of};
use super::errors::{code, s3_error};

/// Body under verification.
pub(super) struct VerifiedBody {
    body: s3s::Body,
    /// `None` at the end of the body.
    digests: Option<Digests>,
    report: BodyReport,
}

/// Running hashes of the content, compared at its end with those that the client sent.
pub(super) struct Digests {
    expected: ExpectedBody,
    md5: Md5,
    hasher: Option<ChecksumHasher>,
    bytes: u64,
}

/// Length and checksums that the client sent.
#[derive(Default)]
pub(super) struct ExpectedBody {
    bytes: Option<u64>,
    /// MD5 in base64.
    md5: Option<String>,
    /// Checksums in headers.
    checksums: Vec<(Algorithm, String)>,
    /// Algorithms of trailing checksums.
    trailing: Vec<Algorithm>,
    /// Algorithm that is computed in any case.
    taken: Option<Algorithm>,
    trailers: Option<TrailingHeaders>,
}

/// Result of the verification, shared with the consumer of the body. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct BodyReport(Arc<Mutex<BodyOutcome>>);

#[derive(Default)]
struct BodyOutcome {
    md5: Option<[u8; 16]>,
    checksum: Option<StoredChecksum>,
    failure: Option<S3Error>,
}

/// Error of a body that does not match; the report has the reason.
#[derive(Debug)]
pub(super) struct BodyMismatch;

impl fmt::Display for BodyMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body does not match the request headers")
    }
}

impl std::error::Error for BodyMismatch {}

impl ExpectedBody {
    /// Parses the headers of a request.
    pub(super) fn from_headers(headers: &HeaderMap, trailers: Option<TrailingHeaders>) -> Self {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim().to_owned());
        let checksum = |it: Algorithm| Some((it, text(&it.header())?));
        let announced = text("x-amz-trailer").unwrap_or_default().to_ascii_lowercase();
        let is_trailing = |of: &Algorithm| announced.split(',').any(|it| it.trim() == of.header());
        let bytes = text("x-amz-decoded-content-length").or_else(|| text("content-length"));
        Self {
            bytes: bytes.and_then(|bytes| bytes.parse().ok()),
            md5: text("content-md5"),
            checksums: ALGORITHMS.into_iter().filter_map(checksum).collect(),
            trailing: ALGORITHMS.into_iter().filter(is_trailing).collect(),
            taken: None,
            trailers,
        }
    }

    /// Returns the length of the body without its framing, if the client sent it.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Requests a checksum regardless of what the client sent.
    pub(super) fn taking(self, algorithm: Option<Algorithm>) -> Self {
        Self { taken: algorithm, ..self }
    }

    fn needs_hash(&self, algorithm: Algorithm) -> bool {
        self.taken == Some(algorithm)
            || self.trailing.contains(&algorithm)
            || self.checksums.iter().any(|(it, _)| *it == algorithm)
    }

    /// Returns the checksum to store for a verified body.
    fn stored(&self, sums: &Checksum) -> Option<StoredChecksum> {
        let wanted = || ALGORITHMS.into_iter().find(|it| self.needs_hash(*it));
        let algorithm = self.taken.or_else(wanted)?;
        let value = value_of(sums, algorithm)?.to_owned();
        Some(StoredChecksum { algorithm: algorithm.name().to_owned(), value })
    }

    /// Verifies the body.
    fn check(&self, bytes: u64, md5: &[u8; 16], sums: Option<&Checksum>) -> Result<(), S3Error> {
        if self.bytes.is_some_and(|said| said != bytes) {
            return Err(s3_error(
                S3ErrorCode::IncompleteBody,
                "The body does not have the announced length",
            ));
        }
        let bad = || s3_error(S3ErrorCode::BadDigest, "The checksum of the body does not match");
        if let Some(said) = &self.md5 {
            let decoded = STANDARD.decode(said).unwrap_or_default();
            if decoded.len() != md5.len() {
                return Err(s3_error(
                    S3ErrorCode::InvalidDigest,
                    "Content-MD5 is not a base64-encoded MD5",
                ));
            }
            if decoded != md5 {
                return Err(bad());
            }
        }
        let Some(sums) = sums else { return Ok(()) };
        if self.checksums.iter().any(|(it, said)| value_of(sums, *it) != Some(said.as_str())) {
            return Err(bad());
        }
        for algorithm in &self.trailing {
            let header = algorithm.header();
            let said = self.trailers.as_ref().and_then(|trailers| {
                let read =
                    |trailers: &HeaderMap| Some(trailers.get(&header)?.to_str().ok()?.to_owned());
                trailers.read(read).flatten()
            });
            let Some(said) = said else {
                let message = "The trailing checksum is missing";
                return Err(s3_error(code("MalformedTrailerError"), message));
            };
            if value_of(sums, *algorithm) != Some(said.as_str()) {
                return Err(bad());
            }
        }
        Ok(())
    }
}

impl BodyReport {
    /// Returns the MD5 of a complete body.
    pub(super) fn md5(&self) -> Option<[u8; 16]> {
        self.outcome().md5
    }

    /// Returns the checksum of a complete body, if one was sent or requested.
    pub(super) fn checksum(&self) -> Option<StoredChecksum> {
        self.outcome().checksum.clone()
    }

    /// Takes the error of an incomplete or invalid body.
    pub(super) fn take_failure(&self) -> Option<S3Error> {
        self.outcome().failure.take()
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, BodyOutcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Digests {
    pub(super) fn new(expected: ExpectedBody) -> Self {
        let hasher = hasher(|algorithm| expected.needs_hash(algorithm));
        Self { expected, md5: Md5::new(), hasher, bytes: 0 }
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.md5.update(piece);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
        }
    }

    /// Returns the number of received bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the MD5, and the checksum to store; fails if the content is not what the client sent.
    pub(super) fn finish(self) -> Result<([u8; 16], Option<StoredChecksum>), S3Error> {
        let md5: [u8; 16] = self.md5.finalize();
        let sums = self.hasher.map(ChecksumHasher::finalize);
        self.expected.check(self.bytes, &md5, sums.as_ref())?;
        Ok((md5, sums.as_ref().and_then(|sums| self.expected.stored(sums))))
    }
}

impl VerifiedBody {
    pub(super) fn new(body: s3s::Body, expected: ExpectedBody) -> (Self, BodyReport) {
        let report = BodyReport::default();
        (Self { body, digests: Some(Digests::new(expected)), report: report.clone() }, report)
    }

    fn end(&mut self) -> Result<(), BodyMismatch> {
        let Some(digests) = self.digests.take() else { return Ok(()) };
        match digests.finish() {
            Ok((md5, checksum)) => {
                let mut outcome = self.report.outcome();
                (outcome.md5, outcome.checksum) = (Some(md5), checksum);
                Ok(())
            }
            Err(failure) => {
                self.report.outcome().failure = Some(failure);
                Err(BodyMismatch)
            }
        }
    }
}

/// Converts an error of the lower body to an S3 error.
fn broken(why: &(dyn std::error::Error + Send + Sync)) -> Option<S3Error> {
    let why = why.to_string();
    if why.contains("Sha256Mismatch") {
        let message = "The body does not match the signed hash";
        return Some(s3_error(code("XAmzContentSHA256Mismatch"), message));
    }
    why.contains("SignatureMismatch").then(|| {
        s3_error(S3ErrorCode::SignatureDoesNotMatch, "A chunk of the body has a wrong signature")
    })
}

impl Body for VerifiedBody {
    type Data = Bytes;
    type Error = BodyMismatch;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyMismatch>>> {
        let this = &mut *self;
        match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            None => Poll::Ready(this.end().err().map(Err)),
            Some(Err(why)) => {
                this.report.outcome().failure = broken(&*why);
                Poll::Ready(Some(Err(BodyMismatch)))
            }
            Some(Ok(frame)) => {
                if let Some((digests, data)) = this.digests.as_mut().zip(frame.data_ref()) {
                    digests.update(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn outcome(headers: &[(&'static str, &str)], body: &str) -> Result<[u8; 16], String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let body = s3s::Body::from(Bytes::copy_from_slice(body.as_bytes()));
        let (incoming, report) = VerifiedBody::new(body, ExpectedBody::from_headers(&map, None));
        match incoming.collect().await {
            Ok(_) => Ok(report.md5().unwrap()),
            Err(_) => Err(report.take_failure().unwrap().code().as_str().to_owned()),
        }
    }

    #[tokio::test]
    async fn body_hash_and_length_are_verified() {
        let md5 = [
            0x5d, 0x41, 0x40, 0x2a, 0xbc, 0x4b, 0x2a, 0x76, 0xb9, 0x71, 0x9d, 0x91, 0x10, 0x17,
            0xc5, 0x92,
        ];
        let fine: [&[(&'static str, &str)]; 5] = [
            &[],
            &[("content-length", "5")],
            &[("content-length", "99"), ("x-amz-decoded-content-length", "5")],
            &[("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")],
            &[
                ("x-amz-checksum-crc32", "NhCmhg=="),
                ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
            ],
        ];
        for headers in fine {
            assert_eq!(outcome(headers, "hello").await, Ok(md5), "{headers:?}");
        }
        for (headers, code) in [
            (("content-length", "6"), "IncompleteBody"),
            (("content-length", "4"), "IncompleteBody"),
            (("content-md5", "XUFAKrxLKna5cZ2REBfFkQ=="), "BadDigest"),
            (("content-md5", "abc"), "InvalidDigest"),
            (("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="), "BadDigest"),
            (("x-amz-checksum-sha256", ""), "BadDigest"),
            (("x-amz-trailer", "x-amz-checksum-crc32"), "MalformedTrailerError"),
        ] {
            assert_eq!(outcome(&[headers], "hello").await, Err(code.to_owned()), "{headers:?}");
        }
    }
}
