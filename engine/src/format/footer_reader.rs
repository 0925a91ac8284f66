//! Streaming reader of the entries of a segment footer.
//!
//! Guarantees: the last piece is returned only if all entries match the checksum of the trailer; until then no entry
//! may be trusted. One piece is in memory at a time.
//! Non-goals: file access; the caller reads the requested ranges.

use super::checksum::{CheckClass, Checksum, RunningChecksum, SegmentContext, compare};
use super::footer::{FooterTrailer, entries_bytes_of};
use super::footer_block::{FOOTER_BLOCK_BYTES, FOOTER_BLOCK_HEADER_BYTES, FooterBlock};
use super::malformed::Malformed;

/// Reader of a footer's entries from front to back.
#[derive(Clone, Debug)]
pub struct FooterReader {
    context: SegmentContext,
    /// Offset of the next read.
    at: u64,
    /// Offset of the trailer.
    end: u64,
    /// Header and offset of the block whose data is read next.
    block: Option<(FooterBlock, u64)>,
    /// Whether a short block was read; only the last block may be short.
    is_last: bool,
    entry_count: u64,
    entries_bytes: u64,
    running: RunningChecksum,
    expected: Checksum,
}

impl FooterReader {
    /// Creates a reader before the first entry of the footer that ends with this trailer.
    pub fn new(trailer: &FooterTrailer, context: SegmentContext) -> Self {
        Self {
            context,
            at: trailer.footer_offset,
            end: trailer.offset(),
            block: None,
            is_last: false,
            entry_count: trailer.entry_count,
            entries_bytes: 0,
            running: RunningChecksum::new(),
            expected: trailer.entries,
        }
    }

    /// Returns the next range to read, as offset and length: at most one block with the header of the next.
    /// `None` at the end.
    pub fn next_range(&self) -> Option<(u64, usize)> {
        let block_bytes = self.block.as_ref().map_or(0, |(block, _)| u64::from(block.stored_bytes));
        let length = block_bytes.saturating_add(FOOTER_BLOCK_HEADER_BYTES as u64);
        let length = length.min(self.end.saturating_sub(self.at));
        (length > 0).then(|| (self.at, usize::try_from(length).unwrap_or(usize::MAX)))
    }

    /// Accepts the bytes of the range returned by [`FooterReader::next_range`], and returns the entry bytes in them,
    /// possibly none. An entry may span two pieces.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let entries = self.decompress(bytes)?;
        self.running.update(&entries);
        self.entries_bytes = self.entries_bytes.saturating_add(entries.len() as u64);
        if self.at >= self.end {
            let found = std::mem::take(&mut self.running).finish();
            compare(CheckClass::Footer, self.expected, found)?;
            let possible = entries_bytes_of(self.entry_count).ok_or(Malformed::Count)?;
            if !possible.contains(&self.entries_bytes) {
                return Err(Malformed::Count);
            }
        }
        Ok(entries)
    }

    fn decompress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let (mut entries, mut rest) = (Vec::new(), bytes);
        if let Some((block, at)) = self.block.take() {
            let stored = usize::try_from(block.stored_bytes).map_err(|_| Malformed::Length)?;
            let (data, behind) = bytes.split_at_checked(stored).ok_or(Malformed::Short)?;
            entries = block.decompress(data, self.context.at(at))?;
            self.is_last = entries.len() < FOOTER_BLOCK_BYTES;
            self.at = self.at.saturating_add(u64::from(block.stored_bytes));
            rest = behind;
        }
        if self.at < self.end {
            let block = FooterBlock::decode(rest)?;
            if self.is_last {
                return Err(Malformed::Length);
            }
            let at = self.at;
            self.at = at.saturating_add(FOOTER_BLOCK_HEADER_BYTES as u64);
            if u64::from(block.stored_bytes) > self.end.saturating_sub(self.at) {
                return Err(Malformed::Length);
            }
            self.block = Some((block, at));
        }
        Ok(entries)
    }
}
