//! Sealing: a footer behind the last group of a log or compacted segment, and the file cut to it.
//!
//! Promises: the footer is made from what the segment holds, read back and checked, so it never says more than the
//! groups do; sealing again says the same. A crash in between leaves an unsealed segment, which recovery
//! seals: the trailer is written when the entries are durable.
//! Never here: when to seal.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::format::{FOOTER_TRAILER_BYTES, FooterTrailer, FooterWriter, SegmentHeader};
use crate::limits;

use super::walk::{LogWalk, Walked};

/// Seals the segment whose groups end at `end`. Refuses, as damage, a segment whose groups do not reach so far.
pub(crate) fn seal(disk: &dyn Disk, header: &SegmentHeader, end: u64) -> Result<()> {
    let path = header.segment.path(header.class);
    let io = |source| Error::io(format!("sealing {path}"), source);
    let file = disk.open(&path).map_err(io)?;
    let mut footer = FooterWriter::new(header.context(), end);
    let mut written = end;
    let mut last_lsn = header.base_lsn.saturating_sub(1);
    let mut next_group = header.first_group;
    let mut previous_group = header.previous_group;
    let mut walk = LogWalk::new(file.clone(), path.clone(), header, end)?.without_bodies();
    loop {
        match walk.step()? {
            Walked::End => break,
            Walked::Broken(reason) => return Err(Error::corrupt(path, walk.offset(), reason)),
            Walked::Group(group) => {
                let view = group
                    .view()
                    .map_err(|reason| Error::corrupt(path.clone(), group.start, reason))?;
                for scanned in view.records() {
                    footer.push(scanned.place.offset, scanned.head);
                }
                last_lsn = view.last_lsn();
                next_group = group.header.number + 1;
                previous_group = group.header_checksum;
            }
        }
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
    // The trailer vouches for the entries.
    file.sync_data().map_err(io)?;
    file.write_at(written, &[trailer]).map_err(io)?;
    file.set_len(written + trailer.len() as u64).map_err(io)?;
    file.sync_data().map_err(io)
}

/// The trailer of a log segment, when it is sealed and its trailer is whole.
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
