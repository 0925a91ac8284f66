//! Real servers in processes of their own.
//!
//! Durability: every acknowledged change survives repeated kills and power cuts. A server under load from real sockets
//! is killed with SIGKILL at random moments, or its file system is cut off from the disk under it. Each client keeps a
//! log of acknowledged changes; after each restart everything in it is read back byte by byte. A request in flight took
//! effect or did not, but as a whole: all files of a request, or none. A resumable upload continues from the
//! acknowledged offset.
//!
//! Replication: every remotely acknowledged change survives the loss of the data folder.
//!
//! Other tests: memory stays flat under many bytes and many connections; TLS works with other programs; settings change
//! at run time; systemd is notified.

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
mod juicefs;
mod kill;
mod ledger;
mod memory;
mod power_cut;
mod release;
mod reload;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "remote")]
mod remote_network;
mod resumable;
mod service_manager;
mod tls;
mod tus_js;
mod webhooks;
