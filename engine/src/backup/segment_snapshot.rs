//! Consistent snapshot of the segments that a backup copies.
//!
//! Non-goals: the destination.

use std::collections::BTreeSet;

use crate::error::{Corruption, Error, Result};
use crate::format::{
    COMPACTED_FOLDER, LOG_FOLDER, Location, Malformed, Predecessor, Record, SegmentClass,
    SegmentHeader, SegmentId, SegmentUsage,
};
use crate::segment::{LogPosition, RemovalGuard, SegmentSet, read_footer, read_header};

/// Published state at one moment.
pub(crate) struct Published {
    /// Position of the end of the log.
    pub(crate) position: LogPosition,
    /// Big segments in use.
    pub(crate) big: Vec<SegmentId>,
}

/// Access to the current index.
pub(crate) struct IndexAccess<'a> {
    /// Returns the published state.
    pub(crate) published: &'a dyn Fn() -> Result<Published>,
    /// Returns the usage of a segment in use.
    pub(crate) usage_of: &'a dyn Fn(SegmentId) -> Result<Option<SegmentUsage>>,
    /// Returns whether the body of a record may have been punched.
    pub(crate) may_be_punched: &'a dyn Fn(&Record, Location) -> Result<bool>,
}

/// Segments of the image.
pub(super) struct Source {
    pub(super) last_lsn: u64,
    /// End of the log.
    pub(super) end: Option<Predecessor>,
    /// Segments in copy order.
    pub(super) files: Vec<SourceFile>,
    /// Missing segments, which cannot be copied.
    pub(super) damage: Vec<Corruption>,
}

/// Segment to be copied.
pub(super) struct SourceFile {
    pub(super) id: SegmentId,
    pub(super) class: SegmentClass,
    pub(super) path: String,
    /// Header; `None` if the header page is damaged.
    pub(super) header: Option<SegmentHeader>,
    /// Length of the valid part of the file.
    pub(super) bytes: u64,
    /// End of the groups, if the segment is not sealed and the end is known.
    pub(super) end: Option<u64>,
    /// Whether it ends with a footer or trailer, and is therefore immutable.
    pub(super) is_sealed: bool,
}

/// End of a log segment's groups according to other sources.
#[derive(Clone, Copy)]
enum NamedEnd {
    Unknown,
    /// Named by its successor; a footer may follow.
    Closed(u64),
    /// Recorded position: bytes after it do not count.
    Noted(u64),
}

impl Source {
    pub(super) fn find(
        segments: &SegmentSet,
        held: &RemovalGuard,
        index: &IndexAccess<'_>,
    ) -> Result<Self> {
        loop {
            let retired = held.retired();
            let Published { position, big } = (index.published)()?;
            let end = position.segment.map(|segment| Predecessor { segment, end: position.offset });
            let (files, damage) = (Vec::new(), Vec::new());
            let mut source = Self { last_lsn: position.lsn, end, files, damage };
            for id in big {
                source.add(segments, id, SegmentClass::Big, NamedEnd::Unknown)?;
            }
            for id in listed(segments, COMPACTED_FOLDER, &retired)? {
                // A segment of an uncommitted compaction is not in use.
                if segments.class_of(id) == SegmentClass::Compacted {
                    source.add(segments, id, SegmentClass::Compacted, NamedEnd::Unknown)?;
                }
            }
            let log = listed(segments, LOG_FOLDER, &retired)?;
            source.add_log(segments, &log, &position, index)?;
            // A compaction that ended during the listing may be included partially.
            if held.retired().iter().all(|id| retired.contains(id) || !source.has_records_of(*id)) {
                return Ok(source);
            }
        }
    }

    /// Returns the log and compacted segments, ascending.
    pub(super) fn image_segments(&self) -> Vec<SegmentId> {
        let files = self.files.iter().filter(|file| file.class != SegmentClass::Big);
        let ids: BTreeSet<_> = files.map(|file| file.id).collect();
        ids.into_iter().collect()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn has_records_of(&self, id: SegmentId) -> bool {
        self.files.iter().any(|file| file.id == id && file.class != SegmentClass::Big)
    }

    /// Adds the log up to the position. Ids ascend with the log: a segment with a greater id was begun since, or is
    /// a spare. Segments that could not be created or begun are omitted, too: they have no header, and are not in
    /// use.
    fn add_log(
        &mut self,
        segments: &SegmentSet,
        ids: &[SegmentId],
        position: &LogPosition,
        index: &IndexAccess<'_>,
    ) -> Result<()> {
        let mut successor: Option<SegmentHeader> = None;
        let mut log = Vec::new();
        for id in ids.iter().rev().copied().filter(|id| Some(*id) <= position.segment) {
            let path = id.path(SegmentClass::Log);
            let file = segments.disk().open(&path);
            let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
            let header =
                match read_header(file.as_ref(), &path, id, SegmentClass::Log, segments.store()) {
                    Ok(header) => Some(header),
                    Err(Error::Corrupt(spare)) if spare.reason == Malformed::Blank => continue,
                    Err(Error::Corrupt(_)) if (index.usage_of)(id)?.is_none() => continue,
                    Err(Error::Corrupt(_)) => None,
                    Err(other) => return Err(other),
                };
            let named_end = if position.segment == Some(id) {
                NamedEnd::Noted(position.offset)
            } else {
                successor
                    .and_then(|later| later.predecessor)
                    .filter(|before| before.segment == id)
                    .map_or(NamedEnd::Unknown, |before| NamedEnd::Closed(before.end))
            };
            if header.is_none_or(|header| header.base_lsn <= position.lsn) {
                log.push((id, named_end));
            }
            successor = header.or(successor);
        }
        for (id, named_end) in log.into_iter().rev() {
            self.add(segments, id, SegmentClass::Log, named_end)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        segments: &SegmentSet,
        id: SegmentId,
        class: SegmentClass,
        named_end: NamedEnd,
    ) -> Result<()> {
        let path = id.path(class);
        let io = |source| Error::io(format!("opening {path}"), source);
        let file = match segments.disk().open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let reason = Malformed::Missing;
                self.damage.push(Corruption { file: path, offset: 0, reason, object: None });
                return Ok(());
            }
            other => other.map_err(io)?,
        };
        let header = match read_header(file.as_ref(), &path, id, class, segments.store()) {
            Ok(header) => Some(header),
            Err(Error::Corrupt(_)) => None,
            Err(other) => return Err(other),
        };
        let is_sealed = match (class, named_end, &header) {
            (SegmentClass::Big, ..) => true,
            (_, NamedEnd::Noted(_), _) | (_, _, None) => false,
            // Sealing the segment concurrently truncates the file, possibly just before the trailer is read.
            (_, _, Some(header)) => read_footer(file.as_ref(), header)
                .or_else(|_| read_footer(file.as_ref(), header))?
                .is_some(),
        };
        let length = file.bytes_len().map_err(io)?;
        let end = match named_end {
            NamedEnd::Closed(end) | NamedEnd::Noted(end) if !is_sealed => Some(end),
            _ => None,
        };
        let bytes = end.unwrap_or(length).min(length);
        self.files.push(SourceFile { id, class, path, header, bytes, end, is_sealed });
        Ok(())
    }
}

fn listed(
    segments: &SegmentSet,
    folder: &str,
    retired: &BTreeSet<SegmentId>,
) -> Result<Vec<SegmentId>> {
    let names = segments.disk().list(folder);
    let names = names.map_err(|source| Error::io(format!("listing {folder}"), source))?;
    let ids = names.iter().filter_map(|name| SegmentId::from_file_name(name));
    Ok(ids.filter(|id| !retired.contains(id)).collect())
}
