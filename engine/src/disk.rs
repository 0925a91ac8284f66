//! Disk abstraction: files, folders, sync, locks, free space.
//!
//! Everything that the engine stores, including the index, goes through [`Disk`] and [`DiskFile`]. The two
//! implementations, [`RealDisk`] and, for tests, the simulated disk in `sim`, have the same semantics, verified by
//! one test suite (`tests/disk`). Paths are relative to the data folder, with `/` between path segments; others are
//! rejected as `InvalidInput`.
//!
//! Non-goals: the meaning of the bytes.

mod copy_on_write;
mod mmap;
mod real;
mod redb_file;

#[cfg(any(test, feature = "sim"))]
pub mod faults;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
#[cfg(any(test, feature = "sim"))]
mod sim_image;
#[cfg(any(test, feature = "sim"))]
mod sim_journal;
#[cfg(any(test, feature = "sim"))]
mod sim_loss;
#[cfg(any(test, feature = "sim"))]
mod sim_state;
mod write_back;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;

pub use self::copy_on_write::CopyOnWriteDisk;
pub use self::real::RealDisk;
pub use self::redb_file::RedbFile;
pub(crate) use self::redb_file::{FailureKind, FileFailure};

/// Name of the lock file in the root folder.
pub const LOCK: &str = "LOCK";

/// Disk: the data folder of one store, with its files, subfolders and lock.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for reading and writing. `NotFound` if it does not exist.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates an empty file. `AlreadyExists` if it exists. The name is durable after [`Disk::sync_folder`].
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes the name of a file; open handles remain readable. Durable after [`Disk::sync_folder`].
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Renames a file and replaces an existing target; open handles of both files remain readable.
    ///
    /// After a crash either the old or the new name exists, if the folder of `to` is durable. The rename is durable
    /// after [`Disk::sync_folder`] of both folders.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Creates a hard link; each name can be removed independently. `AlreadyExists` if the target exists,
    /// `Unsupported` if the file system has no hard links. Durable after [`Disk::sync_folder`] of the folder of the
    /// new name.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// Returns the names in a folder, sorted; empty if the folder does not exist.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Creates a folder and its missing parents; an existing folder is not an error. Each is durable after
    /// [`Disk::sync_folder`] of its parent, so a new folder at depth two needs two calls.
    fn create_folder(&self, folder: &str) -> io::Result<()>;

    /// Makes the names in a folder durable. The root is `""`.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;

    /// Acquires the exclusive lock of this disk until the returned value is dropped. `WouldBlock` if it is locked.
    ///
    /// The lock uses a file named [`LOCK`] in the root, which is not removed.
    fn lock(&self) -> io::Result<Box<dyn Lock>>;

    /// Returns the process id of the lock holder, for error messages; only meaningful after [`Disk::lock`] returned
    /// `WouldBlock`.
    fn lock_holder(&self) -> Option<u32> {
        None
    }

    /// Returns the number of bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Returns the capacity of the disk in bytes.
    fn capacity_bytes(&self) -> io::Result<u64>;

    /// Returns false if the bytes of a file are not on this machine, so that reading it takes the network.
    fn is_local(&self, path: &str) -> io::Result<bool> {
        let _ = path;
        Ok(true)
    }
}

/// Exclusive lock of a disk; released on drop.
pub trait Lock: Send + Sync {}

/// Open file.
pub trait DiskFile: Send + Sync {
    /// Returns the length of the file.
    fn bytes_len(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset`. `UnexpectedEof` if the file is too short.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Replaces the contents of `buffer` with the `length` bytes from `offset`, like [`DiskFile::read_at`]. After an
    /// error the contents are unspecified.
    fn read_to_vec(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.resize(length, 0);
        self.read_at(offset, buffer)
    }

    /// Reads like [`DiskFile::read_at`], but returns false instead of waiting for the disk. An implementation may
    /// always return false.
    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let _ = (offset, buffer);
        Ok(false)
    }

    /// Starts read-ahead of a range without waiting, to reduce the latency of a later read. A hint without guarantees.
    fn prefetch(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Returns the first extent at or after `offset` that may contain nonzero bytes; `None` if there is none.
    ///
    /// Zero pages that were read before may be reported as data, because some systems cache them.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let end = self.bytes_len()?;
        Ok((offset < end).then_some(offset..end))
    }

    /// Writes the pieces consecutively from `offset` and grows the file if needed. Not durable before
    /// [`DiskFile::sync_data`]; after an error any part may have been written.
    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()>;

    /// Starts write-back of a range without waiting, to reduce the latency of a later sync. A hint: nothing is durable
    /// without [`DiskFile::sync_data`], which also reports write-back errors.
    fn start_write_back(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Truncates or extends the file; the extension reads as zeros. Never removes bytes that a slice of a mapping may
    /// contain.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Extends the file to `bytes` with reserved space, which reads as zeros. `StorageFull` if there is not enough
    /// space.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Punches a hole: the range reads as zeros, the length is unchanged and the space is reclaimed. Not durable
    /// before [`DiskFile::sync_data`]; `Unsupported` if the file system cannot punch holes.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;

    /// Makes everything written so far durable, including the file length.
    ///
    /// After an error the unsynced bytes of the file may be lost even if a later call succeeds: never retry.
    fn sync_data(&self) -> io::Result<()>;

    /// Returns a value that changes when the bytes of the file change, as far as the system can tell, such as the
    /// modification time.
    fn changes(&self) -> io::Result<u64> {
        Ok(0)
    }

    /// Returns whether reads may fetch bytes over the network.
    fn is_remote(&self) -> bool {
        false
    }

    /// Drops cached bytes of a range, so that the next read fetches them again from where the file is. Returns false
    /// if the file is not cached.
    fn discard_cached(&self, range: Range<u64>) -> bool {
        let _ = range;
        false
    }

    /// Maps the whole file at its current length. `Unsupported` if it cannot be mapped for this access.
    fn map(&self, access: Access) -> io::Result<Box<dyn Mapping>>;
}

/// Access pattern of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Random access: no read-ahead.
    Random,
    /// Sequential access from front to back.
    Sequential,
    /// Random access to a file that is still being written. A file that is mapped for any other access no longer
    /// changes.
    Growing,
}

/// Memory-mapped file.
pub trait Mapping: Send + Sync {
    /// Returns the number of mapped bytes.
    fn bytes_len(&self) -> usize;

    /// Returns a slice of the mapped bytes, which keeps the mapping alive; its bytes must not change while it exists. A
    /// range that extends beyond the end is truncated. Access only ranges that are resident or were populated: other
    /// accesses wait for the disk, and an I/O error raises a signal.
    fn slice(&self, range: Range<usize>) -> Bytes;

    /// Returns a weak reference that can be upgraded while the mapping or a slice of it is alive.
    fn liveness_handle(&self) -> Weak<dyn Send + Sync>;

    /// Returns whether every page of the range is resident, so that accessing it does not wait for the disk.
    fn is_resident(&self, range: Range<usize>) -> bool;

    /// Loads the range into memory. Waits for the disk, and returns an I/O error that would otherwise raise a signal on
    /// access.
    fn populate(&self, range: Range<usize>) -> io::Result<()>;
}

/// Checks that a path stays inside the data folder and is in canonical form; `InvalidInput` otherwise.
fn check_path(path: &str) -> io::Result<()> {
    let fine = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    if path.split('/').all(fine) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a path in a store: {path:?}")))
}

/// Checks a folder path like [`check_path`]; the root is `""`.
fn check_folder(folder: &str) -> io::Result<()> {
    if folder.is_empty() { Ok(()) } else { check_path(folder) }
}
