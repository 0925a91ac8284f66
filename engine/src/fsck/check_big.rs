//! Checks one big segment: header, trailer, block table, and with `--deep` all blocks and the content hash.
//!
//! Guarantees: memory is the block table, 4 bytes per 64 KiB, and one block.
//! Non-goals: the object that owns it.

use std::io::ErrorKind;

use super::check_state::Check;
use super::finding::{Remedy, Severity};
use super::survey::read_up_to;
use crate::error::{Error, Result};
use crate::format::{
    BIG_BODY_OFFSET, BIG_TRAILER_BYTES, BigTrailer, CheckClass, Malformed, SEGMENT_HEADER_BYTES,
    SegmentClass, SegmentHeader, SegmentId, block_addresses,
};

/// State of an object's content in a big segment.
pub(super) enum BigContentState {
    /// Intact.
    Whole,
    /// Some blocks are damaged, the first at this offset; the others are readable.
    Damaged { blocks: u64, offset: u64 },
    /// Nothing is readable, for this reason.
    Gone { offset: u64, why: String },
}

impl Check<'_, '_> {
    /// Checks the big segment that should contain `bytes` with this hash.
    pub(super) fn check_big(
        &mut self,
        store: uuid::Uuid,
        id: SegmentId,
        bytes: u64,
        hash: &[u8; 32],
    ) -> Result<BigContentState> {
        let path = id.path(SegmentClass::Big);
        let gone = |offset, why: String| Ok(BigContentState::Gone { offset, why });
        let file = match self.disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return gone(0, Malformed::Missing.to_string());
            }
            Err(source) => return Err(Error::io(format!("opening {path}"), source)),
        };
        self.segment_done()?;
        let broken = |error: std::io::Error| format!("I/O error while reading: {error}");
        let page = match read_up_to(file.as_ref(), 0, SEGMENT_HEADER_BYTES) {
            Ok(page) => page,
            Err(error) => return gone(0, broken(error)),
        };
        let header = match SegmentHeader::decode_page(&page) {
            Ok(header)
                if (header.segment, header.class, header.store)
                    == (id, SegmentClass::Big, store) =>
            {
                header
            }
            Ok(_) => return gone(0, Malformed::Misplaced.to_string()),
            Err(reason) => return gone(0, format!("{reason}, in both header copies")),
        };
        if page != header.encode_page() {
            let what = "one of the two header copies is corrupt";
            let remedy = Remedy::RewriteHeader { segment: id, class: SegmentClass::Big };
            self.found(Severity::Repairable, &path, 0, what, remedy);
        }
        let trailer_at = BigTrailer::offset(bytes);
        let table_at = BigTrailer::table_offset(bytes);
        let file_bytes = file.bytes_len().unwrap_or(0);
        if file_bytes != BigTrailer::file_bytes(bytes) {
            let why = format!(
                "file size is {file_bytes} bytes, expected {}",
                BigTrailer::file_bytes(bytes)
            );
            return gone(file_bytes, why);
        }
        let trailer = match read_up_to(file.as_ref(), trailer_at, BIG_TRAILER_BYTES) {
            Ok(trailer) => BigTrailer::decode(&trailer, header.context().at(trailer_at)),
            Err(error) => return gone(trailer_at, broken(error)),
        };
        let trailer = match trailer {
            Ok(trailer) if trailer.body_bytes == bytes && trailer.hash == *hash => trailer,
            Ok(_) => return gone(trailer_at, Malformed::Misplaced.to_string()),
            Err(reason) => return gone(trailer_at, reason.to_string()),
        };
        let table_bytes = usize::try_from(trailer_at - table_at).unwrap_or(usize::MAX);
        let table = match read_up_to(file.as_ref(), table_at, table_bytes) {
            Ok(table) => table,
            Err(error) => return gone(table_at, broken(error)),
        };
        if let Err(reason) = trailer.verify_table(&table) {
            return gone(table_at, reason.to_string());
        }
        self.read_on((SEGMENT_HEADER_BYTES + table_bytes + BIG_TRAILER_BYTES) as u64)?;
        if !self.deep {
            return Ok(BigContentState::Whole);
        }
        let mut hasher = blake3::Hasher::new();
        let mut damaged = None;
        let body = header.context().at(BIG_BODY_OFFSET);
        for (number, (range, place)) in block_addresses(body, bytes).enumerate() {
            let length = usize::try_from(range.end - range.start).unwrap_or(0);
            let checksum = BigTrailer::block(&table, number);
            let is_whole = read_up_to(file.as_ref(), place.offset, length).is_ok_and(|block| {
                hasher.update(&block);
                checksum.is_some_and(|sum| sum.verify(CheckClass::Block, &block, place).is_ok())
            });
            if !is_whole {
                damaged.get_or_insert((0, place.offset)).0 += 1;
            }
            self.read_on(length as u64)?;
        }
        match damaged {
            Some((blocks, offset)) => Ok(BigContentState::Damaged { blocks, offset }),
            None if *hasher.finalize().as_bytes() != *hash => gone(
                BIG_BODY_OFFSET,
                "all block checksums match, but the hash of the whole object does not".into(),
            ),
            None => Ok(BigContentState::Whole),
        }
    }
}
