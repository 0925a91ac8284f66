//! Replication of an open store: acknowledgement, status, steps.

use std::sync::Arc;

use super::Store;
use crate::commit::CommitCallback;
use crate::error::Result;
use crate::replication::{RemoteGarbage, ReplicationStatus, ReplicationStep};

impl Store {
    /// Returns the status of replication; `None` if the store is not replicated. Does not block.
    pub fn replication_status(&self) -> Option<ReplicationStatus> {
        self.0.replication.as_ref().map(|replication| replication.status())
    }

    /// Returns the objects of the remote store that no later state needs; `None` if the store is not replicated. Reads
    /// the remote store, and changes nothing. Waits for the network.
    ///
    /// Fails with [`Error::ReadOnly`](crate::Error::ReadOnly) if the remote store has writes that this store lacks.
    pub fn remote_garbage(&self) -> Result<Option<RemoteGarbage>> {
        self.0.replication.as_ref().map(|replication| replication.garbage()).transpose()
    }

    /// Performs one step of shipping. For stores without threads.
    #[doc(hidden)]
    pub fn step_ship(&self) -> Result<ReplicationStep> {
        self.0.replication.as_ref().map_or(Ok(ReplicationStep::Idle), |it| it.step_ship())
    }

    /// Performs one step of uploads, manifests and collection. For stores without threads.
    #[doc(hidden)]
    pub fn step_replication_upkeep(&self) -> Result<ReplicationStep> {
        self.0.replication.as_ref().map_or(Ok(ReplicationStep::Idle), |it| it.step_upkeep())
    }

    /// Fails if a write could not be acknowledged for lack of the remote store.
    pub(super) fn require_replication(&self) -> Result<()> {
        self.0.replication.as_ref().map_or(Ok(()), |it| it.require_available())
    }

    /// Delays a callback until the remote store has the batch, if that is required.
    pub(super) fn when_replicated(&self, answer: CommitCallback) -> CommitCallback {
        let Some(replication) = self.0.replication.as_ref() else { return answer };
        if !replication.acknowledges_remotely() {
            return answer;
        }
        let replication = Arc::clone(replication);
        Box::new(move |committed| match committed {
            Ok(committed) if committed.last_lsn > 0 => {
                let lsn = committed.last_lsn;
                replication.when_shipped(lsn, move |shipped| answer(shipped.map(|()| committed)));
            }
            other => answer(other),
        })
    }

    /// Ships everything, if batches wait for the remote store and no thread does it.
    pub(super) fn ship_manually(&self) -> Result<()> {
        let waits = self.0.replication.as_ref().is_some_and(|it| it.acknowledges_remotely());
        while waits && self.step_ship()? == ReplicationStep::Worked {}
        Ok(())
    }
}
