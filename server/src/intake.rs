//! Upload pipeline: receives the files of a request one after the other, names them together, and commits them in one
//! batch.
//!
//! 1. [`receive`]: streams every file into the store's staging. A form that breaks off or violates a rule leaves
//!    nothing behind.
//! 2. [`resolve_keys`]: determines the key of each file if no name were taken.
//! 3. [`store_files`]: stores all files or none in one batch. A name that another request takes concurrently is a
//!    conflict of the batch: the next name is proposed and the batch retried.
//!
//! Guarantees: two uploads never get the same name; no file of a request replaces another of the same request; what a
//! bucket rejects, by size, type or quota, is not stored, regardless of concurrent uploads. Non-goals: authorization,
//! and the response.

mod early;
mod inflow;
mod thumbnails;

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use catalog::object_attributes::{S3Attributes, StoredAttributes};
use catalog::{
    AllowedTypes, Bucket, BucketKind, EventKind, ObjectEvent, QuotaDelta, ThumbnailChoice,
    UploadParams,
};
use engine::{
    Batch, BucketName, Conflict, Error, Etag, FolderKey, Object, ObjectKey, ObjectName,
    Precondition, PutOptions, StagedBody,
};
use http_body::Body;
use jobs::thumbnail_object::ThumbnailSkip;
use protocol::content_type::{detect, essence, extension_for, matches_magic};
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming, file_name, split_extension};
use protocol::multipart::{FormFiles, MultipartFile};
use protocol::object_path::{PathInBucket, check_writable, key_in_folder};
use protocol::request_body::RequestBody;
use usage::task::blocking;
use uuid::Uuid;

#[cfg(feature = "s3")]
use self::inflow::CheckedPart;
use self::inflow::stage_body;
pub use self::thumbnails::ThumbnailCache;
use crate::limits;
use crate::state::AppState;

/// Received file that is not stored yet. Dropping it deletes it.
pub struct StagedFile {
    client_name: Option<String>,
    declared_type: Option<String>,
    staged: StagedBody,
    /// Thumbnail, if requested.
    thumbnail: Option<Result<StagedBody, ThumbnailSkip>>,
    /// Thumbnail rendered by an earlier attempt to store the file.
    thumbnail_cache: ThumbnailCache,
    /// Attributes of the object, except for its declared type and version.
    attributes: StoredAttributes,
}

impl StagedFile {
    /// Creates a file from completely staged content.
    pub fn new(
        client_name: Option<String>,
        declared_type: Option<String>,
        staged: StagedBody,
    ) -> Self {
        let thumbnail_kept = ThumbnailCache::default();
        Self {
            client_name,
            declared_type,
            staged,
            thumbnail: None,
            thumbnail_cache: thumbnail_kept,
            attributes: StoredAttributes::default(),
        }
    }

    /// Creates a copy of a stored file, with its media type, headers, S3 attributes and tags.
    pub(crate) fn copy_of(object: &Object, staged: StagedBody) -> Self {
        let StoredAttributes { declared_type, headers, s3, tags, .. } =
            StoredAttributes::of(object);
        let declared_type = declared_type.or_else(|| Some(object.content_type().to_owned()));
        // The original key belongs to the source only.
        let s3 = s3.map(|s3| S3Attributes { key: None, ..s3 });
        let attributes = StoredAttributes { headers, s3, tags, ..StoredAttributes::default() };
        Self { attributes, ..Self::new(None, declared_type, staged) }
    }

    /// Sets the attributes of the file; its declared type is that of the upload.
    #[cfg(feature = "s3")]
    pub(crate) fn with_attributes(self, attributes: StoredAttributes) -> Self {
        Self { attributes, ..self }
    }

    /// Sets the client's name of the file.
    pub fn with_client_name(self, client_name: Option<String>) -> Self {
        Self { client_name, ..self }
    }

    /// Sets the holder that preserves the rendered thumbnail for the next attempt to store the file.
    pub fn with_thumbnail_cache(self, thumbnail_kept: ThumbnailCache) -> Self {
        Self { thumbnail_cache: thumbnail_kept, ..self }
    }
}

/// Stored file.
pub struct StoredFile {
    pub object: Object,
    /// File name that the client sent.
    pub original_name: Option<String>,
    /// Whether the wanted name was taken.
    pub renamed: bool,
    /// Thumbnail, or why there is none, if requested.
    pub thumbnail: Option<Result<ObjectName, ThumbnailSkip>>,
}

/// Options for storing the files of a request.
#[derive(Clone, Copy, Debug)]
pub struct UploadOptions {
    /// Handling of a name that is taken.
    rule: ConflictRule,
    /// Thumbnail options.
    thumbnail: ThumbnailChoice,
    /// Webhook event.
    event: EventKind,
    /// Unfinished upload that is completed.
    completes: Option<Uuid>,
}

impl UploadOptions {
    /// Creates the options that a request asks for.
    pub fn new(wishes: UploadParams, event: EventKind) -> Self {
        Self { rule: wishes.rule, thumbnail: wishes.thumbnail, event, completes: None }
    }

    /// Marks an unfinished upload as completed by the batch.
    pub fn completing(self, id: Uuid) -> Self {
        Self { completes: Some(id), ..self }
    }
}

/// Target of the files of a request.
pub struct UploadTarget {
    pub bucket: Arc<Bucket>,
    pub place: PathInBucket,
    path: PathMode,
}

/// Interpretation of a path without a final `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathMode {
    /// Always a file.
    Exact,
    /// A folder, if the path has no extension and the files do: phones are configured with such paths.
    Lenient,
}

impl UploadTarget {
    /// Creates the destination of a URL, lenient for phone buckets.
    pub fn from_path(bucket: Arc<Bucket>, place: PathInBucket) -> Self {
        let path = match bucket.kind {
            BucketKind::Phone => PathMode::Lenient,
            BucketKind::Standard => PathMode::Exact,
        };
        Self { bucket, place, path }
    }

    /// Creates a destination that is taken literally.
    pub fn exact(bucket: Arc<Bucket>, place: PathInBucket) -> Self {
        Self { bucket, place, path: PathMode::Exact }
    }

    /// Returns the folder that a path without a final `/` may denote.
    pub fn lenient_folder(&self) -> Option<FolderKey> {
        let PathInBucket::File(key) = &self.place else { return None };
        let may_be = self.path == PathMode::Lenient && split_extension(key.file_name()).1.is_none();
        if may_be { FolderKey::parse(&format!("{key}/")).ok() } else { None }
    }
}

/// Receives all files of a form.
pub async fn receive(
    app: &AppState,
    destination: &UploadTarget,
    mut form: FormFiles,
) -> Result<Vec<StagedFile>, ApiError> {
    let is_file = matches!(destination.place, PathInBucket::File(_));
    let takes_one_file = is_file && destination.lenient_folder().is_none();
    let mut files = Vec::new();
    let received = async {
        while let Some(part) = form.next_file().await? {
            if !files.is_empty() && takes_one_file {
                return Err(several_files_refused());
            }
            files.push(receive_file(app, &destination.bucket, part).await?);
        }
        Ok(())
    };
    match received.await {
        Ok(()) if files.is_empty() => Err(ApiError::no_file()),
        Ok(()) => Ok(files),
        Err(refusal) => Err(drop_blocking(files, refusal).await),
    }
}

async fn receive_file(
    app: &AppState,
    bucket: &Bucket,
    mut part: MultipartFile<'_>,
) -> Result<StagedFile, ApiError> {
    let client_name = part.file_name().map(str::to_owned);
    let declared_type = part.declared_type().map(str::to_owned);
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut part).await?;
    Ok(StagedFile::new(client_name, declared_type, staged))
}

/// Receives a body that is a single file.
pub async fn receive_raw<B>(
    app: &AppState,
    bucket: &Bucket,
    declared_type: Option<String>,
    mut body: RequestBody<B>,
) -> Result<StagedFile, ApiError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Display,
{
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut body).await?;
    Ok(StagedFile::new(None, declared_type, staged))
}

/// Receives the current part of a form as one file. `check` gets each chunk before it is staged.
#[cfg(feature = "s3")]
pub async fn receive_part(
    app: &AppState,
    bucket: &Bucket,
    declared_type: Option<String>,
    form: &mut FormFiles,
    check: &mut (dyn FnMut(&[u8]) -> Result<(), ApiError> + Send),
) -> Result<StagedFile, ApiError> {
    let mut pieces = CheckedPart { form, check };
    let staged = stage_body(app.store.upload(), bucket.file_bytes_max, &mut pieces).await?;
    Ok(StagedFile::new(None, declared_type, staged))
}

/// Drops received files on a blocking thread, since removing staged files may wait for the disk.
async fn drop_blocking<T: Send + 'static>(received: T, error: ApiError) -> ApiError {
    blocking(move || drop(received)).await;
    error
}

/// Returns the key that each file would have if no name were taken, in the order of the files.
pub fn resolve_keys(
    app: &AppState,
    destination: &UploadTarget,
    naming: Naming,
    files: &[StagedFile],
) -> Result<Vec<ObjectKey>, ApiError> {
    let name_of = |file: &StagedFile, path_name: Option<&str>| {
        let own_name = path_name.or(file.client_name.as_deref());
        file_name(naming, own_name, || file.content_extension(), app.rng.uuid())
    };
    let keys_in = |folder: &FolderKey| {
        files
            .iter()
            .map(|file| key_in_folder(folder, &name_of(file, None)))
            .collect::<Result<Vec<_>, _>>()
    };
    let keys = match &destination.place {
        PathInBucket::Folder(folder) => keys_in(folder)?,
        PathInBucket::File(key) => {
            let all_have_extensions =
                files.iter().all(|file| split_extension(&name_of(file, None)).1.is_some());
            let lenient_folder = destination.lenient_folder().filter(|_| all_have_extensions);
            match (files, naming) {
                _ if let Some(folder) = lenient_folder => keys_in(&folder)?,
                ([_], Naming::ClientName) => vec![key.clone()],
                ([file], Naming::Random) => {
                    let has_extension = split_extension(key.file_name()).1.is_some();
                    let path_name = Some(key.file_name()).filter(|_| has_extension);
                    vec![key_in_folder(&key.folder(), &name_of(file, path_name))?]
                }
                _ => return Err(several_files_refused()),
            }
        }
    };
    for key in &keys {
        check_writable(key)?;
    }
    Ok(keys)
}

/// Stores all files under their wanted keys, or none. The same batch stores their thumbnails, the webhook events and
/// the changes in `along`, all under the same preconditions.
pub async fn store_files(
    app: &AppState,
    bucket: &Bucket,
    manner: UploadOptions,
    along: Batch,
    mut files: Vec<StagedFile>,
    wanted: &[ObjectKey],
) -> Result<Vec<StoredFile>, ApiError> {
    let UploadOptions { rule, thumbnail, event, completes } = manner;
    let bucket_fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    let mut taken = files.iter().zip(wanted).map(|(file, key)| file.check_allowed(bucket, key));
    if let Err(refusal) = taken.try_for_each(|taken| taken) {
        return Err(drop_blocking(files, refusal).await);
    }
    if thumbnail.applies_to(bucket) {
        // Rendering a thumbnail is charged to the limited processing time of the bucket.
        if let Err(refusal) = early::check(app, bucket, manner, &files, wanted).await {
            return Err(drop_blocking(files, refusal).await);
        }
        thumbnails::render_all(app, bucket, &mut files).await;
    }
    let is_limited = app.catalog.has_quota(bucket);
    // In a versioned bucket a replaced object still uses its space.
    let makes_room = is_limited && bucket.versioning.is_none();
    let has_webhooks = app.catalog.has_webhooks(&bucket.name);
    for _ in 0..limits::NAME_TRIES_MAX {
        // The claims are held until the batch is stored or rejected.
        let (proposals, _claims, placed) = {
            let (app, bucket, wanted) = (app.clone(), bucket.name.clone(), wanted.to_vec());
            let made = files.iter().map(StagedFile::thumbnail_outcome).collect::<Vec<_>>();
            let is_short =
                made.iter().all(Option::is_none) && names_are_free(&app, &bucket, &wanted)?;
            let decide = move || {
                let (proposals, claims) =
                    app.claims.claim_keys(&app.store, &bucket, rule, &wanted)?;
                let placed = thumbnails::select_names(&app.store, &bucket, &proposals, &made)?;
                Ok::<_, ApiError>((proposals, claims, placed))
            };
            if is_short { decide()? } else { blocking(decide).await? }
        };
        let mut batch = along.clone().require(Precondition::FactPresent(bucket_fact.clone()));
        let mut growth = QuotaDelta::default();
        let mut happenings = Vec::new();
        for (file, proposal) in files.iter().zip(&proposals) {
            let name = ObjectName::new(bucket.name.clone(), proposal.key.clone());
            let replaces = match proposal.rule {
                ConflictRule::Overwrite if makes_room => {
                    let (store, name) = (app.store.clone(), name.clone());
                    blocking(move || store.get(&name)).await?
                }
                _ => None,
            };
            // The quota counts the difference to the replaced object only if that is still present when the batch is
            // decided.
            if let Some(old) = &replaces {
                batch = batch.require(Precondition::KeyHasEtag(name.clone(), old.etag()));
            } else if makes_room || proposal.rule == ConflictRule::Rename {
                batch = batch.require(Precondition::KeyAbsent(name.clone()));
            }
            growth.count(file.staged.bytes(), replaces.as_ref());
            let options = file.options(&proposal.key);
            if has_webhooks {
                happenings.push(file.happening(event, &proposal.key, &options));
            }
            batch = batch.put(name.clone(), file.staged.clone(), options);
        }
        batch = thumbnails::add(batch, &bucket.name, &files, &proposals, &placed);
        let room = match app.catalog.reserve_quota(bucket, growth.amount(), completes).await {
            Ok(room) => room,
            Err(refusal) => return Err(drop_blocking(files, refusal).await),
        };
        match app.catalog.commit_reserved(&bucket.name, batch, happenings, room).await {
            Ok(committed) => {
                // The files come first among the objects of the batch.
                app.recent_uploads.add(committed.objects.iter().take(files.len()));
                let kept = committed.objects.into_iter().zip(files).zip(proposals).zip(placed);
                return Ok(kept
                    .map(|(((object, file), proposal), thumbnail)| StoredFile {
                        object,
                        original_name: file.client_name,
                        renamed: proposal.renamed,
                        thumbnail,
                    })
                    .collect());
            }
            Err(Error::Conflict(Conflict::FactMissing(_))) => {
                return Err(ApiError::bucket_not_found());
            }
            // Only a used token requires the absence of a fact.
            Err(Error::Conflict(Conflict::FactPresent(_))) => return Err(ApiError::token_used()),
            Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::conflict("Too many concurrent uploads to this name: try again"))
}

/// Returns whether only a few keys are wanted and all are free, which costs as much as the index lookup of a GET. Other
/// cases are handled on a blocking thread.
fn names_are_free(
    app: &AppState,
    bucket: &BucketName,
    wanted: &[ObjectKey],
) -> Result<bool, Error> {
    if wanted.len() > limits::INLINE_LOOKUPS_MAX {
        return Ok(false);
    }
    for key in wanted {
        if app.store.get(&ObjectName::new(bucket.clone(), key.clone()))?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

impl StagedFile {
    /// Returns the extension that matches the bytes, the client's name and the declared type.
    fn content_extension(&self) -> Option<&'static str> {
        let name = self.client_name.as_deref().unwrap_or_default();
        extension_for(&detect(name, self.content_head(), self.declared_type.as_deref()))
    }

    /// Returns the first bytes of the content; empty if the body is an encoding of the content.
    fn content_head(&self) -> &[u8] {
        match self.attributes.headers.content_encoding {
            Some(_) => &[],
            None => self.staged.head(),
        }
    }

    /// Returns the media type that is stored for the file under a key.
    fn content_type(&self, key: &ObjectKey) -> Cow<'static, str> {
        detect(key.file_name(), self.content_head(), self.declared_type.as_deref())
    }

    /// Rejects a file that the bucket does not accept, whatever its upload method. A bucket restricted to media types
    /// requires proof by the content.
    fn check_allowed(&self, bucket: &Bucket, key: &ObjectKey) -> Result<(), ApiError> {
        let bytes = self.staged.bytes();
        if let Some(limit) = bucket.file_bytes_max.filter(|limit| bytes > *limit) {
            return Err(ApiError::file_over_limit(limit));
        }
        if bucket.allowed_types == AllowedTypes::Any {
            return Ok(());
        }
        let content_type = self.content_type(key);
        let is_taken = bucket.allowed_types.allow(essence(&content_type));
        match is_taken && matches_magic(&content_type, self.content_head()) {
            true => Ok(()),
            false => Err(ApiError::type_not_allowed(&content_type)),
        }
    }

    fn happening(&self, event: EventKind, key: &ObjectKey, options: &PutOptions) -> ObjectEvent {
        let (bytes, etag) = (self.staged.bytes(), Etag::of_hash(self.staged.hash()));
        ObjectEvent::created(event, key.clone(), bytes, etag, options.content_type.clone())
    }

    fn options(&self, key: &ObjectKey) -> PutOptions {
        let declared_type = self.declared_type.as_deref();
        let content_type = self.content_type(key).into_owned();
        // The declared type is stored only if it differs from the detected one.
        let differs = declared_type.filter(|declared| *declared != content_type);
        let attributes = StoredAttributes {
            declared_type: differs.map(str::to_owned),
            ..self.attributes.clone()
        };
        PutOptions {
            content_type,
            attributes: attributes.encoded().unwrap_or_default(),
            ..PutOptions::default()
        }
    }
}

fn several_files_refused() -> ApiError {
    ApiError::bad_request("Uploading several files requires a path that ends with \"/\"")
}
