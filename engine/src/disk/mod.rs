//! The disk seam: files without meaning.
//!
//! Everything that the engine stores, the index included, goes through [`Disk`] and [`DiskFile`]. Two implementations
//! keep the same promises, checked by one suite (`tests/disk`): [`RealDisk`] and, for tests, the simulated disk in
//! `sim`. Paths are relative to the data folder, with `/` between components; others are refused as `InvalidInput`.
//! Never here: what the bytes mean.

mod mmap;
mod private;
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

pub use self::private::PrivateDisk;
pub use self::real::RealDisk;
pub use self::redb_file::RedbFile;
pub(crate) use self::redb_file::{GivenUp, Why};

/// The name of the lock's file, in the root.
pub const LOCK: &str = "LOCK";

/// A folder of files.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for reading and writing. `NotFound` when there is none.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes a new, empty file. `AlreadyExists` when there is one. The name is durable after [`Disk::sync_folder`].
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file's name; whoever has the file open may go on reading. Durable after [`Disk::sync_folder`].
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Gives a file another name, in place of the file that has it, if any; whoever has either open may go on reading.
    ///
    /// A crash leaves it done or not done, never neither name, where the folder of `to` is durable. Durable after
    /// [`Disk::sync_folder`] of both folders.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Gives a file one more name; each of its names can be removed without the other. `AlreadyExists` when there is a
    /// file of that name, `Unsupported` where a file system cannot do it. Durable after [`Disk::sync_folder`] of the
    /// new name's folder.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// The names in a folder, sorted; empty when there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Makes a folder, and those above it; fine when it exists. Each is durable after [`Disk::sync_folder`] of the
    /// folder above it, so a folder two deep takes two of them.
    fn create_folder(&self, folder: &str) -> io::Result<()>;

    /// Makes the names in a folder durable. The root is `""`.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;

    /// Takes the one lock of this disk, held until the value is dropped. `WouldBlock` when another holds it.
    ///
    /// A file named [`LOCK`] in the root belongs to it, and stays.
    fn lock(&self) -> io::Result<Box<dyn Lock>>;

    /// The process that holds the lock, for people; meaningful only after [`Disk::lock`] said `WouldBlock`.
    fn lock_holder(&self) -> Option<u32> {
        None
    }

    /// Bytes that may still be written.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Bytes that the disk takes when it is empty.
    fn capacity_bytes(&self) -> io::Result<u64>;
}

/// The lock of a disk; dropping it lets go.
pub trait Lock: Send + Sync {}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// The length of the file.
    fn bytes_len(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`; `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// As [`DiskFile::read_at`], but answers false rather than wait for the disk. May always answer false.
    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let _ = (offset, buffer);
        Ok(false)
    }

    /// Asks for a range to be brought from the disk from now on, and does not wait for it: a read that follows has less
    /// to wait for. A wish, not a promise.
    fn begin_read(&self, range: Range<u64>) {
        let _ = range;
    }

    /// The first stretch from `offset` on that may hold something other than zeros; None when there is none up to the
    /// end.
    ///
    /// What was read before may count as something: a system keeps the zeros that it was asked for.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let end = self.bytes_len()?;
        Ok((offset < end).then_some(offset..end))
    }

    /// Writes the pieces one after another from `offset`, growing the file where needed. Not durable before
    /// [`DiskFile::sync_data`]; after an error any part of it may be there.
    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()>;

    /// Asks for what was written to a range to be brought to the disk from now on, and does not wait for it: a sync
    /// that follows has less to wait for. A wish, not a promise: without [`DiskFile::sync_data`] nothing is durable,
    /// and what goes wrong meanwhile is an error of that call.
    fn begin_sync(&self, range: Range<u64>) {
        let _ = range;
    }

    /// Cuts or grows the file; what is grown reads as zeros. Never called on a file that may be mapped.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Grows the file to `bytes` with the space reserved; what is grown reads as zeros. `StorageFull` when there is no
    /// room.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Gives the space of a range back: it reads as zeros, and the length stays. Not durable before
    /// [`DiskFile::sync_data`]; `Unsupported` where a file system cannot do it.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;

    /// Makes everything written so far durable, with the length.
    ///
    /// After an error the file's unsynced bytes may be gone, whatever a later call says: never try again.
    fn sync_data(&self) -> io::Result<()>;

    /// A number that is another one once somebody changed the bytes of the file, as far as the system can tell.
    fn changes(&self) -> io::Result<u64> {
        Ok(0)
    }

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

    /// Can be upgraded as long as the mapping, or a slice of it, is held by anybody.
    fn held(&self) -> Weak<dyn Send + Sync>;

    /// Whether every page of the range is in memory, so that touching it does not wait for the disk.
    fn is_resident(&self, range: Range<usize>) -> bool;

    /// Brings the range into memory; an I/O error is an error here and not a signal later. Waits for the disk.
    fn populate(&self, range: Range<usize>) -> io::Result<()>;
}

/// Whether a path stays inside the data folder and is written the one way; `InvalidInput` otherwise.
fn check_path(path: &str) -> io::Result<()> {
    let fine = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    if path.split('/').all(fine) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a path in a store: {path:?}")))
}

/// As [`check_path`], for folders: the root is `""`.
fn check_folder(folder: &str) -> io::Result<()> {
    if folder.is_empty() { Ok(()) } else { check_path(folder) }
}
