//! `GET /api/recent-uploads`: latest uploads of the buckets that the caller can list.

use axum::extract::State;
use catalog::Scope;
use catalog::object_attributes::last_modified_ms;
use engine::Object;
use protocol::error::ApiError;
use protocol::query::Query;
use protocol::time_format::iso_time;
use serde::Serialize;
use service::auth::Caller;
use service::limits::RECENT_UPLOADS_MAX;
use service::replies::Success;
use service::state::AppState;
use usage::task::blocking;
use utoipa::ToSchema;

/// Latest uploads, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentUploadsReply {
    uploads: Vec<RecentUploadView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RecentUploadView {
    bucket_name: String,
    key: String,
    size: u64,
    content_type: String,
    modified_at: String,
}

/// Lists the latest uploads to the buckets that the caller can list, newest first.
#[utoipa::path(
    get,
    path = "/api/recent-uploads",
    operation_id = "listRecentUploads",
    tag = "Listing and search",
    params(("limit" = Option<u64>, Query, description = "Maximum number of uploads, 1 to 12; default 8.", minimum = 1, maximum = 12)),
    responses((status = OK, body = RecentUploadsReply))
)]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<RecentUploadsReply>, ApiError> {
    caller.require_scope(Scope::List)?;
    let limit = match query.number(&["limit"])? {
        None => 8,
        Some(limit) if (1..=RECENT_UPLOADS_MAX as u64).contains(&limit) => limit as usize,
        Some(_) => {
            let must = format!("must be a number from 1 to {RECENT_UPLOADS_MAX}");
            return Err(ApiError::bad_parameter("limit", &must));
        }
    };
    let buckets = app.catalog.buckets().all().into_iter().filter(|bucket| {
        caller.limits().allows_bucket(&bucket.name)
            && caller.scopes_in(&app.catalog, bucket).contains(&Scope::List)
    });
    let names: Vec<_> = buckets.map(|bucket| bucket.name.clone()).collect();
    let looked_up = app.clone();
    let found = blocking(move || {
        let mut found: Vec<Object> = Vec::new();
        for name in &names {
            found.extend(looked_up.recent_uploads.of(&looked_up.store, name)?);
        }
        Ok::<_, engine::Error>(found)
    });
    let mut found = found.await?;
    found.retain(|object| caller.require_key_access(&object.name().key).is_ok());
    found.sort_unstable_by_key(|object| std::cmp::Reverse(object.lsn()));
    found.truncate(limit);
    let view = |object: &Object| RecentUploadView {
        bucket_name: object.name().bucket.to_string(),
        key: object.name().key.to_string(),
        size: object.bytes(),
        content_type: object.content_type().to_owned(),
        modified_at: iso_time(last_modified_ms(object)),
    };
    Ok(Success(RecentUploadsReply { uploads: found.iter().map(view).collect() }))
}
