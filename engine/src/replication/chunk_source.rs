//! Next bytes of the local log for a chunk.
//!
//! Guarantees: whole groups of one segment that follow the last chunk, decoded, at most [`limits::CHUNK_BYTES_MAX`]
//! unless a single group is longer.
//! Non-goals: the remote store.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{
    GroupView, LOG_FOLDER, Malformed, Predecessor, RecordContent, RecordOp, SEGMENT_HEADER_BYTES,
    SegmentClass, SegmentHeader, SegmentId,
};
use crate::limits;
use crate::segment::{GroupCursor, GroupStep, LogPosition, SegmentSet, read_header};

/// Bytes of the log.
pub(super) struct LogBytes {
    pub(super) segment: SegmentId,
    /// Salt of the segment.
    pub(super) salt: u64,
    /// Offset of the bytes in the segment.
    pub(super) from: u64,
    pub(super) pieces: Vec<Bytes>,
    /// Log position after them.
    pub(super) end: LogPosition,
    /// Big segments that their records name.
    pub(super) big: Vec<SegmentId>,
}

/// Reads the next bytes after `shipped`, up to `target` at most; `None` if there are none.
pub(super) fn next_bytes(
    segments: &SegmentSet,
    shipped: &LogPosition,
    target: &LogPosition,
) -> Result<Option<LogBytes>> {
    let Some(last) = target.segment else { return Ok(None) };
    if shipped.next_group >= target.next_group {
        return Ok(None);
    }
    let (segment, from, end) = match next_part(segments, shipped, last, target.offset)? {
        Some(part) => part,
        None => return Err(missing(last)),
    };
    let path = segment.path(SegmentClass::Log);
    let file = segments.disk().open(&path);
    let file = file.map_err(|source| Error::io(format!("opening {path}"), source))?;
    let header = read_header(file.as_ref(), &path, segment, SegmentClass::Log, segments.store())?;
    let mut cursor = GroupCursor::new(Arc::clone(&file), path.clone(), &header, end)?;
    let (salt, end, pieces) = (header.salt, *shipped, Vec::new());
    let mut read = LogBytes { segment, salt, from, pieces, end, big: Vec::new() };
    let mut length = 0;
    if from > 0 {
        let LogPosition { next_group, lsn, previous_group, .. } = *shipped;
        cursor = cursor.starting_at(from, next_group, lsn + 1, previous_group);
    } else {
        let mut page = vec![0; SEGMENT_HEADER_BYTES];
        let io = |source| Error::io(format!("reading {path}"), source);
        file.read_at(0, &mut page).map_err(io)?;
        read.pieces.push(page.into());
        length += SEGMENT_HEADER_BYTES as u64;
    }
    while length < limits::CHUNK_BYTES_MAX {
        let group = match cursor.peek()? {
            GroupStep::Group(group) => group,
            GroupStep::End => break,
            GroupStep::Broken(reason) => return Err(Error::corrupt(path, cursor.offset(), reason)),
        };
        let group_bytes = group.end - group.start;
        if length > 0 && length + group_bytes > limits::CHUNK_BYTES_MAX && read.end != *shipped {
            break;
        }
        let damaged = |reason| Error::corrupt(path.clone(), group.start, reason);
        let view = group.view().map_err(damaged)?;
        cursor.advance(&group, view.last_lsn());
        read.end = LogPosition {
            lsn: view.last_lsn(),
            segment: Some(segment),
            offset: group.end,
            next_group: group.header.number + 1,
            previous_group: group.header_checksum,
        };
        add_references(&view, &mut read.big);
        length += group_bytes;
        read.pieces.push(Bytes::from_owner(group));
    }
    Ok(Some(read))
}

/// Returns the segment and range of the log that follows `shipped`; `None` if a segment is missing.
fn next_part(
    segments: &SegmentSet,
    shipped: &LogPosition,
    last: SegmentId,
    last_end: u64,
) -> Result<Option<(SegmentId, u64, u64)>> {
    // Back from the last segment to the shipped one, along the predecessors.
    let (mut id, mut end) = (last, last_end);
    loop {
        if Some(id) == shipped.segment {
            return Ok((shipped.offset < end).then_some((id, shipped.offset, end)));
        }
        let before = predecessor(segments, id)?;
        match (before, shipped.segment) {
            (None, None) => return Ok(Some((id, 0, end))),
            (Some(before), Some(done))
                if before.segment == done && before.end <= shipped.offset =>
            {
                return Ok(Some((id, 0, end)));
            }
            (Some(before), _) => (id, end) = (before.segment, before.end),
            (None, Some(_)) => return Ok(None),
        }
    }
}

fn predecessor(segments: &SegmentSet, id: SegmentId) -> Result<Option<Predecessor>> {
    Ok(log_header(segments, id)?.predecessor)
}

/// Reads the header of a log segment.
pub(super) fn log_header(segments: &SegmentSet, id: SegmentId) -> Result<SegmentHeader> {
    let path = id.path(SegmentClass::Log);
    let file = segments.disk().open(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => missing(id),
        _ => Error::io(format!("opening {path}"), source),
    })?;
    read_header(file.as_ref(), &path, id, SegmentClass::Log, segments.store())
}

/// Returns the log position at which the segment of a position begins.
pub(super) fn start_of_segment(
    segments: &SegmentSet,
    position: &LogPosition,
) -> Result<LogPosition> {
    let Some(segment) = position.segment else { return Ok(*position) };
    let header = log_header(segments, segment)?;
    Ok(LogPosition {
        lsn: header.base_lsn - 1,
        segment: header.predecessor.map(|before| before.segment),
        offset: header.predecessor.map_or(0, |before| before.end),
        next_group: header.first_group,
        previous_group: header.previous_group,
    })
}

/// Returns whether the local log contains this position, with the same groups before it.
pub(super) fn contains(segments: &SegmentSet, position: &LogPosition) -> Result<bool> {
    let Some(segment) = position.segment else { return Ok(true) };
    let path = segment.path(SegmentClass::Log);
    let file = match segments.disk().open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return has_successor(segments, position);
        }
        other => other.map_err(|source| Error::io(format!("opening {path}"), source))?,
    };
    let header = read_header(file.as_ref(), &path, segment, SegmentClass::Log, segments.store())?;
    let length = file.bytes_len().map_err(|source| Error::io(format!("reading {path}"), source))?;
    if length < position.offset {
        return Ok(false);
    }
    let mut cursor = GroupCursor::new(file, path, &header, position.offset)?.heads_only();
    let mut last = (header.first_group, header.previous_group);
    loop {
        match cursor.step()? {
            GroupStep::Group(group) => last = (group.header.number + 1, group.header_checksum),
            GroupStep::End => return Ok(last == (position.next_group, position.previous_group)),
            GroupStep::Broken(_) => return Ok(false),
        }
    }
}

/// Returns whether a log segment begins at this position: the segment before it was compacted.
fn has_successor(segments: &SegmentSet, position: &LogPosition) -> Result<bool> {
    let names = segments.disk().list(LOG_FOLDER);
    let names = names.map_err(|source| Error::io(format!("listing {LOG_FOLDER}"), source))?;
    for id in names.iter().filter_map(|name| SegmentId::from_file_name(name)) {
        match log_header(segments, id) {
            Ok(header) => {
                let begins = (header.first_group, header.previous_group);
                if begins == (position.next_group, position.previous_group) {
                    return Ok(true);
                }
            }
            // A spare, or a damaged header.
            Err(Error::Corrupt(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(false)
}

fn add_references(view: &GroupView<'_>, big: &mut Vec<SegmentId>) {
    for scanned in view.records() {
        if let RecordOp::Put { content: RecordContent::Big { segment, .. }, .. } =
            &scanned.record.op
        {
            big.push(*segment);
        }
    }
}

fn missing(id: SegmentId) -> Error {
    Error::corrupt(id.path(SegmentClass::Log), 0, Malformed::Missing)
}
