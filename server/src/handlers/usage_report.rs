//! `GET /api/usage`: storage used by the account, per bucket and in total.

use std::sync::Arc;

use axum::extract::State;
use catalog::{Bucket, Catalog, CatalogError, Scope, StoredAmount};
use protocol::error::ApiError;
use protocol::paging::PageRequest;
use protocol::query::Query;
use serde::Serialize;
use service::auth::Caller;
use service::parameters::PageParameters;
use service::replies::Success;
use service::state::AppState;
use utoipa::ToSchema;

use crate::handlers::with_catalog;

/// Stored bytes and objects, per bucket and in total.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReply {
    /// Page of the account's buckets, by name.
    buckets: Vec<BucketUsageView>,
    #[schema(required)]
    next_cursor: Option<String>,
    /// Total of all buckets of the account; absent for an API key limited to one bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<UsageTotalView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BucketUsageView {
    bucket_name: String,
    object_count: u64,
    total_bytes: u64,
    /// Received bytes of unfinished uploads. Quotas count the declared lengths instead.
    unfinished_bytes: u64,
    #[schema(required)]
    quota_objects: Option<u64>,
    #[schema(required)]
    quota_bytes: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsageTotalView {
    object_count: u64,
    total_bytes: u64,
    #[schema(required)]
    object_count_max: Option<u64>,
    #[schema(required)]
    storage_bytes_max: Option<u64>,
}

/// Returns stored bytes and objects, per bucket and in total.
#[utoipa::path(
    get,
    path = "/api/usage",
    operation_id = "showUsage",
    tag = "Accounts",
    params(PageParameters),
    responses((status = OK, body = UsageReply))
)]
pub async fn usage(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<UsageReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let page = PageRequest::from_query(&query)?;
    let (account, limits) = (caller.account().clone(), caller.limits());
    let is_whole = limits.bucket.is_none();
    let names = app.catalog.buckets().names_of(&account.id);
    let reached = names.into_iter().filter(|name| limits.allows_bucket(name));
    let (names, next_cursor) = page.paginate(reached, |name| name.as_str());
    let count = move |catalog: &Catalog| {
        // A bucket deleted in the meantime uses nothing.
        let buckets = names.iter().filter_map(|name| catalog.buckets().get(name));
        let buckets = buckets.map(|bucket| bucket_usage(catalog, &bucket));
        let buckets = buckets.collect::<Result<Vec<_>, _>>()?;
        let total = is_whole.then(|| catalog.quotas().of_account(&account.id)).transpose()?;
        let total = total.map(|StoredAmount { objects, bytes }| UsageTotalView {
            object_count: objects,
            total_bytes: bytes,
            object_count_max: account.quota.objects_max,
            storage_bytes_max: account.quota.bytes_max,
        });
        Ok((buckets, total))
    };
    let (buckets, total) = with_catalog(&app, count).await?;
    Ok(Success(UsageReply { buckets, next_cursor, total }))
}

fn bucket_usage(catalog: &Catalog, bucket: &Arc<Bucket>) -> Result<BucketUsageView, CatalogError> {
    let StoredAmount { objects, bytes } = catalog.quotas().of_bucket(&bucket.name)?;
    Ok(BucketUsageView {
        bucket_name: bucket.name.to_string(),
        object_count: objects,
        total_bytes: bytes,
        unfinished_bytes: catalog.staging().totals_of(&bucket.name).bytes,
        quota_objects: bucket.quota.objects_max,
        quota_bytes: bucket.quota.bytes_max,
    })
}
