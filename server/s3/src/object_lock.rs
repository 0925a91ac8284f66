//! Object lock: retention and legal holds.
//!
//! Guarantees: a locked version is not deleted, by whatever means; the lock of a version changes only as S3 allows it.
//! Non-goals: enforcement of deletions (`deletions`), default retention of new versions (`versions`).

use catalog::object_attributes::StoredAttributes;
use catalog::object_lock::{
    BucketLock, DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod,
};
use catalog::versions::VersioningState;
use catalog::{Bucket, BucketChange, Scope};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use protocol::error::ApiError;
use protocol::time_format::iso_time;
use s3s::dto::{
    self, GetObjectLegalHoldInput, GetObjectLegalHoldOutput, GetObjectLockConfigurationInput,
    GetObjectLockConfigurationOutput, GetObjectRetentionInput, GetObjectRetentionOutput,
    ObjectLockEnabled, ObjectLockLegalHold, ObjectLockLegalHoldStatus, ObjectLockRetention,
    ObjectLockRetentionMode, ObjectLockRule, PutObjectLegalHoldInput, PutObjectLegalHoldOutput,
    PutObjectLockConfigurationInput, PutObjectLockConfigurationOutput, PutObjectRetentionInput,
    PutObjectRetentionOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::configuration::not_configured;
use super::errors::{code, s3_error, to_s3_error};
use super::objects::{authorized_object, millis_of, parse_millis, time_of};
use super::rewriting::{Stored, rewrite};
use super::versioning::{find_version, version_id};

const MODE: HeaderName = HeaderName::from_static("x-amz-object-lock-mode");
const RETAIN_UNTIL: HeaderName = HeaderName::from_static("x-amz-object-lock-retain-until-date");
const LEGAL_HOLD: HeaderName = HeaderName::from_static("x-amz-object-lock-legal-hold");
/// Maximum days and years of a default retention (S3 API).
const DAYS_MAX: i32 = 36_500;
const YEARS_MAX: i32 = 100;

/// Returns whether a caller that sent the bypass header may bypass governance retention: a key needs the scope
/// `manage`.
pub(super) fn may_bypass(caller: &Caller, sent: Option<bool>) -> bool {
    sent == Some(true) && caller.has_scope(Scope::Manage)
}

/// Parses the lock that a request sends with a new object.
pub(super) fn sent_lock(headers: &HeaderMap, bucket: &Bucket, now_ms: u64) -> S3Result<ObjectLock> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let (mode, until, hold) = (text(&MODE), text(&RETAIN_UNTIL), text(&LEGAL_HOLD));
    if mode.is_none() && until.is_none() && hold.is_none() {
        return Ok(ObjectLock::default());
    }
    check_enabled(bucket)?;
    let invalid = |message| s3_error(S3ErrorCode::InvalidArgument, message);
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            let mode = parse_mode(mode).ok_or_else(|| {
                invalid("x-amz-object-lock-mode must be GOVERNANCE or COMPLIANCE")
            })?;
            let until_ms = parse_millis(until).ok_or_else(|| {
                invalid("x-amz-object-lock-retain-until-date must be an ISO 8601 time")
            })?;
            Some(in_future(Retention { mode, until_ms }, now_ms)?)
        }
        _ => {
            return Err(invalid(
                "x-amz-object-lock-mode and x-amz-object-lock-retain-until-date must both be sent",
            ));
        }
    };
    let hold = match hold {
        None | Some(ObjectLockLegalHoldStatus::OFF) => false,
        Some(ObjectLockLegalHoldStatus::ON) => true,
        Some(_) => return Err(invalid("x-amz-object-lock-legal-hold must be ON or OFF")),
    };
    Ok(ObjectLock { retention, hold })
}

/// Adds the lock of a version to the headers of a read.
pub(super) fn add_headers(headers: &mut HeaderMap, bucket: &Bucket, lock: ObjectLock) {
    if bucket.object_lock.is_none() {
        return;
    }
    if let Some(Retention { mode, until_ms }) = lock.retention {
        headers.insert(MODE, HeaderValue::from_static(mode_text(mode)));
        headers.extend(HeaderValue::try_from(iso_time(until_ms)).map(|it| (RETAIN_UNTIL, it)));
    }
    if lock.hold {
        headers.insert(LEGAL_HOLD, HeaderValue::from_static(ObjectLockLegalHoldStatus::ON));
    }
}

fn parse_mode(text: &str) -> Option<RetentionMode> {
    match text {
        ObjectLockRetentionMode::GOVERNANCE => Some(RetentionMode::Governance),
        ObjectLockRetentionMode::COMPLIANCE => Some(RetentionMode::Compliance),
        _ => None,
    }
}

fn mode_text(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => ObjectLockRetentionMode::GOVERNANCE,
        RetentionMode::Compliance => ObjectLockRetentionMode::COMPLIANCE,
    }
}

fn malformed(message: &'static str) -> S3Error {
    s3_error(S3ErrorCode::MalformedXML, message)
}

fn in_future(retention: Retention, now_ms: u64) -> S3Result<Retention> {
    match retention.until_ms > now_ms {
        true => Ok(retention),
        false => {
            let message = "The retain until date must be in the future";
            Err(s3_error(S3ErrorCode::InvalidArgument, message))
        }
    }
}

fn check_enabled(bucket: &Bucket) -> S3Result<()> {
    match bucket.object_lock {
        Some(_) => Ok(()),
        None => {
            Err(s3_error(S3ErrorCode::InvalidRequest, "Object lock is not enabled for the bucket"))
        }
    }
}

/// Implements GetObjectLockConfiguration.
pub(super) async fn get_configuration(
    app: &AppState,
    request: S3Request<GetObjectLockConfigurationInput>,
) -> S3Result<GetObjectLockConfigurationOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    let Some(lock) = bucket.object_lock else {
        return Err(not_configured(app, &caller, name, "ObjectLockConfigurationNotFoundError"));
    };
    let rule = lock.default_retention.map(|DefaultRetention { mode, period }| {
        let number = |count: u32| i32::try_from(count).ok();
        let (days, years) = match period {
            RetentionPeriod::Days(days) => (number(days), None),
            RetentionPeriod::Years(years) => (None, number(years)),
        };
        let mode = Some(ObjectLockRetentionMode::from_static(mode_text(mode)));
        ObjectLockRule { default_retention: Some(dto::DefaultRetention { days, mode, years }) }
    });
    let enabled = ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED);
    let configuration = dto::ObjectLockConfiguration { object_lock_enabled: Some(enabled), rule };
    Ok(GetObjectLockConfigurationOutput { object_lock_configuration: Some(configuration) })
}

/// Implements PutObjectLockConfiguration: enables object lock for a versioned bucket, or changes its default retention.
pub(super) async fn put_configuration(
    app: &AppState,
    request: S3Request<PutObjectLockConfigurationInput>,
) -> S3Result<PutObjectLockConfigurationOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let missing = || malformed("The request has no ObjectLockConfiguration");
    let sent = request.input.object_lock_configuration.ok_or_else(missing)?;
    let enabled = sent.object_lock_enabled.as_ref().map(ObjectLockEnabled::as_str);
    if enabled != Some(ObjectLockEnabled::ENABLED) {
        return Err(malformed("ObjectLockEnabled must be Enabled"));
    }
    let rule = sent.rule.and_then(|rule| rule.default_retention);
    let lock = BucketLock { default_retention: rule.as_ref().map(default_retention).transpose()? };
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    if bucket.versioning.is_none_or(|it| it.state != VersioningState::Enabled) {
        let message = "Object lock requires enabled versioning";
        return Err(s3_error(S3ErrorCode::InvalidBucketState, message));
    }
    let change = BucketChange { object_lock: Some(lock), ..BucketChange::default() };
    let changed = change_settings(app, &caller, name, change).await;
    changed.map_err(|error| to_s3_error(&error))?;
    Ok(PutObjectLockConfigurationOutput::default())
}

fn default_retention(sent: &dto::DefaultRetention) -> S3Result<DefaultRetention> {
    let mode = sent.mode.as_ref().and_then(|mode| parse_mode(mode.as_str()));
    let mode = mode.ok_or_else(|| malformed("Mode must be GOVERNANCE or COMPLIANCE"))?;
    let invalid = || {
        let message = "A default retention has 1 to 36500 days or 1 to 100 years";
        s3_error(code("InvalidRetentionPeriod"), message)
    };
    let count = |count: i32, max: i32| match (1..=max).contains(&count) {
        true => u32::try_from(count).map_err(|_| invalid()),
        false => Err(invalid()),
    };
    let period = match (sent.days, sent.years) {
        (Some(days), None) => RetentionPeriod::Days(count(days, DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(count(years, YEARS_MAX)?),
        _ => return Err(malformed("A default retention has either Days or Years")),
    };
    Ok(DefaultRetention { mode, period })
}

/// Returns the lock of the version that a request names.
async fn lock_of(
    app: &AppState,
    caller: &Caller,
    (bucket, key, sent_id): (&str, &str, Option<&str>),
) -> S3Result<ObjectLock> {
    let id = version_id(sent_id)?;
    let found = authorized_object(app, caller, bucket, key, Scope::Read);
    let (bucket, parsed) = found.map_err(|error| to_s3_error(&error))?;
    check_enabled(&bucket)?;
    let name = engine::ObjectName::new(bucket.name.clone(), parsed);
    let version = find_version(app, &bucket, &name, key, id).await?;
    Ok(StoredAttributes::of(&version.object).lock)
}

/// Implements GetObjectRetention.
pub(super) async fn get_retention(
    app: &AppState,
    request: S3Request<GetObjectRetentionInput>,
) -> S3Result<GetObjectRetentionOutput> {
    let caller = caller_of(&request.extensions)?;
    let GetObjectRetentionInput { bucket, key, version_id, .. } = &request.input;
    let lock = lock_of(app, &caller, (bucket, key, version_id.as_deref())).await?;
    let missing = || {
        let message = "The object has no retention";
        s3_error(S3ErrorCode::NoSuchObjectLockConfiguration, message)
    };
    let Retention { mode, until_ms } = lock.retention.ok_or_else(missing)?;
    let retention = ObjectLockRetention {
        mode: Some(ObjectLockRetentionMode::from_static(mode_text(mode))),
        retain_until_date: time_of(until_ms),
    };
    Ok(GetObjectRetentionOutput { retention: Some(retention) })
}

/// Implements GetObjectLegalHold.
pub(super) async fn get_legal_hold(
    app: &AppState,
    request: S3Request<GetObjectLegalHoldInput>,
) -> S3Result<GetObjectLegalHoldOutput> {
    let caller = caller_of(&request.extensions)?;
    let GetObjectLegalHoldInput { bucket, key, version_id, .. } = &request.input;
    let lock = lock_of(app, &caller, (bucket, key, version_id.as_deref())).await?;
    let status = match lock.hold {
        true => ObjectLockLegalHoldStatus::ON,
        false => ObjectLockLegalHoldStatus::OFF,
    };
    let status = Some(ObjectLockLegalHoldStatus::from_static(status));
    Ok(GetObjectLegalHoldOutput { legal_hold: Some(ObjectLockLegalHold { status }) })
}

/// Implements PutObjectRetention. Without mode and date the retention ends.
pub(super) async fn put_retention(
    app: &AppState,
    request: S3Request<PutObjectRetentionInput>,
) -> S3Result<PutObjectRetentionOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let now_ms = app.clock.unix_ms();
    let bypasses = may_bypass(&caller, input.bypass_governance_retention);
    let new = input.retention.as_ref().map(sent_retention).transpose()?.flatten();
    let change = |bucket: &Bucket, attributes: StoredAttributes| {
        check_enabled(bucket)?;
        let new = new.map(|new| in_future(new, now_ms)).transpose()?;
        let old = attributes.lock.retention;
        if old.is_some_and(|old| !old.may_become(new, now_ms, bypasses)) {
            let message = "The version is under retention, which can only be extended";
            return Err(to_s3_error(&ApiError::forbidden(message)));
        }
        let lock = ObjectLock { retention: new, ..attributes.lock };
        Ok(StoredAttributes { lock, ..attributes })
    };
    let stored = Stored::of(&input.bucket, &input.key, input.version_id.as_deref())?;
    rewrite(app, &caller, stored, Scope::Manage, change).await?;
    Ok(PutObjectRetentionOutput::default())
}

fn sent_retention(sent: &ObjectLockRetention) -> S3Result<Option<Retention>> {
    let (mode, until) = match (&sent.mode, &sent.retain_until_date) {
        (None, None) => return Ok(None),
        (Some(mode), Some(until)) => (mode, until),
        _ => return Err(malformed("A retention has both Mode and RetainUntilDate")),
    };
    let mode = parse_mode(mode.as_str());
    let mode = mode.ok_or_else(|| malformed("Mode must be GOVERNANCE or COMPLIANCE"))?;
    let until_ms =
        millis_of(until).ok_or_else(|| malformed("RetainUntilDate must be an ISO 8601 time"))?;
    Ok(Some(Retention { mode, until_ms }))
}

/// Implements PutObjectLegalHold.
pub(super) async fn put_legal_hold(
    app: &AppState,
    request: S3Request<PutObjectLegalHoldInput>,
) -> S3Result<PutObjectLegalHoldOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let status = input.legal_hold.as_ref().and_then(|it| it.status.as_ref());
    let hold = match status.map(ObjectLockLegalHoldStatus::as_str) {
        Some(ObjectLockLegalHoldStatus::ON) => true,
        Some(ObjectLockLegalHoldStatus::OFF) => false,
        _ => return Err(malformed("The Status of a legal hold must be ON or OFF")),
    };
    let change = |bucket: &Bucket, attributes: StoredAttributes| {
        check_enabled(bucket)?;
        let lock = ObjectLock { hold, ..attributes.lock };
        Ok(StoredAttributes { lock, ..attributes })
    };
    let stored = Stored::of(&input.bucket, &input.key, input.version_id.as_deref())?;
    rewrite(app, &caller, stored, Scope::Manage, change).await?;
    Ok(PutObjectLegalHoldOutput::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_retention_has_days_or_years_within_bounds() {
        let of = |mode: &'static str, days, years| {
            let mode = Some(ObjectLockRetentionMode::from_static(mode));
            let parsed = default_retention(&dto::DefaultRetention { days, mode, years });
            parsed.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
        };
        for (mode, days, years, code) in [
            ("GOVERNANCE", Some(1), None, "ok"),
            ("COMPLIANCE", None, Some(100), "ok"),
            ("COMPLIANCE", Some(36_500), None, "ok"),
            ("GOVERNANCE", Some(0), None, "InvalidRetentionPeriod"),
            ("GOVERNANCE", None, Some(-1), "InvalidRetentionPeriod"),
            ("GOVERNANCE", None, Some(101), "InvalidRetentionPeriod"),
            ("GOVERNANCE", Some(1), Some(1), "MalformedXML"),
            ("GOVERNANCE", None, None, "MalformedXML"),
            ("governance", Some(1), None, "MalformedXML"),
        ] {
            assert_eq!(of(mode, days, years), code, "{mode} {days:?} {years:?}");
        }
    }
}
