//! Checks segments in parallel and delivers results in log order. Segments are independent, and reading and hashing
//! are bound by the processor.
//!
//! Guarantees: results are delivered segment by segment in order; at most [`AHEAD_MAX`] segments per worker are
//! finished ahead of their turn, and each worker holds one group in memory at most; cancelling a check ends the
//! workers.
//! Non-goals: the check of a segment, and the use of the results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::check_state::{Check, CheckPart};
use super::groups::GroupsSummary;
use super::survey::SegmentSurvey;
use crate::error::{Error, Result};
use crate::format::SegmentHeader;
use crate::progress::WorkProgress;

/// Number of finished segments per worker after which it waits for the consumer.
const AHEAD_MAX: usize = 2;
/// Interval of progress reports while the consumer waits.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Segment to be checked.
pub(super) struct CheckTask<'a> {
    pub(super) held: &'a mut SegmentSurvey,
    pub(super) header: SegmentHeader,
    /// Later segments of the log.
    pub(super) later: &'a [SegmentHeader],
}

/// Source of checked segments in order.
pub(super) enum SegmentSequence<'t, 'a> {
    /// Checks each segment when it is requested.
    Sequential(VecDeque<CheckTask<'a>>),
    /// Workers check segments ahead.
    Parallel(&'t WorkQueue<'a>),
}

/// Shared state of the workers.
pub(super) struct WorkQueue<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    read_bytes: AtomicU64,
    is_cancelled: AtomicBool,
    ahead_max: usize,
}

struct State<'a> {
    waiting: VecDeque<(usize, CheckTask<'a>)>,
    done: BTreeMap<usize, Done<'a>>,
    /// Index of the segment to be delivered next.
    turn: usize,
    workers: usize,
}

struct Done<'a> {
    segment: CheckTask<'a>,
    checked: Result<GroupsSummary>,
    part: CheckPart,
}

impl Check<'_, '_> {
    /// Checks segments, in parallel with several workers; `turn` requests them in order.
    pub(super) fn check_in_order<'a>(
        &mut self,
        segments: Vec<CheckTask<'a>>,
        turn: impl FnOnce(&mut Self, &mut SegmentSequence<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        let workers = self.workers.min(segments.len());
        if workers < 2 {
            return turn(self, &mut SegmentSequence::Sequential(segments.into()));
        }
        let line = WorkQueue {
            state: Mutex::new(State {
                waiting: segments.into_iter().enumerate().collect(),
                done: BTreeMap::new(),
                turn: 0,
                workers,
            }),
            changed: Condvar::new(),
            read_bytes: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
            ahead_max: workers * AHEAD_MAX,
        };
        let root = self.root();
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    let _ended = WorkerGuard(&line);
                    line.work(&root);
                });
            }
            let _cancels = Cancels(&line);
            turn(self, &mut SegmentSequence::Parallel(&line))
        })
    }
}

impl<'a> SegmentSequence<'_, 'a> {
    /// Returns the next segment with its result.
    pub(super) fn next(
        &mut self,
        check: &mut Check<'_, '_>,
    ) -> Result<(&'a mut SegmentSurvey, Result<GroupsSummary>)> {
        match self {
            Self::Sequential(segments) => {
                let CheckTask { held, header, later } =
                    segments.pop_front().ok_or(Error::Cancelled)?;
                let checked = check.check_groups(held, &header, later);
                Ok((held, checked))
            }
            Self::Parallel(line) => {
                let done = line.wait(check)?;
                check.merge(done.part);
                Ok((done.segment.held, done.checked))
            }
        }
    }
}

impl<'a> WorkQueue<'a> {
    fn work(&self, root: &super::check_state::Root) {
        while let Some((number, segment)) = self.take() {
            let mut reported_bytes = 0;
            let watch = &mut |progress: WorkProgress| {
                self.read_bytes.fetch_add(progress.done_bytes - reported_bytes, Ordering::Relaxed);
                reported_bytes = progress.done_bytes;
                match self.is_cancelled.load(Ordering::Relaxed) {
                    true => std::ops::ControlFlow::Break(()),
                    false => std::ops::ControlFlow::Continue(()),
                }
            };
            let mut check = root.check(watch);
            let CheckTask { held, header, later } = segment;
            let checked = check.check_groups(held, &header, later);
            let part = check.into_part();
            let done = Done { segment: CheckTask { held, header, later }, checked, part };
            self.lock().done.insert(number, done);
            self.changed.notify_all();
        }
    }

    /// Takes the next unchecked segment.
    fn take(&self) -> Option<(usize, CheckTask<'a>)> {
        let is_early = |state: &mut State<'a>| {
            let next = state.waiting.front().map(|(number, _)| *number);
            let is_early = next.is_some_and(|number| number >= state.turn + self.ahead_max);
            is_early && !self.is_cancelled.load(Ordering::Relaxed)
        };
        let state = self.changed.wait_while(self.lock(), is_early);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match self.is_cancelled.load(Ordering::Relaxed) {
            true => None,
            false => state.waiting.pop_front(),
        }
    }

    /// Waits for the segment to be delivered next.
    fn wait(&self, check: &mut Check<'_, '_>) -> Result<Done<'a>> {
        loop {
            let state = self.lock();
            let is_wanting =
                |state: &mut State<'a>| state.workers > 0 && !state.done.contains_key(&state.turn);
            let waited = self.changed.wait_timeout_while(state, PROGRESS_INTERVAL, is_wanting);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let turn = state.turn;
            if let Some(done) = state.done.remove(&turn) {
                state.turn += 1;
                drop(state);
                self.changed.notify_all();
                check.advance_progress(self.read_bytes.swap(0, Ordering::Relaxed))?;
                return Ok(done);
            }
            if state.workers == 0 {
                return Err(Error::Cancelled);
            }
            drop(state);
            check.advance_progress(self.read_bytes.swap(0, Ordering::Relaxed))?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that records the end of a worker, also after a panic.
struct WorkerGuard<'l, 'a>(&'l WorkQueue<'a>);

impl Drop for WorkerGuard<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().workers -= 1;
        self.0.changed.notify_all();
    }
}

/// Guard that cancels the workers when the consumer ends.
struct Cancels<'l, 'a>(&'l WorkQueue<'a>);

impl Drop for Cancels<'_, '_> {
    fn drop(&mut self) {
        let _state = self.0.lock();
        self.0.is_cancelled.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}
