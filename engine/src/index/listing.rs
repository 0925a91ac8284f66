//! Listings: folder pages, key pages and key groups (common prefixes).
//!
//! In index key order the subfolders of a folder precede its files. A folder page reads one entry of each subfolder and
//! then seeks past it. Plain byte order is implemented in `byte_order_iter.rs`.
//!
//! Guarantees: the cost of a page is proportional to its length, independent of the bucket size, plus the deletions
//! that are not yet in redb; listings resume from a cursor and never skip or repeat an object that exists throughout.
//! Non-goals: search, and the external form of cursors.

use super::byte_order_iter::{ByteOrderItem, ByteOrderIter, object, subfolder};
use super::object::Object;
use super::view::View;
use crate::error::Result;
use crate::format::entry_key;
use crate::limits;
use crate::name::{BucketName, FolderKey, ObjectKey, ObjectName};
use std::ops::Bound;

/// Page of a folder listing.
#[derive(Clone, Debug, Default)]
pub struct FolderPage {
    /// Subfolders, in byte order of their names.
    pub folders: Vec<FolderKey>,
    /// Files, in byte order of their names, after all subfolders.
    pub files: Vec<Object>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<FolderCursor>,
}

/// Cursor between two items of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderCursor {
    /// Position after this subfolder.
    AfterFolder(FolderKey),
    /// Position after this file.
    AfterFile(ObjectKey),
}

/// Page of a key listing.
#[derive(Clone, Debug, Default)]
pub struct KeyPage {
    /// Objects in byte order of their keys.
    pub objects: Vec<Object>,
    /// Whether more objects follow.
    pub more: bool,
}

/// Grouping of keys by common prefix: keys that are equal up to and including the first delimiter after `prefix`
/// form one group.
#[derive(Clone, Copy, Debug)]
pub struct KeyGrouping<'a> {
    /// Prefix of all keys to list; empty for the whole bucket.
    pub prefix: &'a str,
    /// Delimiter at the end of each group; empty disables grouping.
    pub delimiter: &'a str,
}

/// Page of groups and of objects that are in no group.
#[derive(Clone, Debug, Default)]
pub struct KeyGroupPage {
    /// Common prefixes of the groups, in byte order.
    pub groups: Vec<String>,
    /// Objects in no group, in byte order of their keys.
    pub objects: Vec<Object>,
    /// Last group or key of the page, to pass as `after` for the next one; `None` on the last page.
    pub next: Option<String>,
}

/// Lists the direct content of a folder, without the folder's own marker.
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

/// Lists objects whose keys begin with `prefix`, in byte order, after a key.
pub(crate) fn list_keys(
    view: &View,
    bucket: &BucketName,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<KeyPage> {
    let limit = limit.min(limits::LIST_PAGE_MAX);
    let mut walk = ByteOrderIter::new(view, bucket, prefix, None, after)?;
    let mut page = KeyPage::default();
    while let Some(walked) = walk.next()? {
        if page.objects.len() == limit {
            page.more = true;
            break;
        }
        // Without a delimiter there are no groups.
        if let ByteOrderItem::Object(object) = walked {
            page.objects.push(object);
        }
    }
    Ok(page)
}

/// Lists the groups of the keys that begin with `prefix`, and the objects in no group, in one byte order.
pub(crate) fn list_key_groups(
    view: &View,
    bucket: &BucketName,
    grouping: KeyGrouping<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<KeyGroupPage> {
    let limit = limit.min(limits::LIST_PAGE_MAX);
    let KeyGrouping { prefix, delimiter } = grouping;
    let delimiter = Some(delimiter).filter(|delimiter| !delimiter.is_empty());
    let mut walk = ByteOrderIter::new(view, bucket, prefix, delimiter, after)?;
    let mut page = KeyGroupPage::default();
    let mut last = None;
    while let Some(walked) = walk.next()? {
        if page.groups.len() + page.objects.len() == limit {
            page.next = last;
            break;
        }
        match walked {
            ByteOrderItem::Object(object) => {
                last = Some(object.name.key.as_str().to_owned());
                page.objects.push(object);
            }
            ByteOrderItem::Group(group) => {
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
