//! HTTP client of the ACME library.
//!
//! Guarantees: requests are bounded in time and size; they go only to the configured origin, or to public addresses;
//! `Retry-After` of the certification authority is recorded, and bounded for the library, which adds it to a time.
//! Non-goals: content of the requests.

use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use engine::clock::Clock;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use outbound::OutboundClient;
use protocol::destination::{OutboundUrl, Scheme};
use tokio::time::timeout;

use super::limits;

/// HTTP client; clones share its state.
#[derive(Clone)]
pub(super) struct AcmeHttpClient {
    outbound: OutboundClient,
    clock: Arc<dyn Clock>,
    /// Seconds of the `Retry-After` in the last error response.
    rest_seconds: Arc<AtomicU64>,
}

impl AcmeHttpClient {
    pub(super) fn new(outbound: OutboundClient, clock: Arc<dyn Clock>) -> Self {
        Self { outbound, clock, rest_seconds: Arc::default() }
    }

    /// Takes the recorded `Retry-After`, once for each response that has one.
    pub(super) fn take_retry_after(&self) -> Duration {
        Duration::from_secs(self.rest_seconds.swap(0, Ordering::Relaxed))
    }
}

/// Reads `Retry-After`, and replaces the header by its seconds, bounded by the maximum wait.
fn bounded_rest(headers: &mut HeaderMap, now_ms: u64) -> Option<u64> {
    let value = headers.remove(RETRY_AFTER)?;
    let value = value.to_str().ok()?.trim();
    let seconds = match value.parse::<u64>() {
        Ok(seconds) => seconds,
        // More digits than a number can hold.
        Err(_) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => u64::MAX,
        Err(_) => {
            let at = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
            at.saturating_sub(Duration::from_millis(now_ms)).as_secs()
        }
    };
    let seconds = seconds.min(limits::RETRY_AFTER_MAX.as_secs());
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    Some(seconds)
}

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let address = request.uri().to_string();
            let broken = |why: &dyn Display| Error::Other(format!("{address}: {why}").into());
            let at = OutboundUrl::parse(&address).map_err(|why| broken(&why))?;
            if at.origin().scheme() != Scheme::Https {
                return Err(broken(&"the ACME server returned a URL without https"));
            }
            let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|why| broken(&why))?.to_bytes();
            let asked = this.outbound.request(
                &at,
                Request::from_parts(head, body),
                limits::RESPONSE_BYTES_MAX,
            );
            let answer = timeout(limits::RESPONSE_TIMEOUT, asked).await;
            let answer = answer.map_err(|_| broken(&"no response in time"))?;
            let mut answer = answer.map_err(|why| broken(&why))?;
            let rest = bounded_rest(answer.headers_mut(), this.clock.unix_ms());
            if let Some(seconds) = rest.filter(|_| !answer.status().is_success()) {
                this.rest_seconds.store(seconds, Ordering::Relaxed);
            }
            // An error response to a POST has a problem document; for other requests the library does not report the
            // status.
            if is_reading && !answer.status().is_success() {
                return Err(broken(&format!(
                    "the response status is {}",
                    answer.status().as_u16()
                )));
            }
            Ok(BytesResponse::from(answer.map(Full::new)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acme_retry_after_is_parsed_and_capped() {
        let now_ms = 784_111_777_000;
        let longest = limits::RETRY_AFTER_MAX.as_secs();
        for (header, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("18446744073709551615", Some(longest)),
            ("99999999999999999999999", Some(longest)),
            ("Sun, 06 Nov 1994 08:59:37 GMT", Some(600)),
            ("Sun, 06 Nov 1994 08:39:37 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(longest)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, header.parse().unwrap())]);
            assert_eq!(bounded_rest(&mut headers, now_ms), expected, "{header}");
            let left = headers.get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(left, expected.map(|seconds| seconds.to_string()), "{header}");
        }
        assert_eq!(bounded_rest(&mut HeaderMap::new(), now_ms), None);
    }
}
