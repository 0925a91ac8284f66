//! Files outside the store: archives that are read or written, and folders of files.
//!
//! Guarantees: below a given folder no link is followed, neither for reading nor for writing; a file appears under its
//! name when it is complete and durable, or not at all; a stalled pipe returns [`ErrorKind::WouldBlock`] after a moment
//! instead of blocking forever. Non-goals: the store, the archive format.
#![allow(clippy::disallowed_types, reason = "archives lie outside the store")]

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use engine::ObjectKey;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Timestamps, fsync, futimens, mkdirat, open, openat,
    renameat, stat, statat, syncfs, unlinkat,
};
use rustix::io::Errno;

use crate::archive::limits;

/// Input file or pipe.
pub(super) struct Input {
    file: File,
    bytes: u64,
}

/// Output file or pipe.
pub(super) struct Output {
    file: File,
    /// Final name, unless it is a stream.
    target: Option<PendingFile>,
}

/// Incomplete file and its final name.
struct PendingFile {
    from: OwnedFd,
    unfinished: PathBuf,
    home: OwnedFd,
    name: PathBuf,
    is_done: bool,
}

/// Recursive walk of a folder, one file at a time, in no order.
pub(super) struct Walk {
    open: Vec<OpenFolder>,
}

struct OpenFolder {
    /// Path below the top folder, empty or ending in `/`.
    path: Vec<u8>,
    folder: Dir,
}

/// Item of a walk.
pub(super) enum WalkEntry {
    File { path: Vec<u8>, input: Input },
    Refused { path: Vec<u8>, why: String },
}

/// Folder into which objects are written under their keys.
pub(super) struct FolderWriter {
    root: OwnedFd,
    /// Folder of the last object, which the next one often shares.
    last: Option<(String, OwnedFd)>,
}

/// Result of creating a file in a [`FolderWriter`].
pub(super) enum CreateOutcome {
    New(Output),
    /// A file of this size and time exists: it is up to date.
    Unchanged,
}

/// Temporary name of a file in a [`FolderWriter`] until it is complete.
pub(super) const PARTIAL_DIR: &str = ".trug-export.unfinished";

/// Maximum wait for a pipe between cancellation checks.
const PIPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opens without waiting for the other end of a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const CREATE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Returns whether a path is a folder; `None` if it does not exist.
pub(super) fn is_folder(path: &Path) -> io::Result<Option<bool>> {
    match stat(path) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode).is_dir())),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns standard input or output of this process, by its path in `/proc/self/fd`, if it is redirected to a regular
/// file: opened again, the file would have an offset of its own, and other programs that share it would overwrite what
/// was written. Pipes are opened again, so that they can be non-blocking.
pub fn standard_stream(path: &Path) -> io::Result<Option<File>> {
    let descriptor = match path.to_str() {
        Some("/proc/self/fd/0") => io::stdin().as_fd().try_clone_to_owned()?,
        Some("/proc/self/fd/1") => io::stdout().as_fd().try_clone_to_owned()?,
        _ => return Ok(None),
    };
    let file = File::from(descriptor);
    Ok(file.metadata()?.is_file().then_some(file))
}

impl Input {
    /// Opens a file or a pipe.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match standard_stream(path)? {
            Some(file) => Self::of(file.into()),
            None => Self::of(open(path, READ, Mode::empty())?),
        }
    }

    fn of(opened: OwnedFd) -> io::Result<Self> {
        let bytes = u64::try_from(rustix::fs::fstat(&opened)?.st_size).unwrap_or(0);
        Ok(Self { file: File::from(opened), bytes })
    }

    /// Returns the current size; 0 for a pipe.
    pub(super) fn size(&self) -> u64 {
        self.bytes
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(&self.file, PollFlags::IN)?;
                self.file.read(buffer)
            }
            other => other,
        }
    }
}

impl Output {
    /// Creates a file that replaces an existing one when it is finished.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let no_name = || io::Error::new(ErrorKind::InvalidInput, "it has no file name");
        let name = PathBuf::from(path.file_name().ok_or_else(no_name)?);
        let mut unfinished = name.clone().into_os_string();
        unfinished.push(".unfinished");
        // The operator chose the folder: links in its own path are followed.
        let flags = FOLDER.difference(OFlags::NOFOLLOW);
        let folder = open(path.parent().unwrap_or(path), flags, Mode::empty())?;
        match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if !FileType::from_raw_mode(found.st_mode).is_file() => {
                return Err(io::Error::new(
                    ErrorKind::AlreadyExists,
                    "it exists and is not a regular file",
                ));
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Self::begin(folder.try_clone()?, PathBuf::from(unfinished), folder, name)
    }

    /// Opens a stream by its path among the open files of a process.
    pub(super) fn stream(path: &Path) -> io::Result<Self> {
        if let Some(file) = standard_stream(path)? {
            return Ok(Self { file, target: None });
        }
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = open(path, flags, Mode::empty())?;
        Ok(Self { file: File::from(opened), target: None })
    }

    fn begin(from: OwnedFd, unfinished: PathBuf, home: OwnedFd, name: PathBuf) -> io::Result<Self> {
        // Left over by an interrupted export.
        match unlinkat(&from, &unfinished, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = openat(&from, &unfinished, CREATE, Mode::from_raw_mode(0o600))?;
        let target = Some(PendingFile { from, unfinished, home, name, is_done: false });
        Ok(Self { file: File::from(file), target })
    }

    /// Makes an archive durable and renames it to its final name.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.rename_to_target()? {
            Some(home) => Ok(fsync(home)?),
            None => Ok(()),
        }
    }

    /// Makes a file of a [`FolderWriter`] durable and gives it its time and name; the name is durable after
    /// [`FolderWriter::finish`].
    pub(super) fn finish_in_tree(self, modified_ms: u64) -> io::Result<()> {
        futimens(&self.file, &times(modified_ms))?;
        self.rename_to_target().map(drop)
    }

    /// Renames the file; returns its folder, or `None` for a stream.
    fn rename_to_target(mut self) -> io::Result<Option<OwnedFd>> {
        let Some(target) = &mut self.target else { return Ok(None) };
        fsync(&self.file)?;
        renameat(&target.from, &target.unfinished, &target.home, &target.name)?;
        target.is_done = true;
        target.home.try_clone().map(Some)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.is_done {
            // The next export removes it if this fails.
            let _ = unlinkat(&self.from, &self.unfinished, AtFlags::empty());
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(&self.file, PollFlags::OUT)?;
                self.file.write(bytes)
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Walk {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
        Ok(Self { open: vec![OpenFolder { path: Vec::new(), folder: Dir::new(root)? }] })
    }

    /// Returns the next file, or an item that is none; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<WalkEntry>> {
        loop {
            let deep = self.open.len();
            let Some(level) = self.open.last_mut() else { return Ok(None) };
            let Some(read) = level.folder.read() else {
                self.open.pop();
                continue;
            };
            let read = read?;
            let name = read.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = [&*level.path, name.to_bytes()].concat();
            let refused = |why: String| Ok(Some(WalkEntry::Refused { path: path.clone(), why }));
            let folder = level.folder.fd()?;
            let kind = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(error) => return refused(error.to_string()),
            };
            match kind {
                FileType::RegularFile => {}
                FileType::Directory if deep >= limits::IMPORT_FOLDERS_DEEP_MAX => {
                    return refused("it is nested too deeply (limit 256 folders)".to_owned());
                }
                FileType::Directory => match openat(folder, name, FOLDER, Mode::empty()) {
                    Ok(opened) => {
                        let path = [&*path, b"/"].concat();
                        self.open.push(OpenFolder { path, folder: Dir::new(opened)? });
                        continue;
                    }
                    Err(error) => return refused(error.to_string()),
                },
                FileType::Symlink => return refused("it is a symbolic link".to_owned()),
                FileType::Fifo => return refused("it is a named pipe".to_owned()),
                FileType::Socket => return refused("it is a socket".to_owned()),
                _ => return refused("it is a device".to_owned()),
            }
            let opened = openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty());
            return match opened.map_err(io::Error::from).and_then(Input::of) {
                Ok(input) => Ok(Some(WalkEntry::File { path, input })),
                Err(error) => refused(error.to_string()),
            };
        }
    }
}

impl FolderWriter {
    /// Opens the folder, creating it if needed; its parent must exist.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match mkdirat(rustix::fs::CWD, path, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let root = open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
        Ok(Self { root, last: None })
    }

    /// Creates the file of an object.
    pub(super) fn create_file(
        &mut self,
        key: &ObjectKey,
        bytes: u64,
        modified_ms: u64,
    ) -> io::Result<CreateOutcome> {
        let home = self.folder(key.folder().as_str())?;
        let name = key.file_name();
        match statat(&home, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let kind = FileType::from_raw_mode(found.st_mode);
                let time = times(modified_ms).last_modification;
                let is_of_time =
                    (found.st_mtime, found.st_mtime_nsec as i64) == (time.tv_sec, time.tv_nsec);
                let is_of_size = u64::try_from(found.st_size) == Ok(bytes);
                if kind.is_dir() {
                    return Err(Errno::ISDIR.into());
                }
                if kind.is_file() && is_of_time && is_of_size {
                    return Ok(CreateOutcome::Unchanged);
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let (from, name) = (self.root.try_clone()?, PathBuf::from(name));
        Ok(CreateOutcome::New(Output::begin(from, PathBuf::from(PARTIAL_DIR), home, name)?))
    }

    /// Makes all files durable.
    pub(super) fn finish(self) -> io::Result<()> {
        Ok(syncfs(&self.root)?)
    }

    /// Opens a folder below the root, creating it if needed.
    fn folder(&mut self, path: &str) -> io::Result<OwnedFd> {
        if let Some((_, folder)) = self.last.as_ref().filter(|(last, _)| last == path) {
            return folder.try_clone();
        }
        let mut folder = self.root.try_clone()?;
        for component in path.split('/').filter(|it| !it.is_empty()) {
            match mkdirat(&folder, component, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, component, FOLDER, Mode::empty())?;
        }
        self.last = Some((path.to_owned(), folder.try_clone()?));
        Ok(folder)
    }
}

/// Returns a reason if the error concerns only this file, because of its name or of what exists there.
pub(super) fn is_per_file_error(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::NAMETOOLONG => Some("its name is too long for the file system"),
        Errno::ISDIR => Some("a folder with its name exists"),
        Errno::NOTDIR | Errno::LOOP => Some("a file or link exists where its folder should be"),
        Errno::INVAL | Errno::ILSEQ => Some("its name is not valid on the file system"),
        _ => None,
    }
}

fn times(modified_ms: u64) -> Timestamps {
    let time = rustix::fs::Timespec {
        tv_sec: i64::try_from(modified_ms / 1_000).unwrap_or(i64::MAX),
        tv_nsec: (modified_ms % 1_000 * 1_000_000) as _,
    };
    Timestamps { last_access: time, last_modification: time }
}

/// Waits for a pipe to become ready, up to a maximum.
fn wait(file: impl AsFd, wanted: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(&file, wanted)], Some(&PIPE_WAIT)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
