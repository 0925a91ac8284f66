//! Reopens the index file after an I/O failure.
//!
//! redb rejects all calls on a file after one has failed, although the disk may have failed only temporarily, or
//! have been full. The file is then reopened while the store stays open, as after a crash: it contains an older or
//! newer checkpoint, and the later changes are in memory, valid over either.
//!
//! Guarantees: no change is lost; nothing is written through the failed handle ([`RedbFile`](crate::disk)); after a
//! failed sync, or a write that failed for another reason than space, the file stays closed until the next open of
//! the store, because its state is unknown. Reads retry once per [`limits::INDEX_REOPEN_MS`], each checkpoint once.
//! Non-goals: repairing damage.

use std::sync::Arc;

use super::tables::{Checkpointed, INDEX_FILE, Opened, damaged};
use super::{Index, View};
use crate::disk::{FailureKind, FileFailure, RedbFile};
use crate::error::{Error, Result};
use crate::format::{AppliedPosition, Malformed};
use crate::limits;

/// State of reopening the file.
#[derive(Default)]
pub(super) struct ReopenState {
    /// Time of the last attempt; monotonic.
    tried_ms: Option<u64>,
    /// Whether further attempts are useless.
    is_over: bool,
}

impl Index {
    /// Returns the current view, after reopening a failed file if that may help.
    pub(crate) fn view(&self) -> Arc<View> {
        let view = self.published();
        // The lock holder is reopening the file, or is a checkpoint, which reopens it itself.
        if view.checkpointed.given_up().kind().is_some()
            && let Ok(mut reopening) = self.draining.try_lock()
        {
            // If the file stays failed, reads that are not served from memory return the reason.
            let _ = self.reopen_periodically(&mut reopening);
            return self.published();
        }
        view
    }

    /// Reopens a failed file, unless that was tried a moment ago.
    pub(super) fn reopen_periodically(&self, reopening: &mut ReopenState) -> Result<()> {
        let now_ms = self.place.clock.monotonic_ms();
        match reopening.tried_ms {
            Some(at) if now_ms < at.saturating_add(limits::INDEX_REOPEN_MS) => self.require_open(),
            _ => self.reopen(reopening),
        }
    }

    /// Reopens a failed file.
    pub(super) fn reopen(&self, reopening: &mut ReopenState) -> Result<()> {
        let view = self.published();
        let given_up = view.checkpointed.given_up();
        let Some(why) = given_up.kind() else { return Ok(()) };
        if self.tables.is_closed() {
            return Err(Error::Closed);
        }
        if why == FailureKind::Write || reopening.is_over || self.is_marked_corrupt() {
            return Err(is_permanent(given_up));
        }
        reopening.tried_ms = Some(self.place.clock.monotonic_ms());
        let file = self.place.disk.open(INDEX_FILE);
        let file = file.map_err(|source| Error::io(format!("opening {INDEX_FILE}"), source))?;
        let file = RedbFile::new(file);
        let given_up_again = file.failure();
        let opened = Self::guard(|| self.open_after_failure(file, &view));
        let (opened, checkpointed) = opened.inspect_err(|error| {
            reopening.is_over |= given_up_again.kind() == Some(FailureKind::Write);
            if Self::is_damage(error) {
                self.mark_corrupt();
            }
        })?;
        self.tables.replace(opened);
        self.update(|view| View { checkpointed: Arc::new(checkpointed), ..view });
        Ok(())
    }

    /// Fails if the file has failed. [`Error::NoSpace`] means that it is reopened once there is space.
    pub(super) fn require_open(&self) -> Result<()> {
        let view = self.published();
        let given_up = view.checkpointed.given_up();
        match given_up.kind() {
            None => Ok(()),
            Some(FailureKind::Full) => Err(Error::NoSpace),
            Some(FailureKind::Read | FailureKind::Write) => Err(is_permanent(given_up)),
        }
    }

    /// Opens the file below the changes in memory of this view.
    fn open_after_failure(&self, file: RedbFile, view: &View) -> Result<(Opened, Checkpointed)> {
        let opened = Opened::open(file, self.place.cache_bytes)?;
        if !opened.is_of(self.place.store)? {
            return Err(damaged(Malformed::Misplaced));
        }
        let checkpointed = opened.read()?;
        // The file has the checkpoint below the changes, or the one that was being written, which already contains
        // some of them.
        let found = checkpointed.position();
        let lsn_of = |position: Option<AppliedPosition>| position.map(|position| position.lsn);
        let frozen = view.frozen.as_ref().and_then(|frozen| frozen.position);
        if found == view.checkpointed.position()
            || found.is_some() && lsn_of(found) == lsn_of(frozen)
        {
            return Ok((opened, checkpointed));
        }
        Err(damaged(Malformed::Order))
    }
}

/// Returns the disk error of a file that stays failed, including a lack of space met by a sync.
fn is_permanent(given_up: &FileFailure) -> Error {
    let doing = "using the index".to_owned();
    let source = given_up.error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
    Error::Io { doing, source: Arc::new(source) }
}
