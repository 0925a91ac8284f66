//! Folder that is opened once: after it was moved, unmounted or removed, nothing is written to what has its path then.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Open folder of a remote store.
pub(crate) struct OpenFolder {
    handle: OwnedFd,
    path: PathBuf,
}

impl OpenFolder {
    /// Opens a folder, which must exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Returns the prefix of the names of its files, relative to the root of the file system.
    pub(crate) fn prefix(&self) -> String {
        format!("proc/self/fd/{}/", self.handle.as_raw_fd())
    }

    /// Returns an error if the folder was removed.
    pub(crate) fn check_exists(&self) -> io::Result<()> {
        if rustix::fs::fstat(&self.handle)?.st_nlink > 0 {
            return Ok(());
        }
        let why = format!("the folder {} was removed", self.path.display());
        Err(io::Error::new(io::ErrorKind::NotFound, why))
    }

    /// Returns the text of an error with the path of the folder instead of its prefix.
    pub(crate) fn with_path(&self, text: &str) -> String {
        text.replace(&format!("/{}", self.prefix()), &self.path.join("").to_string_lossy())
    }
}
