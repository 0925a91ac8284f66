//! The disk seam: files without meaning.
//!
//! Everything that the engine stores, the index included, goes through [`Disk`] and [`DiskFile`]. Two implementations keep
//! the same promises, checked by one suite (`tests/disk`): [`RealDisk`] and, for tests, the simulated disk in `sim`.
//! Paths are relative to the data folder, with `/` between components.
//! Never here: what the bytes mean.

mod mmap;
mod real;
mod redb_file;

#[cfg(any(test, feature = "sim"))]
pub mod faults;
#[cfg(any(test, feature = "sim"))]
pub mod sim;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub use self::real::RealDisk;
pub use self::redb_file::RedbFile;

/// A folder of files.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for reading and writing. `NotFound` when there is none.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes a new, empty file. `AlreadyExists` when there is one. The name is durable after [`Disk::sync_folder`].
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file's name; whoever has the file open may go on reading. Durable after [`Disk::sync_folder`].
    fn remove(&self, path: &str) -> io::Result<()>;

    /// The names in a folder, sorted; empty when there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Makes a folder, and those above it; fine when it exists. Durable after [`Disk::sync_folder`] of the folder above.
    fn create_folder(&self, folder: &str) -> io::Result<()>;

    /// Makes the names in a folder durable. The root is `""`.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;

    /// Takes the one lock of this disk, held until the value is dropped. `WouldBlock` when another holds it.
    fn lock(&self) -> io::Result<Box<dyn Lock>>;

    /// Bytes that may still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// The lock of a disk; dropping it lets go.
pub trait Lock: Send + Sync {}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// The length of the file.
    fn bytes_len(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`; `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes the pieces one after another from `offset`, growing the file where needed. Not durable before
    /// [`DiskFile::sync_data`]; after an error any part of it may be there.
    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()>;

    /// Cuts or grows the file; what is grown reads as zeros. Never called on a file that may be mapped.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Grows the file to `bytes` with the space reserved; what is grown reads as zeros. `StorageFull` when there is no room.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Makes everything written so far durable, with the length.
    ///
    /// After an error the file's unsynced bytes may be gone, whatever a later call says: never try again.
    fn sync_data(&self) -> io::Result<()>;

    /// Maps the whole file as it is now. Only for files whose bytes change no more.
    fn map(&self, access: Access) -> io::Result<Box<dyn Mapping>>;
}

/// How the pages of a mapping will be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Here and there: no read-ahead.
    Random,
    /// From front to back.
    Sequential,
}

/// A file in memory.
pub trait Mapping: Send + Sync {
    /// The bytes; slices of them keep the mapping alive. Touch only what is resident or was populated.
    fn bytes(&self) -> Bytes;

    /// Whether every page of the range is in memory, so that touching it does not wait for the disk.
    fn is_resident(&self, range: Range<usize>) -> bool;

    /// Brings the range into memory; an I/O error is an error here and not a signal later. Waits for the disk.
    fn populate(&self, range: Range<usize>) -> io::Result<()>;
}
