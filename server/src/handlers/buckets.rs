//! `/api/buckets`: creation, reading, editing and deletion of buckets.
//!
//! Guarantees: a bucket that the caller has no role in gives the same response as one that does not exist; a deletion
//! responds before the files are removed.

use std::sync::Arc;

use axum::extract::State;
use catalog::{
    Access, Bucket, BucketChange, BucketDeletion, BucketKind, Catalog, CatalogError,
    FairUseStanding, MemberRole, NewBucket, NewBucketOwner, OnNonEmpty, OrganisationId, Scope,
    new_bucket_name,
};
use engine::{BucketName, FolderKey};
use protocol::error::ApiError;
use protocol::json_body::JsonBody;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::Serialize;
use service::auth::Caller;
use service::parameters::{BucketNameParameter, Flag, FolderPathSchema, PageParameters};
use service::replies::Success;
use service::request_context::Path;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

use crate::handlers::{changing, with_catalog};
use crate::management::{
    BucketDeletedView, BucketSettings, BucketView, FoldersView, LifecyclePreview,
    LifecycleRuleView, NewBucketSettings, bucket_change, bucket_view, folders_view,
    lifecycle_rules, preview_lifecycle, subfolders_view,
};

/// Bucket and the caller's scopes.
#[derive(Serialize, ToSchema)]
pub struct BucketReply {
    bucket: BucketView,
    /// Scopes of the caller in the bucket, by role and API key.
    scopes: Vec<Scope>,
}

/// Page of buckets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketsReply {
    buckets: Vec<BucketView>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Deleted bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketDeletedReply {
    message: String,
    #[serde(flatten)]
    deleted: BucketDeletedView,
}

/// Lifecycle rules to preview.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described: the rules are read apart")]
pub struct LifecyclePreviewRequest {
    /// All rules, as in an update of the bucket.
    lifecycle: Vec<LifecycleRuleView>,
}

/// Lists the buckets the account can access, by name.
#[utoipa::path(
    get,
    path = "/api/buckets",
    operation_id = "listBuckets",
    tag = "Buckets",
    params(PageParameters),
    responses((status = OK, body = BucketsReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<BucketsReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let page = PageRequest::from_query(&query)?;
    let buckets = app.catalog.buckets().all();
    let visible = buckets.into_iter().filter(|bucket| {
        caller.limits().allows_bucket(&bucket.name)
            && app.catalog.buckets().role(&caller.account().id, bucket).is_some()
    });
    let (buckets, next_cursor) = page.paginate(visible, |bucket| bucket.name.as_str());
    let store = app.store.clone();
    let views = move |_: &Catalog| {
        buckets.iter().map(|bucket| bucket_view(&store, bucket)).collect::<Result<_, _>>()
    };
    let buckets = with_catalog(&app, views).await?;
    Ok(Success(BucketsReply { buckets, next_cursor }))
}

/// Creates a bucket owned by the account or an organisation.
#[utoipa::path(
    post,
    path = "/api/buckets",
    operation_id = "createBucket",
    tag = "Buckets",
    request_body = NewBucketSettings,
    responses(
        (status = OK, body = BucketReply),
        (status = NOT_FOUND, description = "`organisation_not_found`."),
        (status = CONFLICT, description = "`already_exists`: the name is in use."),
    )
)]
pub async fn create(
    State(app): State<AppState>,
    caller: Caller,
    mut body: JsonBody,
) -> Result<Success<BucketReply>, ApiError> {
    caller.require_unrestricted()?;
    let name: String = body.require("bucketName")?;
    let name = new_bucket_name(&name).map_err(|error| bad_name(&error))?;
    let kind: BucketKind = body.optional("type")?.unwrap_or_default();
    let owner = match body.optional::<String>("organisation")? {
        None => NewBucketOwner::Account(caller.account().id.clone()),
        Some(id) => {
            let id = OrganisationId::parse(&id).ok_or_else(ApiError::organisation_not_found)?;
            let organisation = caller.organisation(&app.catalog, &id, MemberRole::Admin)?;
            let owner = app.catalog.accounts().get(&organisation.owner);
            if owner.is_none_or(|owner| owner.standing == FairUseStanding::Suspended) {
                return Err(ApiError::account_suspended());
            }
            NewBucketOwner::Organisation(organisation.id.clone())
        }
    };
    let settings = bucket_change(&name, body.deserialize::<BucketSettings>()?)?;
    check_placeholder(&app, &caller, &name, &settings)?;
    let new = NewBucket { name, owner, kind, settings };
    reply(&app, &caller, move |catalog| catalog.buckets().create(new)).await
}

/// Returns a bucket with its object count and size.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}",
    operation_id = "showBucket",
    tag = "Buckets",
    params(BucketNameParameter),
    responses((status = OK, body = BucketReply))
)]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
) -> Result<Success<BucketReply>, ApiError> {
    let bucket = caller.visible_bucket(&app.catalog, &name)?;
    reply(&app, &caller, move |_| Ok(bucket)).await
}

/// Lists folders of a bucket by name, with the number and total bytes of their files at any depth.
#[utoipa::path(
    get,
    path = "/api/buckets/{bucketName}/folders",
    operation_id = "listFolders",
    tag = "Buckets",
    params(
        BucketNameParameter,
        PageParameters,
        ("prefix" = Option<FolderPathSchema>, Query, description = "Folder whose subfolders are listed, with \
            modification times; empty for the root. If absent, top-level folders are listed without modification times."),
    ),
    responses((status = OK, body = FoldersView))
)]
pub async fn folders(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    query: Query,
) -> Result<Success<FoldersView>, ApiError> {
    let bucket = caller.visible_bucket(&app.catalog, &name)?;
    let prefix = query.string_allow_empty(&["prefix"])?;
    let must = |rule| ApiError::bad_parameter("prefix", &format!("must be a folder: {rule}"));
    let parent = prefix.as_deref().map(FolderKey::parse).transpose().map_err(must)?;
    caller.require_folder_access(parent.as_ref().unwrap_or(&FolderKey::root()))?;
    let page = PageRequest::from_query(&query)?;
    let (store, limit) = (app.store.clone(), page.limit());
    let page = match parent {
        None => {
            let after = page.after(FolderKey::parse)?;
            let find = move |_: &Catalog| folders_view(&store, &bucket.name, after.as_ref(), limit);
            with_catalog(&app, find).await?
        }
        Some(parent) => {
            let after = page.after(|text| child_of(&parent, text))?;
            let find =
                move |_: &Catalog| subfolders_view(&store, &bucket.name, &parent, after, limit);
            with_catalog(&app, find).await?
        }
    };
    Ok(Success(page))
}

/// Parses a direct child of a folder.
fn child_of(parent: &FolderKey, text: &str) -> Result<FolderKey, ()> {
    let rest = text.strip_prefix(parent.as_str()).and_then(|rest| rest.strip_suffix('/'));
    let is_child = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'));
    FolderKey::parse(text).ok().filter(|_| is_child).ok_or(())
}

/// Updates the given settings of a bucket.
#[utoipa::path(
    patch,
    path = "/api/buckets/{bucketName}",
    operation_id = "editBucket",
    tag = "Buckets",
    params(BucketNameParameter),
    request_body = BucketSettings,
    responses((status = OK, body = BucketReply))
)]
pub async fn edit(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    body: JsonBody,
) -> Result<Success<BucketReply>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    // Settings apply to the whole bucket.
    caller.require_folder_access(&FolderKey::root())?;
    let change = bucket_change(&name, body.deserialize::<BucketSettings>()?)?;
    check_placeholder(&app, &caller, &name, &change)?;
    if change.lifecycle.as_ref().is_some_and(|rules| !rules.is_empty()) {
        // A rule deletes objects.
        caller.bucket(&app.catalog, &name, Scope::Delete)?;
    }
    if change.access == Some(Access::Public) && bucket.access == Access::Private {
        // Making a bucket public grants read access to everyone.
        caller.bucket(&app.catalog, &name, Scope::Read)?;
    }
    reply(&app, &caller, move |catalog| catalog.buckets().edit(&name, change)).await
}

/// Counts the files that would be deleted within a minute if lifecycle rules were saved.
#[utoipa::path(
    post,
    path = "/api/buckets/{bucketName}/lifecycle/preview",
    operation_id = "previewLifecycle",
    tag = "Buckets",
    params(BucketNameParameter),
    request_body = LifecyclePreviewRequest,
    responses((status = OK, body = LifecyclePreview))
)]
pub async fn preview_rules(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    mut body: JsonBody,
) -> Result<Success<LifecyclePreview>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    caller.require_folder_access(&FolderKey::root())?;
    let rules = lifecycle_rules(body.require("lifecycle")?);
    let refuse = |error: CatalogError| ApiError::bad_parameter("lifecycle", &error.to_string());
    let rules = rules.map_err(refuse)?;
    body.deny_unknown()?;
    let (store, now_ms) = (app.store.clone(), app.clock.unix_ms());
    let preview = blocking(move || preview_lifecycle(&store, &bucket, rules, now_ms)).await?;
    Ok(Success(preview))
}

/// Deletes a bucket; with `force`, including its objects.
#[utoipa::path(
    delete,
    path = "/api/buckets/{bucketName}",
    operation_id = "deleteBucket",
    tag = "Buckets",
    params(
        BucketNameParameter,
        ("force" = Option<Flag>, Query, description = "Delete the bucket even if it contains \
            files."),
    ),
    responses(
        (status = OK, body = BucketDeletedReply),
        (status = CONFLICT, description = "`bucket_not_empty`: the bucket contains files and \
            `force` is not set."),
    )
)]
pub async fn delete(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<BucketName>,
    query: Query,
) -> Result<Success<BucketDeletedReply>, ApiError> {
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    caller.require_unrestricted()?;
    let force = query.flag(&["force"])?.unwrap_or(false);
    let deleted_count = if force {
        caller.require_scope(Scope::Delete)?;
        let delete = move |catalog: &Catalog| {
            let objects = catalog.quotas().of_bucket(&bucket.name)?.objects;
            Ok((objects, catalog.buckets().delete(&bucket.name, OnNonEmpty::DeleteToo)?))
        };
        let (objects, removal) = changing(&app, &caller, delete).await?;
        tokio::spawn(finish(removal));
        objects
    } else {
        let delete = move |catalog: &Catalog| {
            catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse)?.finish()
        };
        changing(&app, &caller, delete).await?
    };
    let message = format!("Deleted {name}");
    let deleted = BucketDeletedView { bucket_name: name.to_string(), deleted_count };
    Ok(Success(BucketDeletedReply { message, deleted }))
}

/// Removes the content of a deleted bucket after the response. Failures are retried by the upkeep of the catalog.
async fn finish(removal: BucketDeletion) {
    if let Err(error) = blocking(move || removal.finish()).await {
        tracing::error!(%error, "failed to delete the objects of a deleted bucket; will retry");
    }
}

async fn reply(
    app: &AppState,
    caller: &Caller,
    work: impl FnOnce(&Catalog) -> Result<Arc<Bucket>, CatalogError> + Send + 'static,
) -> Result<Success<BucketReply>, ApiError> {
    let store = app.store.clone();
    let asking = caller.clone();
    let view = move |catalog: &Catalog| {
        let bucket = work(catalog)?;
        Ok((bucket_view(&store, &bucket)?, asking.scopes_in(catalog, &bucket)))
    };
    let (bucket, scopes) = changing(app, caller, view).await?;
    Ok(Success(BucketReply { bucket, scopes }))
}

/// Checks that the caller can read a placeholder from another bucket, since it becomes readable as the placeholder.
fn check_placeholder(
    app: &AppState,
    caller: &Caller,
    bucket: &BucketName,
    change: &BucketChange,
) -> Result<(), ApiError> {
    let Some(Some(placeholder)) = &change.placeholder else { return Ok(()) };
    if placeholder.bucket == *bucket {
        return Ok(());
    }
    let may_read = caller
        .bucket(&app.catalog, &placeholder.bucket, Scope::Read)
        .and_then(|_| caller.require_key_access(&placeholder.key));
    let must = "must be in a bucket of the account that the API key may read";
    may_read.map_err(|_| ApiError::bad_parameter("placeholder", must))
}

fn bad_name(error: &CatalogError) -> ApiError {
    ApiError::bad_parameter("bucketName", &format!("is invalid: {error}"))
}
