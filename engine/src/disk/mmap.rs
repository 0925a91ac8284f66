//! Memory maps of files; contains `unsafe` code.
//!
//! The caller of [`map_file`] must ensure that the bytes of a slice do not change, and that the file is not truncated
//! before their end, while the slice exists; unless the access is [`Access::Growing`], this applies to the whole file
//! while it is mapped. Segments satisfy this: sealed ones never change while mapped; only durable groups of a growing
//! one are sliced, and sealing truncates it after them; retiring one unlinks it; and recovery truncates a file before
//! it is first mapped. Another process that truncates files in the data folder violates it; the folder is private to
//! its owner.
//!
//! Guarantees: with the contract satisfied, no call here is unsafe; [`Mapping::populate`] reports an I/O error as an
//! error, while a plain memory access would raise a signal.
//! Non-goals: writable maps.

#![allow(
    unsafe_code,
    reason = "mapping files cannot be had without; nothing else lives in this file"
)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::slice;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::io::Errno;

use super::{Access, Mapping};

/// Bytes that are read at once if the kernel cannot populate a map.
const TOUCH_BYTES: usize = 64 * 1_024;
/// Number of pages per residency query to the kernel.
const RESIDENCY_QUERY_PAGES: usize = 256;

/// Maps a whole file read-only. An empty file has an empty map.
pub(super) fn map_file<F: AsFd>(file: Arc<F>, access: Access) -> io::Result<FileMap<F>> {
    let map = Arc::new(MmapOptions::new().map_raw_read_only(file.as_fd().as_raw_fd())?);
    if map.len() > 0 {
        map.advise(match access {
            Access::Random | Access::Growing => Advice::Random,
            Access::Sequential => Advice::Sequential,
        })?;
    }
    let whole = MappedRange { map: Arc::clone(&map), range: 0..map.len() };
    let whole = (access != Access::Growing).then(|| Bytes::from_owner(whole));
    Ok(FileMap { map, whole, file })
}

/// Read-only map of a file.
pub(super) struct FileMap<F> {
    map: Arc<MmapRaw>,
    /// All bytes, of which slices are cheaper; `None` for a growing file, where some of them still change.
    whole: Option<Bytes>,
    file: Arc<F>,
}

/// Range of a map, which it keeps alive.
struct MappedRange {
    map: Arc<MmapRaw>,
    range: Range<usize>,
}

impl AsRef<[u8]> for MappedRange {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is inside the map. The caller of `map_file` ensures that its bytes do not change, and that
        // the file is not truncated before its end, where an access would raise a signal.
        unsafe { slice::from_raw_parts(self.map.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl<F: AsFd + Send + Sync> Mapping for FileMap<F> {
    fn bytes_len(&self) -> usize {
        self.map.len()
    }

    fn slice(&self, range: Range<usize>) -> Bytes {
        let range = self.clamp(range);
        match &self.whole {
            Some(bytes) => bytes.slice(range),
            None => Bytes::from_owner(MappedRange { map: Arc::clone(&self.map), range }),
        }
    }

    fn liveness_handle(&self) -> Weak<dyn Send + Sync> {
        let map: Weak<MmapRaw> = Arc::downgrade(&self.map);
        map
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        let range = self.clamp(range);
        let page_bytes = rustix::param::page_size();
        let mut pages = [0_u8; RESIDENCY_QUERY_PAGES];
        let mut start = range.start - range.start % page_bytes;
        while start < range.end {
            let asked = (range.end - start).min(RESIDENCY_QUERY_PAGES * page_bytes);
            // SAFETY: `start` is a multiple of the page size inside the map, which starts on a page; `start + asked`
            // is at most its length; and `pages` has a byte for each page of `asked`, including a partial last one.
            let answer = unsafe {
                let first = self.map.as_ptr().add(start);
                libc::mincore(first.cast_mut().cast(), asked, pages.as_mut_ptr().cast())
            };
            let page_count = asked.div_ceil(page_bytes);
            if answer != 0 || pages[..page_count].iter().any(|page| page & 1 == 0) {
                return false;
            }
            start += asked;
        }
        true
    }

    /// Populates with `MADV_POPULATE_READ`.
    ///
    /// Kernels before 5.14 lack it: there the file is read into a scratch buffer, which also brings it into the page
    /// cache; under memory pressure a page may be evicted again before the access.
    fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.clamp(range);
        if range.is_empty() {
            return Ok(());
        }
        match self.map.advise_range(Advice::PopulateRead, range.start, range.len()) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.touch(range),
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                // An access would have raised a signal: the page is unreadable.
                Err(io::Error::from_raw_os_error(libc::EIO))
            }
            answer => answer,
        }
    }
}

impl<F: AsFd> FileMap<F> {
    fn clamp(&self, range: Range<usize>) -> Range<usize> {
        let end = range.end.min(self.map.len());
        range.start.min(end)..end
    }

    fn touch(&self, range: Range<usize>) -> io::Result<()> {
        let mut scratch = vec![0; TOUCH_BYTES.min(range.len())];
        let mut start = range.start;
        while start < range.end {
            let piece = scratch.len().min(range.end - start);
            match rustix::io::pread(&*self.file, &mut scratch[..piece], start as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => start += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;

    #[test]
    fn mmap_without_populate_falls_back_to_read() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 200_000).unwrap();
        let file = Arc::new(file);
        let map = map_file(Arc::clone(&file), Access::Random).unwrap();
        map.touch(0..200_000).unwrap();
        map.touch(199_999..200_000).unwrap();
        map.populate(100_000..200_000).unwrap();
        // Violates the contract, but nothing accesses the memory: an error must be returned and no signal raised.
        rustix::fs::ftruncate(&file, 0).unwrap();
        map.touch(0..200_000).unwrap_err();
        map.populate(100_000..200_000).unwrap_err();
    }
}
