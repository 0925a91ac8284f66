//! Upload of the files of a request, stored in one batch.
//!
//! 1. Receive (`upload/receive.rs`): streams every file into the store's staging.
//! 2. Accept (`upload/accept.rs`): keys, types, sizes and thumbnails.
//! 3. Resolve (`upload/resolve.rs`): free names, and the batch.
//! 4. Commit (`catalog`): reserves quota, and commits the batch with its webhook events. A name that another request
//!    takes concurrently is a conflict of the batch, which returns to step 3.
//!
//! Guarantees: all files of a request are stored, or none; what a bucket rejects, by size, type or quota, is not
//! stored, regardless of concurrent uploads.

mod accept;
mod receive;
mod resolve;
mod thumbnails;

use std::mem;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use catalog::limits::NAME_TRIES_MAX;
use catalog::object_attributes::last_modified_ms;
use catalog::{Actor, Bucket, BucketKind, EventKind, Scope, ThumbnailChoice, UploadParams};
use engine::{Batch, Conflict, Error, FolderKey, Object, ObjectKey, ObjectName, Precondition};
use http::Request;
use jobs::thumbnail_object::ThumbnailSkip;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, Naming, split_extension};
use protocol::multipart::FormFiles;
use protocol::object_path::{PathInBucket, check_writable};
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::request_body::BodyLimits;
use protocol::time_format::iso_time;
use uuid::Uuid;

use self::accept::accept;
pub use self::accept::resolve_keys;
pub use self::receive::receive_part;
pub use self::receive::{StagedFile, receive, receive_raw};
use self::receive::{describe, drop_blocking};
use self::resolve::{ResolvedUpload, resolve};
pub use self::thumbnails::ThumbnailCache;
use crate::auth::Caller;
use crate::object_options::ObjectOptions;
use crate::parameters::{ObjectOptionParameters, ObjectPathParameters, UploadParameters};
use crate::replies::{Success, UploadReply, UploadedFile};
use crate::request_context::Target;
use crate::state::AppState;

/// Names of the flag that replaces existing files.
pub const OVERWRITE: &[&str] = &["overwrite", "upsert", "replace"];
/// Names of the flag that randomises file names.
pub const RANDOMIZE_NAME: &[&str] = &["randomizeName"];
/// Names of the flag that requests thumbnails.
pub const THUMBNAIL: &[&str] =
    &["thumbnail", "generateThumbnail", "thumb", "createThumbnail", "thumbnails"];

/// Uploads the files of a multipart form to a path, or into a folder if the path ends with `/`.
#[utoipa::path(
    post,
    path = "/{bucket}/{path}",
    operation_id = "upload",
    tag = "Files",
    params(ObjectPathParameters, UploadParameters, ObjectOptionParameters),
    request_body(content = FormFiles, content_type = "multipart/form-data"),
    responses((status = OK, body = UploadReply))
)]
pub async fn upload(
    State(app): State<AppState>,
    caller: Caller,
    Target(path): Target,
    query: Query,
    request: Request<Body>,
) -> Result<Success<UploadReply>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &path.bucket, Scope::Upload)?;
    let params = upload_params(&query)?;
    let target = UploadTarget::from_path(bucket, path.place);
    check_target(&caller, &target)?;
    let options = ObjectOptions::from_query(&query, app.clock.unix_ms())?;
    store_form(&app, &caller, &target, (params, options), Batch::new(), request).await
}

/// Parses the upload options of the query.
pub fn upload_params(query: &Query) -> Result<UploadParams, ApiError> {
    let is_set = |names| Ok::<_, ApiError>(query.flag(names)?.unwrap_or(false));
    Ok(UploadParams {
        naming: if is_set(RANDOMIZE_NAME)? { Naming::Random } else { Naming::ClientName },
        rule: if is_set(OVERWRITE)? { ConflictRule::Overwrite } else { ConflictRule::Rename },
        thumbnail: thumbnail_param(query)?,
    })
}

/// Parses whether the query requests thumbnails.
pub fn thumbnail_param(query: &Query) -> Result<ThumbnailChoice, ApiError> {
    Ok(ThumbnailChoice::from_flag(query.flag(THUMBNAIL)?))
}

/// Receives a form from a caller that may write to its target, and stores its files in one batch with the changes
/// in `along`. The options of the objects apply to all files.
pub async fn store_form(
    app: &AppState,
    caller: &Caller,
    target: &UploadTarget,
    (params, options): (UploadParams, ObjectOptions),
    along: Batch,
    request: Request<Body>,
) -> Result<Success<UploadReply>, ApiError> {
    let (head, body) = request.into_parts();
    let limits = BodyLimits::new(app.body_bytes_max());
    let form = FormFiles::open(&head.headers, body, limits).await?;
    let files = describe(receive(app, target, form).await?, &options).await?;
    let keys = resolve_keys(app, target, params.naming, &files)?;
    keys.iter().try_for_each(|key| caller.require_key_access(key))?;
    let options = UploadOptions::new(params, EventKind::CreatedByPost, caller.actor());
    let stored = store_files(app, &target.bucket, &options, along, files, &keys).await?;
    Ok(Success(reply(app, target, stored)))
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
#[derive(Debug)]
pub struct UploadOptions {
    /// Handling of a name that is taken.
    rule: ConflictRule,
    /// Thumbnail options.
    thumbnail: ThumbnailChoice,
    /// Webhook event.
    event: EventKind,
    /// Unfinished upload that is completed.
    completes: Option<Uuid>,
    /// Author in the audit log.
    actor: Arc<Actor>,
}

impl UploadOptions {
    /// Creates the options that a request asks for.
    pub fn new(params: UploadParams, event: EventKind, actor: Actor) -> Self {
        let UploadParams { rule, thumbnail, .. } = params;
        Self { rule, thumbnail, event, completes: None, actor: Arc::new(actor) }
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
    /// Creates the target of a URL, lenient for phone buckets.
    pub fn from_path(bucket: Arc<Bucket>, place: PathInBucket) -> Self {
        let path = match bucket.kind {
            BucketKind::Phone => PathMode::Lenient,
            BucketKind::Standard => PathMode::Exact,
        };
        Self { bucket, place, path }
    }

    /// Creates a target that is taken literally.
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

/// Stores all files under their wanted keys, or none. The same batch stores their thumbnails, the webhook events and
/// the changes in `along`, all under the same preconditions.
///
/// # Errors
///
/// What the bucket rejects; `conflict` after [`NAME_TRIES_MAX`] attempts; `token_used` if a fact exists that `along`
/// requires to be absent.
pub async fn store_files(
    app: &AppState,
    bucket: &Bucket,
    options: &UploadOptions,
    along: Batch,
    mut files: Vec<StagedFile>,
    wanted: &[ObjectKey],
) -> Result<Vec<StoredFile>, ApiError> {
    match try_store(app, bucket, options, along, &mut files, wanted).await {
        Ok((objects, resolved)) => {
            // The files come first among the objects of the batch.
            app.recent_uploads.add(objects.iter().take(files.len()));
            let stored = objects.into_iter().zip(files).zip(resolved.proposals);
            let stored = stored.zip(resolved.thumbnails);
            Ok(stored
                .map(|(((object, file), proposal), thumbnail)| StoredFile {
                    object,
                    original_name: file.client_name,
                    renamed: proposal.renamed,
                    thumbnail,
                })
                .collect())
        }
        Err(error) => Err(drop_blocking(files, error).await),
    }
}

async fn try_store(
    app: &AppState,
    bucket: &Bucket,
    options: &UploadOptions,
    along: Batch,
    files: &mut [StagedFile],
    wanted: &[ObjectKey],
) -> Result<(Vec<Object>, ResolvedUpload), ApiError> {
    let bucket_fact = bucket.fact().map_err(|why| ApiError::internal(why.to_string()))?;
    let along = along.require(Precondition::FactPresent(bucket_fact));
    accept(app, bucket, options, files, wanted).await?;
    let catalog = app.catalog.acting_as(options.actor.clone());
    for _ in 0..NAME_TRIES_MAX {
        let mut resolved = resolve(app, bucket, options, along.clone(), files, wanted).await?;
        let amount = resolved.growth.amount();
        let reservation = app.catalog.reserve_quota(bucket, amount, options.completes).await?;
        let (batch, events) = (mem::take(&mut resolved.batch), mem::take(&mut resolved.events));
        match catalog.commit_reserved(&bucket.name, batch, events, reservation).await {
            Ok(committed) => return Ok((committed.objects, resolved)),
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

/// Returns the response for stored files.
pub fn reply(app: &AppState, target: &UploadTarget, stored: Vec<StoredFile>) -> UploadReply {
    let files = stored.into_iter().map(|file| uploaded(app, file)).collect();
    UploadReply::new(target.bucket.name.as_str(), files)
}

/// Checks, before the body is read, what would be rejected after it.
pub fn check_target(caller: &Caller, target: &UploadTarget) -> Result<(), ApiError> {
    if let PathInBucket::File(key) = &target.place {
        check_writable(key)?;
    }
    match target.lenient_folder() {
        Some(folder) if caller.require_folder_access(&folder).is_ok() => Ok(()),
        _ => caller.require_path_access(&target.place),
    }
}

fn uploaded(app: &AppState, file: StoredFile) -> UploadedFile {
    let object = &file.object;
    let name = object.name();
    let url = |name| public_url(app.public_url.as_str(), name);
    UploadedFile {
        name: name.key.file_name().to_owned(),
        original_name: file.original_name,
        key: name.key.to_string(),
        url: url(name),
        thumbnail_url: file.thumbnail.as_ref().and_then(|it| it.as_ref().ok()).map(url),
        thumbnail_skipped: file.thumbnail.as_ref().and_then(|it| it.as_ref().err().copied()),
        size: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: format!("\"{}\"", object.etag()),
        last_modified: iso_time(last_modified_ms(object)),
        renamed: file.renamed,
    }
}

/// Returns the error of several files for a path that takes one.
fn one_file_only() -> ApiError {
    ApiError::bad_request("Uploading several files requires a path that ends with \"/\"")
}
