//! Body reader: verified range reads of an object, in mapped and unmapped segments.
//!
//! Guarantees: every returned byte was verified against its block checksum since the segment was opened; damage is
//! an error with object, file and offset. A body pins its segment: overwriting or deleting the object does not
//! affect readers.
//! Non-goals: resolving names to objects.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;

use super::body_cache::{BodyCache, BodySource};
use super::open_segment::{OpenSegment, ReadMode};
use super::reported_corruption::ReportedCorruption;
use crate::error::{Error, Result};
use crate::format::{
    BigTrailer, Checksum, Entry, EntryContent, Malformed, Record, RecordContent, RecordOp,
    RunningChecksum, SEGMENT_HEADER_BYTES,
};
use crate::limits;
use crate::name::ObjectName;

/// Body of one object, open for reading. Overwriting or deleting the object does not affect it.
#[derive(Clone)]
pub struct Body {
    segment: Arc<OpenSegment>,
    name: ObjectName,
    start: u64,
    bytes: u64,
    content: BodySource,
    /// Receiver of corruption that reads detect.
    reported_corruption: Option<Arc<ReportedCorruption>>,
}

impl Body {
    /// Opens the body that `entry` refers to, and verifies that the record there is the one that the entry
    /// describes.
    ///
    /// `segment` contains the content; `cache` has the results of earlier opens. `None` if the call may not wait
    /// for the disk but would have to.
    pub(crate) fn open(
        segment: Arc<OpenSegment>,
        name: &ObjectName,
        entry: &Entry,
        cache: &BodyCache,
        mode: ReadMode,
    ) -> Result<Option<Self>> {
        match &entry.content {
            EntryContent::Inline { bytes } => {
                let content = match cache.get(name, entry) {
                    Some(content) => content,
                    None => match Self::read_inline(&segment, name, entry, mode)
                        .or_else(|error| Self::reread_inline(error, &segment, name, entry, mode))?
                    {
                        Some(content) => {
                            cache.insert(name, entry, &content);
                            content
                        }
                        None => return Ok(None),
                    },
                };
                if !matches!(content, BodySource::Whole(_)) {
                    segment.detect_changes();
                }
                let start = entry.record.offset + u64::from(entry.record.head_bytes);
                let (name, bytes) = (name.clone(), *bytes);
                Ok(Some(Self { segment, name, start, bytes, content, reported_corruption: None }))
            }
            EntryContent::Big { bytes, .. } => {
                Self::open_big(segment, name, entry, *bytes).map(Some)
            }
            EntryContent::Lost { .. } => {
                let at = entry.record.offset;
                Err(Error::corrupt(segment.path(), at, Malformed::Lost).about(name))
            }
        }
    }

    /// Reads once more if bytes of a cache file were damaged: they are fetched again.
    #[cold]
    fn reread_inline(
        error: Error,
        segment: &OpenSegment,
        name: &ObjectName,
        entry: &Entry,
        mode: ReadMode,
    ) -> Result<Option<BodySource>> {
        let at = entry.record.offset;
        let end = at + u64::from(entry.record.head_bytes) + entry.body_bytes();
        match error {
            Error::Corrupt(_) if segment.discard_cached(at..end) => {
                Self::read_inline(segment, name, entry, mode)
            }
            other => Err(other),
        }
    }

    fn read_inline(
        segment: &OpenSegment,
        name: &ObjectName,
        entry: &Entry,
        mode: ReadMode,
    ) -> Result<Option<BodySource>> {
        let at = entry.record.offset;
        let head_bytes = u64::from(entry.record.head_bytes);
        let start = at + head_bytes;
        // A small body is read together with the head: one residency check, one read.
        let is_small = entry.body_bytes() <= SMALL_BODY_BYTES_MAX;
        let end = start + if is_small { entry.body_bytes() } else { 0 };
        let read = segment.read(at..end, mode).map_err(|error| error.about(name))?;
        let Some(mut head) = read else {
            return Ok(None);
        };
        let body = head.split_off(head.len().min(entry.record.head_bytes as usize));
        let damaged = |reason| Error::corrupt(segment.path(), at, reason).about(name);
        let (record, decoded_bytes) = Record::decode(&head, segment.place(at)).map_err(damaged)?;
        let RecordOp::Put { name: found, content: RecordContent::Inline { bytes, blocks }, .. } =
            record.op
        else {
            return Err(damaged(Malformed::Misplaced));
        };
        if found != *name
            || record.lsn != entry.lsn
            || decoded_bytes as u64 != head_bytes
            || bytes != entry.body_bytes()
        {
            return Err(damaged(Malformed::Misplaced));
        }
        Ok(Some(match blocks.first() {
            Some(checksum) if is_small => {
                let verified = segment.verify_block(&body, start, *checksum);
                verified.map_err(|error| error.about(name))?;
                BodySource::Whole(body)
            }
            _ => BodySource::Blocks(blocks.into()),
        }))
    }

    fn open_big(
        segment: Arc<OpenSegment>,
        name: &ObjectName,
        entry: &Entry,
        bytes: u64,
    ) -> Result<Self> {
        let damaged = |reason| Error::corrupt(segment.path(), 0, reason).about(name);
        let big = segment.big().ok_or_else(|| damaged(Malformed::Misplaced))?;
        if big.trailer.body_bytes != bytes || big.trailer.hash != entry.meta.hash {
            return Err(damaged(Malformed::Misplaced));
        }
        segment.detect_changes();
        let content = BodySource::Table(big.table.clone());
        let start = SEGMENT_HEADER_BYTES as u64;
        Ok(Self { segment, name: name.clone(), start, bytes, content, reported_corruption: None })
    }

    /// Returns the body with detected corruption reported to `corruption`.
    pub(crate) fn reporting_to(self, corruption: &Arc<ReportedCorruption>) -> Self {
        Self { reported_corruption: Some(Arc::clone(corruption)), ..self }
    }

    /// Returns the length of the body in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the content is only in the remote store, so that a read may wait for the network.
    pub fn is_remote(&self) -> bool {
        self.segment.is_remote()
    }

    /// Returns the CRC-32 of the whole body, as in zip and PNG. Combines the checksums of its blocks, without reading
    /// them: a later [`read`](Self::read) verifies that they match.
    pub fn crc32(&self) -> Result<u32> {
        if let BodySource::Whole(whole) = &self.content {
            return Ok(Checksum::of(whole).0);
        }
        let block_bytes = limits::BLOCK_BYTES as u64;
        let mut combined = RunningChecksum::new();
        for block in 0..self.bytes.div_ceil(block_bytes) {
            let offset = block * block_bytes;
            let place = self.segment.place(self.start + offset);
            combined
                .append(self.checksum(block)?.bind(place), block_bytes.min(self.bytes - offset));
        }
        Ok(combined.finish().0)
    }

    /// Splits a length into ranges of at most [`limits::READ_BYTES_MAX`], each for one [`read`](Self::read).
    pub fn read_ranges(bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let step = limits::READ_BYTES_MAX as u64;
        (0..bytes.div_ceil(step)).map(move |at| at * step..bytes.min((at + 1) * step))
    }

    /// Reads a range of the body. Waits for the disk, and yields the processor to other threads after each block that
    /// it verifies: Linux since 6.6 (EEVDF) does not preempt a thread for one that has had more than its share.
    ///
    /// A range that extends beyond the body, or is longer than [`limits::READ_BYTES_MAX`], is truncated. Fails with
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block of the range is damaged, and returns none of its bytes.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.read_range(range, ReadMode::Blocking).map(Option::unwrap_or_default)
    }

    /// Reads a range like [`Body::read`], without waiting for the disk and verifying at most one block.
    ///
    /// `None` if part of the range is not in the page cache, or if more than one block is not verified yet: the first
    /// access to every byte of a mapping is slow where each page has to be mapped.
    pub fn read_if_resident(&self, range: Range<u64>) -> Result<Option<Bytes>> {
        self.read_range(range, ReadMode::NonBlocking)
    }

    fn read_range(&self, range: Range<u64>, mode: ReadMode) -> Result<Option<Bytes>> {
        let read = self.read_verified(range.clone(), mode);
        read.or_else(|error| self.read_again(error, range, mode))
    }

    /// Reads once more if bytes of a cache file were damaged: they are fetched again. Other corruption is reported.
    #[cold]
    fn read_again(&self, error: Error, range: Range<u64>, mode: ReadMode) -> Result<Option<Bytes>> {
        let in_file = self.start..self.start + self.bytes;
        let read = match error {
            Error::Corrupt(_) if self.segment.discard_cached(in_file) => {
                self.read_verified(range, mode)
            }
            other => Err(other),
        };
        read.inspect_err(|error| {
            if let Some(corruption) = &self.reported_corruption {
                corruption.add(error);
            }
        })
    }

    fn read_verified(&self, range: Range<u64>, mode: ReadMode) -> Result<Option<Bytes>> {
        let start = range.start.min(self.bytes);
        let end = range.end.min(self.bytes).min(start + limits::READ_BYTES_MAX as u64).max(start);
        if start == end {
            return Ok(Some(Bytes::new()));
        }
        if let BodySource::Whole(whole) = &self.content {
            let within = |position| usize::try_from(position).unwrap_or(usize::MAX);
            return Ok(Some(whole.slice(within(start)..within(end))));
        }
        let in_file = |range: Range<u64>| self.start + range.start..self.start + range.end;
        let block_bytes = limits::BLOCK_BYTES as u64;
        let covering_start = start - start % block_bytes;
        let covering_end = end.next_multiple_of(block_bytes).min(self.bytes);
        let is_verified = (covering_start..covering_end)
            .step_by(limits::BLOCK_BYTES)
            .all(|at| self.segment.is_verified(self.start + at, block_bytes.min(self.bytes - at)));
        if !is_verified
            && mode == ReadMode::NonBlocking
            && covering_end - covering_start > block_bytes
        {
            return Ok(None);
        }
        let wanted = if is_verified { start..end } else { covering_start..covering_end };
        let read = match is_verified {
            true => self.segment.read_trusting_residency(in_file(wanted), mode),
            false => self.segment.read(in_file(wanted), mode),
        };
        let Some(covering) = read.map_err(|error| error.about(&self.name))? else {
            return Ok(None);
        };
        if is_verified {
            return Ok(Some(covering));
        }
        let mut offset = covering_start;
        for block in covering.chunks(limits::BLOCK_BYTES) {
            if !self.segment.is_verified(self.start + offset, block.len() as u64) {
                let checksum = self.checksum(offset / block_bytes)?;
                self.segment
                    .verify_block(block, self.start + offset, checksum)
                    .map_err(|error| error.about(&self.name))?;
                if mode == ReadMode::Blocking {
                    thread::yield_now();
                }
            }
            offset += block.len() as u64;
        }
        let within =
            |position: u64| usize::try_from(position - covering_start).unwrap_or(usize::MAX);
        Ok(Some(covering.slice(within(start)..within(end))))
    }

    fn checksum(&self, block: u64) -> Result<Checksum> {
        let index = usize::try_from(block).unwrap_or(usize::MAX);
        let found = match &self.content {
            BodySource::Whole(_) => None,
            BodySource::Blocks(blocks) => blocks.get(index).copied(),
            BodySource::Table(table) => BigTrailer::block(table, index),
        };
        found.ok_or_else(|| {
            Error::corrupt(self.segment.path(), self.start, Malformed::Length).about(&self.name)
        })
    }
}

/// Maximum size of a body that is read and verified when it is opened.
const SMALL_BODY_BYTES_MAX: u64 = 16 * 1_024;
const _: () = assert!(SMALL_BODY_BYTES_MAX <= limits::BLOCK_BYTES as u64, "it is one block");
