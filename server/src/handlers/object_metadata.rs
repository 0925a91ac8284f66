//! `/api/buckets/{bucketName}/object`: description of a file, and changes of its type, headers, metadata and expiry.
//!
//! Guarantees: a change keeps content, ETag and times. Non-goals: content; access control lists.

use std::sync::Arc;

use axum::extract::State;
use catalog::object_attributes::{StoredAttributes, last_modified_ms};
use catalog::versions::Version;
use catalog::{Bucket, Scope};
use engine::{BucketName, Object, ObjectKey, ObjectName};
use http::Method;
use http::header::HeaderMap;
use jobs::limits::MOVE_TRIES_MAX;
use jobs::object_operations::find_object;
use protocol::conditional::{PreconditionResult, Validators, evaluate_preconditions};
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::public_url::public_url;
use protocol::query::Query;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::attribute_change::{NewAttributes, change_attributes_of};
use service::auth::Caller;
use service::object_options::{ObjectOptions, UserMetadata, expiry_change};
use service::parameters::{BucketNameParameter, FilePathSchema};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use service::variants::CameraInfo;
use utoipa::ToSchema;

use super::{changing, file_in};
use crate::management::present_field;

/// Change of a file; absent fields are unchanged.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ObjectSettings {
    /// Media type, which the content must not contradict.
    #[serde(deserialize_with = "present_field")]
    #[schema(nullable = false)]
    content_type: Option<String>,
    /// `Cache-Control`; `null` for the default.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<String>, max_length = 512)]
    cache_control: Option<Option<String>>,
    /// `Content-Disposition`; `null` for the default.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<String>, max_length = 512)]
    content_disposition: Option<Option<String>>,
    /// All user metadata, at most 64 entries and 2,048 bytes.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = std::collections::BTreeMap<String, String>, nullable = false)]
    metadata: Option<UserMetadata>,
    /// Lifetime in seconds from now, 60 to 315,360,000; `null` for no expiry.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<u64>, minimum = 60, maximum = 315_360_000)]
    expires_in: Option<Option<u64>>,
    /// Expiry instead of `expiresIn`; `null` for no expiry.
    #[serde(deserialize_with = "present_field")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<String>>,
}

/// Description of a file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectInfo {
    bucket_name: String,
    path: String,
    url: String,
    size: u64,
    content_type: String,
    etag: String,
    created_at: String,
    last_modified: String,
    #[schema(required)]
    cache_control: Option<String>,
    #[schema(required)]
    content_disposition: Option<String>,
    /// Stored content coding, which is delivered as it is.
    #[schema(required)]
    content_encoding: Option<String>,
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    metadata: UserMetadata,
    /// Earliest expiry: of the file itself, or by a lifecycle rule.
    #[schema(required)]
    expires_at: Option<String>,
    /// Id of the lifecycle rule by which the file expires first.
    #[schema(required)]
    expires_by_rule: Option<String>,
    /// Displayed width of an image in pixels.
    #[schema(required)]
    width: Option<u32>,
    #[schema(required)]
    height: Option<u32>,
    /// Camera data of a photograph.
    #[schema(required)]
    camera: Option<CameraView>,
}

/// Camera data of a photograph, from its Exif block.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CameraView {
    #[schema(required)]
    make: Option<String>,
    #[schema(required)]
    model: Option<String>,
    #[schema(required)]
    lens: Option<String>,
    /// Local time of the camera, as `2026-01-31T12:00:00`.
    #[schema(required)]
    taken_at: Option<String>,
    /// Exposure time and aperture, as `1/250 s, f/2.8`.
    #[schema(required)]
    exposure: Option<String>,
    #[schema(required)]
    iso: Option<u32>,
    /// Focal length, as `35 mm`.
    #[schema(required)]
    focal_length: Option<String>,
    /// Whether the file contains the location at which it was taken.
    has_location: bool,
}

impl From<CameraInfo> for CameraView {
    fn from(camera: CameraInfo) -> Self {
        let CameraInfo { make, model, lens, taken_at, exposure, iso, focal_length, has_location } =
            camera;
        Self { make, model, lens, taken_at, exposure, iso, focal_length, has_location }
    }
}

/// Described file.
#[derive(Serialize, ToSchema)]
pub struct ObjectReply {
    object: ObjectInfo,
}

/// Describes a file.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/object",
    operation_id = "showObject",
    tag = "Files",
    params(BucketNameParameter, ("path" = FilePathSchema, Query, description = "Path of the file.")),
    responses(
        (status = OK, body = ObjectReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
    )
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(bucket): Path<BucketName>,
    query: Query,
) -> Result<Success<ObjectReply>, ApiError> {
    let (bucket, key) = target(&app, &caller, &bucket, &query, Scope::Read)?;
    let object = current(&app, &bucket, &ObjectName::new(bucket.name.clone(), key)).await?;
    let object = describe(&app, &bucket, &object).await?;
    Ok(Success(ObjectReply { object }))
}

/// Changes media type, response headers, user metadata or expiry of a file.
#[utoipa::path(
    patch,
    path = "/api/buckets/{bucketName}/object",
    operation_id = "editObject",
    tag = "Files",
    params(
        BucketNameParameter,
        ("path" = FilePathSchema, Query, description = "Path of the file."),
        ("If-Match" = Option<String>, Header, description = "ETag that the file must have."),
    ),
    request_body = ObjectSettings,
    responses(
        (status = OK, body = ObjectReply),
        (status = NOT_FOUND, description = "`bucket_not_found`, `file_not_found`."),
        (status = PRECONDITION_FAILED, description = "`precondition_failed`."),
    )
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(bucket): Path<BucketName>,
    query: Query,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Success<ObjectReply>, ApiError> {
    let (bucket, key) = target(&app, &caller, &bucket, &query, Scope::Upload)?;
    let options = options_of(body.deserialize()?, app.clock.unix_ms())?;
    let name = ObjectName::new(bucket.name.clone(), key);
    let object = change(&app, &bucket, &name, &headers, &options).await?;
    let (of, path) = (bucket.clone(), name.key.to_string());
    let names = changed_names(&options).join(", ");
    changing(&app, &caller, move |catalog| catalog.audit().record_file_change(&of, &path, names))
        .await?;
    let object = describe(&app, &bucket, &object).await?;
    Ok(Success(ObjectReply { object }))
}

/// Returns the bucket and the key that a request names, if the caller has the scope.
fn target(
    app: &AppState,
    caller: &Caller,
    bucket: &BucketName,
    query: &Query,
    scope: Scope,
) -> Result<(Arc<Bucket>, ObjectKey), ApiError> {
    let bucket = caller.bucket(&app.catalog, bucket, scope)?;
    let path = query.string(&["path"])?;
    let key = file_in(&path.ok_or_else(|| ApiError::bad_parameter("path", "is required"))?)?;
    caller.require_key_access(&key)?;
    Ok((bucket, key))
}

/// Returns a file that exists and has not expired.
async fn current(app: &AppState, bucket: &Bucket, name: &ObjectName) -> Result<Object, ApiError> {
    let found = find_object(&app.store, name).await?;
    let is_current =
        |it: &Object| !it.is_derived() && !bucket.is_expired(it, || app.clock.unix_ms());
    found.filter(is_current).ok_or_else(ApiError::file_not_found)
}

fn options_of(settings: ObjectSettings, now_ms: u64) -> Result<ObjectOptions, ApiError> {
    let options = ObjectOptions {
        content_type: settings.content_type,
        cache_control: settings.cache_control,
        content_disposition: settings.content_disposition,
        metadata: settings.metadata,
        expires_ms: expiry_change(now_ms, settings.expires_in, settings.expires_at)?,
    };
    options.check()?;
    Ok(options)
}

/// Returns the names of the fields that options set.
fn changed_names(options: &ObjectOptions) -> Vec<&'static str> {
    let fields = [
        ("contentType", options.content_type.is_some()),
        ("cacheControl", options.cache_control.is_some()),
        ("contentDisposition", options.content_disposition.is_some()),
        ("metadata", options.metadata.is_some()),
        ("expiresAt", options.expires_ms.is_some()),
    ];
    fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

async fn change(
    app: &AppState,
    bucket: &Bucket,
    name: &ObjectName,
    headers: &HeaderMap,
    options: &ObjectOptions,
) -> Result<Object, ApiError> {
    let _turn = app.jobs.copy_permit().await?;
    for _ in 0..MOVE_TRIES_MAX {
        let object = current(app, bucket, name).await?;
        let validators = Validators::new(object.etag(), last_modified_ms(&object));
        if evaluate_preconditions(&Method::PATCH, headers, Some(&validators))
            == PreconditionResult::PreconditionFailed
        {
            return Err(ApiError::precondition_failed());
        }
        let version = Version::current(bucket.versioning, object);
        let attributes = options.apply(StoredAttributes::of(&version.object))?;
        let new = NewAttributes { attributes, content_type: options.content_type.clone() };
        if let Some(object) = change_attributes_of(app, bucket, name, &version, new).await? {
            return Ok(object);
        }
    }
    Err(ApiError::conflict("The file kept changing: try again"))
}

async fn describe(
    app: &AppState,
    bucket: &Bucket,
    object: &Object,
) -> Result<ObjectInfo, ApiError> {
    let attributes = StoredAttributes::of(object);
    let expiry = bucket.expiry(object);
    let size = app.variants.image_size(object).await;
    Ok(ObjectInfo {
        bucket_name: bucket.name.to_string(),
        path: object.name().key.to_string(),
        url: public_url(app.public_url.as_str(), object.name()),
        size: object.bytes(),
        content_type: object.content_type().to_owned(),
        etag: format!("\"{}\"", object.etag()),
        created_at: iso_time(object.created_ms()),
        last_modified: iso_time(last_modified_ms(object)),
        cache_control: attributes.headers.cache_control,
        content_disposition: attributes.headers.content_disposition,
        content_encoding: attributes.headers.content_encoding,
        metadata: attributes.s3.map(|s3| s3.metadata).unwrap_or_default(),
        expires_at: expiry.map(|(at_ms, _)| iso_time(at_ms)),
        expires_by_rule: expiry.and_then(|(_, rule)| Some(rule?.id.clone())),
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        camera: app.variants.camera(object).await.map(CameraView::from),
    })
}
