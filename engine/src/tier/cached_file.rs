//! File of a segment in the remote store, read through a cache file.
//!
//! The file is divided into units. A read fetches those that it needs and that the cache file does not have; sequential
//! reads fetch further ahead.
//!
//! The header page of a log or compacted segment is in its reference: opening a store fetches only segments that it
//! replays.
//!
//! Guarantees: if the cache file cannot be written, reads are served without it.
//! Non-goals: verification.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::cache_entry::{CacheEntry, Step, UNIT};
use super::segment_cache::{CACHE_FOLDER, SegmentCache};
use crate::disk::{Access, DiskFile, Mapping};

/// Open file of a segment in the remote store.
pub(crate) struct CachedFile {
    entry: Arc<CacheEntry>,
    segments: Arc<SegmentCache>,
    /// Opened, or created, by the first read that needs it.
    cache: OnceLock<Arc<dyn DiskFile>>,
}

impl CachedFile {
    pub(super) fn new(entry: Arc<CacheEntry>, segments: Arc<SegmentCache>) -> Self {
        Self { entry, segments, cache: OnceLock::new() }
    }

    fn cache(&self) -> io::Result<&dyn DiskFile> {
        if let Some(cache) = self.cache.get() {
            return Ok(cache.as_ref());
        }
        let path = &self.entry.cache_path;
        let local = &self.segments.local;
        local.create_folder(CACHE_FOLDER)?;
        let cache = match local.create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => local.open(path)?,
            other => {
                let cache = other?;
                cache.set_len(self.entry.bytes)?;
                cache
            }
        };
        Ok(self.cache.get_or_init(|| cache).as_ref())
    }

    /// Reads the first bytes of a range. Returns their number, 0 if the read has to be repeated.
    fn read_piece(&self, range: Range<u64>, buffer: &mut [u8]) -> io::Result<usize> {
        let step = self.entry.step(&(range.start / UNIT..range.end.div_ceil(UNIT)));
        let (Step::Present(units) | Step::Fetch(units)) = &step;
        let end = self.entry.byte_range(units).end.min(range.end);
        let length = usize::try_from(end - range.start).unwrap_or(usize::MAX);
        let piece = buffer.get_mut(..length).ok_or(ErrorKind::UnexpectedEof)?;
        match step {
            Step::Present(_) => {
                let _content = self.entry.content();
                // The file may have been emptied in between.
                if !self.entry.has(range.start..end) {
                    return Ok(0);
                }
                self.cache()?.read_at(range.start, piece)?;
            }
            Step::Fetch(units) => {
                let skip = usize::try_from(range.start - units.start * UNIT).unwrap_or(usize::MAX);
                let bytes = self.fetch(units)?;
                let found = bytes.get(skip..).and_then(|bytes| bytes.get(..length));
                piece.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
            }
        }
        Ok(length)
    }

    fn fetch(&self, units: Range<u64>) -> io::Result<Bytes> {
        let CacheEntry { path, object, .. } = &*self.entry;
        let range = self.entry.byte_range(&units);
        let fetched = self.segments.fetch(path, object, range.clone());
        let content = self.entry.content();
        let is_present = fetched.as_ref().is_ok_and(|bytes| {
            self.cache().and_then(|cache| cache.write_at(range.start, &[bytes])).is_ok()
        });
        self.entry.end_fetch(units, is_present);
        drop(content);
        if is_present {
            self.segments.make_room();
        }
        fetched
    }
}

impl DiskFile for CachedFile {
    fn bytes_len(&self) -> io::Result<u64> {
        Ok(self.entry.bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = self.entry.begin_read(offset, buffer.len())?;
        let in_page = self.entry.page.get(usize::try_from(offset).unwrap_or(usize::MAX)..);
        let in_page = in_page.unwrap_or_default();
        let in_page = in_page.get(..buffer.len()).unwrap_or(in_page);
        let (first, mut rest) = buffer.split_at_mut(in_page.len());
        first.copy_from_slice(in_page);
        while !rest.is_empty() {
            let done = self.read_piece(end - rest.len() as u64..end, rest)?;
            rest = rest.get_mut(done..).unwrap_or_default();
        }
        Ok(())
    }

    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let end = self.entry.begin_read(offset, buffer.len())?;
        let _content = self.entry.content();
        let is_present = self.entry.has(offset..end);
        if is_present { self.cache()?.read_at_if_resident(offset, buffer) } else { Ok(false) }
    }

    fn write_at(&self, _: u64, _: &[&[u8]]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn punch(&self, _: Range<u64>) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn changes(&self) -> io::Result<u64> {
        self.cache.get().map_or(Ok(0), |cache| cache.changes())
    }

    fn map(&self, _: Access) -> io::Result<Box<dyn Mapping>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn discard_cached(&self, range: Range<u64>) -> bool {
        self.entry.discard(range);
        true
    }
}
