//! Requests about objects: list, describe, read, copy, move, delete and presign.
//!
//! Guarantees: a copy is stored whole or not at all; a move never loses the object, and deletes the source only if it
//! is the version that was copied; thumbnails are copied, moved and deleted with their images; webhooks get the events.
//! Non-goals: quotas and rate limits, which do not apply to the operator; whole folders, which clients process page by
//! page.

use std::collections::{BTreeMap, BTreeSet};

use catalog::object_attributes::{StoredAttributes, last_modified_ms};
use catalog::{
    Access, Bucket, Catalog, CatalogError, EventKind, Grant, Issuer, ObjectBatch, ObjectEvent,
    Purpose, UploadParams,
};
use engine::listing::KeyGrouping;
use engine::progress::ProgressCallback;
use engine::{
    Batch, Conflict, Error, FactName, Object, ObjectKey, ObjectName, Precondition, PutOptions,
    StagedBody, Store,
};
use jobs::archive::{ArchiveLocation, read_object};
use jobs::thumbnail_object::{
    delete_thumbnail, is_thumbnail_of, put_thumbnail, thumbnail_object_name,
};
use protocol::file_name::{ConflictRule, Naming};
use protocol::object_path::{PathInBucket, check_writable, normalize};
use protocol::public_url::public_url;
use protocol::stored_headers::StoredHeaders;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::limits;

use super::object_change::{ObjectEdit, edit_object};
use super::reply::{AdminResponse, FolderView};
use super::{existing_bucket, folder_of};

/// Request about objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ObjectRequest {
    /// Lists a page of the objects whose keys begin with `prefix`, in byte order.
    List {
        bucket: String,
        prefix: String,
        /// Lists the objects of subfolders too, instead of the subfolders.
        recursive: bool,
        /// Key or subfolder after which the page begins.
        after: Option<String>,
        /// Maximum number of entries, at most [`engine::limits::LIST_PAGE_MAX`].
        limit: u64,
    },
    /// Describes an object.
    Stat { bucket: String, path: String },
    /// Counts the objects and bytes below a folder, by subfolder.
    Usage { bucket: String, folder: String },
    /// Writes the content of an object to a file or a stream of this machine.
    Read { bucket: String, path: String, to: ArchiveLocation },
    /// Copies an object, replacing the destination.
    Copy(Copying),
    /// Moves an object, replacing the destination.
    Move(Copying),
    /// Deletes objects and their thumbnails.
    Delete { bucket: String, paths: Vec<String> },
    /// Changes type, user metadata or expiry of an object.
    Edit { bucket: String, path: String, edit: ObjectEdit },
    /// Creates a URL that downloads or uploads one object without credentials.
    Presign {
        bucket: String,
        path: String,
        /// For an upload by PUT, which replaces the object.
        upload: bool,
        /// Lifetime in seconds, 1 to [`limits::DOWNLOAD_LINK_SECONDS_MAX`].
        expires_in: u64,
        /// Base URL. A running server fills in its own.
        public_url: Option<String>,
    },
}

/// Source and destination of a copy or move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Copying {
    pub bucket: String,
    pub path: String,
    pub to_bucket: String,
    pub to_path: String,
}

/// Page of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectsView {
    /// Subfolders, as key prefixes that end with `/`.
    pub folders: Vec<String>,
    pub objects: Vec<ListedObjectView>,
    /// `after` of the next page; `None` on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// Object in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedObjectView {
    pub path: String,
    pub bytes: u64,
    pub content_type: String,
    pub last_modified: String,
    /// Whether the object is a generated thumbnail.
    pub is_thumbnail: bool,
}

/// Object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    pub bucket_name: String,
    pub path: String,
    pub bytes: u64,
    pub content_type: String,
    pub etag: String,
    pub created_at: String,
    pub last_modified: String,
    /// Whether the object is a generated thumbnail.
    pub is_thumbnail: bool,
    /// Whether an access control list makes the object public in a private bucket.
    pub is_public: bool,
    /// Earliest expiry: of the object itself, or by a lifecycle rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Response headers that the uploading client sent.
    pub headers: StoredHeaders,
    /// `x-amz-meta-*`, without the prefix.
    pub metadata: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
}

/// Objects and bytes below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    pub bucket_name: String,
    pub folder: String,
    pub object_count: u64,
    pub total_bytes: u64,
    /// Direct subfolders, at most [`crate::limits::USAGE_FOLDERS_MAX`].
    pub folders: Vec<FolderView>,
    /// Whether there are more subfolders. They are in the totals.
    pub is_truncated: bool,
}

/// Written object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectWrittenView {
    pub bucket_name: String,
    pub path: String,
    pub bytes: u64,
}

/// Deleted objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectsDeletedView {
    pub deleted_count: u64,
    /// Paths without an object.
    pub missing: Vec<String>,
}

/// Presigned URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresignedView {
    pub url: String,
    /// `GET` or `PUT`.
    pub method: String,
    /// `None` for the URL of a public object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl ObjectRequest {
    /// Returns whether the request transfers content, reports progress and can be cancelled.
    pub(super) fn is_long(&self) -> bool {
        matches!(
            self,
            Self::Read { .. }
                | Self::Copy(_)
                | Self::Move(_)
                | Self::Usage { .. }
                | Self::Edit { .. }
        )
    }
}

/// Performs a request. Blocks on the disk.
pub(super) fn execute(
    store: &Store,
    catalog: &Catalog,
    request: ObjectRequest,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, CatalogError> {
    match request {
        ObjectRequest::List { bucket, prefix, recursive, after, limit } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let delimiter = if recursive { "" } else { "/" };
            let prefix = normalize(&prefix);
            let grouping = KeyGrouping { prefix: &prefix, delimiter };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let page = store.list_key_groups(&bucket.name, grouping, after.as_deref(), limit)?;
            Ok(AdminResponse::Objects(ObjectsView {
                folders: page.groups,
                objects: page.objects.iter().map(listed_view).collect(),
                next_after: page.next,
            }))
        }
        ObjectRequest::Stat { bucket, path } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let name = object_name(&bucket, &path)?;
            let object = store.get(&name)?.ok_or_else(|| missing(&name))?;
            Ok(AdminResponse::Object(Box::new(object_view(&bucket, &object))))
        }
        ObjectRequest::Edit { bucket, path, edit } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let name = object_name(&bucket, &path)?;
            edit_object(store, catalog, &bucket, &name, &edit, watch)
        }
        ObjectRequest::Usage { bucket, folder } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            Ok(AdminResponse::Usage(usage(store, &bucket, folder, watch)?))
        }
        ObjectRequest::Read { bucket, path, to } => {
            let name = object_name(&*existing_bucket(catalog, &bucket)?, &path)?;
            let bytes = read_object(store, &name, &to, watch)?.ok_or_else(|| missing(&name))?;
            Ok(AdminResponse::ObjectRead(written(&name, bytes)))
        }
        ObjectRequest::Copy(copying) => copy(store, catalog, &copying, false, watch),
        ObjectRequest::Move(copying) => copy(store, catalog, &copying, true, watch),
        ObjectRequest::Delete { bucket, paths } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            Ok(AdminResponse::ObjectsDeleted(delete(store, catalog, &bucket, paths)?))
        }
        ObjectRequest::Presign { bucket, path, upload, expires_in, public_url } => {
            let bucket = existing_bucket(catalog, &bucket)?;
            let name = object_name(&bucket, &path)?;
            let base = public_url.unwrap_or_default();
            Ok(AdminResponse::Presigned(presign(
                store, catalog, &bucket, name, upload, expires_in, &base,
            )?))
        }
    }
}

fn object_name(bucket: &Bucket, path: &str) -> Result<ObjectName, CatalogError> {
    let key = ObjectKey::parse(&normalize(path)).map_err(|rule| {
        CatalogError::InvalidRequest(format!("invalid object name {path:?}: {rule}"))
    })?;
    Ok(ObjectName::new(bucket.name.clone(), key))
}

pub(super) fn missing(name: &ObjectName) -> CatalogError {
    CatalogError::NotFound(format!("the object {}/{}", name.bucket, name.key))
}

fn written(name: &ObjectName, bytes: u64) -> ObjectWrittenView {
    let (bucket_name, path) = (name.bucket.to_string(), name.key.to_string());
    ObjectWrittenView { bucket_name, path, bytes }
}

fn listed_view(object: &Object) -> ListedObjectView {
    ListedObjectView {
        path: object.name().key.to_string(),
        bytes: object.bytes(),
        content_type: object.content_type().to_owned(),
        last_modified: iso_time(last_modified_ms(object)),
        is_thumbnail: object.is_derived(),
    }
}

pub(super) fn object_view(bucket: &Bucket, object: &Object) -> ObjectView {
    let attributes = StoredAttributes::of(object);
    ObjectView {
        bucket_name: object.name().bucket.to_string(),
        path: object.name().key.to_string(),
        bytes: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: object.etag().to_string(),
        created_at: iso_time(object.created_ms()),
        last_modified: iso_time(last_modified_ms(object)),
        is_thumbnail: object.is_derived(),
        is_public: attributes.is_public,
        expires_at: bucket.expiry(object).map(|(at_ms, _)| iso_time(at_ms)),
        headers: attributes.headers,
        metadata: attributes.s3.map(|s3| s3.metadata).unwrap_or_default(),
        tags: attributes.tags,
    }
}

/// Counts by listing, since the engine has counters of top-level folders only.
fn usage(
    store: &Store,
    bucket: &Bucket,
    folder: String,
    watch: &mut ProgressCallback<'_>,
) -> Result<UsageView, CatalogError> {
    let folder = folder_of(Some(folder))?;
    let (bucket_name, prefix) = (bucket.name.to_string(), folder.as_str());
    let mut view = UsageView { bucket_name, folder: prefix.to_owned(), ..UsageView::default() };
    let mut progress = engine::progress::WorkProgress::default();
    let mut after: Option<String> = None;
    loop {
        let limit = engine::limits::LIST_PAGE_MAX;
        let page = store.list_keys(&bucket.name, prefix, after.as_deref(), limit)?;
        for object in &page.objects {
            view.object_count += 1;
            view.total_bytes += object.bytes();
            let key = object.name().key.as_str();
            let rest = key.strip_prefix(prefix).unwrap_or(key);
            if let Some((subfolder, _)) = rest.split_once('/') {
                add_to_subfolder(&mut view, subfolder, object.bytes());
            }
        }
        progress.done_items = view.object_count;
        if watch(progress).is_break() {
            return Err(Error::Cancelled.into());
        }
        after = page.objects.last().map(|object| object.name().key.to_string());
        if !page.more || after.is_none() {
            return Ok(view);
        }
    }
}

/// Adds an object to its subfolder. Keys come in byte order, so it is the last subfolder or a new one.
fn add_to_subfolder(view: &mut UsageView, subfolder: &str, bytes: u64) {
    let folder = format!("{}{subfolder}/", view.folder);
    if let Some(last) = view.folders.last_mut().filter(|last| last.folder == folder) {
        last.object_count += 1;
        last.total_bytes += bytes;
    } else if view.folders.len() == crate::limits::USAGE_FOLDERS_MAX {
        view.is_truncated = true;
    } else {
        let (modified_at, is_exact) = (None, true);
        view.folders.push(FolderView {
            folder,
            object_count: 1,
            total_bytes: bytes,
            modified_at,
            is_exact,
        });
    }
}

/// Staged copy of an object's version, with its thumbnail.
struct Copied {
    object: Object,
    body: StagedBody,
    thumbnail: Option<StagedBody>,
}

fn copy(
    store: &Store,
    catalog: &Catalog,
    copying: &Copying,
    is_move: bool,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, CatalogError> {
    let source = existing_bucket(catalog, &copying.bucket)?;
    let target = existing_bucket(catalog, &copying.to_bucket)?;
    let from = object_name(&source, &copying.path)?;
    let to = object_name(&target, &copying.to_path)?;
    check_writable(&to.key)
        .map_err(|refusal| CatalogError::InvalidRequest(refusal.message().to_owned()))?;
    let fact = target.fact().map_err(|why| CatalogError::InvalidRequest(why.to_string()))?;
    if from == to {
        let message = format!("{}/{} is both source and destination", from.bucket, from.key);
        return Err(CatalogError::InvalidRequest(message));
    }
    for _ in 0..jobs::limits::MOVE_TRIES_MAX {
        let object = store.get(&from)?.ok_or_else(|| missing(&from))?;
        if is_move && object.is_derived() {
            let message = "a thumbnail cannot be moved by itself; it moves with its image";
            return Err(CatalogError::InvalidRequest(message.to_owned()));
        }
        let bytes = object.bytes();
        let copied = match stage(store, object, watch) {
            Err(Error::Conflict(Conflict::KeyChanged(_))) => continue,
            copied => copied?,
        };
        match commit_copy(store, catalog, &copied, &to, fact.clone(), is_move) {
            Ok(()) => {
                return Ok(match is_move {
                    true => AdminResponse::ObjectMoved(written(&to, bytes)),
                    false => AdminResponse::ObjectCopied(written(&to, bytes)),
                });
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(CatalogError::BucketNotFound(to.bucket.to_string()));
            }
            // The source or a thumbnail changed in the meantime.
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let message = format!("{}/{} changed repeatedly during the copy", from.bucket, from.key);
    Err(CatalogError::InvalidRequest(message))
}

fn stage(
    store: &Store,
    object: Object,
    watch: &mut ProgressCallback<'_>,
) -> engine::Result<Copied> {
    let body = store.stage_copy(&object, watch)?;
    let thumbnail = match thumbnail_object_name(object.name()) {
        Ok(name) => store.get(&name)?.filter(|it| is_thumbnail_of(it, &object.name().key)),
        Err(_) => None,
    };
    let thumbnail = match thumbnail.map(|it| store.stage_copy(&it, watch)) {
        Some(Ok(staged)) => Some(staged),
        // The thumbnail changed in the meantime, or is corrupt: the copy gets none.
        None | Some(Err(Error::Conflict(_) | Error::Corrupt(_))) => None,
        Some(Err(error)) => return Err(error),
    };
    Ok(Copied { object, body, thumbnail })
}

/// Stores a copy. A move within a bucket is one batch; between buckets the source is deleted afterwards, since each
/// batch carries the events of one bucket.
fn commit_copy(
    store: &Store,
    catalog: &Catalog,
    copied: &Copied,
    to: &ObjectName,
    bucket: FactName,
    is_move: bool,
) -> engine::Result<()> {
    let Copied { object, body, thumbnail } = copied;
    let from = object.name();
    let options = PutOptions {
        content_type: object.content_type().to_owned(),
        // The attributes of a thumbnail name its image.
        attributes: if object.is_derived() { Vec::new() } else { object.attributes().to_vec() },
        derived: false,
        created_ms: is_move.then(|| object.created_ms()),
    };
    let created = ObjectEvent::created(
        EventKind::CreatedByCopy,
        to.key.clone(),
        object.bytes(),
        object.etag(),
        options.content_type.clone(),
    );
    let mut batch = Batch::new()
        .require(Precondition::FactPresent(bucket))
        .require(Precondition::KeyHasLsn(from.clone(), object.lsn()))
        .put(to.clone(), body.clone(), options);
    batch = match (thumbnail, thumbnail_object_name(to)) {
        (Some(picture), Ok(place)) if is_free_for(store, &place, &to.key)? => {
            put_thumbnail(batch, &to.key, place, picture.clone())
        }
        _ => delete_thumbnail(batch, to),
    };
    let removal = || delete_thumbnail(Batch::new().delete(from.clone()), from);
    let removed = ObjectEvent::removed(from.key.clone());
    if !is_move {
        return catalog.commit_blocking(ObjectBatch::new(&to.bucket, batch, &[created])).map(drop);
    }
    if from.bucket == to.bucket {
        let batch = batch.and(removal());
        return catalog
            .commit_blocking(ObjectBatch::new(&to.bucket, batch, &[removed, created]))
            .map(drop);
    }
    catalog.commit_blocking(ObjectBatch::new(&to.bucket, batch, &[created]))?;
    let batch = removal().require(Precondition::KeyHasLsn(from.clone(), object.lsn()));
    catalog.commit_blocking(ObjectBatch::new(&from.bucket, batch, &[removed])).map(drop)
}

/// Returns whether a thumbnail can have this name: the name is free, or has an earlier thumbnail of the same image.
fn is_free_for(store: &Store, name: &ObjectName, image: &ObjectKey) -> engine::Result<bool> {
    Ok(store.get(name)?.is_none_or(|there| is_thumbnail_of(&there, image)))
}

fn delete(
    store: &Store,
    catalog: &Catalog,
    bucket: &Bucket,
    paths: Vec<String>,
) -> Result<ObjectsDeletedView, CatalogError> {
    let mut view = ObjectsDeletedView::default();
    let mut names = BTreeSet::new();
    for path in &paths {
        names.insert(object_name(bucket, path)?);
    }
    let names: Vec<_> = names.into_iter().collect();
    for names in names.chunks(jobs::limits::DELETE_FILES_MAX) {
        let mut batch = Batch::new();
        let mut happenings = Vec::new();
        for name in names {
            match store.get(name)? {
                None => view.missing.push(name.key.to_string()),
                // A thumbnail may already be deleted with its image.
                Some(object) if object.is_derived() => {
                    let attributes = object.attributes().to_vec();
                    batch = batch.delete_derived(name.clone(), attributes);
                }
                Some(_) => {
                    batch = delete_thumbnail(batch.delete(name.clone()), name);
                    happenings.push(ObjectEvent::removed(name.key.clone()));
                }
            }
        }
        if !batch.is_empty() {
            let done =
                catalog.commit_blocking(ObjectBatch::new(&bucket.name, batch, &happenings))?;
            view.deleted_count += done.deleted_count as u64;
        }
    }
    Ok(view)
}

fn presign(
    store: &Store,
    catalog: &Catalog,
    bucket: &Bucket,
    name: ObjectName,
    upload: bool,
    expires_in: u64,
    base: &str,
) -> Result<PresignedView, CatalogError> {
    let max = limits::DOWNLOAD_LINK_SECONDS_MAX;
    if !(1..=max).contains(&expires_in) {
        let message = format!("lifetime is {expires_in} s; allowed: 1 to {max} s");
        return Err(CatalogError::InvalidRequest(message));
    }
    let method = if upload { "PUT" } else { "GET" }.to_owned();
    let url = public_url(base, &name);
    match upload {
        true => check_writable(&name.key)
            .map_err(|refusal| CatalogError::InvalidRequest(refusal.message().to_owned()))?,
        false => drop(store.get(&name)?.ok_or_else(|| missing(&name))?),
    }
    if !upload && bucket.access == Access::Public {
        return Ok(PresignedView { url, method, expires_at: None });
    }
    let expires_ms = catalog.now_ms().saturating_add(1_000 * expires_in);
    let grant = Grant {
        id: catalog.tokens().new_id(),
        purpose: if upload { Purpose::Raw } else { Purpose::Read },
        bucket: name.bucket,
        path: PathInBucket::File(name.key),
        params: UploadParams {
            naming: Naming::ClientName,
            rule: ConflictRule::Overwrite,
            ..UploadParams::NONE
        },
        issuer: Issuer::Account(bucket.owner.clone()),
        expires_ms,
    };
    // The first key of a store is otherwise created by its first server.
    catalog.tokens().renew_keys()?;
    let no_key = || CatalogError::InvalidRequest("the store has no signing key".to_owned());
    let token = catalog.tokens().sign(&grant).ok_or_else(no_key)?;
    let url = format!("{url}?token={token}");
    Ok(PresignedView { url, method, expires_at: Some(iso_time(expires_ms)) })
}
