//! Real servers in processes of their own.
//!
//! Is everything that was acknowledged there after the process was killed, or the power cut, again and again? A server
//! under load from real sockets is killed with SIGKILL at random moments, or its file system is cut off from the disk
//! under it. Each client keeps a log of what was acknowledged; after each restart everything in it is read back byte by
//! byte. What was in flight happened or did not, but whole: all files of a request, or none. A resumable upload goes on
//! from what was told.
//!
//! And does memory stay flat under many bytes and many connections? Is TLS what other programs take for it?
//! What changes under a server that goes on, and what is systemd told of it?

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod client;
mod ext4;
mod history;
mod jobs;
mod kill;
mod ledger;
mod memory;
mod power_cut;
mod release;
mod reload;
mod resumable;
mod service_manager;
mod tls;
mod tus_js;
mod webhooks;
