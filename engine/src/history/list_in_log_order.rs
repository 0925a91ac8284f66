//! Lists noncurrent versions in log order, in bounded steps, for logs that are too large for one pass.
//!
//! Guarantees: each call reads a bounded number of records and returns where to continue; a complete listing
//! contains every version that was noncurrent at its start and restorable at its end. A version may be listed twice
//! if its record is copied during the listing.
//! Non-goals: order by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::log_scan::{LogReader, LogScan};
use super::noncurrent::{NoncurrentFilter, noncurrent_object};
use super::subject;
use crate::commit::{NoncurrentReason, NoncurrentVersion, is_move};
use crate::error::{Error, Result};
use crate::format::RecordOp;
use crate::name::ObjectKey;
use crate::progress::{ProgressCallback, WorkProgress};

/// Position in a listing in log order: after the record with this segment and LSN. The default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogScanCursor {
    /// Id of the segment; 0 before the first.
    pub segment: u64,
    /// LSN of the record.
    pub lsn: u64,
}

/// Page of noncurrent versions, from one range of the log.
#[derive(Clone, Debug, Default)]
pub struct NoncurrentLogPage {
    /// Versions in log order. A version has a `noncurrent_since_ms` only if the record that deleted or replaced it is
    /// in the same range of the log.
    pub versions: Vec<NoncurrentVersion>,
    /// Start of the next page; `None` at the end of the log.
    pub next: Option<LogScanCursor>,
}

/// Version whose end may follow later in the range.
struct OpenVersion {
    at: usize,
    lsn: u64,
    /// LSN of the record that ended it, as far as read.
    noncurrent_lsn: u64,
    /// Whether that record was part of a move.
    is_moved: bool,
}

/// Returns the first noncurrent, restorable versions after `from`: at most `limit`, reading at most `records_max`
/// records.
pub(crate) fn list_in_log_order(
    log: &LogReader<'_>,
    asked: &NoncurrentFilter,
    from: LogScanCursor,
    (limit, records_max): (usize, usize),
    watch: &mut ProgressCallback<'_>,
) -> Result<NoncurrentLogPage> {
    let mut stretch = NoncurrentLogPage::default();
    let mut open: BTreeMap<ObjectKey, OpenVersion> = BTreeMap::new();
    let mut moved = BTreeSet::new();
    let mut listed = BTreeSet::new();
    let mut records = 0_usize;
    let mut reached = from;
    let mut is_watched = true;
    let read = LogScan::new(log).run_from(
        from.segment,
        &mut |progress: WorkProgress| {
            is_watched = watch(progress).is_continue();
            match is_watched {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        },
        &mut |found| {
            let record = found.record();
            let segment = found.location().segment.get();
            if segment == from.segment && record.lsn <= from.lsn {
                return Ok(());
            }
            if records == records_max || stretch.versions.len() == limit {
                stretch.next = Some(reached);
                return Err(Error::Cancelled);
            }
            records += 1;
            reached = LogScanCursor { segment, lsn: record.lsn };
            let Some((name, happened_ms)) = subject(record) else { return Ok(()) };
            if !asked.matches_name(name) {
                return Ok(());
            }
            let end = match &record.op {
                RecordOp::Put { .. } => NoncurrentReason::Replaced,
                _ => NoncurrentReason::Deleted,
            };
            if let Some(open) = open.get_mut(&name.key)
                && (open.lsn + 1..open.noncurrent_lsn).contains(&record.lsn)
                && let Some(version) = stretch.versions.get_mut(open.at)
            {
                open.noncurrent_lsn = record.lsn;
                let meta = &version.object.entry.meta;
                open.is_moved = found.move_target().is_some_and(|put| is_move(put, meta));
                (version.reason, version.noncurrent_since_ms) = (end, Some(happened_ms));
            }
            let counts = (log.entry)(name)?.is_some_and(|entry| entry.lsn == record.lsn);
            if counts || end == NoncurrentReason::Deleted || listed.contains(&record.lsn) {
                return Ok(());
            }
            let Some(object) = noncurrent_object(log, asked, found, name)? else { return Ok(()) };
            listed.insert(record.lsn);
            let at = stretch.versions.len();
            let open_now =
                OpenVersion { at, lsn: record.lsn, noncurrent_lsn: u64::MAX, is_moved: false };
            let before = open.insert(name.key.clone(), open_now);
            moved.extend(before.filter(|it| it.is_moved).map(|it| it.at));
            let end = match (log.entry)(name)? {
                Some(_) => NoncurrentReason::Replaced,
                None => NoncurrentReason::Deleted,
            };
            stretch.versions.push(NoncurrentVersion {
                object,
                reason: end,
                noncurrent_since_ms: None,
            });
            Ok(())
        },
    );
    moved.extend(open.values().filter(|it| it.is_moved).map(|it| it.at));
    let mut at = 0..;
    stretch.versions.retain(|_| at.next().is_some_and(|at| !moved.contains(&at)));
    match read {
        Err(Error::Cancelled) if stretch.next.is_some() => Ok(stretch),
        Err(Error::Cancelled) if !is_watched => {
            stretch.next = Some(reached);
            Ok(stretch)
        }
        read => read.map(|_| stretch),
    }
}
