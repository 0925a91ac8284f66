//! Folder statistics of a bucket: files, bytes, and the latest change.
//!
//! Guarantees: bounded work for each page. The engine counts top-level folders; other folders, and the date of the
//! latest change, require reading every file, up to a limit per folder and per page.

use catalog::CatalogError;
use catalog::object_attributes::last_modified_ms;
use engine::listing::FolderCursor;
use engine::{BucketName, FolderKey, Store};
use protocol::time_format::iso_time;

use super::{FolderView, FoldersView};

/// Maximum files that are counted in one folder.
const FOLDER_FILES_MAX: usize = 10_000;
/// Maximum files that are counted for a page of folders: a page of large folders is shorter.
const FOLDERS_FILES_MAX: usize = 20_000;

/// Totals of a folder.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    objects: u64,
    bytes: u64,
    modified_ms: u64,
    is_exact: bool,
}

/// Returns a page of the direct subfolders of a folder, by name, after one of them.
pub fn subfolders_view(
    store: &Store,
    bucket: &BucketName,
    parent: &FolderKey,
    after: Option<FolderKey>,
    limit: usize,
) -> Result<FoldersView, CatalogError> {
    let after = after.map(FolderCursor::AfterFolder);
    let page = store.list_folder(bucket, parent, after.as_ref(), limit)?;
    let mut more = matches!(page.next, Some(FolderCursor::AfterFolder(_)));
    let mut folders = Vec::with_capacity(page.folders.len());
    let mut budget = FOLDERS_FILES_MAX;
    for folder in page.folders {
        if budget == 0 {
            more = true;
            break;
        }
        let (view, looked_at) = folder_view(store, bucket, &folder)?;
        budget = budget.saturating_sub(looked_at);
        folders.push(view);
    }
    let last = folders.last().filter(|_| more);
    let next_cursor = last.map(|folder: &FolderView| folder.folder.clone());
    Ok(FoldersView { folders, next_cursor })
}

/// Returns the statistics of a folder, and the number of files that were read for it.
fn folder_view(
    store: &Store,
    bucket: &BucketName,
    folder: &FolderKey,
) -> Result<(FolderView, usize), CatalogError> {
    let usage = store.folder_usage(bucket, folder)?;
    let is_large = usage.is_some_and(|usage| usage.objects > FOLDER_FILES_MAX as u64);
    let counted = if is_large { Counted::default() } else { count(store, bucket, folder)? };
    let (objects, bytes) = match usage {
        Some(usage) => (usage.objects, usage.bytes),
        None => (counted.objects, counted.bytes),
    };
    let view = FolderView {
        folder: folder.to_string(),
        object_count: objects,
        total_bytes: bytes,
        modified_at: counted.is_exact.then(|| iso_time(counted.modified_ms)),
        is_exact: usage.is_some() || counted.is_exact,
    };
    Ok((view, usize::try_from(counted.objects).unwrap_or(usize::MAX).max(1)))
}

/// Counts the files of a folder, at any depth, up to the limit.
fn count(store: &Store, bucket: &BucketName, folder: &FolderKey) -> Result<Counted, CatalogError> {
    let mut counted = Counted::default();
    let mut after: Option<String> = None;
    while counted.objects < FOLDER_FILES_MAX as u64 {
        let limit = engine::limits::LIST_PAGE_MAX;
        let page = store.list_keys(bucket, folder.as_str(), after.as_deref(), limit)?;
        for object in &page.objects {
            counted.objects += 1;
            counted.bytes += object.bytes();
            counted.modified_ms = counted.modified_ms.max(last_modified_ms(object));
        }
        if !page.more {
            return Ok(Counted { is_exact: true, ..counted });
        }
        after = page.objects.last().map(|object| object.name().key.to_string());
    }
    Ok(counted)
}
