//! Listing: pages of a folder, folders first, and pages of whole keys in plain byte order.
//!
//! Index keys keep a folder's subfolders, by name, before its files. A page of a folder reads one entry of each
//! subfolder and then seeks past it. Plain byte order needs more care, because there a folder `a` sorts as `a/`: after
//! a file or a folder `a-b`, before a file `a0`. So a walk holds back each folder whose name is the beginning of what
//! follows, until the names that sort before its slash are done.
//!
//! Promises: both cost O(page), whatever the bucket holds, plus deletions not yet in redb; both resume from a cursor
//! and never skip or repeat what was there throughout.
//! Never here: search, delimiters.

use std::ops::Bound;
use std::sync::Arc;

use super::merge::Merge;
use super::view::View;
use crate::error::Result;
use crate::format::{Entry, entry_key};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};

use super::tables::damaged;

/// An object as the index knows it.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) name: ObjectName,
    pub(crate) entry: Arc<Entry>,
}

/// A page of a folder.
#[derive(Clone, Debug, Default)]
pub struct FolderPage {
    /// Subfolders, in byte order of their names.
    pub folders: Vec<FolderKey>,
    /// Files, in byte order of their names, after all subfolders.
    pub files: Vec<Object>,
    /// Where the next page begins; none when this is the last.
    pub next: Option<FolderCursor>,
}

/// A place between two items of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderCursor {
    /// After this subfolder.
    AfterFolder(FolderKey),
    /// After this file.
    AfterFile(ObjectKey),
}

/// A page of whole keys.
#[derive(Clone, Debug, Default)]
pub struct KeyPage {
    /// Objects in byte order of their keys.
    pub objects: Vec<Object>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

/// What lies directly in a folder. Folder markers of the folder itself do not appear.
pub(crate) fn list_folder(
    view: &View,
    bucket: &BucketName,
    folder: &FolderKey,
    after: Option<&FolderCursor>,
    limit: usize,
) -> Result<FolderPage> {
    let limit = limit.min(limits::LIST_PAGE_MAX);
    let to = entry_key::folder_range(bucket, folder).end;
    let mut from = match after {
        None => Bound::Included(entry_key::subfolders_range(bucket, folder).start),
        Some(FolderCursor::AfterFolder(last)) => {
            Bound::Included(entry_key::after_folder(bucket, last))
        }
        Some(FolderCursor::AfterFile(last)) => {
            let name = ObjectName::new(bucket.clone(), last.clone());
            Bound::Excluded(entry_key::encode(&name))
        }
    };
    let mut page = FolderPage::default();
    let mut last = None;
    'seek: loop {
        for item in view.entries(as_slice(&from), &to)? {
            let object = object(item?)?;
            if page.folders.len() + page.files.len() == limit {
                page.next = last;
                return Ok(page);
            }
            match subfolder(folder, &object.name.key) {
                Some(subfolder) => {
                    from = Bound::Included(entry_key::after_folder(bucket, &subfolder));
                    last = Some(FolderCursor::AfterFolder(subfolder.clone()));
                    page.folders.push(subfolder);
                    continue 'seek;
                }
                None => {
                    last = Some(FolderCursor::AfterFile(object.name.key.clone()));
                    page.files.push(object);
                }
            }
        }
        return Ok(page);
    }
}

/// Objects whose keys begin with `prefix`, in byte order, after a key.
pub(crate) fn list_keys(
    view: &View,
    bucket: &BucketName,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<KeyPage> {
    let limit = limit.min(limits::LIST_PAGE_MAX);
    let mut walk = PlainWalk::new(view, bucket, prefix, after.unwrap_or(""))?;
    let mut page = KeyPage::default();
    while let Some(object) = walk.next()? {
        if page.objects.len() == limit {
            page.more = true;
            break;
        }
        page.objects.push(object);
    }
    Ok(page)
}

/// The subfolder of `folder` that `key` lies in, when it lies deeper than in `folder` itself.
fn subfolder(folder: &FolderKey, key: &ObjectKey) -> Option<FolderKey> {
    let below = key.as_str().strip_prefix(folder.as_str())?;
    let component = below.find('/')?;
    FolderKey::parse(key.as_str().get(..folder.as_str().len() + component + 1)?).ok()
}

/// A walk over a bucket in plain byte order of whole keys.
///
/// Each level of folders is a merge of two runs, its subfolders and its files. A subfolder that is next in its run but
/// sorts, with its slash, after a later one waits in `held`.
struct PlainWalk<'a> {
    view: &'a View,
    bucket: &'a BucketName,
    prefix: &'a str,
    /// Only keys greater than this one.
    after: &'a str,
    levels: Vec<Level<'a>>,
}

/// One folder of the walk, its two runs, and where each stands.
struct Level<'a> {
    folder: FolderKey,
    /// The marker of the folder itself, which sorts before all that lies in it.
    marker: Option<Object>,
    /// Subfolders that wait for longer names that sort before their slash. The last one is the next to be due.
    held: Vec<FolderKey>,
    /// The next subfolder that is not held, and the index key that the one after it is sought from.
    folder_run: Option<FolderKey>,
    folders_from: Vec<u8>,
    /// The next file, and those after it.
    file_run: Option<Object>,
    files: Merge<'a, Arc<[u8]>, Arc<Entry>>,
}

impl<'a> PlainWalk<'a> {
    fn new(
        view: &'a View,
        bucket: &'a BucketName,
        prefix: &'a str,
        after: &'a str,
    ) -> Result<Self> {
        let mut walk = Self { view, bucket, prefix, after, levels: Vec::new() };
        // Whatever lies outside the deepest folder of the prefix cannot begin with it.
        let folder_end = prefix.rfind('/').map_or(0, |slash| slash + 1);
        let Ok(folder) = FolderKey::parse(prefix.get(..folder_end).unwrap_or("")) else {
            return Ok(walk);
        };
        walk.enter(folder)?;
        Ok(walk)
    }

    fn next(&mut self) -> Result<Option<Object>> {
        while let Some(step) = self.step()? {
            match step {
                Step::Object(object) => {
                    let key = object.name.key.as_str();
                    if key.starts_with(self.prefix) && key > self.after {
                        return Ok(Some(object));
                    }
                    if key > self.prefix && !key.starts_with(self.prefix) {
                        return Ok(None);
                    }
                }
                Step::Enter(folder) => {
                    let path = folder.as_str();
                    let wanted = path.starts_with(self.prefix) || self.prefix.starts_with(path);
                    if wanted {
                        self.enter(folder)?;
                    } else if path > self.prefix {
                        return Ok(None);
                    }
                }
                Step::Leave => {
                    self.levels.pop();
                }
            }
        }
        Ok(None)
    }

    /// Begins the walk of a folder, at the first item that may be greater than `after`.
    fn enter(&mut self, folder: FolderKey) -> Result<()> {
        let path = folder.as_str();
        if !path.is_empty() && path < self.after && !self.after.starts_with(path) {
            return Ok(());
        }
        let marker = match ObjectKey::parse(path) {
            Ok(key) => self.object(key)?,
            Err(_) => None,
        };
        // Within this folder everything up to `resume` is done.
        let resume = self
            .after
            .strip_prefix(path)
            .unwrap_or("")
            .max(self.prefix.strip_prefix(path).unwrap_or(""));
        let component = resume.split('/').next().unwrap_or("").to_owned();
        let mut held = Vec::new();
        // A folder whose name begins the component we resume at comes later than it when its slash sorts after what
        // follows.
        for end in 1..component.len() {
            let Some((short, rest)) = component.split_at_checked(end) else { continue };
            if rest.as_bytes().first().is_some_and(|&byte| byte < b'/')
                && let Ok(shorter) = FolderKey::parse(&format!("{path}{short}/"))
                && self.folder_exists(&shorter)?
            {
                held.push(shorter);
            }
        }
        let folders = entry_key::subfolders_range(self.bucket, &folder).start;
        let files = entry_key::files_range(self.bucket, &folder);
        let from = |start: Vec<u8>| [start.as_slice(), component.as_bytes()].concat();
        let mut level = Level {
            marker,
            held,
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
        // Hold back every folder that a longer name of the same run may sort before.
        while let Some(folder) = &level.folder_run {
            if level.held.last().is_some_and(|held| held.as_str() < folder.as_str()) {
                break;
            }
            level.held.extend(level.folder_run.take());
            self.next_folder(level)?;
        }
        let file_is_first = match (&level.file_run, level.held.last()) {
            (Some(file), Some(folder)) => file.name.key.as_str() < folder.as_str(),
            (file, _) => file.is_some(),
        };
        if file_is_first && let Some(file) = level.file_run.take() {
            Self::next_file(level)?;
            return Ok(Step::Object(file));
        }
        Ok(level.held.pop().map_or(Step::Leave, Step::Enter))
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

fn object((key, entry): (Arc<[u8]>, Arc<Entry>)) -> Result<Object> {
    let name = entry_key::decode(&key).map_err(damaged)?;
    Ok(Object { name, entry })
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
