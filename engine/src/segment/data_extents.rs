//! Data extents: ranges of a file that may contain nonzero bytes.
//!
//! Guarantees: all extents are queried before the first of them is read. Reads leave pages in the page cache,
//! including read-ahead, and cached zero pages are then reported as data: alternating reads and queries would read
//! all of a reserved range.

use std::io;
use std::ops::Range;

use crate::disk::DiskFile;
use crate::format::byte_codec;
use crate::limits;

/// Returns the extents of a file from `from` to `end` that may contain data, in order.
pub(super) fn data_extents(
    file: &dyn DiskFile,
    from: u64,
    end: u64,
) -> io::Result<Vec<Range<u64>>> {
    let mut all = Vec::new();
    let mut from = from;
    while let Some(data) = file.next_data(from)?.filter(|data| data.start < end) {
        from = data.end;
        all.push(data.start..data.end.min(end));
    }
    Ok(all)
}

/// Returns whether a file contains only zeros from an offset on.
pub(crate) fn is_zero(file: &dyn DiskFile, from: u64) -> io::Result<bool> {
    let mut buffer = Vec::new();
    for stretch in data_extents(file, from, u64::MAX)? {
        let mut at = stretch.start;
        while at < stretch.end {
            let length = (stretch.end - at).min(limits::WRITE_BYTES_MAX as u64);
            let count = usize::try_from(length).unwrap_or(0);
            buffer.resize(count.max(buffer.len()), 0);
            let bytes = &mut buffer[..count];
            file.read_at(at, bytes)?;
            if !byte_codec::is_zero(bytes) {
                return Ok(false);
            }
            at += length;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::disk::{Access, Mapping};

    const RESERVED_BYTES: u64 = 64 << 20;
    const READ_AHEAD_BYTES: u64 = 128 << 10;

    /// Simulates space that was reserved and never written, in a file system that reports cached pages as data.
    struct Reserved {
        cached_to: Mutex<u64>,
        read_bytes: Mutex<u64>,
    }

    impl DiskFile for Reserved {
        fn bytes_len(&self) -> io::Result<u64> {
            Ok(RESERVED_BYTES)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            buffer.fill(0);
            let end = offset + buffer.len() as u64;
            *self.read_bytes.lock().unwrap() += buffer.len() as u64;
            let mut cached_to = self.cached_to.lock().unwrap();
            *cached_to = (end + READ_AHEAD_BYTES).min(RESERVED_BYTES).max(*cached_to);
            Ok(())
        }

        fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
            let cached_to = *self.cached_to.lock().unwrap();
            Ok((offset < cached_to).then_some(offset..cached_to))
        }

        fn write_at(&self, _: u64, _: &[&[u8]]) -> io::Result<()> {
            unreachable!("it is only read")
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            unreachable!("it is only read")
        }

        fn allocate(&self, _: u64) -> io::Result<()> {
            unreachable!("it is only read")
        }

        fn punch(&self, _: Range<u64>) -> io::Result<()> {
            unreachable!("it is only read")
        }

        fn sync_data(&self) -> io::Result<()> {
            unreachable!("it is only read")
        }

        fn map(&self, _: Access) -> io::Result<Box<dyn Mapping>> {
            unreachable!("it is only read")
        }
    }

    #[test]
    fn preallocated_range_is_read_once() {
        let file = Reserved { cached_to: READ_AHEAD_BYTES.into(), read_bytes: 0.into() };
        assert!(is_zero(&file, 4_096).unwrap());
        assert_eq!(*file.read_bytes.lock().unwrap(), READ_AHEAD_BYTES - 4_096);
    }
}
