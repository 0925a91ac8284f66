//! Segment rollover: preallocates the spare segment and seals closed ones.
//!
//! Guarantees: neither delays an acknowledgement. If a spare could not be preallocated, it is created on demand,
//! smaller if allowed and the disk is nearly full; a closed segment that could not be sealed stays readable, and the
//! next open seals it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::SegmentHeader;
use crate::segment::{SegmentSet, seal};

/// Log segment with a name and reserved space but no header yet.
pub(crate) struct SpareSegment {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) header: SegmentHeader,
    /// Reserved bytes.
    pub(crate) bytes: u64,
}

/// Exchange between the committer and the thread that preallocates and seals.
pub(crate) struct Rollover {
    segments: Arc<SegmentSet>,
    segment_bytes: u64,
    state: Mutex<State>,
    /// Locked while a spare is created.
    making: Mutex<()>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    spare: Option<SpareSegment>,
    /// Whether a log segment is in use, so that a spare will be needed.
    needs_spare: bool,
    closed: VecDeque<(SegmentHeader, u64)>,
    stopped: bool,
}

impl Rollover {
    /// Creates the rollover for segments of this size.
    pub(crate) fn new(segments: Arc<SegmentSet>, segment_bytes: u64) -> Self {
        Self {
            segments,
            segment_bytes,
            state: Mutex::default(),
            making: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the spare, or creates one. On a full disk it may be smaller than usual, down to `bytes_min`.
    pub(crate) fn take_spare(&self, bytes_min: u64) -> Result<SpareSegment> {
        // Waits for a running preallocation: ids must ascend in the order in which segments are begun.
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = self.lock().spare.take();
        let spare = match ready {
            Some(spare) => spare,
            None => self.create_spare(bytes_min)?,
        };
        drop(making);
        self.lock().needs_spare = true;
        self.changed.notify_one();
        Ok(spare)
    }

    /// Closes this segment, whose groups end at `end`, for sealing.
    pub(crate) fn close_segment(&self, header: SegmentHeader, end: u64) {
        self.lock().closed.push_back((header, end));
        self.changed.notify_one();
    }

    /// Performs one due task. Returns false if there is none.
    pub(crate) fn step(&self) -> Result<bool> {
        let closed = self.lock().closed.pop_front();
        if let Some((header, end)) = closed {
            self.seal(&header, end)?;
            return Ok(true);
        }
        if !std::mem::take(&mut self.lock().needs_spare) {
            return Ok(false);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lock().spare.is_none() {
            let spare = self.create_spare(self.segment_bytes)?;
            self.lock().spare = Some(spare);
        }
        Ok(true)
    }

    /// Performs due tasks until stopped. Failed tasks are left for later, as described in the module head.
    pub(crate) fn run(&self) {
        loop {
            while matches!(self.step(), Ok(true)) {}
            let state = self.lock();
            let state = self
                .changed
                .wait_while(state, |s| !s.stopped && !s.needs_spare && s.closed.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            if state.stopped {
                return;
            }
        }
    }

    /// Stops [`Rollover::run`].
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Seals the remaining closed segments and removes the spare, when the store closes.
    pub(crate) fn finish(&self) -> Result<()> {
        self.lock().needs_spare = false;
        let spare = self.lock().spare.take();
        if let Some(SpareSegment { header, .. }) = spare {
            self.segments.retire(header.segment, header.class);
        }
        while self.step()? {}
        Ok(())
    }

    /// Creates a spare, halving its size down to `bytes_min` while the disk has not enough space.
    fn create_spare(&self, bytes_min: u64) -> Result<SpareSegment> {
        let mut bytes = self.segment_bytes;
        loop {
            match self.segments.create_spare(bytes) {
                Ok((file, header)) => return Ok(SpareSegment { file, header, bytes }),
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
