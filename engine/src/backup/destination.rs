//! Target folder of a backup: validation, publication, cleanup.
//!
//! Guarantees: a folder that is another store, contains foreign files, or is in use is rejected before anything in
//! it is changed; so is an image that was opened as a store and has diverged.
//! Non-goals: the content of the image.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::segment_snapshot::{Source, SourceFile};
use crate::disk::{Disk, DiskFile, LOCK, Lock};
use crate::error::{Error, Result};
use crate::format::{
    BACKUP_FILE, BIG_FOLDER, BIG_TRAILER_BYTES, BackupFile, COMPACTED_FOLDER, FOOTER_TRAILER_BYTES,
    LOG_FOLDER, Malformed, Predecessor, SEGMENT_HEADER_BYTES, STORE_FILE, STORE_FILE_BYTES,
    SegmentClass, SegmentHeader, SegmentId, StoreFile, big_folder_number,
};
use crate::index::INDEX_FILE;
use crate::segment::read_footer;

/// Locked target folder.
pub(super) struct Destination<'a> {
    disk: &'a dyn Disk,
    store: uuid::Uuid,
    _lock: Box<dyn Lock>,
}

impl<'a> Destination<'a> {
    /// Locks the folder, and rejects one that is not an image of this store.
    pub(super) fn open(disk: &'a dyn Disk, store: uuid::Uuid) -> Result<Self> {
        let names = disk.list("").map_err(|source| at_destination("the folder", source))?;
        if let Some(file) = names.iter().find(|name| !KNOWN_FILES.contains(&name.as_str())) {
            let why = format!("the backup folder contains other files, such as {file}");
            return Err(Error::NotAStore(why));
        }
        let lock = disk.lock().map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => Error::InUse(disk.lock_holder()),
            _ => at_destination(LOCK, source),
        })?;
        let destination = Self { disk, store, _lock: lock };
        if let Some(bytes) = read(disk, STORE_FILE, STORE_FILE_BYTES)? {
            match StoreFile::decode(&bytes) {
                Ok(found) if found.store == store => {}
                Ok(_) => return Err(Error::NotAStore(OTHER_STORE.to_owned())),
                Err(reason) => return Err(Error::corrupt("STORE of the backup", 0, reason)),
            }
        }
        Ok(destination)
    }

    /// Ensures that the current content remains a valid image while segments are added.
    pub(super) fn prepare(&mut self, source: &Source) -> Result<()> {
        let mut present = BTreeSet::new();
        for (folder, class) in FOLDERS {
            for id in self.ids(folder)? {
                present.insert(id);
                let path = id.path(class);
                let Some(found) = self.header(&path)? else { continue };
                if found.store != self.store {
                    return Err(Error::NotAStore(OTHER_STORE.to_owned()));
                }
                let ours = source.files.iter().find(|file| (file.id, file.class) == (id, class));
                if ours.and_then(|file| file.header).is_some_and(|header| header != found) {
                    return Err(Error::NotAStore(DIVERGED_STORE.to_owned()));
                }
            }
        }
        let io = |source| at_destination("the folder", source);
        for folder in [LOG_FOLDER, BIG_FOLDER, COMPACTED_FOLDER] {
            self.disk.create_folder(folder).map_err(io)?;
        }
        self.disk.sync_folder("").map_err(io)?;
        // Before the first complete backup there is no STORE file, and so no image.
        if self.has_file(STORE_FILE)? && !self.has_file(BACKUP_FILE)? {
            let segments = present.into_iter().collect();
            let (store, end) = (self.store, self.log_end()?);
            let image = BackupFile { store, last_lsn: 0, finished_ms: 0, end, segments };
            self.put(BACKUP_FILE, &image.encode())?;
        }
        if self.has_file(INDEX_FILE)? {
            self.disk.remove(INDEX_FILE).map_err(io)?;
            self.disk.sync_folder("").map_err(io)?;
        }
        Ok(())
    }

    /// Returns whether the segment already exists, according to its length and both ends.
    pub(super) fn has(&self, from: &dyn Disk, file: &SourceFile) -> Result<bool> {
        if !file.is_sealed || file.header.is_none() {
            return Ok(false);
        }
        let copy = match self.disk.open(&file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(|source| at_destination(&file.path, source))?,
        };
        let length = copy.bytes_len().map_err(|source| at_destination(&file.path, source))?;
        if length != file.bytes {
            return Ok(false);
        }
        let io = |source| Error::io(format!("reading {}", file.path), source);
        let source = from.open(&file.path).map_err(io)?;
        let ours = ends(source.as_ref(), length).map_err(io)?;
        let theirs = ends(copy.as_ref(), length);
        Ok(ours == theirs.map_err(|source| at_destination(&file.path, source))?)
    }

    /// Makes the names of the copied files durable.
    pub(super) fn sync_folders(&self, folders: &BTreeSet<String>) -> Result<()> {
        let parents = [BIG_FOLDER, ""].into_iter();
        for folder in folders.iter().map(String::as_str).chain(parents) {
            self.disk.sync_folder(folder).map_err(|source| at_destination(folder, source))?;
        }
        Ok(())
    }

    /// Publishes the image.
    pub(super) fn publish(&self, from: &dyn Disk, image: &BackupFile) -> Result<()> {
        self.put(BACKUP_FILE, &image.encode())?;
        if !self.has_file(STORE_FILE)? {
            let bytes = read(from, STORE_FILE, STORE_FILE_BYTES)?;
            let bytes = bytes.ok_or_else(|| Error::corrupt(STORE_FILE, 0, Malformed::Missing))?;
            self.put(STORE_FILE, &bytes)?;
        }
        Ok(())
    }

    /// Removes segments that are not part of the image, and returns their number.
    pub(super) fn remove_others(&self, source: &Source) -> Result<u64> {
        let ours: BTreeSet<&str> = source.files.iter().map(|file| file.path.as_str()).collect();
        let io = |source| at_destination("the folder", source);
        let mut folders = vec![LOG_FOLDER.to_owned(), COMPACTED_FOLDER.to_owned()];
        for name in self.disk.list(BIG_FOLDER).map_err(io)? {
            if big_folder_number(&name).is_some() {
                folders.push(format!("{BIG_FOLDER}/{name}"));
            }
        }
        let mut removed_files = 0;
        for folder in folders {
            let mut is_changed = false;
            for name in self.disk.list(&folder).map_err(io)? {
                let path = format!("{folder}/{name}");
                let is_segment = SegmentId::from_file_name(&name).is_some();
                let is_other = is_segment && !ours.contains(path.as_str());
                if is_other || name.ends_with(PART_SUFFIX) {
                    self.disk.remove(&path).map_err(io)?;
                    removed_files += u64::from(is_segment);
                    is_changed = true;
                }
            }
            if is_changed {
                self.disk.sync_folder(&folder).map_err(io)?;
            }
        }
        Ok(removed_files)
    }

    /// Writes a file in the root and atomically replaces an existing one.
    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let part = part_of(path);
        let put = || {
            match self.disk.remove(&part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = self.disk.create(&part)?;
            file.write_at(0, &[bytes])?;
            file.sync_data()?;
            self.disk.rename(&part, path)?;
            self.disk.sync_folder("")
        };
        put().map_err(|source| at_destination(path, source))
    }

    /// Returns the end of the log in the folder: that of its last segment.
    fn log_end(&self) -> Result<Option<Predecessor>> {
        for segment in self.ids(LOG_FOLDER)?.into_iter().rev() {
            let path = segment.path(SegmentClass::Log);
            let Some(header) = self.header(&path)? else { continue };
            let io = |source| at_destination(&path, source);
            let file = self.disk.open(&path).map_err(io)?;
            let end = match read_footer(file.as_ref(), &header)? {
                Some(footer) => footer.footer_offset,
                None => file.bytes_len().map_err(io)?,
            };
            return Ok(Some(Predecessor { segment, end }));
        }
        Ok(None)
    }

    fn ids(&self, folder: &str) -> Result<Vec<SegmentId>> {
        let names = self.disk.list(folder).map_err(|source| at_destination(folder, source))?;
        Ok(names.iter().filter_map(|name| SegmentId::from_file_name(name)).collect())
    }

    /// Returns the header of a segment in the folder, if it is readable.
    fn header(&self, path: &str) -> Result<Option<SegmentHeader>> {
        let page = read(self.disk, path, SEGMENT_HEADER_BYTES)?;
        Ok(page.and_then(|page| SegmentHeader::decode_page(&page).ok()))
    }

    fn has_file(&self, path: &str) -> Result<bool> {
        match self.disk.open(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at_destination(path, error)),
        }
    }
}

/// Returns the temporary name of a file.
pub(super) fn part_of(path: &str) -> String {
    format!("{path}{PART_SUFFIX}")
}

/// Returns an error of the target disk, which may be full while the disk of the store is not.
pub(super) fn at_destination(path: &str, source: io::Error) -> Error {
    Error::Io { doing: format!("writing {path} of the backup"), source: Arc::new(source) }
}

/// Returns the first bytes of a file; fewer if it is shorter, `None` if it does not exist.
fn read(disk: &dyn Disk, path: &str, length: usize) -> Result<Option<Vec<u8>>> {
    let file = match disk.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|source| at_destination(path, source))?,
    };
    let read = || {
        let length = file.bytes_len()?.min(length as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    };
    read().map(Some).map_err(|source| at_destination(path, source))
}

/// Returns the header page of a segment and its trailer.
fn ends(file: &dyn DiskFile, length: u64) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut header = vec![0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut header)?;
    let mut trailer = vec![0; BIG_TRAILER_BYTES];
    file.read_at(length.saturating_sub(BIG_TRAILER_BYTES as u64), &mut trailer)?;
    Ok((header, trailer))
}

const _: () = assert!(BIG_TRAILER_BYTES == FOOTER_TRAILER_BYTES);

const PART_SUFFIX: &str = ".part";
const OTHER_STORE: &str = "the backup folder contains another store";
const DIVERGED_STORE: &str = "the backup was opened as a store and modified: use another folder";
const FOLDERS: [(&str, SegmentClass); 2] =
    [(LOG_FOLDER, SegmentClass::Log), (COMPACTED_FOLDER, SegmentClass::Compacted)];
/// Names that the folder may contain.
const KNOWN_FILES: [&str; 12] = [
    LOCK,
    STORE_FILE,
    BACKUP_FILE,
    INDEX_FILE,
    LOG_FOLDER,
    BIG_FOLDER,
    COMPACTED_FOLDER,
    "STORE.part",
    "BACKUP.part",
    "control.sock",
    "acme",
    "lost+found",
];
