//! Ids of requests, in responses, logs, traces and the audit log.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

/// Id of a request; shown as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u64);

/// Generator of request ids: unique within a process, and very likely across processes.
#[derive(Debug)]
pub struct RequestIds {
    start: u64,
    count: AtomicU64,
}

impl RequestId {
    /// Creates the id with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Converts the id to a header value.
    pub fn to_header_value(self) -> HeaderValue {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 16];
        for (at, byte) in text.iter_mut().rev().enumerate() {
            let digit = (self.0 >> (4 * at)) & 0xf;
            *byte = DIGITS.get(digit as usize).copied().unwrap_or(b'0');
        }
        HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl RequestIds {
    /// Creates a generator whose ids start at a random number.
    pub fn new(start: u64) -> Self {
        Self { start, count: AtomicU64::new(0) }
    }

    /// Returns the next id.
    pub fn next(&self) -> RequestId {
        // An odd factor makes consecutive ids look different, and never repeats a number.
        let number = self.count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        RequestId(self.start.wrapping_add(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_have_16_digits_and_differ() {
        let ids = RequestIds::new(0xf0);
        let first = ids.next();
        assert_eq!(first.to_string(), "00000000000000f0");
        assert_eq!(first.to_header_value(), "00000000000000f0");
        assert_ne!(ids.next(), first);
    }
}
