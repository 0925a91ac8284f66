//! One-byte codes of common content types in index entries.
//!
//! Guarantees: within one version of the index tables, a code is never reassigned to another type.
//! Non-goals: the content type of an object, and other content types.

use super::malformed::Malformed;

/// Content types by code, starting at 1.
const CONTENT_TYPE_CODES: [&str; 26] = [
    "image/jpeg",
    "image/png",
    "image/webp",
    "image/gif",
    "image/avif",
    "image/svg+xml",
    "image/heic",
    "image/tiff",
    "image/x-icon",
    "video/mp4",
    "video/webm",
    "video/quicktime",
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/json",
    "application/xml",
    "text/plain",
    "text/html",
    "text/css",
    "text/javascript",
    "font/woff2",
];

/// Returns the code of a content type; 0 if it has none.
pub(super) fn encode(content_type: &str) -> u8 {
    let known = CONTENT_TYPE_CODES.iter().zip(1..);
    known.filter(|(known, _)| **known == content_type).map(|(_, number)| number).next().unwrap_or(0)
}

/// Returns the content type of a nonzero code.
pub(super) fn decode(number: u8) -> Result<&'static str, Malformed> {
    let at = usize::from(number).checked_sub(1);
    at.and_then(|at| CONTENT_TYPE_CODES.get(at)).copied().ok_or(Malformed::Kind(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_codes_are_one_to_one() {
        for (known, number) in CONTENT_TYPE_CODES.iter().zip(1..) {
            assert_eq!(encode(known), number);
            assert_eq!(decode(number), Ok(*known));
        }
        for other in ["", "image/jpg", "image/jpeg; q=1"] {
            assert_eq!(encode(other), 0);
        }
        for none in [0, 27, 255] {
            assert_eq!(decode(none), Err(Malformed::Kind(none)));
        }
    }
}
