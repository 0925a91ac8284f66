//! Segments that are checked beside one another: nothing that is found in one is needed for another, and reading and
//! hashing keep a processor busy.
//!
//! Promises: what was found is told segment by segment in their order, whichever was done first; no more than
//! [`AHEAD_MAX`] segments for each worker are done before their turn, each with one group in memory at most; a check
//! that is cancelled ends the workers.
//! Never here: how a segment is checked, what becomes of what was found.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::check::{Check, CheckPart};
use super::ground::Held;
use super::groups::GroupsChecked;
use crate::error::{Error, Result};
use crate::format::SegmentHeader;
use crate::progress::WorkProgress;

/// A worker that finds so many of its segments waiting for their turns waits, too.
const AHEAD_MAX: usize = 2;
/// Whoever waits tells this often how far the workers are.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A segment to be checked.
pub(super) struct ToCheck<'a> {
    pub(super) held: &'a mut Held,
    pub(super) header: SegmentHeader,
    /// The segments of the log after it.
    pub(super) later: &'a [SegmentHeader],
}

/// Gives segments their turns.
pub(super) enum Turns<'t, 'a> {
    /// Each is checked when it is its turn.
    Alone(VecDeque<ToCheck<'a>>),
    /// Workers check them.
    Beside(&'t Line<'a>),
}

/// What the workers share.
pub(super) struct Line<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    read_bytes: AtomicU64,
    is_cancelled: AtomicBool,
    ahead_max: usize,
}

struct State<'a> {
    waiting: VecDeque<(usize, ToCheck<'a>)>,
    done: BTreeMap<usize, Done<'a>>,
    /// Whose turn it is.
    turn: usize,
    workers: usize,
}

struct Done<'a> {
    segment: ToCheck<'a>,
    checked: Result<GroupsChecked>,
    part: CheckPart,
}

impl Check<'_, '_> {
    /// Has segments checked, by several workers where there are several; `turn` asks for them one after the other.
    pub(super) fn in_turns<'a>(
        &mut self,
        segments: Vec<ToCheck<'a>>,
        turn: impl FnOnce(&mut Self, &mut Turns<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        let workers = self.workers.min(segments.len());
        if workers < 2 {
            return turn(self, &mut Turns::Alone(segments.into()));
        }
        let line = Line {
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
                    let _ended = Ended(&line);
                    line.work(&root);
                });
            }
            let _cancels = Cancels(&line);
            turn(self, &mut Turns::Beside(&line))
        })
    }
}

impl<'a> Turns<'_, 'a> {
    /// The next segment, and what its check came to.
    pub(super) fn next(
        &mut self,
        check: &mut Check<'_, '_>,
    ) -> Result<(&'a mut Held, Result<GroupsChecked>)> {
        match self {
            Self::Alone(segments) => {
                let ToCheck { held, header, later } =
                    segments.pop_front().ok_or(Error::Cancelled)?;
                let checked = check.check_groups(held, &header, later);
                Ok((held, checked))
            }
            Self::Beside(line) => {
                let done = line.wait(check)?;
                check.take_over(done.part);
                Ok((done.segment.held, done.checked))
            }
        }
    }
}

impl<'a> Line<'a> {
    fn work(&self, root: &super::check::Root) {
        while let Some((number, segment)) = self.take() {
            let mut told_bytes = 0;
            let watch = &mut |progress: WorkProgress| {
                self.read_bytes.fetch_add(progress.done_bytes - told_bytes, Ordering::Relaxed);
                told_bytes = progress.done_bytes;
                match self.is_cancelled.load(Ordering::Relaxed) {
                    true => std::ops::ControlFlow::Break(()),
                    false => std::ops::ControlFlow::Continue(()),
                }
            };
            let mut check = root.check(watch);
            let ToCheck { held, header, later } = segment;
            let checked = check.check_groups(held, &header, later);
            let part = check.into_part();
            let done = Done { segment: ToCheck { held, header, later }, checked, part };
            self.lock().done.insert(number, done);
            self.changed.notify_all();
        }
    }

    /// The next segment that nobody checks yet.
    fn take(&self) -> Option<(usize, ToCheck<'a>)> {
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

    /// The segment whose turn it is.
    fn wait(&self, check: &mut Check<'_, '_>) -> Result<Done<'a>> {
        loop {
            let state = self.lock();
            let is_wanting =
                |state: &mut State<'a>| state.workers > 0 && !state.done.contains_key(&state.turn);
            let waited = self.changed.wait_timeout_while(state, TELL_EVERY, is_wanting);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let turn = state.turn;
            if let Some(done) = state.done.remove(&turn) {
                state.turn += 1;
                drop(state);
                self.changed.notify_all();
                check.read_beside(self.read_bytes.swap(0, Ordering::Relaxed))?;
                return Ok(done);
            }
            if state.workers == 0 {
                return Err(Error::Cancelled);
            }
            drop(state);
            check.read_beside(self.read_bytes.swap(0, Ordering::Relaxed))?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells that a worker ended, however it did.
struct Ended<'l, 'a>(&'l Line<'a>);

impl Drop for Ended<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().workers -= 1;
        self.0.changed.notify_all();
    }
}

/// Nobody waits for the workers any more.
struct Cancels<'l, 'a>(&'l Line<'a>);

impl Drop for Cancels<'_, '_> {
    fn drop(&mut self) {
        let _state = self.0.lock();
        self.0.is_cancelled.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}
