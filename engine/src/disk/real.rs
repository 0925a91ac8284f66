//! Disk implementation over a file system folder.
//!
//! Guarantees: those of [`Disk`] and [`DiskFile`], as far as the kernel fulfils its own. Folders are created with
//! mode 0700, files with 0600. A failed sync is reported and never retried. Space is reserved by `fallocate`; if the
//! file system does not support it (`EOPNOTSUPP`), the file is only extended, and a later write may still fail with
//! a full disk.
//! Non-goals: buffering, caching, interpretation of errors.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the one place that opens the machine's files"
)]

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::fs::{Advice, FallocateFlags, FlockOperation, SeekFrom, fadvise};
use rustix::io::{Errno, ReadWriteFlags};

use super::{
    Access, Disk, DiskFile, LOCK, Lock, Mapping, check_folder, check_path, mmap, write_back,
};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Maximum number of pieces per kernel call (`IOV_MAX`).
const PIECES_MAX: usize = 1_024;

/// Disk over a folder of the local file system.
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// Opens a data folder and creates it, with missing parents, if it does not exist.
    pub fn open(path: &Path) -> io::Result<Self> {
        make_folder_durably(path)?;
        Self::open_existing(path)
    }

    /// Opens an existing data folder. `NotFound` if it does not exist, `NotADirectory` if it is a file.
    pub fn open_existing(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::Error::new(
                ErrorKind::NotADirectory,
                format!("not a folder: {}", path.display()),
            ));
        }
        Ok(Self { root: path.to_owned() })
    }

    /// Returns the path of the data folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, path: &str, options: &mut OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        check_path(path)?;
        let file = options.read(true).write(true).mode(FILE_MODE).open(self.root.join(path))?;
        Ok(Arc::new(RealFile { file: Arc::new(file) }))
    }

    fn folder(&self, folder: &str) -> io::Result<PathBuf> {
        check_folder(folder)?;
        Ok(self.root.join(folder))
    }
}

impl fmt::Debug for RealDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("RealDisk").field(&self.root).finish()
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(path, &mut OpenOptions::new())
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(path, OpenOptions::new().create_new(true))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        check_path(path)?;
        std::fs::remove_file(self.root.join(path))
    }

    /// Renames files only: the kernel would rename folders too, and systems differ in how they refuse an existing
    /// one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_path(from)?;
        check_path(to)?;
        let (from, to) = (self.root.join(from), self.root.join(to));
        if std::fs::symlink_metadata(&from)?.is_dir() || to.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        std::fs::rename(from, to)
    }

    /// Maps the permission error of a file system without hard links to `Unsupported`.
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        check_path(from)?;
        check_path(to)?;
        let (from, to) = (self.root.join(from), self.root.join(to));
        if std::fs::symlink_metadata(&from)?.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        match rustix::fs::link(from, to) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                Err(ErrorKind::Unsupported.into())
            }
            answer => answer.map_err(no_room_or),
        }
    }

    /// Omits names that are not UTF-8, which the engine never creates.
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.folder(folder)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(self.folder(folder)?)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        sync_folder(&self.folder(folder)?)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(self.root.join(LOCK))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let holder = format!("{}\n", std::process::id());
        file.set_len(0)?;
        file.write_all_at(holder.as_bytes(), 0)?;
        Ok(Box::new(RealLock { file }))
    }

    fn lock_holder(&self) -> Option<u32> {
        std::fs::read_to_string(self.root.join(LOCK)).ok()?.trim().parse().ok()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::statvfs(&self.root)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::statvfs(&self.root)?;
        Ok(space.f_blocks.saturating_mul(space.f_frsize))
    }
}

/// Kernel lock on the file `LOCK`, released when the file is closed, however the process ends.
struct RealLock {
    file: File,
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // The pid is informative only; the lock is released even if it cannot be cleared.
        let _ = self.file.set_len(0);
    }
}

struct RealFile {
    file: Arc<File>,
}

impl DiskFile for RealFile {
    fn bytes_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn read_to_vec(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        if buffer.capacity() >= length {
            buffer.resize(length, 0);
            return self.read_at(offset, buffer);
        }
        // Read into uninitialized memory, because zeroing it costs half as much as the read.
        *buffer = Vec::with_capacity(length);
        while buffer.len() < length {
            let at = offset + buffer.len() as u64;
            match rustix::io::pread(&*self.file, spare_capacity(buffer), at) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(length);
        Ok(())
    }

    fn read_at_if_resident(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let mut done = 0;
        while done < buffer.len() {
            let mut rest = [IoSliceMut::new(&mut buffer[done..])];
            let at = offset + done as u64;
            match rustix::io::preadv2(&*self.file, &mut rest, at, ReadWriteFlags::NOWAIT) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                // Not resident, or not supported by the file system or kernel.
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn prefetch(&self, range: Range<u64>) {
        if let Some(bytes) = NonZeroU64::new(range.end.saturating_sub(range.start)) {
            // If the hint is refused, the next read waits for the whole range.
            let _ = fadvise(&*self.file, range.start, Some(bytes), Advice::WillNeed);
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let end = self.bytes_len()?;
        match rustix::fs::seek(&*self.file, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data..rustix::fs::seek(&*self.file, SeekFrom::Hole(data))?)),
            Err(Errno::NXIO) => Ok(None),
            // The file system does not report holes: anything may be data.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok((offset < end).then_some(offset..end)),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, offset: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(pieces.len());
        slices.extend(
            pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| IoSlice::new(piece)),
        );
        let mut left = &mut slices[..];
        let mut offset = offset;
        while !left.is_empty() {
            let call = &left[..left.len().min(PIECES_MAX)];
            match rustix::io::pwritev(&*self.file, call, offset) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut left, written);
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(no_room_or(error)),
            }
        }
        Ok(())
    }

    fn start_write_back(&self, range: Range<u64>) {
        write_back::start_write_back(&*self.file, range);
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let reserve = || rustix::fs::fallocate(&*self.file, FallocateFlags::empty(), 0, bytes);
        match rustix::io::retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP) if self.bytes_len()? < bytes => self.file.set_len(bytes),
            Err(Errno::OPNOTSUPP) => Ok(()),
            answer => answer.map_err(no_room_or),
        }
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let bytes = range.end.saturating_sub(range.start);
        if bytes == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punch = || rustix::fs::fallocate(&*self.file, flags, range.start, bytes);
        rustix::io::retry_on_intr(punch).map_err(no_room_or)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&*self.file)?)
    }

    fn changes(&self) -> io::Result<u64> {
        let times = rustix::fs::fstat(&*self.file)?;
        let seconds = times.st_mtime.cast_unsigned();
        Ok(seconds.wrapping_mul(1_000_000_000).wrapping_add(times.st_mtime_nsec))
    }

    fn map(&self, access: Access) -> io::Result<Box<dyn Mapping>> {
        Ok(Box::new(mmap::map_file(Arc::clone(&self.file), access)?))
    }
}

/// Creates a folder and its missing parents, each with a durable name.
fn make_folder_durably(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| *folder != Path::new("") && !folder.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        match folder.parent() {
            Some(above) if above != Path::new("") => sync_folder(above)?,
            _ => sync_folder(Path::new("."))?,
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder)?;
    Ok(rustix::fs::fsync(folder)?)
}

/// Maps an exceeded quota to a full disk.
fn no_room_or(error: Errno) -> io::Error {
    if error == Errno::DQUOT { ErrorKind::StorageFull.into() } else { error.into() }
}
