//! Limits of the crate `outbound`, each with its source; see `limits.rs` of the server.

use std::time::Duration;

/// Time-out of connecting and of the response of a destination. Standard Webhooks suggests 15 to 30 s; a shorter time
/// leaves more capacity for others.
pub const POST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time-out of a response body, which does not affect the result: only the status counts.
pub const POST_RESPONSE_BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes read of a response body.
pub const POST_RESPONSE_BYTES_MAX: usize = 4 * 1_024;
/// Maximum addresses of one host name that are tried.
pub const ADDRESSES_PER_HOST_MAX: usize = 4;
/// Maximum redirects that are followed.
pub const REDIRECTS_MAX: usize = 5;
/// Time-out of a response head, per URL including redirects.
pub const RESPONSE_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time-out of a connection of the pooled client, with its TLS handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which the pooled client closes an idle connection. Load balancers of object stores close it after 60 s.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);
