//! CORS rules of a bucket: GetBucketCors, PutBucketCors, DeleteBucketCors.
//!
//! Guarantees: rules that are accepted are in effect for every response about the bucket. Non-goals: matching requests
//! (`catalog`), headers of responses (`protocol::response_headers`).

use catalog::{BucketChange, CorsRule, check_rules};
use s3s::dto::{
    CORSRule, DeleteBucketCorsInput, DeleteBucketCorsOutput, GetBucketCorsInput,
    GetBucketCorsOutput, PutBucketCorsInput, PutBucketCorsOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::configuration::not_configured;
use super::errors::{s3_error, to_s3_error};

/// Implements GetBucketCors.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetBucketCorsInput>,
) -> S3Result<GetBucketCorsOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    if bucket.cors_rules.is_empty() {
        return Err(not_configured(app, &caller, name, "NoSuchCORSConfiguration"));
    }
    let cors_rules = bucket.cors_rules.iter().map(reported).collect();
    Ok(GetBucketCorsOutput { cors_rules: Some(cors_rules) })
}

/// Implements PutBucketCors.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutBucketCorsInput>,
) -> S3Result<PutBucketCorsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let rules = input.cors_configuration.cors_rules.into_iter().map(parsed);
    let rules = rules.collect::<S3Result<Vec<_>>>()?;
    if rules.is_empty() {
        return Err(s3_error(
            S3ErrorCode::MalformedXML,
            "A CORS configuration requires at least one rule",
        ));
    }
    check_rules(&rules).map_err(|why| S3Error::with_message(S3ErrorCode::InvalidRequest, why))?;
    set(app, &caller, &input.bucket, rules).await?;
    Ok(PutBucketCorsOutput {})
}

/// Implements DeleteBucketCors.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteBucketCorsInput>,
) -> S3Result<DeleteBucketCorsOutput> {
    let caller = caller_of(&request.extensions)?;
    set(app, &caller, &request.input.bucket, Vec::new()).await?;
    Ok(DeleteBucketCorsOutput {})
}

async fn set(app: &AppState, caller: &Caller, bucket: &str, rules: Vec<CorsRule>) -> S3Result<()> {
    let change = BucketChange { cors_rules: Some(rules), ..BucketChange::default() };
    change_settings(app, caller, bucket, change).await.map_err(|error| to_s3_error(&error))
}

fn parsed(rule: CORSRule) -> S3Result<CorsRule> {
    let max_age_seconds = rule.max_age_seconds.map(|seconds| {
        u32::try_from(seconds).map_err(|_| {
            s3_error(
                S3ErrorCode::InvalidRequest,
                "MaxAgeSeconds must be a non-negative number of seconds",
            )
        })
    });
    Ok(CorsRule {
        id: rule.id,
        origins: rule.allowed_origins,
        methods: rule.allowed_methods,
        headers: rule.allowed_headers.unwrap_or_default(),
        exposed: rule.expose_headers.unwrap_or_default(),
        max_age_seconds: max_age_seconds.transpose()?,
    })
}

fn reported(rule: &CorsRule) -> CORSRule {
    let unless_empty = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    CORSRule {
        id: rule.id.clone(),
        allowed_origins: rule.origins.clone(),
        allowed_methods: rule.methods.clone(),
        allowed_headers: unless_empty(&rule.headers),
        expose_headers: unless_empty(&rule.exposed),
        max_age_seconds: rule.max_age_seconds.and_then(|seconds| i32::try_from(seconds).ok()),
    }
}
