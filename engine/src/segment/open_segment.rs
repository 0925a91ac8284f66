//! Open segment: verified reads of a memory map, or of the file where it cannot be mapped.
//!
//! Guarantees: no byte is returned unverified ([`OpenSegment::block_read`] verifies what [`OpenSegment::read`]
//! returned); a block is verified once per opening of the segment; no page that is not resident is accessed unless
//! the caller allows blocking. A residency query costs as much as sending some kilobytes, so its result is cached
//! for a short time, but only used for bytes that are passed on unread.
//! Non-goals: keys, records.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::clock::Clock;
use crate::disk::{Access, Disk, DiskFile, Mapping};
use crate::error::{Error, Result};
use crate::format::{
    BIG_TRAILER_BYTES, BigTrailer, CheckClass, Checksum, DiskAddress, Malformed, Origin,
    SEGMENT_HEADER_BYTES, SegmentClass, SegmentHeader, SegmentId,
};
use crate::limits;

/// Whether a read may block on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// May block.
    Blocking,
    /// May not block: returns no data if it is not resident.
    NonBlocking,
}

/// Policy for verifying the checksums of body blocks on reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Verifies each block on the first read after its segment was opened, and again after the file was changed.
    #[default]
    FirstRead,
    /// Never verifies: damaged bytes are returned. Only for measuring the cost of verification.
    Never,
}

/// Segment open for reading. Dropping the last reference unmaps and closes the file.
pub(crate) struct OpenSegment {
    header: SegmentHeader,
    path: String,
    file: Arc<dyn DiskFile>,
    /// Value of [`DiskFile::changes`] for which the verified blocks are valid.
    changes: AtomicU64,
    backing: Backing,
    verification: Verification,
    verified: AtomicBitSet,
    resident: ResidencyCache,
    big: Option<BigContent>,
}

/// Trailer and block table of a big segment.
pub(crate) struct BigContent {
    /// Decoded trailer.
    pub(crate) trailer: BigTrailer,
    /// Block table: a slice of the mapping, if there is one.
    pub(crate) table: Bytes,
}

enum Backing {
    Mapped(Box<dyn Mapping>),
    /// Read from the file, because it cannot be mapped; files in the remote store cannot.
    Unmapped,
}

impl Backing {
    /// Maps a file, if it can be mapped.
    fn map(file: &dyn DiskFile, access: Access) -> io::Result<Self> {
        match file.map(access) {
            Ok(mapping) => Ok(Self::Mapped(mapping)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Self::Unmapped),
            Err(error) => Err(error),
        }
    }

    /// Returns the length of the file when it was opened.
    fn file_bytes(&self, file: &dyn DiskFile) -> io::Result<usize> {
        match self {
            Self::Mapped(mapping) => Ok(mapping.bytes_len()),
            Self::Unmapped => Ok(usize::try_from(file.bytes_len()?).unwrap_or(0)),
        }
    }
}

impl OpenSegment {
    /// Opens a growing segment, or one that could not be sealed.
    pub(crate) fn unsealed(
        header: SegmentHeader,
        class: SegmentClass,
        file: Arc<dyn DiskFile>,
        clock: Arc<dyn Clock>,
        verification: Verification,
    ) -> Self {
        let path = header.segment.path(class);
        // If mapping fails, the file is read.
        let backing = Backing::map(file.as_ref(), Access::Growing).unwrap_or(Backing::Unmapped);
        // If the length is unknown, every read verifies.
        let file_bytes = backing.file_bytes(file.as_ref()).unwrap_or(0);
        let verified = AtomicBitSet::for_bytes(file_bytes);
        let resident = ResidencyCache::new(file_bytes, clock);
        let changes = AtomicU64::new(file.changes().unwrap_or(0));
        Self { header, path, file, changes, backing, verification, verified, resident, big: None }
    }

    /// Maps a sealed segment, if its file can be mapped, and verifies its header and, for a big one, trailer and block
    /// table.
    pub(crate) fn map(
        disk: &dyn Disk,
        id: SegmentId,
        class: SegmentClass,
        store: uuid::Uuid,
        clock: &Arc<dyn Clock>,
        verification: Verification,
    ) -> Result<Self> {
        let path = id.path(class);
        let damaged = |offset, reason| Error::corrupt(path.clone(), offset, reason);
        let file = disk.open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => damaged(0, Malformed::Missing),
            _ => Error::io(format!("opening {path}"), source),
        })?;
        let access = match class {
            SegmentClass::Log | SegmentClass::Compacted => Access::Random,
            SegmentClass::Big => Access::Sequential,
        };
        let io = |source| Error::io(format!("mapping {path}"), source);
        let backing = Backing::map(file.as_ref(), access).map_err(io)?;
        let file_bytes = backing.file_bytes(file.as_ref()).map_err(io)?;
        let mut segment = Self {
            header: read_header(file.as_ref(), &path, id, class, store)?,
            verification,
            // A cache file may be emptied and filled again: each read verifies.
            verified: AtomicBitSet::for_bytes(if file.is_remote() { 0 } else { file_bytes }),
            resident: ResidencyCache::new(file_bytes, Arc::clone(clock)),
            backing,
            big: None,
            changes: AtomicU64::new(file.changes().unwrap_or(0)),
            file,
            path,
        };
        if class == SegmentClass::Big {
            segment.big = Some(segment.read_big(file_bytes as u64)?);
        }
        Ok(segment)
    }

    /// Returns a weak reference that can be upgraded while a slice of the map is in use; `None` if the segment is not
    /// mapped.
    pub(crate) fn liveness_handle(&self) -> Option<Weak<dyn Send + Sync>> {
        match &self.backing {
            Backing::Mapped(mapping) => Some(mapping.liveness_handle()),
            Backing::Unmapped => None,
        }
    }

    /// Returns the id of the segment.
    pub(crate) fn id(&self) -> SegmentId {
        self.header.segment
    }

    /// Returns the path of the file, relative to the data folder.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the disk address of `offset`.
    pub(crate) fn place(&self, offset: u64) -> DiskAddress {
        self.header.context().at(offset)
    }

    /// Returns trailer and block table of a big segment.
    pub(crate) fn big(&self) -> Option<&BigContent> {
        self.big.as_ref()
    }

    /// Reads a range of the file without verification; `None` if the call may not block but would have to.
    pub(crate) fn read(&self, range: Range<u64>, mode: ReadMode) -> Result<Option<Bytes>> {
        match &self.backing {
            Backing::Mapped(mapping) => {
                let range = self.in_file(&range, mapping.bytes_len())?;
                if !mapping.is_resident(range.clone()) {
                    if mode == ReadMode::NonBlocking {
                        return Ok(None);
                    }
                    mapping
                        .populate(range.clone())
                        .map_err(|source| Error::io(format!("reading {}", self.path), source))?;
                }
                self.resident.note(&range);
                Ok(Some(mapping.slice(range)))
            }
            Backing::Unmapped => {
                let length = usize::try_from(range.end.saturating_sub(range.start))
                    .map_err(|_| Error::TooLarge("one read"))?;
                let mut buffer = vec![0; length];
                let read = match mode {
                    ReadMode::Blocking => {
                        self.file.read_at(range.start, &mut buffer).map(|()| true)
                    }
                    ReadMode::NonBlocking => {
                        self.file.read_at_if_resident(range.start, &mut buffer)
                    }
                };
                match read {
                    Ok(true) => Ok(Some(buffer.into())),
                    Ok(false) => Ok(None),
                    Err(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                        Err(Error::corrupt(self.path.clone(), range.start, Malformed::Short))
                    }
                    Err(source) => Err(Error::io(format!("reading {}", self.path), source)),
                }
            }
        }
    }

    /// Reads verified bytes that are passed on without being accessed here.
    ///
    /// Pages that were resident a moment ago are assumed to be resident still; in the worst case, sending them
    /// blocks.
    pub(crate) fn read_trusting_residency(
        &self,
        range: Range<u64>,
        mode: ReadMode,
    ) -> Result<Option<Bytes>> {
        if let Backing::Mapped(mapping) = &self.backing {
            let range = self.in_file(&range, mapping.bytes_len())?;
            if self.resident.is_recent(&range) {
                return Ok(Some(mapping.slice(range)));
            }
        }
        self.read(range, mode)
    }

    /// Resets the verified blocks if the file was changed since. Called once for each opened body: only appends
    /// change a segment, any other change is corruption.
    pub(crate) fn detect_changes(&self) {
        if self.verification == Verification::Never {
            return;
        }
        let now = self.file.changes().unwrap_or(0);
        if self.changes.swap(now, Ordering::Relaxed) != now {
            self.verified.clear();
        }
    }

    /// Returns whether reads may fetch bytes from the remote store.
    pub(crate) fn is_remote(&self) -> bool {
        self.file.is_remote()
    }

    /// Drops cached bytes of a range of a segment in the remote store. Returns false if there are none.
    pub(crate) fn discard_cached(&self, range: Range<u64>) -> bool {
        self.file.discard_cached(range)
    }

    /// Returns the monotonic time of a read in the last seconds before the last read.
    pub(crate) fn last_read_ms(&self) -> u64 {
        self.resident.since_ms.load(Ordering::Relaxed)
    }

    /// Resets the verified blocks.
    pub(crate) fn forget_verified(&self) {
        self.verified.clear();
    }

    /// Returns whether the block of `bytes` at `offset` was already verified since the segment was opened.
    pub(crate) fn is_verified(&self, offset: u64, bytes: u64) -> bool {
        if self.verification == Verification::Never {
            return true;
        }
        self.verified_bit(offset, bytes).is_some_and(|bit| self.verified.contains(bit))
    }

    /// Verifies one block that [`OpenSegment::read`] read from `offset`, and marks it as verified.
    pub(crate) fn verify_block(&self, block: &[u8], offset: u64, checksum: Checksum) -> Result<()> {
        if self.verification == Verification::Never {
            return Ok(());
        }
        checksum
            .verify(CheckClass::Block, block, self.place(offset))
            .map_err(|reason| Error::corrupt(self.path.clone(), offset, reason))?;
        if let Some(bit) = self.verified_bit(offset, block.len() as u64) {
            self.verified.insert(bit);
        }
        Ok(())
    }

    /// Returns the bit of the block at `offset`.
    ///
    /// In a log or compacted segment two blocks of at least 4 KiB never start in the same 4 KiB; in a big segment
    /// every block except the last is 64 KiB. Smaller blocks are cheap to verify: they have no bit and are verified
    /// on each read.
    fn verified_bit(&self, offset: u64, bytes: u64) -> Option<u64> {
        match self.header.class {
            SegmentClass::Big => Some(
                offset.saturating_sub(SEGMENT_HEADER_BYTES as u64) / limits::BLOCK_BYTES as u64,
            ),
            SegmentClass::Log | SegmentClass::Compacted => {
                (bytes >= VERIFIED_GRAIN_BYTES).then_some(offset / VERIFIED_GRAIN_BYTES)
            }
        }
    }

    fn in_file(&self, range: &Range<u64>, file_bytes: usize) -> Result<Range<usize>> {
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end).unwrap_or(usize::MAX);
        if start > end || end > file_bytes {
            return Err(Error::corrupt(self.path.clone(), range.start, Malformed::Short));
        }
        Ok(start..end)
    }

    fn read_big(&self, file_bytes: u64) -> Result<BigContent> {
        let damaged = |offset, reason| Error::corrupt(self.path.clone(), offset, reason);
        let trailer_at = file_bytes
            .checked_sub(BIG_TRAILER_BYTES as u64)
            .ok_or(damaged(file_bytes, Malformed::Short))?;
        let wait = |range| self.read(range, ReadMode::Blocking).map(Option::unwrap_or_default);
        let trailer = BigTrailer::decode(&wait(trailer_at..file_bytes)?, self.place(trailer_at))
            .map_err(|reason| damaged(trailer_at, reason))?;
        let table_at = BigTrailer::table_offset(trailer.body_bytes);
        let table = wait(table_at..trailer_at)?;
        trailer.verify_table(&table).map_err(|reason| damaged(table_at, reason))?;
        Ok(BigContent { trailer, table })
    }
}

/// Reads and verifies the header page of a segment.
pub(crate) fn read_header(
    file: &dyn DiskFile,
    path: &str,
    id: SegmentId,
    class: SegmentClass,
    store: uuid::Uuid,
) -> Result<SegmentHeader> {
    let damaged = |reason| Error::corrupt(path, 0, reason);
    let mut page = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut page).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => damaged(Malformed::Short),
        _ => Error::io(format!("reading {path}"), source),
    })?;
    let header = SegmentHeader::decode_page(&page).map_err(damaged)?;
    if header.segment != id || header.class != class || header.store != store {
        return Err(damaged(Malformed::Misplaced));
    }
    Ok(header)
}

/// Reads and verifies the header page of a compacted segment, with its origin.
pub(crate) fn read_origin(
    disk: &dyn Disk,
    id: SegmentId,
    store: uuid::Uuid,
) -> Result<(SegmentHeader, Origin)> {
    let path = id.path(SegmentClass::Compacted);
    let io = |source| Error::io(format!("reading {path}"), source);
    let file = disk.open(&path).map_err(io)?;
    let header = read_header(file.as_ref(), &path, id, SegmentClass::Compacted, store)?;
    let mut page = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut page).map_err(io)?;
    let origin = Origin::decode_page(&page, &header);
    Ok((header, origin.map_err(|reason| Error::corrupt(path.clone(), 0, reason))?))
}

const VERIFIED_GRAIN_BYTES: u64 = 4_096;

/// Cache of resident pages.
struct ResidencyCache {
    pages: AtomicBitSet,
    /// Start of the current validity period, in milliseconds of the clock.
    since_ms: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl ResidencyCache {
    fn new(file_bytes: usize, clock: Arc<dyn Clock>) -> Self {
        let since_ms = AtomicU64::new(clock.monotonic_ms());
        Self { pages: AtomicBitSet::for_bytes(file_bytes), since_ms, clock }
    }

    fn is_recent(&self, range: &Range<usize>) -> bool {
        let (now_ms, since_ms) = (self.clock.monotonic_ms(), self.since_ms.load(Ordering::Relaxed));
        if now_ms.saturating_sub(since_ms) < limits::RESIDENCY_TTL_MS {
            return self.pages.contain_all(pages(range));
        }
        let (order, otherwise) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.since_ms.compare_exchange(since_ms, now_ms, order, otherwise).is_ok() {
            self.pages.clear();
        }
        false
    }

    fn note(&self, range: &Range<usize>) {
        self.pages.insert_all(pages(range));
    }
}

/// Returns the bits of the pages that a range overlaps.
fn pages(range: &Range<usize>) -> Range<u64> {
    range.start as u64 / VERIFIED_GRAIN_BYTES..(range.end as u64).div_ceil(VERIFIED_GRAIN_BYTES)
}

/// Bitmap with one bit per 4 KiB of a file.
struct AtomicBitSet(Box<[AtomicU64]>);

impl AtomicBitSet {
    fn for_bytes(file_bytes: usize) -> Self {
        let bits = file_bytes as u64 / VERIFIED_GRAIN_BYTES + 1;
        let words = usize::try_from(bits.div_ceil(64)).unwrap_or(0);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(bit / 64).ok()?)
    }

    fn contains(&self, bit: u64) -> bool {
        self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) & (1 << (bit % 64)) != 0)
    }

    fn contain_all(&self, bits: Range<u64>) -> bool {
        words(bits).all(|(bit, mask)| {
            self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) & mask == mask)
        })
    }

    fn clear(&self) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn insert(&self, bit: u64) {
        self.insert_all(bit..bit + 1);
    }

    fn insert_all(&self, bits: Range<u64>) {
        for (bit, mask) in words(bits) {
            // The bit is usually set, and a cache line that is not written stays shared between processors.
            if let Some(word) = self.word(bit)
                && word.load(Ordering::Relaxed) & mask != mask
            {
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }
}

/// Returns, for each word of this bit range, one of its bits and the mask of those in the range.
fn words(bits: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    (bits.start / 64..bits.end.div_ceil(64)).map(move |word| {
        let first = bits.start.max(word * 64) % 64;
        let count = bits.end.min(word * 64 + 64) - (word * 64 + first);
        (word * 64, (u64::MAX >> (64 - count)) << first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;

    const PAGE: usize = VERIFIED_GRAIN_BYTES as usize;

    #[test]
    fn bit_ranges_are_set_and_tested() {
        for (start, end) in [(0, 1), (63, 64), (63, 65), (64, 128), (5, 200), (0, 256)] {
            let bits = AtomicBitSet::for_bytes(256 * PAGE);
            assert!(!bits.contain_all(start..end));
            bits.insert_all(start..end);
            assert!(bits.contain_all(start..end), "{start}..{end}");
            for bit in 0..256 {
                assert_eq!(bits.contains(bit), (start..end).contains(&bit), "{bit}");
            }
            assert!(!bits.contain_all(start..end + 1) || end == 256);
        }
    }

    #[test]
    fn residency_is_cached_for_its_ttl() {
        let clock = Arc::new(SimClock::at(0));
        let resident = ResidencyCache::new(100 * PAGE, clock.clone());
        resident.note(&(PAGE + 1..3 * PAGE));
        assert!(resident.is_recent(&(PAGE..3 * PAGE)));
        assert!(resident.is_recent(&(2 * PAGE + 7..2 * PAGE + 8)));
        assert!(!resident.is_recent(&(PAGE..3 * PAGE + 1)));
        assert!(!resident.is_recent(&(PAGE - 1..3 * PAGE)));
        clock.advance(limits::RESIDENCY_TTL_MS);
        assert!(!resident.is_recent(&(PAGE..3 * PAGE)));
        resident.note(&(PAGE..3 * PAGE));
        assert!(resident.is_recent(&(PAGE..3 * PAGE)));
    }
}
