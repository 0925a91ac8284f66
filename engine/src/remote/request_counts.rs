//! Counts of the requests to a remote store, by call and result.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Created, Part, ReadPiece, RemoteBytes, RemoteObject, RemoteStore};

/// Kind of a call to a remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteCall {
    /// [`RemoteStore::create`].
    Create,
    /// [`RemoteStore::upload`].
    Upload,
    /// [`RemoteStore::read`].
    Read,
    /// [`RemoteStore::list`].
    List,
    /// [`RemoteStore::remove`].
    Remove,
}

impl RemoteCall {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Create, Self::Upload, Self::Read, Self::List, Self::Remove];

    /// Returns the name of the kind in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Upload => "upload",
            Self::Read => "read",
            Self::List => "list",
            Self::Remove => "remove",
        }
    }
}

/// Number of calls to a remote store since the store was opened, in the order of [`RemoteCall::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Successful calls.
    pub succeeded: [u64; RemoteCall::ALL.len()],
    /// Failed calls.
    pub failed: [u64; RemoteCall::ALL.len()],
}

impl RequestCounts {
    /// Returns the numbers of successful and of failed calls of a kind.
    pub fn of(&self, call: RemoteCall) -> [u64; 2] {
        // One entry for each kind.
        [&self.succeeded, &self.failed]
            .map(|counts| counts.get(call as usize).copied().unwrap_or(0))
    }
}

/// Remote store that counts its calls.
pub(crate) struct CountedRemote {
    inner: Arc<dyn RemoteStore>,
    succeeded: [AtomicU64; RemoteCall::ALL.len()],
    failed: [AtomicU64; RemoteCall::ALL.len()],
}

impl CountedRemote {
    /// Creates counters over a remote store.
    pub(crate) fn new(inner: Arc<dyn RemoteStore>) -> Self {
        Self { inner, succeeded: Default::default(), failed: Default::default() }
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> RequestCounts {
        let read = |counts: &[AtomicU64; RemoteCall::ALL.len()]| {
            counts.each_ref().map(|count| count.load(Ordering::Relaxed))
        };
        RequestCounts { succeeded: read(&self.succeeded), failed: read(&self.failed) }
    }

    fn counted<T>(&self, call: RemoteCall, result: io::Result<T>) -> io::Result<T> {
        let counts = if result.is_ok() { &self.succeeded } else { &self.failed };
        if let Some(count) = counts.get(call as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

impl RemoteStore for CountedRemote {
    fn create(&self, name: &str, pieces: &[Bytes]) -> io::Result<Created> {
        self.counted(RemoteCall::Create, self.inner.create(name, pieces))
    }

    fn upload(&self, name: &str, bytes: u64, read: &mut ReadPiece<'_>) -> io::Result<()> {
        self.counted(RemoteCall::Upload, self.inner.upload(name, bytes, read))
    }

    fn read(&self, name: &str, part: Part) -> io::Result<Option<RemoteBytes>> {
        self.counted(RemoteCall::Read, self.inner.read(name, part))
    }

    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<RemoteObject>> {
        self.counted(RemoteCall::List, self.inner.list(prefix, after, limit))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.counted(RemoteCall::Remove, self.inner.remove(name))
    }
}
