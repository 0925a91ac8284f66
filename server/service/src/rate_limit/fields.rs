//! Rate-limit response headers: draft-ietf-httpapi-ratelimit-headers-10, and the three older headers.
//!
//! Non-goals: `Retry-After`, which belongs to the error.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{RateLimitGrant, RateLimitPolicy, RateLimited, RemainingQuota};

const FIELDS: [HeaderName; 5] = [
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

impl RateLimitGrant {
    /// Adds the headers.
    pub fn insert_headers(&self, headers: &mut HeaderMap) {
        let Some(left) = &self.0 else { return };
        for (name, value) in fields(left.policy, left.remaining, left.reset_seconds()) {
            // Digits, quotes and constant names are always valid in a header.
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

impl RemainingQuota {
    /// Returns when the bucket is full again, or if it is empty, when the next token is available.
    fn reset_seconds(&self) -> u64 {
        let RateLimitPolicy { count, window_seconds, .. } = self.policy;
        let missing = if self.remaining == 0 { 1 } else { count - self.remaining.min(count) };
        (u64::from(missing) * u64::from(window_seconds)).div_ceil(u64::from(count)).max(1)
    }
}

impl RateLimited {
    /// Returns the headers of a rejected request.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, String)> {
        fields(self.policy, 0, self.retry_after_seconds)
    }
}

fn fields(
    policy: RateLimitPolicy,
    remaining: u32,
    reset_seconds: u64,
) -> impl Iterator<Item = (HeaderName, String)> {
    let RateLimitPolicy { name, count, window_seconds } = policy;
    let values = [
        format!("\"{name}\";q={count};w={window_seconds}"),
        format!("\"{name}\";r={remaining};t={reset_seconds}"),
        count.to_string(),
        remaining.to_string(),
        reset_seconds.to_string(),
    ];
    FIELDS.into_iter().zip(values)
}
