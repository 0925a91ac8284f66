//! Remote store: immutable objects outside the data folder, such as a prefix in an S3-compatible store.
//!
//! Replication keeps a copy of the store there: every object is created once, read by ranges, and removed, never
//! changed. The network implementation is in the crate `remote` of the server; the simulated one, for tests, is
//! `SimRemote`.
//! Names are printable ASCII, with `/` between path segments.
//!
//! Non-goals: the meaning of the objects; retries; credentials.

mod probe;
mod request_counts;

#[cfg(any(test, feature = "sim"))]
mod sim_remote;

use std::io;
use std::ops::Range;

use bytes::Bytes;

pub use self::probe::{ProbeReport, probe};
pub(crate) use self::request_counts::CountedRemote;
pub use self::request_counts::{RemoteCall, RequestCounts};
#[cfg(any(test, feature = "sim"))]
pub use self::sim_remote::{RemoteFault, SimRemote};

/// Remote store. Every call waits for the network. A call that fails may have taken effect.
pub trait RemoteStore: Send + Sync + 'static {
    /// Creates an object from consecutive pieces if there is none of this name. Atomic: of concurrent calls with one
    /// name exactly one returns [`Created::New`], if the store supports conditional requests ([`probe`]).
    ///
    /// After an error the object may exist; reading it tells.
    fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created>;

    /// Uploads an object of any length, read piece by piece, and replaces an existing one. Only for names that no
    /// other process uses; the object appears as a whole or not at all.
    fn upload(&self, name: &str, bytes: u64, read: &mut ReadPiece<'_>) -> io::Result<()>;

    /// Returns a part of an object; `None` if there is no object of this name. A range that reaches beyond the end
    /// returns the bytes up to the end.
    fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>>;

    /// Lists the objects whose names begin with `prefix`, in byte order, starting after the name `after`: at most
    /// `limit`. Shows every object that was created before the call.
    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<RemoteObject>>;

    /// Removes an object. A missing object is not an error.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Source of an upload: fills the buffer with the bytes from this offset.
pub type ReadPiece<'a> = dyn FnMut(u64, &mut [u8]) -> io::Result<()> + 'a;

/// Result of [`RemoteStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// The object was created by this call.
    New,
    /// An object of this name existed.
    Exists,
}

/// Part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole object. Only for objects that fit in memory.
    Whole,
    /// This range of bytes.
    Range(Range<u64>),
    /// The last bytes, at most this many.
    Suffix(u64),
}

/// Bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBytes {
    /// Bytes of the requested part.
    pub bytes: Bytes,
    /// Length of the whole object.
    pub object_bytes: u64,
}

/// Listed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteObject {
    /// Name, with the listed prefix.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change by the clock of the store, in milliseconds since 1970.
    pub modified_ms: u64,
}
