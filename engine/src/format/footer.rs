//! Footer of a sealed log segment: copies of all record heads, so that the index can be rebuilt without reading
//! bodies.
//!
//! The footer begins at the end of the groups. Its entries come first, in log order, compressed in blocks
//! (`footer_block.rs`):
//!
//! | offset | size | field  | meaning                                                    |
//! | ------ | ---- | ------ | ---------------------------------------------------------- |
//! | 0      | 8    | offset | of the record in this file                                 |
//! | 8      |      | head   | copy of the record head; its checksum is bound to `offset` |
//!
//! The trailer is the last 64 bytes of the file:
//!
//! | offset | size | field          | meaning                                                 |
//! | ------ | ---- | -------------- | ------------------------------------------------------- |
//! | 0      | 8    | magic          | [`FOOTER_MAGIC`] XOR the salt of the segment            |
//! | 8      | 8    | footer_offset  | end of the groups and start of the entries              |
//! | 16     | 8    | stored_bytes   | stored length of all entries                            |
//! | 24     | 8    | entry_count    |                                                         |
//! | 32     | 8    | last_lsn       | of the last record in or before this segment            |
//! | 40     | 8    | next_group     | number of the first group after this segment            |
//! | 48     | 4    | previous_group | checksum of the last group header in or before it       |
//! | 52     | 4    | entries        | checksum of all uncompressed entries, not address-bound |
//! | 56     | 4    | encoding       | of the entries: 1, blocks                               |
//! | 60     | 4    | checksum       | of bytes 0..60 at the offset of the trailer             |
//!
//! Guarantees: a footer is redundant; if it is damaged, the groups are scanned instead. Entries can be written
//! in pieces of any size, and are read by `footer_reader.rs`.
//! Non-goals: the decision when a segment is sealed.

use std::ops::RangeInclusive;

use super::byte_codec::{ByteReader, ByteWriter};
use super::checksum::{
    CheckClass, Checksum, DiskAddress, RunningChecksum, SegmentContext, compare,
};
use super::footer_block::{FOOTER_BLOCK_BYTES, FOOTER_BLOCK_HEADER_BYTES, FooterBlock};
use super::malformed::Malformed;
use super::record::{HEAD_BYTES_MAX, HEAD_COMMON_BYTES, Record};
use super::segment_header::SEGMENT_HEADER_BYTES;

/// Magic number of a footer trailer before XOR with the segment's salt: `TRUGFOOT`, in disk order.
pub const FOOTER_MAGIC: u64 = 0x544F_4F46_4755_5254;
/// Size of the trailer in bytes.
pub const FOOTER_TRAILER_BYTES: usize = 64;
/// Bytes of an entry in addition to the record head.
pub const FOOTER_ENTRY_OVERHEAD_BYTES: usize = 8;
/// Number of the encoding of the entries: blocks.
const BLOCK_ENCODING: u32 = 1;
/// Maximum length of an entry; a window of this size always contains a whole entry.
pub const FOOTER_ENTRY_BYTES_MAX: usize = FOOTER_ENTRY_OVERHEAD_BYTES + HEAD_BYTES_MAX;

const CHECKED_BYTES: usize = FOOTER_TRAILER_BYTES - 4;

/// Trailer at the end of a sealed log segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterTrailer {
    /// Offset at which the groups end and the entries begin.
    pub footer_offset: u64,
    /// Stored length of all entries; the trailer follows them.
    pub stored_bytes: u64,
    /// Number of entries.
    pub entry_count: u64,
    /// LSN of the last record in or before the segment.
    pub last_lsn: u64,
    /// Number of the first group after the segment.
    pub next_group: u64,
    /// Checksum of the last group header in or before the segment, which the next group refers to as its
    /// predecessor.
    pub previous_group: Checksum,
    /// Checksum of all entries, uncompressed.
    pub entries: Checksum,
}

impl FooterTrailer {
    /// Encodes the trailer for its segment.
    pub fn encode(&self, context: SegmentContext) -> Vec<u8> {
        let place = context.at(self.offset());
        let mut out = Vec::with_capacity(FOOTER_TRAILER_BYTES);
        ByteWriter::new(&mut out)
            .u64(FOOTER_MAGIC ^ place.salt)
            .u64(self.footer_offset)
            .u64(self.stored_bytes)
            .u64(self.entry_count)
            .u64(self.last_lsn)
            .u64(self.next_group)
            .u32(self.previous_group.0)
            .u32(self.entries.0)
            .u32(BLOCK_ENCODING);
        let checksum = Checksum::of(&out).bind(place);
        ByteWriter::new(&mut out).u32(checksum.0);
        out
    }

    /// Decodes the trailer: the last [`FOOTER_TRAILER_BYTES`] of the file, which start at `place`.
    pub fn decode(bytes: &[u8], place: DiskAddress) -> Result<Self, Malformed> {
        let mut take = ByteReader::new(bytes);
        let checked = take.clone().bytes(CHECKED_BYTES)?;
        if take.u64()? != FOOTER_MAGIC ^ place.salt {
            return Err(Malformed::Magic);
        }
        let (footer_offset, stored_bytes, entry_count) = (take.u64()?, take.u64()?, take.u64()?);
        let (last_lsn, next_group) = (take.u64()?, take.u64()?);
        let (previous_group, entries) = (Checksum(take.u32()?), Checksum(take.u32()?));
        let encoding = take.u32()?;
        Checksum(take.u32()?).verify(CheckClass::Footer, checked, place)?;
        take.end()?;
        if encoding != BLOCK_ENCODING {
            return Err(Malformed::Reserved);
        }
        let trailer = Self {
            footer_offset,
            stored_bytes,
            entry_count,
            last_lsn,
            next_group,
            previous_group,
            entries,
        };
        trailer.check(place)?;
        Ok(trailer)
    }

    /// Returns the offset of the trailer, which follows the entries.
    pub fn offset(&self) -> u64 {
        self.footer_offset.saturating_add(self.stored_bytes)
    }

    fn check(&self, place: DiskAddress) -> Result<(), Malformed> {
        let offset = self.footer_offset.checked_add(self.stored_bytes);
        if offset != Some(place.offset) || self.footer_offset < SEGMENT_HEADER_BYTES as u64 {
            return Err(Malformed::Misplaced);
        }
        let entries_bytes = entries_bytes_of(self.entry_count).ok_or(Malformed::Count)?;
        // The uncompressed length is only known after decompression.
        let is_possible = (self.stored_bytes == 0) == (self.entry_count == 0)
            && self.stored_bytes <= in_blocks(*entries_bytes.end());
        if is_possible { Ok(()) } else { Err(Malformed::Count) }
    }
}

/// Returns the maximum length of a footer, including its trailer, whose entries have this uncompressed length.
pub fn footer_bytes_max(entries_bytes: u64) -> u64 {
    in_blocks(entries_bytes).saturating_add(FOOTER_TRAILER_BYTES as u64)
}

/// Returns the maximum length of this many bytes of entries when stored in blocks.
fn in_blocks(entries_bytes: u64) -> u64 {
    let blocks = entries_bytes.div_ceil(FOOTER_BLOCK_BYTES as u64);
    entries_bytes.saturating_add(blocks.saturating_mul(FOOTER_BLOCK_HEADER_BYTES as u64))
}

/// Returns the possible uncompressed lengths of this many entries; `None` on overflow.
pub(super) fn entries_bytes_of(entry_count: u64) -> Option<RangeInclusive<u64>> {
    let bytes_of_each = |bytes: usize| entry_count.checked_mul(bytes as u64);
    let least = bytes_of_each(FOOTER_ENTRY_OVERHEAD_BYTES + HEAD_COMMON_BYTES)?;
    Some(least..=bytes_of_each(FOOTER_ENTRY_BYTES_MAX)?)
}

/// Accumulated entry count and checksum.
#[derive(Clone, Debug, Default)]
pub struct FooterDigest {
    count: u64,
    running: RunningChecksum,
}

impl FooterDigest {
    /// Adds the record at `offset` with the head `head`.
    pub fn push(&mut self, offset: u64, head: &[u8]) {
        self.add(&entry(offset, head));
    }

    /// Returns whether `trailer` ends a footer of exactly these entries and agrees with the given log position.
    pub fn matches(
        &self,
        trailer: &FooterTrailer,
        last_lsn: u64,
        next_group: u64,
        previous_group: Checksum,
    ) -> bool {
        let numbers = (self.count, last_lsn, next_group, previous_group);
        let recorded =
            (trailer.entry_count, trailer.last_lsn, trailer.next_group, trailer.previous_group);
        let entries = compare(CheckClass::Footer, trailer.entries, self.running.clone().finish());
        numbers == recorded && entries.is_ok()
    }

    fn add(&mut self, entry: &[u8]) {
        self.running.update(entry);
        self.count = self.count.saturating_add(1);
    }
}

fn entry(offset: u64, head: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(head.len().saturating_add(FOOTER_ENTRY_OVERHEAD_BYTES));
    ByteWriter::new(&mut entry).u64(offset).bytes(head);
    entry
}

/// Writer of a footer, entry by entry.
#[derive(Clone, Debug)]
pub struct FooterWriter {
    context: SegmentContext,
    footer_offset: u64,
    /// Entries that do not fill a block yet.
    loose: Vec<u8>,
    /// Finished blocks that were not taken yet.
    blocks: Vec<u8>,
    /// Length of all blocks so far.
    stored_bytes: u64,
    sum: FooterDigest,
}

impl FooterWriter {
    /// Creates a footer without entries for the segment whose groups end at `footer_offset`.
    pub fn new(context: SegmentContext, footer_offset: u64) -> Self {
        let (loose, blocks, sum) = (Vec::new(), Vec::new(), FooterDigest::default());
        Self { context, footer_offset, loose, blocks, stored_bytes: 0, sum }
    }

    /// Adds the record at `offset` with the head `head`.
    pub fn push(&mut self, offset: u64, head: &[u8]) {
        let entry = entry(offset, head);
        self.sum.add(&entry);
        self.loose.extend_from_slice(&entry);
        while self.loose.len() >= FOOTER_BLOCK_BYTES {
            let later = self.loose.split_off(FOOTER_BLOCK_BYTES);
            let full = std::mem::replace(&mut self.loose, later);
            self.pack(&full);
        }
    }

    /// Returns the number of buffered bytes that can be taken.
    pub fn buffered_bytes(&self) -> usize {
        self.blocks.len()
    }

    /// Takes the buffered bytes, to write them before the footer is complete.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.blocks)
    }

    /// Returns the remaining bytes and the trailer.
    pub fn finish(mut self, last_lsn: u64, next_group: u64, previous_group: Checksum) -> Vec<u8> {
        let rest = std::mem::take(&mut self.loose);
        if !rest.is_empty() {
            self.pack(&rest);
        }
        let trailer = FooterTrailer {
            footer_offset: self.footer_offset,
            stored_bytes: self.stored_bytes,
            entry_count: self.sum.count,
            last_lsn,
            next_group,
            previous_group,
            entries: self.sum.running.finish(),
        };
        let mut out = self.blocks;
        ByteWriter::new(&mut out).bytes(&trailer.encode(self.context));
        out
    }

    fn pack(&mut self, entries: &[u8]) {
        let at = self.footer_offset.saturating_add(self.stored_bytes);
        let block = FooterBlock::compress(entries, self.context.at(at));
        self.stored_bytes = self.stored_bytes.saturating_add(block.len() as u64);
        self.blocks.extend_from_slice(&block);
    }
}

/// Entry of a footer: one record of a sealed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FooterEntry {
    /// Record without its body.
    pub record: Record,
    /// Offset of the record head in the segment.
    pub offset: u64,
    /// Length of the record head.
    pub head_bytes: u32,
}

impl FooterEntry {
    /// Decodes the entry at the start of `bytes` and returns it with its length; `None` if more bytes are
    /// needed.
    pub fn decode(
        bytes: &[u8],
        context: SegmentContext,
    ) -> Result<Option<(Self, usize)>, Malformed> {
        let mut take = ByteReader::new(bytes);
        let Ok(offset) = take.u64() else { return Ok(None) };
        match Record::decode(take.rest(), context.at(offset)) {
            Ok((record, head)) => {
                let head_bytes = u32::try_from(head).map_err(|_| Malformed::Length)?;
                let bytes = head.saturating_add(FOOTER_ENTRY_OVERHEAD_BYTES);
                Ok(Some((Self { record, offset, head_bytes }, bytes)))
            }
            // No entry is longer than this, so more bytes would not help.
            Err(Malformed::Short) if bytes.len() < FOOTER_ENTRY_BYTES_MAX => Ok(None),
            Err(why) => Err(why),
        }
    }
}

/// Iterator over the entries of a footer in memory, ascending in offset and LSN; ends after the first error.
#[derive(Clone, Debug)]
pub struct FooterEntries<'a> {
    remaining: &'a [u8],
    context: SegmentContext,
    last: Option<(u64, u64)>,
}

impl<'a> FooterEntries<'a> {
    /// Reads `bytes`, which contain all entries and no trailer.
    pub fn new(bytes: &'a [u8], context: SegmentContext) -> Self {
        Self { remaining: bytes, context, last: None }
    }

    fn entry(&mut self) -> Result<FooterEntry, Malformed> {
        let decoded = FooterEntry::decode(self.remaining, self.context)?;
        let (entry, bytes) = decoded.ok_or(Malformed::Short)?;
        let (offset, lsn) = (entry.offset, entry.record.lsn);
        if self.last.is_some_and(|last| offset <= last.0 || lsn <= last.1) {
            return Err(Malformed::Order);
        }
        self.last = Some((offset, lsn));
        self.remaining = self.remaining.get(bytes..).ok_or(Malformed::Short)?;
        Ok(entry)
    }
}

impl Iterator for FooterEntries<'_> {
    type Item = Result<FooterEntry, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.remaining = &[];
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
