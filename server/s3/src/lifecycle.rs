//! Lifecycle configuration of a bucket: expiration by age or date, below a prefix.
//!
//! Guarantees: a rule that is accepted is in effect; everything else of S3's lifecycle is `NotImplemented`. Non-goals:
//! the expiration (`jobs`).

use catalog::limits::EXPIRY_SECONDS_MAX;
use catalog::{BucketChange, Expiration, LifecycleRule, Scope, check_lifecycle};
use http::{HeaderMap, HeaderValue, header};
use protocol::conditional::http_date;
use protocol::object_path::parse_bucket_name;
use s3s::dto::{
    DeleteBucketLifecycleInput, DeleteBucketLifecycleOutput, ExpirationStatus,
    GetBucketLifecycleConfigurationInput, GetBucketLifecycleConfigurationOutput,
    LifecycleExpiration, LifecycleRule as S3Rule, LifecycleRuleFilter,
    PutBucketLifecycleConfigurationInput, PutBucketLifecycleConfigurationOutput, Timestamp,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::object_options::expiry_time;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::configuration::not_configured;
use super::errors::{s3_error, to_s3_error};
use super::objects::{millis_of, time_of};

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Request header with the lifetime of a new object in seconds.
const EXPIRES_IN: &str = "x-trug-expires-in";
/// Request header with the expiry time of a new object.
const EXPIRES_AT: &str = "x-trug-expires-at";
/// Response header with the expiry of an object (S3 API).
pub(super) const EXPIRATION: header::HeaderName =
    header::HeaderName::from_static("x-amz-expiration");

/// Implements GetBucketLifecycleConfiguration. A rule whose age is not whole days is reported with the days rounded up.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetBucketLifecycleConfigurationInput>,
) -> S3Result<GetBucketLifecycleConfigurationOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    if bucket.lifecycle.is_empty() {
        return Err(not_configured(app, &caller, name, "NoSuchLifecycleConfiguration"));
    }
    Ok(GetBucketLifecycleConfigurationOutput {
        rules: Some(bucket.lifecycle.iter().map(reported).collect()),
        ..GetBucketLifecycleConfigurationOutput::default()
    })
}

/// Implements PutBucketLifecycleConfiguration.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutBucketLifecycleConfigurationInput>,
) -> S3Result<PutBucketLifecycleConfigurationOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let rules = input.lifecycle_configuration.map(|it| it.rules).unwrap_or_default();
    if rules.is_empty() {
        return Err(malformed("A lifecycle configuration requires at least one rule"));
    }
    let rules = rules.into_iter().enumerate().map(|(at, rule)| parsed(rule, at));
    let rules = rules.collect::<S3Result<Vec<_>>>()?;
    check_lifecycle(&rules)
        .map_err(|why| S3Error::with_message(S3ErrorCode::InvalidArgument, why))?;
    let name = parse_bucket_name(&input.bucket).map_err(|error| to_s3_error(&error))?;
    // A rule deletes objects.
    caller.bucket(&app.catalog, &name, Scope::Delete).map_err(|error| to_s3_error(&error))?;
    set(app, &caller, &input.bucket, rules).await?;
    Ok(PutBucketLifecycleConfigurationOutput::default())
}

/// Implements DeleteBucketLifecycle.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteBucketLifecycleInput>,
) -> S3Result<DeleteBucketLifecycleOutput> {
    let caller = caller_of(&request.extensions)?;
    set(app, &caller, &request.input.bucket, Vec::new()).await?;
    Ok(DeleteBucketLifecycleOutput {})
}

/// Returns the expiry time that the headers of an upload set, in milliseconds since 1970.
pub(super) fn sent_expiry(headers: &HeaderMap, now_ms: u64) -> S3Result<Option<u64>> {
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let (seconds, time) = (text(EXPIRES_IN), text(EXPIRES_AT));
    let seconds = seconds.map(|it| it.parse()).transpose().map_err(|_| {
        let message = format!("{EXPIRES_IN} must be a number of seconds");
        S3Error::with_message(S3ErrorCode::InvalidArgument, message)
    })?;
    expiry_time(now_ms, seconds, time.as_deref()).map_err(|error| to_s3_error(&error))
}

/// Returns the value of [`EXPIRATION`] for an object that expires by a rule, or by its own expiry time.
pub(super) fn expiration_header(at_ms: u64, rule: Option<&LifecycleRule>) -> Option<HeaderValue> {
    let date = http_date(at_ms);
    // The id of a rule may have any characters; a quoted string of a header may not.
    let id = rule.map_or("", |rule| rule.id.as_str());
    let id = id.replace(['"', '\\'], "");
    HeaderValue::try_from(format!("expiry-date=\"{date}\", rule-id=\"{id}\"")).ok()
}

async fn set(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    rules: Vec<LifecycleRule>,
) -> S3Result<()> {
    let change = BucketChange { lifecycle: Some(rules), ..BucketChange::default() };
    change_settings(app, caller, bucket, change).await.map_err(|error| to_s3_error(&error))
}

fn parsed(rule: S3Rule, at: usize) -> S3Result<LifecycleRule> {
    let LifecycleRuleFilter { and, object_size_greater_than, object_size_less_than, prefix, tag } =
        rule.filter.clone().unwrap_or_default();
    let has_other_filter = and.is_some()
        || object_size_greater_than.is_some()
        || object_size_less_than.is_some()
        || tag.is_some();
    let has_other_action = rule.abort_incomplete_multipart_upload.is_some()
        || rule.noncurrent_version_expiration.is_some()
        || rule.noncurrent_version_transitions.is_some_and(|it| !it.is_empty())
        || rule.transitions.is_some_and(|it| !it.is_empty());
    if has_other_filter || has_other_action {
        let message = "A lifecycle rule may have a Prefix and an Expiration by Days or Date only";
        return Err(s3_error(S3ErrorCode::NotImplemented, message));
    }
    let enabled = match rule.status.as_str() {
        ExpirationStatus::ENABLED => true,
        ExpirationStatus::DISABLED => false,
        _ => return Err(malformed("The Status of a lifecycle rule must be Enabled or Disabled")),
    };
    let expiration = parsed_expiration(rule.expiration)?;
    // S3 issues ids for rules without one.
    let id = rule.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("rule-{}", at + 1));
    let prefix = prefix.or(rule.prefix).unwrap_or_default();
    Ok(LifecycleRule { id, prefix, expiration, enabled })
}

fn parsed_expiration(expiration: Option<LifecycleExpiration>) -> S3Result<Expiration> {
    let must = "The Expiration of a lifecycle rule must have either Days, at least 1, or Date";
    match expiration {
        Some(LifecycleExpiration { expired_object_delete_marker: Some(true), .. }) => {
            let message = "ExpiredObjectDeleteMarker is not supported";
            Err(s3_error(S3ErrorCode::NotImplemented, message))
        }
        Some(LifecycleExpiration { days: Some(days), date: None, .. }) => {
            let days = u64::try_from(days).ok().filter(|days| *days > 0);
            let seconds = days.map(|days| days.saturating_mul(DAY_SECONDS));
            let seconds = seconds.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, must))?;
            match seconds <= EXPIRY_SECONDS_MAX {
                true => Ok(Expiration::AfterSeconds(seconds)),
                false => Err(s3_error(S3ErrorCode::InvalidArgument, "Days is more than 3,650")),
            }
        }
        Some(LifecycleExpiration { days: None, date: Some(date), .. }) => {
            let at_ms = millis_of(&date);
            let at_ms = at_ms.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, must))?;
            Ok(Expiration::AtMs(at_ms))
        }
        _ => Err(malformed(must)),
    }
}

fn reported(rule: &LifecycleRule) -> S3Rule {
    let (days, date): (_, Option<Timestamp>) = match rule.expiration {
        Expiration::AfterSeconds(seconds) => {
            (i32::try_from(seconds.div_ceil(DAY_SECONDS)).ok(), None)
        }
        Expiration::AtMs(at_ms) => (None, time_of(at_ms)),
    };
    let status = if rule.enabled { ExpirationStatus::ENABLED } else { ExpirationStatus::DISABLED };
    S3Rule {
        id: Some(rule.id.clone()),
        status: ExpirationStatus::from_static(status),
        filter: Some(LifecycleRuleFilter {
            prefix: Some(rule.prefix.clone()),
            ..LifecycleRuleFilter::default()
        }),
        expiration: Some(LifecycleExpiration { days, date, ..LifecycleExpiration::default() }),
        abort_incomplete_multipart_upload: None,
        noncurrent_version_expiration: None,
        noncurrent_version_transitions: None,
        prefix: None,
        transitions: None,
    }
}

fn malformed(message: &'static str) -> S3Error {
    s3_error(S3ErrorCode::MalformedXML, message)
}
