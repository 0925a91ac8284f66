//! The bytes of one simulated file: sparse, cheap to copy.
//!
//! Promises: what was never written reads as zeros; nothing lies beyond the length; a copy shares its pages until one
//! of the two changes them; the order of everything is that of the offsets.
//! Never here: what is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A file is kept in pages of this size, and free space is counted in them.
pub(super) const PAGE_BYTES: u64 = 4_096;
/// The device writes whole sectors of this size or nothing.
pub(super) const SECTOR_BYTES: u64 = 512;

const _: () = assert!(PAGE_BYTES.is_multiple_of(SECTOR_BYTES));

type Page = Arc<[u8; PAGE_BYTES as usize]>;

/// A sparse file.
#[derive(Clone, Default)]
pub(super) struct Image {
    bytes_len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Image {
    pub(super) fn bytes_len(&self) -> u64 {
        self.bytes_len
    }

    /// The numbers of the pages from `first` on that hold anything.
    pub(super) fn pages_from(&self, first: u64) -> impl Iterator<Item = u64> {
        self.pages.range(first..).map(|(page, _)| *page)
    }

    pub(super) fn has_page(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// The first stretch from `offset` on whose pages were written to.
    pub(super) fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        let first = self.pages_from(offset / PAGE_BYTES).next()?;
        let pages = self.pages_from(first).zip(first..);
        let last = pages.take_while(|(page, next)| page == next).last()?.0;
        let data = offset.max(first * PAGE_BYTES)..((last + 1) * PAGE_BYTES).min(self.bytes_len);
        Some(data).filter(|data| !data.is_empty())
    }

    /// Fills the buffer; beyond the length there are zeros.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        for (page, inside, piece) in walk(offset, buffer.len()) {
            let piece = &mut buffer[piece];
            match self.pages.get(&page) {
                Some(page) => piece.copy_from_slice(&page[inside]),
                None => piece.fill(0),
            }
        }
    }

    /// Writes, and grows the file where needed.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.put(offset, bytes);
        self.bytes_len = self.bytes_len.max(offset + bytes.len() as u64);
    }

    /// Cuts or grows; what is cut off is gone when the file grows again.
    pub(super) fn set_len(&mut self, bytes_len: u64) {
        if bytes_len < self.bytes_len {
            let kept = bytes_len.div_ceil(PAGE_BYTES);
            self.pages.split_off(&kept);
            let tail = usize::try_from(bytes_len % PAGE_BYTES).unwrap_or_default();
            if tail > 0
                && let Some(page) = self.pages.get_mut(&(kept - 1))
            {
                Arc::make_mut(page)[tail..].fill(0);
            }
        }
        self.bytes_len = bytes_len;
    }

    /// Gives pages back; what is left of the range becomes zeros.
    pub(super) fn punch(&mut self, offset: u64, bytes_len: u64) {
        for page in whole_pages(&(offset..offset + bytes_len)) {
            self.pages.remove(&page);
        }
        let at_the_ends = pages(offset, bytes_len).filter(|page| self.pages.contains_key(page));
        for page in at_the_ends.collect::<Vec<_>>() {
            let start = offset.max(page * PAGE_BYTES);
            let end = (offset + bytes_len).min((page + 1) * PAGE_BYTES);
            self.put(start, &[0; PAGE_BYTES as usize][..(end - start) as usize]);
        }
    }

    /// Takes the given pages and the length from another image.
    pub(super) fn take_pages(&mut self, pages: &BTreeSet<u64>, from: &Self) {
        for page in pages {
            match from.pages.get(page) {
                Some(bytes) => self.pages.insert(*page, Arc::clone(bytes)),
                None => self.pages.remove(page),
            };
        }
        // A shorter length first cuts what lies beyond, a longer one only adds zeros.
        self.set_len(from.bytes_len);
    }

    /// Takes one sector from another image, whatever the lengths; [`Image::trim`] puts the end right.
    pub(super) fn take_sector(&mut self, sector: u64, from: &Self) {
        let mut bytes = [0; SECTOR_BYTES as usize];
        from.read(sector * SECTOR_BYTES, &mut bytes);
        self.put(sector * SECTOR_BYTES, &bytes);
    }

    /// Sets the length and drops what lies beyond it.
    pub(super) fn trim(&mut self, bytes_len: u64) {
        self.bytes_len = u64::MAX;
        self.set_len(bytes_len);
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (page, inside, piece) in walk(offset, bytes.len()) {
            let page = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES as usize]));
            Arc::make_mut(page)[inside].copy_from_slice(&bytes[piece]);
        }
    }
}

/// The sectors that a range of bytes touches.
pub(super) fn sectors(offset: u64, bytes_len: u64) -> Range<u64> {
    let end = (offset + bytes_len).div_ceil(SECTOR_BYTES);
    if bytes_len == 0 { 0..0 } else { offset / SECTOR_BYTES..end }
}

/// The pages that a range of bytes touches.
pub(super) fn pages(offset: u64, bytes_len: u64) -> Range<u64> {
    let end = (offset + bytes_len).div_ceil(PAGE_BYTES);
    if bytes_len == 0 { 0..0 } else { offset / PAGE_BYTES..end }
}

/// The pages that lie in a range of bytes whole.
pub(super) fn whole_pages(range: &Range<u64>) -> Range<u64> {
    range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES
}

/// Cuts a range of bytes at the page borders: page, range inside the page, range inside the bytes.
fn walk(offset: u64, bytes_len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    const PAGE: usize = PAGE_BYTES as usize;
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == bytes_len {
            return None;
        }
        let at = offset + done as u64;
        let inside = usize::try_from(at % PAGE_BYTES).unwrap_or_default();
        let taken = (PAGE - inside).min(bytes_len - done);
        let piece = done..done + taken;
        done += taken;
        Some((at / PAGE_BYTES, inside..inside + taken, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_reads_as_zeros_when_the_file_grows_again() {
        let mut image = Image::default();
        image.write(4_000, &[7; 9_000]);
        assert_eq!(image.bytes_len(), 13_000);
        image.set_len(4_100);
        image.set_len(13_000);
        let mut bytes = vec![1; 13_000];
        image.read(0, &mut bytes);
        assert!(bytes[..4_000].iter().all(|byte| *byte == 0));
        assert!(bytes[4_000..4_100].iter().all(|byte| *byte == 7));
        assert!(bytes[4_100..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut image = Image::default();
        image.write(0, b"before");
        let copy = image.clone();
        image.write(0, b"after!");
        let mut bytes = [0; 6];
        copy.read(0, &mut bytes);
        assert_eq!(&bytes, b"before");
    }

    #[test]
    fn a_huge_empty_file_holds_no_pages() {
        let mut image = Image::default();
        image.set_len(1 << 40);
        assert_eq!(image.pages_from(0).count(), 0);
    }
}
