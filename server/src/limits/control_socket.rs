//! Limits of the control socket.

use std::time::Duration;

/// Largest request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 1_024 * 1_024;
/// Largest reply that the command line reads, in bytes.
pub const REPLY_BYTES_MAX: usize = 256 * 1_024 * 1_024;
/// Concurrent connections; further ones wait.
pub const CONNECTIONS_MAX: usize = 16;
/// Interval between the progress reports of a long request, and so the longest time until a disconnected client is
/// noticed.
pub const PROGRESS_WAIT: Duration = Duration::from_millis(250);
/// Time that a request waits for its client to open the channel of its content.
pub const CHANNEL_WAIT: Duration = Duration::from_secs(5);
/// Bytes of content in one piece of a channel.
pub const PIECE_BYTES: usize = 64 * 1_024;
