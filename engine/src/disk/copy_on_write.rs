//! Copy-on-write view of a disk: writes to opened files stay in memory.
//!
//! redb writes as soon as it opens a file that was not closed cleanly. With this view it can do so without changing
//! the file.
//!
//! Guarantees: no call changes the underlying disk; reads return what was written; memory is bounded.
//! Non-goals: the meaning of the bytes.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Access, Disk, DiskFile, Lock, Mapping};

/// Read-only view of another disk.
pub struct CopyOnWriteDisk(Arc<dyn Disk>);

impl CopyOnWriteDisk {
    /// Creates a view of this disk.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self(disk)
    }
}

impl Disk for CopyOnWriteDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let below = self.0.open(path)?;
        let bytes = below.bytes_len()?;
        let written = Written { pages: BTreeMap::new(), below_bytes: bytes, bytes };
        Ok(Arc::new(CopyOnWriteFile { below, written: Mutex::new(written) }))
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(refused())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn link(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn create_folder(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.0.lock()
    }

    fn lock_holder(&self) -> Option<u32> {
        self.0.lock_holder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        self.0.capacity_bytes()
    }
}

fn refused() -> io::Error {
    ErrorKind::ReadOnlyFilesystem.into()
}

struct CopyOnWriteFile {
    below: Arc<dyn DiskFile>,
    written: Mutex<Written>,
}

struct Written {
    /// Written pages by number.
    pages: BTreeMap<u64, Box<[u8]>>,
    /// Length of the underlying file that is still visible.
    below_bytes: u64,
    bytes: u64,
}

impl CopyOnWriteFile {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the underlying file; zeros where it is not visible.
    fn read_below(&self, written: &Written, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let shown = written.below_bytes.saturating_sub(offset).min(buffer.len() as u64);
        let (shown, hidden) = buffer.split_at_mut(usize::try_from(shown).unwrap_or(0));
        hidden.fill(0);
        if shown.is_empty() { Ok(()) } else { self.below.read_at(offset, shown) }
    }
}

/// Splits a range into pages: page number, range in the page, range in the buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let in_page = usize::try_from(at % PAGE_BYTES as u64).unwrap_or(0);
        let taken = (PAGE_BYTES - in_page).min(length - done);
        let piece = (at / PAGE_BYTES as u64, in_page..in_page + taken, done..done + taken);
        done += taken;
        (taken > 0).then_some(piece)
    })
}

impl DiskFile for CopyOnWriteFile {
    fn bytes_len(&self) -> io::Result<u64> {
        Ok(self.written().bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > written.bytes) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.read_below(&written, offset, buffer)?;
        if !written.pages.is_empty() {
            for (number, in_page, in_buffer) in pieces(offset, buffer.len()) {
                if let Some(page) = written.pages.get(&number) {
                    buffer[in_buffer].copy_from_slice(&page[in_page]);
                }
            }
        }
        Ok(())
    }

    fn prefetch(&self, range: Range<u64>) {
        self.below.prefetch(range);
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let written = self.written();
        if written.pages.is_empty() && written.bytes == written.below_bytes {
            return self.below.next_data(offset);
        }
        Ok((offset < written.bytes).then_some(offset..written.bytes))
    }

    fn write_at(&self, offset: u64, all: &[&[u8]]) -> io::Result<()> {
        let bytes = all.concat();
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorKind::InvalidInput)?;
        let mut written = self.written();
        for (number, in_page, in_bytes) in pieces(offset, bytes.len()) {
            if !written.pages.contains_key(&number) {
                if written.pages.len() == PAGES_MAX {
                    return Err(ErrorKind::StorageFull.into());
                }
                let mut page = vec![0; PAGE_BYTES];
                self.read_below(&written, number * PAGE_BYTES as u64, &mut page)?;
                written.pages.insert(number, page.into());
            }
            if let Some(page) = written.pages.get_mut(&number) {
                page[in_page].copy_from_slice(&bytes[in_bytes]);
            }
        }
        written.bytes = written.bytes.max(end);
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut written = self.written();
        if bytes < written.bytes {
            written.pages.split_off(&bytes.div_ceil(PAGE_BYTES as u64));
            if let Some(page) = written.pages.get_mut(&(bytes / PAGE_BYTES as u64)) {
                page[usize::try_from(bytes % PAGE_BYTES as u64).unwrap_or(0)..].fill(0);
            }
            written.below_bytes = written.below_bytes.min(bytes);
        }
        written.bytes = bytes;
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let grown = self.written().bytes.max(bytes);
        self.set_len(grown)
    }

    fn punch(&self, _: Range<u64>) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn changes(&self) -> io::Result<u64> {
        self.below.changes()
    }

    fn map(&self, _: Access) -> io::Result<Box<dyn Mapping>> {
        Err(ErrorKind::Unsupported.into())
    }
}

const PAGE_BYTES: usize = 4_096;
/// Limit of written pages: 256 MiB.
const PAGES_MAX: usize = 64 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;

    #[test]
    fn copy_on_write_leaves_underlying_disk_unchanged() {
        let disk = SimDisk::new();
        let file = disk.create("a").unwrap();
        let original: Vec<u8> = (0..10_000_u32).map(|at| at as u8).collect();
        file.write_at(0, &[&original]).unwrap();
        let private = CopyOnWriteDisk::new(Arc::new(disk.clone()));
        let open = private.open("a").unwrap();
        let mut model = original.clone();
        let read = |open: &Arc<dyn DiskFile>| {
            let mut all = vec![0; usize::try_from(open.bytes_len().unwrap()).unwrap()];
            open.read_at(0, &mut all).unwrap();
            all
        };
        assert_eq!(read(&open), model);
        for (offset, bytes) in [(5_usize, vec![9; 3]), (4_090, vec![8; 5_000]), (12_000, vec![7])] {
            open.write_at(offset as u64, &[&bytes]).unwrap();
            model.resize(model.len().max(offset + bytes.len()), 0);
            model[offset..offset + bytes.len()].copy_from_slice(&bytes);
            assert_eq!(read(&open), model);
        }
        for length in [4_100, 100, 9_000] {
            open.set_len(length as u64).unwrap();
            model.resize(length, 0);
            assert_eq!(read(&open), model);
        }
        assert!(open.read_at(8_999, &mut [0; 2]).is_err());
        open.sync_data().unwrap();
        assert_eq!(disk.bytes("a"), original);
        assert!(private.remove("a").is_err() && private.create("b").is_err());
    }
}
