//! Listing: pages of a folder, folders first, and pages of whole keys in plain byte order, one by one or in groups.
//!
//! Index keys keep a folder's subfolders, by name, before its files. A page of a folder reads one entry of each
//! subfolder and then seeks past it. Plain byte order is the work of `plain_walk.rs`.
//!
//! Promises: all cost O(page), whatever the bucket holds, plus deletions not yet in redb; all resume from a cursor and
//! never skip or repeat what was there throughout.
//! Never here: search, what a cursor looks like outside.

use std::ops::Bound;
use std::sync::Arc;

use super::plain_walk::{PlainWalk, Walked, object, subfolder};
use super::view::View;
use crate::error::Result;
use crate::format::{Entry, entry_key};
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};

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

/// How keys are put into groups: those that are alike up to and with the first delimiter behind the prefix are one.
#[derive(Clone, Copy, Debug)]
pub struct Grouping<'a> {
    /// What all keys begin with.
    pub prefix: &'a str,
    /// What ends the name of a group. Empty: no groups.
    pub delimiter: &'a str,
}

/// A page of groups, and of the objects that are in none.
#[derive(Clone, Debug, Default)]
pub struct GroupPage {
    /// What the keys of each group begin with, in byte order.
    pub groups: Vec<String>,
    /// Objects in byte order of their keys.
    pub objects: Vec<Object>,
    /// The greatest of both, when there is more after it.
    pub next: Option<String>,
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
    let mut walk = PlainWalk::new(view, bucket, prefix, None, after)?;
    let mut page = KeyPage::default();
    while let Some(walked) = walk.next()? {
        if page.objects.len() == limit {
            page.more = true;
            break;
        }
        // Without a delimiter there are no groups.
        if let Walked::Object(object) = walked {
            page.objects.push(object);
        }
    }
    Ok(page)
}

/// Groups of the keys that begin with `prefix`, and the objects that are in none, in one byte order.
pub(crate) fn list_groups(
    view: &View,
    bucket: &BucketName,
    grouping: Grouping<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<GroupPage> {
    let limit = limit.min(limits::LIST_PAGE_MAX);
    let Grouping { prefix, delimiter } = grouping;
    let delimiter = Some(delimiter).filter(|delimiter| !delimiter.is_empty());
    let mut walk = PlainWalk::new(view, bucket, prefix, delimiter, after)?;
    let mut page = GroupPage::default();
    let mut last = None;
    while let Some(walked) = walk.next()? {
        if page.groups.len() + page.objects.len() == limit {
            page.next = last;
            break;
        }
        match walked {
            Walked::Object(object) => {
                last = Some(object.name.key.as_str().to_owned());
                page.objects.push(object);
            }
            Walked::Group(group) => {
                last = Some(group.clone());
                page.groups.push(group);
            }
        }
    }
    Ok(page)
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
