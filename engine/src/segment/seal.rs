//! Sealing: writes the footer of a log or compacted segment and truncates the file after it.
//!
//! Guarantees: the footer is built from the segment's content, read back and verified, so it never contains more
//! than the groups; sealing is idempotent. A crash leaves an unsealed segment, which recovery seals: the trailer is
//! written after the entries are durable.
//! Non-goals: the decision when to seal.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{FOOTER_TRAILER_BYTES, FooterTrailer, FooterWriter, SegmentHeader};
use crate::limits;

use super::group_cursor::{GroupCursor, GroupStep};

/// Seals the segment whose groups end at `end`. Fails with a corruption error if the groups do not reach `end`.
pub(crate) fn seal(disk: &dyn Disk, header: &SegmentHeader, end: u64) -> Result<()> {
    let path = header.segment.path(header.class);
    let io = |source| Error::io(format!("sealing {path}"), source);
    let file = disk.open(&path).map_err(io)?;
    let mut footer = FooterWriter::new(header.context(), end);
    let mut written = end;
    let mut last_lsn = header.base_lsn.saturating_sub(1);
    let mut next_group = header.first_group;
    let mut previous_group = header.previous_group;
    let mut walk = GroupCursor::new(file.clone(), path.clone(), header, end)?.heads_only();
    loop {
        let group = match walk.peek()? {
            GroupStep::End => break,
            GroupStep::Broken(reason) => return Err(Error::corrupt(path, walk.offset(), reason)),
            GroupStep::Group(group) => group,
        };
        let view =
            group.view().map_err(|reason| Error::corrupt(path.clone(), group.start, reason))?;
        for scanned in view.records() {
            footer.push(scanned.address.offset, scanned.head);
        }
        last_lsn = view.last_lsn();
        next_group = group.header.number + 1;
        previous_group = group.header_checksum;
        walk.advance(&group, last_lsn);
        walk.recycle_buffer(GroupStep::Group(group));
        if footer.buffered_bytes() >= limits::WRITE_BYTES_MAX {
            let piece = footer.take();
            file.write_at(written, &[&piece]).map_err(io)?;
            written += piece.len() as u64;
        }
    }
    let rest = footer.finish(last_lsn, next_group, previous_group);
    let (entries, trailer) = rest.split_at(rest.len() - FOOTER_TRAILER_BYTES);
    file.write_at(written, &[entries]).map_err(io)?;
    written += entries.len() as u64;
    // The trailer confirms the entries, so they must be durable first.
    file.sync_data().map_err(io)?;
    file.write_at(written, &[trailer]).map_err(io)?;
    file.set_len(written + trailer.len() as u64).map_err(io)?;
    file.sync_data().map_err(io)
}

/// Reads the trailer of a segment; `None` unless the segment is sealed and the trailer is intact.
pub(crate) fn read_footer(
    file: &dyn DiskFile,
    header: &SegmentHeader,
) -> Result<Option<FooterTrailer>> {
    let path = header.segment.path(header.class);
    let io = |source| Error::io(format!("reading {path}"), source);
    let file_bytes = file.bytes_len().map_err(io)?;
    let Some(at) = file_bytes.checked_sub(FOOTER_TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut bytes = [0; FOOTER_TRAILER_BYTES];
    file.read_at(at, &mut bytes).map_err(io)?;
    Ok(FooterTrailer::decode(&bytes, header.context().at(at)).ok())
}
