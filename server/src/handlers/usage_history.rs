//! `GET /api/usage/history`: usage over time, by minute, hour or day.
//!
//! Non-goals: the counters, and their retention.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use catalog::limits::USAGE_DAYS_RETENTION;
use catalog::{Bucket, Catalog, Role, Scope, UsagePoint, UsageScope, UsageStep};
use engine::BucketName;
use protocol::error::ApiError;
use protocol::query::Query;
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use service::auth::Caller;
use service::replies::Success;
use service::state::AppState;
use usage::limits::{USAGE_HOURS_RETENTION_DAYS, USAGE_MINUTES_KEPT};
use utoipa::ToSchema;

use crate::handlers::with_catalog;

/// Usage over time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryReply {
    step: Step,
    /// Start of the first interval.
    from: String,
    /// End of the last interval, or the current time if earlier.
    to: String,
    /// Start of the server, before which no minutes are recorded; only with `step=minute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    points: Vec<UsagePointView>,
}

/// Interval of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Minute,
    Hour,
    Day,
}

/// Usage in one interval.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsagePointView {
    /// Start of the interval.
    time: String,
    /// Number of answered requests.
    requests: u64,
    /// Number of requests with a 5xx response.
    errors: u64,
    /// Number of requests with a 4xx response.
    refusals: u64,
    /// Response body bytes.
    bytes_out: u64,
    /// Request body bytes, including bytes of imported files.
    bytes_in: u64,
    /// Number of rendered images.
    images: u64,
    /// Image render time in milliseconds.
    image_ms: u64,
    /// Number of files at the end of the interval; `null` if not counted.
    #[schema(required)]
    object_count: Option<u64>,
    /// Total bytes of files at the end of the interval; `null` if not counted.
    #[schema(required)]
    stored_bytes: Option<u64>,
}

/// Returns usage over time for one bucket, all accessible buckets, or (operators) the whole server.
#[utoipa::path(
    get,
    path = "/api/usage/history",
    operation_id = "showUsageHistory",
    tag = "Accounts",
    params(
        ("step" = Option<Step>, Query, description = "Interval of the points; default `hour`."),
        ("bucketName" = Option<String>, Query, description = "Bucket name; default: all accessible buckets or, for \
            operators, the whole server."),
        ("from" = Option<String>, Query, format = DateTime, description = "RFC 3339 time in the first interval. \
            Default: one hour, one day or 30 days ago."),
        ("to" = Option<String>, Query, format = DateTime, description = "RFC 3339 time after the start of the last \
            interval. Default: now."),
    ),
    responses((status = OK, body = HistoryReply), (status = NOT_FOUND, description = "`bucket_not_found`."))
)]
pub async fn history(
    State(app): State<AppState>,
    caller: Caller,
    query: Query,
) -> Result<Success<HistoryReply>, ApiError> {
    caller.require_scope(Scope::Manage)?;
    let of = match query.string(&["bucketName"])? {
        Some(name) => {
            let name = BucketName::parse(&name).map_err(|_| ApiError::bucket_not_found())?;
            UsageScope::Buckets(vec![caller.visible_bucket(&app.catalog, &name)?])
        }
        None => all_of(&app.catalog, &caller),
    };
    let step = Step::of(&query)?;
    let now_ms = app.clock.unix_ms();
    let steps = steps(&query, step, now_ms)?;
    let (traffic_step, wanted) = (step.of_traffic(), steps.clone());
    let find = move |catalog: &Catalog| catalog.usage().points(&of, traffic_step, wanted);
    let points = with_catalog(&app, find).await?;
    let ms = traffic_step.ms();
    let is_minutes = step == Step::Minute;
    Ok(Success(HistoryReply {
        step,
        from: iso_time(steps.start * ms),
        to: iso_time((steps.end * ms).min(now_ms)),
        since: is_minutes.then(|| iso_time(app.catalog.usage().since_ms())),
        points: steps.zip(&points).map(|(at, point)| UsagePointView::of(at * ms, point)).collect(),
    }))
}

/// Returns all usage that the caller may see: for an operator, that of the whole server.
fn all_of(catalog: &Catalog, caller: &Caller) -> UsageScope {
    let is_whole = caller.require_unrestricted().is_ok();
    if is_whole && caller.account().role == Role::Operator {
        return UsageScope::AllBuckets;
    }
    let is_seen = |bucket: &Arc<Bucket>| {
        caller.limits().allows_bucket(&bucket.name)
            && catalog.buckets().role(&caller.account().id, bucket).is_some()
    };
    UsageScope::Buckets(catalog.buckets().all().into_iter().filter(is_seen).collect())
}

/// Returns the range of requested steps, counted since 1970.
fn steps(query: &Query, step: Step, now_ms: u64) -> Result<Range<u64>, ApiError> {
    let ms = step.of_traffic().ms();
    let now = now_ms / ms;
    let from_ms = time(query, "from")?;
    let end = match time(query, "to")? {
        Some(to_ms) if to_ms < now_ms => to_ms.div_ceil(ms),
        _ => now + 1,
    };
    let start = match from_ms {
        Some(from_ms) => from_ms / ms,
        None => end.saturating_sub(step.usual_count()),
    };
    let refuse = |must: &str| Err(ApiError::bad_parameter("from", must));
    if start >= end {
        return refuse("must be before \"to\" and not in the future");
    }
    if end - start > step.count_max() || start < step.first_known(now) {
        return refuse(step.range_error());
    }
    Ok(start..end)
}

fn time(query: &Query, name: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.string(&[name])? else { return Ok(None) };
    let refuse =
        || ApiError::bad_parameter(name, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z");
    // An unescaped plus was decoded to a space.
    let time: jiff::Timestamp = text.replace(' ', "+").parse().map_err(|_| refuse())?;
    u64::try_from(time.as_millisecond()).map(Some).map_err(|_| refuse())
}

impl Step {
    fn of(query: &Query) -> Result<Self, ApiError> {
        match query.string(&["step"])?.as_deref() {
            Some("minute") => Ok(Self::Minute),
            None | Some("hour") => Ok(Self::Hour),
            Some("day") => Ok(Self::Day),
            Some(_) => {
                Err(ApiError::bad_parameter("step", "must be \"minute\", \"hour\" or \"day\""))
            }
        }
    }

    fn of_traffic(self) -> UsageStep {
        match self {
            Self::Minute => UsageStep::Minute,
            Self::Hour => UsageStep::Hour,
            Self::Day => UsageStep::Day,
        }
    }

    /// Returns the default number of steps.
    fn usual_count(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 24,
            Self::Day => 30,
        }
    }

    /// Returns the maximum number of steps, including the current one.
    fn count_max(self) -> u64 {
        match self {
            Self::Minute => USAGE_MINUTES_KEPT,
            Self::Hour => 24 * USAGE_HOURS_RETENTION_DAYS + 1,
            Self::Day => USAGE_DAYS_RETENTION + 1,
        }
    }

    /// Returns the oldest retained step.
    fn first_known(self, now: u64) -> u64 {
        match self {
            Self::Minute => (now + 1).saturating_sub(USAGE_MINUTES_KEPT),
            Self::Hour => (now / 24).saturating_sub(USAGE_HOURS_RETENTION_DAYS) * 24,
            Self::Day => now.saturating_sub(USAGE_DAYS_RETENTION),
        }
    }

    fn range_error(self) -> &'static str {
        match self {
            Self::Minute => "must be within the last 60 minutes; use hours for earlier times",
            Self::Hour => "must be within the last 31 days; use days for earlier times",
            Self::Day => "must be within the last 400 days",
        }
    }
}

impl UsagePointView {
    fn of(time_ms: u64, point: &UsagePoint) -> Self {
        let counts = &point.counts;
        Self {
            time: iso_time(time_ms),
            requests: counts.requests,
            errors: counts.errors,
            refusals: counts.refusals,
            bytes_out: counts.bytes_out,
            bytes_in: counts.bytes_in,
            images: counts.images,
            image_ms: counts.image_us / 1_000,
            object_count: point.amount.map(|amount| amount.objects),
            stored_bytes: point.amount.map(|amount| amount.bytes),
        }
    }
}
