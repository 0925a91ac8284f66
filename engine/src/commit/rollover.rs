//! What the committer needs next, and what it leaves behind: the spare segment, and closed ones to be sealed.
//!
//! Promises: neither is on the way of an acknowledgement. A spare that could not be made is made when it is needed, and
//! made smaller where that is wanted and the disk has no more room; a closed segment that could not be sealed stays
//! readable, and the next opening seals it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::SegmentHeader;
use crate::segment::{SegmentSet, seal};

/// A log segment with a name and space but no header yet.
pub(crate) struct Spare {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    /// The space that it has.
    pub(crate) bytes: u64,
}

/// Hands over between the committer and the thread that prepares and seals.
pub(crate) struct Rollover {
    segments: Arc<SegmentSet>,
    segment_bytes: u64,
    state: Mutex<State>,
    /// Held while a spare is made.
    making: Mutex<()>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    spare: Option<Spare>,
    /// Whether a log segment is in use, so that a next one will be needed.
    wants_spare: bool,
    closed: VecDeque<(SegmentHeader, u64)>,
    stopped: bool,
}

impl Rollover {
    /// For segments of this size.
    pub(crate) fn new(segments: Arc<SegmentSet>, segment_bytes: u64) -> Self {
        Self {
            segments,
            segment_bytes,
            state: Mutex::default(),
            making: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// A spare, made now when none is ready. On a full disk it may be smaller than others, down to `bytes_min`.
    pub(crate) fn take_spare(&self, bytes_min: u64) -> Result<Spare> {
        // One that is being made is waited for: ids must ascend in the order in which segments are begun.
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = self.lock().spare.take();
        let spare = match ready {
            Some(spare) => spare,
            None => self.create_spare(bytes_min)?,
        };
        drop(making);
        self.lock().wants_spare = true;
        self.changed.notify_one();
        Ok(spare)
    }

    /// The committer is done with this segment; its groups end at `end`.
    pub(crate) fn close_segment(&self, header: SegmentHeader, end: u64) {
        self.lock().closed.push_back((header, end));
        self.changed.notify_one();
    }

    /// Does one thing that is due. False when there is nothing to do.
    pub(crate) fn step(&self) -> Result<bool> {
        let closed = self.lock().closed.pop_front();
        if let Some((header, end)) = closed {
            self.seal(&header, end)?;
            return Ok(true);
        }
        if !std::mem::take(&mut self.lock().wants_spare) {
            return Ok(false);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lock().spare.is_none() {
            let spare = self.create_spare(self.segment_bytes)?;
            self.lock().spare = Some(spare);
        }
        Ok(true)
    }

    /// Steps until told to stop. What fails is left as it is: see the promises above.
    pub(crate) fn run(&self) {
        loop {
            while matches!(self.step(), Ok(true)) {}
            let state = self.lock();
            let state = self
                .changed
                .wait_while(state, |s| !s.stopped && !s.wants_spare && s.closed.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            if state.stopped {
                return;
            }
        }
    }

    /// Ends [`Rollover::run`].
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Seals what is still to be sealed and gives the spare's space back: the store is closing.
    pub(crate) fn finish(&self) -> Result<()> {
        self.lock().wants_spare = false;
        let spare = self.lock().spare.take();
        if let Some(Spare { header, .. }) = spare {
            self.segments.retire(header.segment, header.class);
        }
        while self.step()? {}
        Ok(())
    }

    /// Asks for half as much as long as the disk has no room and it is not less than `bytes_min`.
    fn create_spare(&self, bytes_min: u64) -> Result<Spare> {
        let mut bytes = self.segment_bytes;
        loop {
            match self.segments.create_spare(bytes) {
                Ok((file, header)) => return Ok(Spare { file, header, bytes }),
                Err(Error::NoSpace) if bytes / 2 >= bytes_min => bytes /= 2,
                Err(other) => return Err(other),
            }
        }
    }

    fn seal(&self, header: &SegmentHeader, end: u64) -> Result<()> {
        match seal(self.segments.disk(), header, end) {
            Ok(_) => {
                self.segments.sealed(header.segment);
                Ok(())
            }
            Err(Error::NoSpace) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
