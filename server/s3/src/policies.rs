//! Bucket policies, as far as the access of a bucket expresses them: everyone may read every object, or only callers
//! with a credential.
//!
//! Guarantees: a policy is accepted only if it grants exactly that; one that grants or denies anything else is rejected
//! and changes nothing. Non-goals: conditions, grants to accounts.

use catalog::{Access, BucketChange};
use s3s::dto::{
    DeleteBucketPolicyInput, DeleteBucketPolicyOutput, GetBucketPolicyInput, GetBucketPolicyOutput,
    GetBucketPolicyStatusInput, GetBucketPolicyStatusOutput, PolicyStatus, PutBucketPolicyInput,
    PutBucketPolicyOutput,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use serde_json::Value;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::configuration::{check_managed, not_configured};
use super::errors::{code, s3_error, to_s3_error};

/// Maximum bytes of a bucket policy, which is part of the bucket's record.
const BUCKET_POLICY_BYTES_MAX: usize = 8 * 1_024;

const EXPRESSIBLE: &str = "A bucket policy lets everyone read every object (Effect Allow, Principal \"*\", Action \
    s3:GetObject, Resource arn:aws:s3:::BUCKET/*, no conditions): other policies are not supported; give other \
    accounts access as members of an organisation, and keys their scopes";

/// Implements GetBucketPolicy.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetBucketPolicyInput>,
) -> S3Result<GetBucketPolicyOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    match &bucket.policy {
        Some(policy) => Ok(GetBucketPolicyOutput { policy: Some(policy.clone()) }),
        None => Err(not_configured(app, &caller, name, "NoSuchBucketPolicy")),
    }
}

/// Implements PutBucketPolicy: makes the bucket public.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutBucketPolicyInput>,
) -> S3Result<PutBucketPolicyOutput> {
    let caller = caller_of(&request.extensions)?;
    let PutBucketPolicyInput { bucket: name, policy, .. } = request.input;
    check_managed(app, &caller, &name)?;
    let bucket = head_bucket(app, &caller, &name).map_err(|error| to_s3_error(&error))?;
    check(&policy, &name)?;
    if bucket.public_access_block.is_some_and(|block| block.block_public_policy) {
        let message =
            "The public access block of the bucket rejects policies that grant public access";
        return Err(s3_error(S3ErrorCode::AccessDenied, message));
    }
    let change = BucketChange {
        access: Some(Access::Public),
        policy: Some(Some(policy)),
        may_be_hidden: true,
        ..BucketChange::default()
    };
    let changed = change_settings(app, &caller, &name, change).await;
    changed.map_err(|error| to_s3_error(&error))?;
    Ok(PutBucketPolicyOutput {})
}

/// Implements DeleteBucketPolicy: a bucket that a policy made public is private again.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteBucketPolicyInput>,
) -> S3Result<DeleteBucketPolicyOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    check_managed(app, &caller, name)?;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    if bucket.policy.is_some() {
        let change = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
        let changed = change_settings(app, &caller, name, change).await;
        changed.map_err(|error| to_s3_error(&error))?;
    }
    Ok(DeleteBucketPolicyOutput {})
}

/// Implements GetBucketPolicyStatus: whether everyone may read.
pub(super) async fn status(
    app: &AppState,
    request: S3Request<GetBucketPolicyStatusInput>,
) -> S3Result<GetBucketPolicyStatusOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket =
        head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    let is_public = Some(bucket.access == Access::Public);
    Ok(GetBucketPolicyStatusOutput { policy_status: Some(PolicyStatus { is_public }) })
}

/// Rejects a policy that the access of a bucket does not express.
fn check(policy: &str, bucket: &str) -> S3Result<()> {
    if policy.len() > BUCKET_POLICY_BYTES_MAX {
        let message = "A bucket policy may have up to 8 KB";
        return Err(s3_error(code("PolicyTooLarge"), message));
    }
    let malformed = || {
        let message = "A bucket policy is a JSON object with a Statement that has an Effect, an Action and a Resource";
        s3_error(S3ErrorCode::MalformedPolicy, message)
    };
    let policy: Value = serde_json::from_str(policy).map_err(|_| malformed())?;
    let statements = policy.get("Statement").map(one_or_many).ok_or_else(malformed)?;
    let has = |statement: &&Value, names: [&str; 2]| {
        names.iter().any(|name| statement.get(name).is_some())
    };
    let is_whole = |statement: &&Value| {
        has(statement, ["Effect", "Effect"])
            && has(statement, ["Action", "NotAction"])
            && has(statement, ["Resource", "NotResource"])
    };
    if statements.is_empty() || !statements.iter().all(is_whole) {
        return Err(malformed());
    }
    let known = ["Version", "Id", "Statement"];
    let is_known =
        policy.as_object().is_some_and(|it| it.keys().all(|key| known.contains(&&**key)));
    match is_known && statements.iter().all(|statement| is_public_read(statement, bucket)) {
        true => Ok(()),
        false => Err(s3_error(S3ErrorCode::NotImplemented, EXPRESSIBLE)),
    }
}

/// Returns whether a statement lets everyone read every object, and nothing else.
fn is_public_read(statement: &Value, bucket: &str) -> bool {
    let Some(fields) = statement.as_object() else { return false };
    let known = ["Sid", "Effect", "Principal", "Action", "Resource"];
    let is = |value: Option<&Value>, wanted: &str| {
        let values = value.map(one_or_many).unwrap_or_default();
        !values.is_empty() && values.iter().all(|value| value.as_str() == Some(wanted))
    };
    let principal = fields.get("Principal");
    let is_everyone = is(principal, "*")
        || principal
            .and_then(Value::as_object)
            .is_some_and(|it| it.len() == 1 && is(it.get("AWS"), "*"));
    fields.keys().all(|key| known.contains(&&**key))
        && is(fields.get("Effect"), "Allow")
        && is_everyone
        && is(fields.get("Action"), "s3:GetObject")
        && is(fields.get("Resource"), &format!("arn:aws:s3:::{bucket}/*"))
}

/// Returns the values of an element that may be a single value or a list.
fn one_or_many(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(policy: &str) -> String {
        let checked = check(policy, "pics");
        checked.err().map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
    }

    #[test]
    fn only_public_read_policy_is_accepted() {
        let with = |effect: &str, principal: &str, action: &str, resource: &str, more: &str| {
            let statement = format!(
                r#"{{"Effect": {effect}, "Principal": {principal}, "Action": {action}, "Resource": {resource}{more}}}"#
            );
            outcome(&format!(r#"{{"Version": "2012-10-17", "Statement": [{statement}]}}"#))
        };
        let (allow, everyone, read, all) =
            (r#""Allow""#, r#""*""#, r#""s3:GetObject""#, r#""arn:aws:s3:::pics/*""#);
        assert_eq!(with(allow, everyone, read, all, ""), "ok");
        assert_eq!(
            with(allow, r#"{"AWS": ["*"]}"#, r#"["s3:GetObject"]"#, all, r#", "Sid": "a""#),
            "ok"
        );
        let unsupported = "NotImplemented";
        assert_eq!(with(r#""Deny""#, everyone, read, all, ""), unsupported);
        assert_eq!(with(allow, r#"{"AWS": "arn:aws:iam::1:root"}"#, read, all, ""), unsupported);
        assert_eq!(
            with(allow, everyone, r#"["s3:GetObject", "s3:PutObject"]"#, all, ""),
            unsupported
        );
        assert_eq!(with(allow, everyone, r#""s3:*""#, all, ""), unsupported);
        assert_eq!(with(allow, everyone, read, r#""arn:aws:s3:::pics/a/*""#, ""), unsupported);
        assert_eq!(with(allow, everyone, read, r#""arn:aws:s3:::other/*""#, ""), unsupported);
        assert_eq!(with(allow, everyone, read, all, r#", "Condition": {}"#), unsupported);
        assert_eq!(with(allow, everyone, "[]", all, ""), unsupported);
        for malformed in ["", "[]", "{}", r#"{"Statement": []}"#, r#"{"Statement": [{}]}"#] {
            assert_eq!(outcome(malformed), "MalformedPolicy", "{malformed}");
        }
    }
}
