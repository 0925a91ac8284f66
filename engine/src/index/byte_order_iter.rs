//! Iterates a bucket in byte order of full keys, from any position.
//!
//! In index order the subfolders of a folder precede its files. In byte order a folder `a` sorts as `a/`: after a
//! file or folder `a-b`, before a file `a0`. The iterator therefore defers each folder whose name is a prefix of the
//! following names, until the names that sort before its slash are done.
//!
//! Guarantees: the cost is that of the items returned, plus a few seeks per folder on the way; the start may be
//! between keys, even inside a UTF-8 character.
//! Non-goals: pages, cursors.

use std::ops::Bound;
use std::sync::Arc;

use super::merge_iter::Merge;
use super::object::Object;
use super::tables::damaged;
use super::view::View;
use crate::error::Result;
use crate::format::{Entry, entry_key};
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};

/// Iterator over a bucket in byte order of full keys.
///
/// Each folder level merges two runs, subfolders and files. A subfolder that is next in its run but sorts, with its
/// slash, after a later one is deferred in `held`.
pub(super) struct ByteOrderIter<'a> {
    view: &'a View,
    bucket: &'a BucketName,
    prefix: &'a str,
    delimiter: Option<&'a str>,
    /// Lower bound of the keys, in byte order.
    from: Vec<u8>,
    levels: Vec<Level<'a>>,
}

/// Folder level with the state of its two runs.
struct Level<'a> {
    folder: FolderKey,
    /// Marker of the folder itself, which sorts before its content.
    marker: Option<Object>,
    /// Subfolders deferred behind longer names that sort before their slash. The last one is due next.
    lookahead: Vec<FolderKey>,
    /// Next subfolder that is not deferred, and the index key to seek the one after it.
    folder_run: Option<FolderKey>,
    folders_from: Vec<u8>,
    /// Next file, and the run of later files.
    file_run: Option<Object>,
    files: Merge<'a, Arc<[u8]>, Arc<Entry>>,
}

/// Item of the iteration.
pub(super) enum ByteOrderItem {
    /// Object whose key has no delimiter after the prefix.
    Object(Object),
    /// Common prefix of keys up to and including the first delimiter after the prefix.
    Group(String),
}

impl<'a> ByteOrderIter<'a> {
    /// Creates an iterator over the keys that begin with `prefix`, or over their groups, after a key or a group.
    pub(super) fn new(
        view: &'a View,
        bucket: &'a BucketName,
        prefix: &'a str,
        delimiter: Option<&'a str>,
        after: Option<&str>,
    ) -> Result<Self> {
        let (from, levels) = (Vec::new(), Vec::new());
        let mut walk = Self { view, bucket, prefix, delimiter, from, levels };
        let from = after.map_or_else(Vec::new, |after| match walk.group(after) {
            Some(group) => after_all_with(group),
            None => [after.as_bytes(), b"\0"].concat(),
        });
        walk.seek(from)?;
        Ok(walk)
    }

    pub(super) fn next(&mut self) -> Result<Option<ByteOrderItem>> {
        while let Some(step) = self.step()? {
            match step {
                Step::Object(object) => {
                    let key = object.name.key.as_str();
                    if key.starts_with(self.prefix) && key.as_bytes() >= self.from.as_slice() {
                        let Some(group) = self.group(key).map(str::to_owned) else {
                            return Ok(Some(ByteOrderItem::Object(object)));
                        };
                        self.seek(after_all_with(&group))?;
                        return Ok(Some(ByteOrderItem::Group(group)));
                    }
                    if key > self.prefix && !key.starts_with(self.prefix) {
                        return Ok(None);
                    }
                }
                Step::Enter(folder) => {
                    let path = folder.as_str();
                    let wanted = path.starts_with(self.prefix) || self.prefix.starts_with(path);
                    if !wanted {
                        if path > self.prefix {
                            return Ok(None);
                        }
                        continue;
                    }
                    // The folder is not empty, or the iterator would not have reached it.
                    let is_ahead = path.as_bytes() >= self.from.as_slice();
                    let group = self.group(path).filter(|_| is_ahead).map(str::to_owned);
                    match group {
                        Some(group) if group == path => {
                            return Ok(Some(ByteOrderItem::Group(group)));
                        }
                        Some(group) => {
                            self.seek(after_all_with(&group))?;
                            return Ok(Some(ByteOrderItem::Group(group)));
                        }
                        None => self.enter(folder)?,
                    }
                }
                Step::Leave => {
                    self.levels.pop();
                }
            }
        }
        Ok(None)
    }

    /// Returns the group of a key or folder path: its part up to and including the delimiter.
    fn group<'k>(&self, key: &'k str) -> Option<&'k str> {
        let delimiter = self.delimiter?;
        let at = key.strip_prefix(self.prefix)?.find(delimiter)?;
        key.get(..self.prefix.len() + at + delimiter.len())
    }

    /// Positions the iterator at the first key that is not less than `from`.
    fn seek(&mut self, mut from: Vec<u8>) -> Result<()> {
        // Keys contain no control characters, but index keys do: truncating at the first one gives an equivalent
        // position.
        if let Some(control) = from.iter().position(|byte| *byte < b' ') {
            from.truncate(control);
            from.push(entry_key::KEY_AFTER);
        }
        self.from = from;
        self.levels.clear();
        // Only the deepest folder of the prefix can contain matching keys.
        let folder_end = self.prefix.rfind('/').map_or(0, |slash| slash + 1);
        match FolderKey::parse(self.prefix.get(..folder_end).unwrap_or("")) {
            Ok(folder) => self.enter(folder),
            // No key has this prefix.
            Err(_) => Ok(()),
        }
    }

    /// Enters a folder at the first item that may not be less than `from`.
    fn enter(&mut self, folder: FolderKey) -> Result<()> {
        let path = folder.as_str().as_bytes();
        if !path.is_empty() && path < self.from.as_slice() && !self.from.starts_with(path) {
            return Ok(());
        }
        let marker = match ObjectKey::parse(folder.as_str()) {
            Ok(key) => self.object(key)?,
            Err(_) => None,
        };
        // Everything less than `resume` within this folder is done.
        let below = |place: &'_ [u8]| place.strip_prefix(path).unwrap_or_default().to_vec();
        let resume = below(&self.from).max(below(self.prefix.as_bytes()));
        let component = resume.split(|byte| *byte == b'/').next().unwrap_or_default();
        let mut held = Vec::new();
        // A folder whose name is a prefix of the path segment to resume at sorts after it if its slash sorts after
        // the rest of the segment.
        for end in 1..component.len() {
            let Some((short, rest)) = component.split_at_checked(end) else { continue };
            if rest.first().is_some_and(|&byte| byte < b'/')
                && let Ok(short) = std::str::from_utf8(short)
                && let Ok(shorter) = FolderKey::parse(&format!("{folder}{short}/"))
                && self.folder_exists(&shorter)?
            {
                held.push(shorter);
            }
        }
        let folders = entry_key::subfolders_range(self.bucket, &folder).start;
        let files = entry_key::files_range(self.bucket, &folder);
        let from = |start: Vec<u8>| [start.as_slice(), component].concat();
        let mut level = Level {
            marker,
            lookahead: held,
            folder_run: None,
            folders_from: from(folders),
            file_run: None,
            files: self.view.entries(Bound::Included(&from(files.start)), &files.end)?,
            folder,
        };
        self.next_folder(&mut level)?;
        Self::next_file(&mut level)?;
        self.levels.push(level);
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Step>> {
        let Some(mut level) = self.levels.pop() else {
            return Ok(None);
        };
        let step = self.step_in(&mut level);
        self.levels.push(level);
        step.map(Some)
    }

    fn step_in(&self, level: &mut Level<'a>) -> Result<Step> {
        if let Some(marker) = level.marker.take() {
            return Ok(Step::Object(marker));
        }
        // Defer every folder that a longer name of the same run may precede.
        while let Some(folder) = &level.folder_run {
            if level.lookahead.last().is_some_and(|held| held.as_str() < folder.as_str()) {
                break;
            }
            level.lookahead.extend(level.folder_run.take());
            self.next_folder(level)?;
        }
        let file_is_first = match (&level.file_run, level.lookahead.last()) {
            (Some(file), Some(folder)) => file.name.key.as_str() < folder.as_str(),
            (file, _) => file.is_some(),
        };
        if file_is_first && let Some(file) = level.file_run.take() {
            Self::next_file(level)?;
            return Ok(Step::Object(file));
        }
        Ok(level.lookahead.pop().map_or(Step::Leave, Step::Enter))
    }

    fn next_folder(&self, level: &mut Level<'a>) -> Result<()> {
        let to = entry_key::subfolders_range(self.bucket, &level.folder).end;
        level.folder_run = self
            .first(&level.folders_from, &to)?
            .and_then(|object| subfolder(&level.folder, &object.name.key));
        if let Some(folder) = &level.folder_run {
            level.folders_from = entry_key::after_folder(self.bucket, folder);
        }
        Ok(())
    }

    fn next_file(level: &mut Level<'a>) -> Result<()> {
        level.file_run = level.files.next().transpose()?.map(object).transpose()?;
        Ok(())
    }

    fn first(&self, from: &[u8], to: &[u8]) -> Result<Option<Object>> {
        let item = self.view.entries(Bound::Included(from), to)?.next().transpose()?;
        item.map(object).transpose()
    }

    fn folder_exists(&self, folder: &FolderKey) -> Result<bool> {
        let range = entry_key::folder_range(self.bucket, folder);
        Ok(self.first(&range.start, &range.end)?.is_some())
    }

    fn object(&self, key: ObjectKey) -> Result<Option<Object>> {
        let name = ObjectName::new(self.bucket.clone(), key);
        Ok(self.view.entry(&name)?.map(|entry| Object { name, entry }))
    }
}

enum Step {
    Object(Object),
    Enter(FolderKey),
    Leave,
}

/// Returns the first position after all texts with a prefix; 0xff is no byte of UTF-8.
fn after_all_with(text: &str) -> Vec<u8> {
    let mut place = text.as_bytes().to_vec();
    if let Some(last) = place.last_mut() {
        *last += 1;
    }
    place
}

pub(super) fn object((key, entry): (Arc<[u8]>, Arc<Entry>)) -> Result<Object> {
    let name = entry_key::decode(&key).map_err(damaged)?;
    Ok(Object { name, entry })
}

/// Returns the direct subfolder of `folder` that contains `key`; `None` if the key is directly in `folder`.
pub(super) fn subfolder(folder: &FolderKey, key: &ObjectKey) -> Option<FolderKey> {
    let below = key.as_str().strip_prefix(folder.as_str())?;
    let component = below.find('/')?;
    FolderKey::parse(key.as_str().get(..folder.as_str().len() + component + 1)?).ok()
}
