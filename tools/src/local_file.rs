//! Local files that are copied in or out.
//!
//! Guarantees: a file appears under its name only when it is complete and durable. Non-goals: folders.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "local files are outside the store"
)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// A file that is removed again unless it is completed.
pub(crate) struct UnfinishedFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    is_complete: bool,
}

impl UnfinishedFile {
    /// Creates an empty file in the folder of the target.
    pub(crate) fn create(target: &Path) -> Result<Self, Failure> {
        let mut name = target.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(format!(".{}.unfinished", std::process::id()));
        let path = target.with_file_name(name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = opened.map_err(|error| unwritable(target, &error))?;
        Ok(Self { file, path, target: target.to_owned(), is_complete: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable and gives it the name of the target, which it replaces.
    pub(crate) fn complete(mut self) -> Result<(), Failure> {
        let renamed = self.file.sync_all().and_then(|()| fs::rename(&self.path, &self.target));
        renamed.map_err(|error| unwritable(&self.target, &error))?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // A file that cannot be removed is recognised by its name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unwritable(target: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", target.display()))
}

/// Checks that a file can be read. Returns its path and size; 0 for what is not a regular file.
pub(crate) fn readable(file: &Path) -> Result<(PathBuf, u64), Failure> {
    let metadata = File::open(file).and_then(|opened| opened.metadata());
    let metadata = metadata
        .map_err(|error| Failure::failed(format!("cannot read {}: {error}", file.display())))?;
    Ok((file.to_owned(), if metadata.is_file() { metadata.len() } else { 0 }))
}

/// Returns the name of a file, for an object.
pub(crate) fn name(file: &Path) -> Result<String, Failure> {
    let name = file.file_name().and_then(|name| name.to_str()).map(ToOwned::to_owned);
    name.ok_or_else(|| Failure::wrong_usage(format!("{}: the name is not UTF-8", file.display())))
}
