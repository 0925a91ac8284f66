//! Sparse copy-on-write content of a simulated file.
//!
//! Guarantees: unwritten bytes read as zeros; nothing is stored beyond the length; a copy shares its pages until one
//! side changes them; iteration is in offset order.
//! Non-goals: durability.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Page size of file contents; free space is counted in pages.
pub(super) const PAGE_BYTES: u64 = 4_096;
/// Size of the sectors that the device writes atomically.
pub(super) const SECTOR_BYTES: u64 = 512;

const _: () = assert!(PAGE_BYTES.is_multiple_of(SECTOR_BYTES));

type Page = Arc<[u8; PAGE_BYTES as usize]>;

/// Sparse file content.
#[derive(Clone, Default)]
pub(super) struct Image {
    bytes_len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Image {
    pub(super) fn bytes_len(&self) -> u64 {
        self.bytes_len
    }

    /// Returns the numbers of the allocated pages from `first` on.
    pub(super) fn pages_from(&self, first: u64) -> impl Iterator<Item = u64> {
        self.pages.range(first..).map(|(page, _)| *page)
    }

    pub(super) fn has_page(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Returns the first range of written pages from `offset` on.
    pub(super) fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        let first = self.pages_from(offset / PAGE_BYTES).next()?;
        let pages = self.pages_from(first).zip(first..);
        let last = pages.take_while(|(page, next)| page == next).last()?.0;
        let data = offset.max(first * PAGE_BYTES)..((last + 1) * PAGE_BYTES).min(self.bytes_len);
        Some(data).filter(|data| !data.is_empty())
    }

    /// Fills the buffer; bytes beyond the length are zeros.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        for (page, inside, piece) in walk(offset, buffer.len()) {
            let piece = &mut buffer[piece];
            match self.pages.get(&page) {
                Some(page) => piece.copy_from_slice(&page[inside]),
                None => piece.fill(0),
            }
        }
    }

    /// Writes bytes and grows the file if needed.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.put(offset, bytes);
        self.bytes_len = self.bytes_len.max(offset + bytes.len() as u64);
    }

    /// Truncates or extends; truncated bytes read as zeros after a later extension.
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

    /// Frees whole pages; the rest of the range is zeroed.
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

    /// Copies the given pages and the length from another image.
    pub(super) fn take_pages(&mut self, pages: &BTreeSet<u64>, from: &Self) {
        for page in pages {
            match from.pages.get(page) {
                Some(bytes) => self.pages.insert(*page, Arc::clone(bytes)),
                None => self.pages.remove(page),
            };
        }
        // A shorter length first truncates; a longer one only adds zeros.
        self.set_len(from.bytes_len);
    }

    /// Copies one sector from another image, regardless of the lengths; [`Image::trim`] corrects the end.
    pub(super) fn take_sector(&mut self, sector: u64, from: &Self) {
        let mut bytes = [0; SECTOR_BYTES as usize];
        from.read(sector * SECTOR_BYTES, &mut bytes);
        self.put(sector * SECTOR_BYTES, &bytes);
    }

    /// Sets the length and drops what is beyond it.
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

/// Returns the sectors that overlap a byte range.
pub(super) fn sectors(offset: u64, bytes_len: u64) -> Range<u64> {
    let end = (offset + bytes_len).div_ceil(SECTOR_BYTES);
    if bytes_len == 0 { 0..0 } else { offset / SECTOR_BYTES..end }
}

/// Returns the pages that overlap a byte range.
pub(super) fn pages(offset: u64, bytes_len: u64) -> Range<u64> {
    let end = (offset + bytes_len).div_ceil(PAGE_BYTES);
    if bytes_len == 0 { 0..0 } else { offset / PAGE_BYTES..end }
}

/// Returns the pages that are entirely inside a byte range.
pub(super) fn whole_pages(range: &Range<u64>) -> Range<u64> {
    range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES
}

/// Splits a byte range at page boundaries: page, range in the page, range in the bytes.
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
    fn truncated_range_reads_as_zeros_after_regrowth() {
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
    fn disk_image_copy_is_independent() {
        let mut image = Image::default();
        image.write(0, b"before");
        let copy = image.clone();
        image.write(0, b"after!");
        let mut bytes = [0; 6];
        copy.read(0, &mut bytes);
        assert_eq!(&bytes, b"before");
    }

    #[test]
    fn sparse_file_uses_no_pages() {
        let mut image = Image::default();
        image.set_len(1 << 40);
        assert_eq!(image.pages_from(0).count(), 0);
    }
}
