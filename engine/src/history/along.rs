//! Lists noncurrent versions in log order, in bounded steps, for logs that are too large for one pass.
//!
//! Guarantees: each call reads a bounded number of records and returns where to continue; a complete listing
//! contains every version that was noncurrent at its start and restorable at its end. A version may be listed twice
//! if its record is copied during the listing.
//! Non-goals: order by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::gone::{GoneAsked, candidate};
use super::scan::{LogReader, LogScan};
use super::subject;
use crate::commit::{GoneVersion, VersionEnd, is_what_moved};
use crate::error::{Error, Result};
use crate::format::What;
use crate::name::ObjectKey;
use crate::progress::{Watch, WorkProgress};

/// Position in the listing: after this record of this segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// Id of the segment; 0 before the first.
    pub segment: u64,
    /// LSN of the record.
    pub lsn: u64,
}

/// Noncurrent versions in a range of the log.
#[derive(Clone, Debug, Default)]
pub struct GoneStretch {
    /// Versions in log order. The end of a version is included as far as it is in the same range.
    pub versions: Vec<GoneVersion>,
    /// Position to continue at, if there is more.
    pub next: Option<LogPlace>,
}

/// Version whose end may follow later in the range.
struct Open {
    at: usize,
    lsn: u64,
    /// LSN of the record that ended it, as far as read.
    ended_lsn: u64,
    /// Whether that record was part of a move.
    is_moved: bool,
}

/// Returns the first noncurrent, restorable versions after `from`: at most `limit`, reading at most `records_max`
/// records.
pub(crate) fn gone_along(
    log: &LogReader<'_>,
    asked: &GoneAsked,
    from: LogPlace,
    (limit, records_max): (usize, usize),
    watch: &mut Watch<'_>,
) -> Result<GoneStretch> {
    let mut stretch = GoneStretch::default();
    let mut open: BTreeMap<ObjectKey, Open> = BTreeMap::new();
    let mut moved = BTreeSet::new();
    let mut told = BTreeSet::new();
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
            let segment = found.place().segment.get();
            if segment == from.segment && record.lsn <= from.lsn {
                return Ok(());
            }
            if records == records_max || stretch.versions.len() == limit {
                stretch.next = Some(reached);
                return Err(Error::Cancelled);
            }
            records += 1;
            reached = LogPlace { segment, lsn: record.lsn };
            let Some((name, happened_ms)) = subject(record) else { return Ok(()) };
            if !asked.takes_name(name) {
                return Ok(());
            }
            let end = match &record.what {
                What::Put { .. } => VersionEnd::Replaced,
                _ => VersionEnd::Deleted,
            };
            if let Some(open) = open.get_mut(&name.key)
                && (open.lsn + 1..open.ended_lsn).contains(&record.lsn)
                && let Some(version) = stretch.versions.get_mut(open.at)
            {
                open.ended_lsn = record.lsn;
                let meta = &version.object.entry.meta;
                open.is_moved = found.moved().is_some_and(|put| is_what_moved(put, meta));
                (version.end, version.ended_ms) = (end, Some(happened_ms));
            }
            let counts = (log.entry)(name)?.is_some_and(|entry| entry.lsn == record.lsn);
            if counts || end == VersionEnd::Deleted || told.contains(&record.lsn) {
                return Ok(());
            }
            let Some(object) = candidate(log, asked, found, name)? else { return Ok(()) };
            told.insert(record.lsn);
            let at = stretch.versions.len();
            let open_now = Open { at, lsn: record.lsn, ended_lsn: u64::MAX, is_moved: false };
            let before = open.insert(name.key.clone(), open_now);
            moved.extend(before.filter(|it| it.is_moved).map(|it| it.at));
            let end = match (log.entry)(name)? {
                Some(_) => VersionEnd::Replaced,
                None => VersionEnd::Deleted,
            };
            stretch.versions.push(GoneVersion { object, end, ended_ms: None });
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
