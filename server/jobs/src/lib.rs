//! Work on many objects, in the background or for a request.
//!
//! ```text
//! scheduler           background jobs: deletion, move, restore, import, compaction, scrub
//! object_operations   move, copy, deletion and restore of files
//! webhooks            delivery of webhook events
//! archive             export and import of a bucket or a folder
//! expiry              deletion of expired objects
//! fair_use            sweep of accounts in violation of fair use
//! compaction          compaction on request
//! log_scan            log scans for requests, one at a time
//! thumbnail_object    names and batches of thumbnails
//! running_jobs        registry of running jobs
//! context             state that these modules share
//! services            what they need of the server: authorization, rate limits, uploads
//! ```
//!
//! Non-goals: requests and responses.

pub mod archive;
pub mod compaction;
mod context;
mod expiry;
pub mod fair_use;
pub mod limits;
pub mod log_scan;
pub mod object_operations;
mod running_jobs;
pub mod scheduler;
pub mod services;
pub mod thumbnail_object;
pub mod webhooks;

pub use self::context::Context;
pub use self::expiry::{ExpirySweep, run_expiry};
