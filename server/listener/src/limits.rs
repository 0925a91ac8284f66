//! Limits of the crate `listener`, each with its source; see `limits.rs` of the server.

use std::num::NonZeroU32;
use std::time::Duration;

/// Longest request head. Product 3.1.
pub const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// Maximum read buffer of a connection.
pub const CONNECTION_READ_BYTES_MAX: usize = 32 * 1_024;
/// Maximum header fields of one request. Product 3.1.
pub const HEADERS_MAX: usize = 64;
/// Time-out of a request head, from its first byte or from the opening of the connection. Product finding 6.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time-out of a connection that has had a response.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time after which a connection is suspended: it has no buffers then.
pub const SUSPEND_TIMEOUT: Duration = Duration::from_secs(1);
/// Time-out of a client that reads nothing of its response.
pub const RESPONSE_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of checking whether a client that has shut down its sending side is still connected, while its response is
/// produced.
pub const DISCONNECT_PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Time for which remaining input is read after the last response, so that the client sees the response.
pub const LINGERING_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes that are read in that time. Large, because a client that sends 101 MiB reads nothing before it has
/// sent them.
pub const LINGERING_CLOSE_BYTES_MAX: u64 = 256 * 1_024 * 1_024;
/// Established connections that the system queues until they are accepted. It drops the others, whose clients retry
/// after a second. Linux bounds the queue by `net.core.somaxconn`, 4096 by default.
pub const ACCEPT_QUEUE_MAX: u32 = 4_096;
/// Maximum connections. When all are taken, those that are idle longest are closed for new ones.
pub const CONNECTIONS_MAX: usize = 8_192;
/// Idle connections that are closed at a time for new ones, so that evictions are rare.
pub const CONNECTIONS_EVICTED: usize = 32;
/// Maximum `X-Forwarded-For` entries that are evaluated, from the end of the list.
pub const FORWARDED_HOPS_MAX: usize = 16;
/// Maximum connections from one address, or one IPv6 /64.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 256;
/// Limit of all addresses of one IPv6 /48 together, as a multiple of the limit of one address. RFC 6177 suggests a /48
/// to a /56 for each customer.
pub const ADDRESSES_PER_NETWORK: NonZeroU32 = NonZeroU32::new(16).unwrap();
/// Maximum bytes read of a plain HTTP request on a TLS port, so that the client sees the response.
pub const PLAIN_HTTP_READ_BYTES_MAX: usize = 64 * 1_024;
/// Maximum concurrent streams of an HTTP/2 connection. RFC 9113 section 6.5.2 recommends no fewer.
pub const HTTP2_STREAMS_MAX: u32 = 100;
/// Flow-control window of an HTTP/2 stream: 10 MB per second at a round-trip time of 50 ms.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 512 * 1_024;
/// Flow-control window of an HTTP/2 connection: its maximum of upload data in memory.
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1_024 * 1_024;
/// Maximum bytes of an HTTP/2 response that wait for the client, besides the frame that was handed over last.
pub const HTTP2_SEND_BYTES_MAX: usize = 64 * 1_024;
/// Largest HTTP/2 frame, and largest chunk of a response: the minimum of RFC 9113.
pub const HTTP2_FRAME_BYTES_MAX: u32 = 16 * 1_024;
/// Longest request head of HTTP/2.
pub const HTTP2_HEAD_BYTES_MAX: u32 = HEAD_BYTES_MAX as u32;
/// Size of the HPACK header table of an HTTP/2 connection.
pub const HTTP2_HEADER_TABLE_BYTES: u32 = 4 * 1_024;
/// Maximum pending requests that were reset before they were processed ("rapid reset"); more end the connection.
pub const HTTP2_RESETS_PENDING_MAX: usize = 20;
/// Maximum streams that were reset for errors of the client; more end the connection.
pub const HTTP2_ERRORS_MAX: usize = 100;
/// Burst size of HTTP/2 frames that carry no payload (`PING`, `SETTINGS`, resets and so on): a browser that leaves a
/// page resets some hundred image requests.
pub const HTTP2_EMPTY_FRAMES_BURST: u64 = 1_000;
/// Rate of HTTP/2 frames without payload per second.
pub const HTTP2_EMPTY_FRAMES_PER_SECOND: u64 = 100;
/// Sent bytes that allow one more HTTP/2 frame without payload: a client acknowledges each window at least twice.
pub const HTTP2_BYTES_PER_EMPTY_FRAME: u64 = 1_024;
/// Default drain time of requests in flight during graceful shutdown. Product 3.2.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
