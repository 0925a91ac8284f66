//! Contents of a zip archive: its entries and its length, found before the first byte is sent.
//!
//! Guarantees: every file is in an archive once, and without thumbnails. Non-goals: whether the caller may read the
//! files, and their content.

use catalog::Bucket;
use catalog::object_attributes::last_modified_ms;
use engine::{Object, ObjectName, Store};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;

use super::encoding::{EntryHeader, write_end};
use super::entry_names::EntryNames;
use crate::limits::ZIP_ENTRIES_MAX;

/// Entries of an archive.
pub struct ZipContents {
    entries: Vec<ZipEntry>,
    /// Bytes of the longest folder that all entries are in, which their names are without.
    root_bytes: usize,
    files: u64,
    content_bytes: u64,
    archive_bytes: u64,
}

/// Entry of an archive.
pub(super) struct ZipEntry {
    pub object: Object,
    /// Name, if it is not the key without the root.
    name: Option<Box<str>>,
}

impl ZipEntry {
    /// Returns the header of the entry.
    pub(super) fn header(&self, root_bytes: usize, crc32: u32) -> EntryHeader<'_> {
        let name = self.name.as_deref().unwrap_or(path_below(&self.object, root_bytes));
        EntryHeader {
            name,
            bytes: self.object.bytes(),
            crc32,
            modified_ms: last_modified_ms(&self.object),
        }
    }
}

impl ZipContents {
    /// Finds the files of some paths, in the order of the paths. Blocks on the index.
    pub(super) fn find(
        store: &Store,
        bucket: &Bucket,
        now_ms: u64,
        mut paths: Vec<PathInBucket>,
    ) -> Result<Self, ApiError> {
        // A folder precedes its content.
        paths.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        paths.dedup();
        let root_bytes = root_bytes(&paths);
        let mut entries = Vec::new();
        let mut folder: Option<String> = None;
        for path in &paths {
            if folder.as_ref().is_some_and(|folder| path.as_str().starts_with(folder.as_str())) {
                continue;
            }
            match path {
                PathInBucket::File(key) => {
                    let found = store.get(&ObjectName::new(bucket.name.clone(), key.clone()))?;
                    entries.extend(found.filter(|it| !bucket.is_expired(it, || now_ms)));
                    check_count(&entries)?;
                }
                PathInBucket::Folder(prefix) => {
                    folder = Some(prefix.to_string());
                    add_folder(store, bucket, now_ms, prefix.as_str(), &mut entries)?;
                }
            }
        }
        if entries.is_empty() {
            return Err(ApiError::file_not_found());
        }
        Ok(Self::new(entries, root_bytes))
    }

    fn new(objects: Vec<Object>, root_bytes: usize) -> Self {
        let mut names = EntryNames::default();
        objects.iter().for_each(|object| names.reserve_folders(path_below(object, root_bytes)));
        let named = objects.into_iter().map(|object| {
            let name = names.assign(path_below(&object, root_bytes));
            ZipEntry { object, name }
        });
        let entries: Vec<_> = named.collect();
        let is_file = |entry: &&ZipEntry| !entry.object.name().key.is_folder_marker();
        let files = entries.iter().filter(is_file).count() as u64;
        let content_bytes = entries.iter().map(|entry| entry.object.bytes()).sum();
        let archive_bytes = archive_bytes(&entries, root_bytes);
        Self { entries, root_bytes, files, content_bytes, archive_bytes }
    }

    /// Returns the number of files.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the bytes of all files.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    pub(super) fn archive_bytes(&self) -> u64 {
        self.archive_bytes
    }

    pub(super) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn into_entries(self) -> (Vec<ZipEntry>, usize) {
        (self.entries, self.root_bytes)
    }
}

/// Returns the path of an object below the root of the archive.
fn path_below(object: &Object, root_bytes: usize) -> &str {
    let key = object.name().key.as_str();
    key.get(root_bytes..).unwrap_or(key)
}

/// Adds the files of a folder.
fn add_folder(
    store: &Store,
    bucket: &Bucket,
    now_ms: u64,
    prefix: &str,
    entries: &mut Vec<Object>,
) -> Result<(), ApiError> {
    let mut after: Option<String> = None;
    loop {
        let limit = engine::limits::LIST_PAGE_MAX;
        let page = store.list_keys(&bucket.name, prefix, after.as_deref(), limit)?;
        after = page.objects.last().map(|last| last.name().key.to_string());
        let is_listed = |it: &Object| !it.is_derived() && !bucket.is_expired(it, || now_ms);
        entries.extend(page.objects.into_iter().filter(is_listed));
        check_count(entries)?;
        if !page.more {
            return Ok(());
        }
    }
}

fn check_count(entries: &[Object]) -> Result<(), ApiError> {
    if entries.len() > ZIP_ENTRIES_MAX {
        Err(ApiError::zip_too_large(ZIP_ENTRIES_MAX))
    } else {
        Ok(())
    }
}

/// Returns the bytes of the folder that all paths are in. A folder is in its parent.
fn root_bytes(paths: &[PathInBucket]) -> usize {
    let parent = |path: &PathInBucket| {
        let path = path.as_str().trim_end_matches('/');
        path.rfind('/').map_or(0, |at| at + 1)
    };
    let Some(first) = paths.first() else { return 0 };
    let mut root = &first.as_str()[..parent(first)];
    for path in paths {
        while !path.as_str().starts_with(root) || parent(path) < root.len() {
            let shorter = root.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
            root = &root[..shorter];
        }
    }
    root.len()
}

/// Returns the length of the archive, by encoding everything but the files.
fn archive_bytes(entries: &[ZipEntry], root_bytes: usize) -> u64 {
    let mut header = Vec::new();
    let (mut offset, mut directory_bytes) = (0, 0);
    for entry in entries {
        let fields = entry.header(root_bytes, 0);
        header.clear();
        fields.write_central(offset, &mut header);
        directory_bytes += header.len() as u64;
        header.clear();
        fields.write_local(&mut header);
        offset += header.len() as u64 + fields.bytes;
    }
    header.clear();
    write_end(entries.len() as u64, offset, directory_bytes, &mut header);
    offset + directory_bytes + header.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zip_root_is_the_common_folder_of_the_paths() {
        for (paths, root) in [
            (&["2026/"][..], ""),
            (&["a/b/"], "a/"),
            (&[""], ""),
            (&["a/b/x.png"], "a/b/"),
            (&["a/b/", "a/b/x.png"], "a/"),
            (&["a/b/c/x", "a/b/d/"], "a/b/"),
            (&["a/b/x", "a/c/x"], "a/"),
            (&["ab/x", "a/x"], ""),
            (&["a/x", "b"], ""),
        ] {
            let parsed: Vec<_> = paths.iter().map(|it| PathInBucket::parse(it).unwrap()).collect();
            assert_eq!(root_bytes(&parsed), root.len(), "{paths:?}");
        }
    }
}
