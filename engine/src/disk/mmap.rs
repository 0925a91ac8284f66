//! Memory maps of files that change no more: the only `unsafe` of ours but the call that begins to write back, and
//! those of libaom, where that is built in.
//!
//! The contract is in the name: who calls [`map_unchanging`] promises that the file neither shrinks nor changes while
//! any slice of the map lives. Segments keep it: sealed ones never change while they are mapped, none ever shrinks,
//! retiring one unlinks it, and recovery cuts a file before it is first mapped. Another process that truncates files in
//! the data folder breaks it; the folder is for the owner alone. Promises: with the contract kept, no call here is
//! unsafe; [`Mapping::populate`] turns an I/O error, which a plain touch would answer with a signal, into an error.
//! Never here: maps that can be written to.

#![allow(
    unsafe_code,
    reason = "mapping files cannot be had without; nothing else lives in this file"
)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use memmap2::{Advice, Mmap};
use rustix::io::Errno;

use super::{Access, Mapping};

/// How much of the file is read at once where the kernel cannot populate.
const TOUCH_BYTES: usize = 64 * 1_024;
/// How many pages the kernel is asked about at once.
const ASKED_PAGES: usize = 256;

/// Maps a whole file for reading; the caller promises that it neither shrinks nor changes from now on.
///
/// An empty file has an empty map.
pub(super) fn map_unchanging<F: AsFd>(file: Arc<F>, access: Access) -> io::Result<FileMap<F>> {
    // SAFETY: the caller's promise: nobody shrinks the file (a touch beyond its end would be a signal) or changes its
    // bytes (they are handed out as `&[u8]`) while the map lives.
    let map = unsafe { Mmap::map(file.as_fd().as_raw_fd())? };
    if !map.is_empty() {
        map.advise(match access {
            Access::Random => Advice::Random,
            Access::Sequential => Advice::Sequential,
        })?;
    }
    let map = Arc::new(map);
    Ok(FileMap { bytes: Bytes::from_owner(Owner(Arc::clone(&map))), map, file })
}

/// A file in memory, read-only.
pub(super) struct FileMap<F> {
    map: Arc<Mmap>,
    bytes: Bytes,
    file: Arc<F>,
}

/// What a slice keeps alive.
struct Owner(Arc<Mmap>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<F: AsFd + Send + Sync> Mapping for FileMap<F> {
    fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    fn held(&self) -> Weak<dyn Send + Sync> {
        let map: Weak<Mmap> = Arc::downgrade(&self.map);
        map
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        let range = self.clamp(range);
        let page_bytes = rustix::param::page_size();
        let mut pages = [0_u8; ASKED_PAGES];
        let mut start = range.start - range.start % page_bytes;
        while start < range.end {
            let asked = (range.end - start).min(ASKED_PAGES * page_bytes);
            // SAFETY: `start` is a multiple of the page size inside the map, which begins on a page; `start + asked` is
            // at most its length; and `pages` has a byte for each page of `asked`, the last one perhaps in part.
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

    /// By `MADV_POPULATE_READ`. Kernels before 5.14 do not know it: there the file is read into a buffer and thrown
    /// away, which brings it into the page cache all the same; under memory pressure a page may be gone again before
    /// the touch.
    fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.clamp(range);
        if range.is_empty() {
            return Ok(());
        }
        match self.map.advise_range(Advice::PopulateRead, range.start, range.len()) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.touch(range),
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                // The touch would have been a signal: the page cannot be read.
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
    fn where_the_kernel_cannot_populate_the_file_is_read_instead() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 200_000).unwrap();
        let file = Arc::new(file);
        let map = map_unchanging(Arc::clone(&file), Access::Random).unwrap();
        map.touch(0..200_000).unwrap();
        map.touch(199_999..200_000).unwrap();
        map.populate(100_000..200_000).unwrap();
        // Against the contract, but nobody touches the memory: an error must come, and no signal.
        rustix::fs::ftruncate(&file, 0).unwrap();
        map.touch(0..200_000).unwrap_err();
        map.populate(100_000..200_000).unwrap_err();
    }
}
