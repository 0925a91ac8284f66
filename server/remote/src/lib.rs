//! Remote stores: an S3-compatible store, Google Cloud Storage, Azure Blob Storage, or a folder.
//!
//! ```text
//! lib             connection to a remote store
//! object_calls    the engine's interface, over `object_store`
//! providers       clients of the kinds of stores
//! http_client     HTTP client of `object_store`
//! open_folder     folder of a remote store, opened once
//! location        URL, endpoint, region and credentials
//! limits          sizes, time-outs and retries
//! ```
//!
//! Guarantees: a creation is one request, never repeated here, because only the engine knows whether an existing object
//! is its own; every call has a time-out; an upload takes one part of memory; secrets are in no error and no `Debug`.
//! Non-goals: meaning of the objects, encryption, reading of files with credentials.

mod http_client;
pub mod limits;
mod location;
mod object_calls;
mod open_folder;
mod providers;

use std::fmt;
use std::sync::Arc;

use engine::remote::RemoteStore;
use outbound::trust_anchors::TrustAnchors;
use tokio::runtime::Handle;

pub use self::location::{InvalidLocation, RemoteLocation};
use self::object_calls::ObjectCalls;

/// Remote store that cannot be connected to: its client cannot be created. No request was sent.
#[derive(Debug)]
pub struct ConnectError(String);

/// Creates a client of a remote store. Sends nothing yet.
///
/// The calls of the client run on the runtime, and must be made from a thread that is not one of its workers.
/// Certificates of the endpoint are verified with Mozilla's authorities and `roots`.
pub fn connect(
    location: &RemoteLocation,
    roots: &TrustAnchors,
    runtime: Handle,
) -> Result<Arc<dyn RemoteStore>, ConnectError> {
    let clients = providers::clients(location, roots)?;
    Ok(Arc::new(ObjectCalls::new(clients, runtime)))
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConnectError {}
