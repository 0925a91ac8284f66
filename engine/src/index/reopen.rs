//! Opening the index file again after redb gave it up.
//!
//! redb takes no more calls on a file once one has failed, though the disk may have failed for a moment only, or have
//! been full. Then the file is opened again beside everything else, as after a crash: what it holds is an older or a
//! newer checkpoint, and the changes since lie in memory, over either.
//!
//! Promises: no change is lost; the file that was given up is never written to again ([`RedbFile`](crate::disk)); where
//! a sync failed, or a write for another reason than room, the file stays given up until the next opening, because
//! nobody knows what it holds. Readers try once in [`limits::INDEX_REOPEN_MS`], a checkpoint once each time.
//! Never here: repairing damage.

use std::sync::Arc;

use super::tables::{Checkpointed, INDEX_FILE, Opened, damaged};
use super::{Index, View};
use crate::disk::{GivenUp, RedbFile, Why};
use crate::error::{Error, Result};
use crate::format::{AppliedPosition, Malformed};
use crate::limits;

/// What became of opening the file again.
#[derive(Default)]
pub(super) struct Reopening {
    /// When it was last tried; monotonic.
    tried_ms: Option<u64>,
    /// Whether it can do no good any more.
    is_over: bool,
}

impl Index {
    /// The view as of now, over the file opened again where it was given up and that may help.
    pub(crate) fn view(&self) -> Arc<View> {
        let view = self.published();
        // Whoever holds this opens it again already, or is a checkpoint, which does so itself.
        if view.checkpointed.given_up().why().is_some()
            && let Ok(mut reopening) = self.draining.try_lock()
        {
            // Where it stays given up, whoever reads what is not in memory hears why.
            let _ = self.reopen_now_and_then(&mut reopening);
            return self.published();
        }
        view
    }

    /// Opens the file again if it was given up, unless that was tried just now.
    pub(super) fn reopen_now_and_then(&self, reopening: &mut Reopening) -> Result<()> {
        let now_ms = self.place.clock.monotonic_ms();
        match reopening.tried_ms {
            Some(at) if now_ms < at.saturating_add(limits::INDEX_REOPEN_MS) => self.require_open(),
            _ => self.reopen(reopening),
        }
    }

    /// Opens the file again if it was given up.
    pub(super) fn reopen(&self, reopening: &mut Reopening) -> Result<()> {
        let view = self.published();
        let given_up = view.checkpointed.given_up();
        let Some(why) = given_up.why() else { return Ok(()) };
        if self.tables.is_closed() {
            return Err(Error::Closed);
        }
        if why == Why::Write || reopening.is_over || self.is_condemned() {
            return Err(for_good(given_up));
        }
        reopening.tried_ms = Some(self.place.clock.monotonic_ms());
        let file = self.place.disk.open(INDEX_FILE);
        let file = file.map_err(|source| Error::io(format!("opening {INDEX_FILE}"), source))?;
        let file = RedbFile::new(file);
        let given_up_again = file.given_up();
        let opened = Self::guard(|| self.open_to_go_on(file, &view));
        let (opened, checkpointed) = opened.inspect_err(|error| {
            reopening.is_over |= given_up_again.why() == Some(Why::Write);
            if Self::is_damage(error) {
                self.condemn();
            }
        })?;
        self.tables.replace(opened);
        self.update(|view| View { checkpointed: Arc::new(checkpointed), ..view });
        Ok(())
    }

    /// An error where the file was given up. [`Error::NoSpace`] means that it is opened again once there is room.
    pub(super) fn require_open(&self) -> Result<()> {
        let view = self.published();
        let given_up = view.checkpointed.given_up();
        match given_up.why() {
            None => Ok(()),
            Some(Why::Full) => Err(Error::NoSpace),
            Some(Why::Read | Why::Write) => Err(for_good(given_up)),
        }
    }

    /// Opens the file for the changes in memory of this view.
    fn open_to_go_on(&self, file: RedbFile, view: &View) -> Result<(Opened, Checkpointed)> {
        let opened = Opened::open(file, self.place.cache_bytes)?;
        if !opened.is_of(self.place.store)? {
            return Err(damaged(Malformed::Place));
        }
        let checkpointed = opened.read()?;
        // It is the checkpoint that they lie over, or the one that was being written, and holds some of them already.
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

/// What the disk said of a file that stays given up. Also a lack of room is one of those things where a sync met it.
fn for_good(given_up: &GivenUp) -> Error {
    let doing = "using the index".to_owned();
    let source = given_up.error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
    Error::Io { doing, source: Arc::new(source) }
}
