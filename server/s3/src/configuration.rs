//! Bucket configuration: tags, and S3 features that trug does not implement, reported as not configured.
//!
//! Terraform, bucket browsers and rclone read all of it before they change anything. Guarantees: nothing is reported as
//! configured that is not in effect. Non-goals: access control lists (`acl`).

use catalog::object_attributes::Tags;
use catalog::{BucketChange, Scope};
use engine::FolderKey;
use protocol::object_path::parse_bucket_name;
use s3s::dto::{
    DeleteBucketTaggingInput, DeleteBucketTaggingOutput, GetBucketOwnershipControlsInput,
    GetBucketOwnershipControlsOutput, GetBucketRequestPaymentInput, GetBucketRequestPaymentOutput,
    GetBucketTaggingInput, GetBucketTaggingOutput, ObjectOwnership, OwnershipControls,
    OwnershipControlsRule, Payer, PutBucketOwnershipControlsInput,
    PutBucketOwnershipControlsOutput, PutBucketRequestPaymentInput, PutBucketRequestPaymentOutput,
    PutBucketTaggingInput, PutBucketTaggingOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::errors::{code, s3_error, to_s3_error};
use super::tagging::{bucket_tags, tag_set};

/// Returns the error of a configuration that no bucket has, or that of a missing bucket.
pub(super) fn not_configured(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    missing: &'static str,
) -> S3Error {
    match head_bucket(app, caller, bucket) {
        Ok(_) => {
            let mut error = s3_error(code(missing), "The bucket has no such configuration");
            error.set_status_code(http::StatusCode::NOT_FOUND);
            error
        }
        Err(error) => to_s3_error(&error),
    }
}

/// Fails if the bucket does not exist or the caller may not access it.
pub(super) fn check_bucket(app: &AppState, caller: &Caller, bucket: &str) -> S3Result<()> {
    head_bucket(app, caller, bucket).map(drop).map_err(|error| to_s3_error(&error))
}

/// Implements GetBucketOwnershipControls: objects have no access of their own.
pub(super) async fn ownership(
    app: &AppState,
    request: S3Request<GetBucketOwnershipControlsInput>,
) -> S3Result<GetBucketOwnershipControlsOutput> {
    let caller = caller_of(&request.extensions)?;
    check_bucket(app, &caller, &request.input.bucket)?;
    let object_ownership = ObjectOwnership::from_static(ObjectOwnership::BUCKET_OWNER_ENFORCED);
    let rules = vec![OwnershipControlsRule { object_ownership }];
    let ownership_controls = Some(OwnershipControls { rules });
    Ok(GetBucketOwnershipControlsOutput { ownership_controls })
}

/// Implements PutBucketOwnershipControls: succeeds for `BucketOwnerEnforced`, which is in effect.
pub(super) async fn put_ownership(
    app: &AppState,
    request: S3Request<PutBucketOwnershipControlsInput>,
) -> S3Result<PutBucketOwnershipControlsOutput> {
    let caller = caller_of(&request.extensions)?;
    check_managed(app, &caller, &request.input.bucket)?;
    match request.input.ownership_controls.rules.as_slice() {
        [rule] if rule.object_ownership.as_str() == ObjectOwnership::BUCKET_OWNER_ENFORCED => {
            Ok(PutBucketOwnershipControlsOutput {})
        }
        _ => {
            let message = "Objects belong to the owner of their bucket: the only ownership is BucketOwnerEnforced";
            Err(s3_error(S3ErrorCode::NotImplemented, message))
        }
    }
}

/// Implements PutBucketRequestPayment: succeeds for `BucketOwner`, which is in effect.
pub(super) async fn put_request_payment(
    app: &AppState,
    request: S3Request<PutBucketRequestPaymentInput>,
) -> S3Result<PutBucketRequestPaymentOutput> {
    let caller = caller_of(&request.extensions)?;
    check_managed(app, &caller, &request.input.bucket)?;
    match request.input.request_payment_configuration.payer.as_str() {
        Payer::BUCKET_OWNER => Ok(PutBucketRequestPaymentOutput {}),
        _ => {
            let message = "The owner of a bucket pays for requests: the only payer is BucketOwner";
            Err(s3_error(S3ErrorCode::NotImplemented, message))
        }
    }
}

/// Fails if the bucket does not exist or the caller may not manage it.
pub(super) fn check_managed(app: &AppState, caller: &Caller, bucket: &str) -> S3Result<()> {
    let managed = parse_bucket_name(bucket)
        .and_then(|name| caller.bucket(&app.catalog, &name, Scope::Manage))
        .and_then(|_| caller.require_folder_access(&FolderKey::root()));
    managed.map_err(|error| to_s3_error(&error))
}

/// Implements GetBucketRequestPayment: the bucket owner pays.
pub(super) async fn request_payment(
    app: &AppState,
    request: S3Request<GetBucketRequestPaymentInput>,
) -> S3Result<GetBucketRequestPaymentOutput> {
    let caller = caller_of(&request.extensions)?;
    check_bucket(app, &caller, &request.input.bucket)?;
    let payer = Some(Payer::from_static(Payer::BUCKET_OWNER));
    Ok(GetBucketRequestPaymentOutput { payer })
}

/// Implements GetBucketTagging.
pub(super) async fn tagging(
    app: &AppState,
    request: S3Request<GetBucketTaggingInput>,
) -> S3Result<GetBucketTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    match bucket.tags.is_empty() {
        true => Err(not_configured(app, &caller, name, "NoSuchTagSet")),
        false => Ok(GetBucketTaggingOutput { tag_set: tag_set(&bucket.tags) }),
    }
}

/// Implements PutBucketTagging.
pub(super) async fn put_tagging(
    app: &AppState,
    request: S3Request<PutBucketTaggingInput>,
) -> S3Result<PutBucketTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    let tags = bucket_tags(request.input.tagging.tag_set)?;
    set_tags(app, &caller, &request.input.bucket, tags).await?;
    Ok(PutBucketTaggingOutput {})
}

/// Implements DeleteBucketTagging.
pub(super) async fn delete_tagging(
    app: &AppState,
    request: S3Request<DeleteBucketTaggingInput>,
) -> S3Result<DeleteBucketTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    set_tags(app, &caller, &request.input.bucket, Tags::new()).await?;
    Ok(DeleteBucketTaggingOutput {})
}

async fn set_tags(app: &AppState, caller: &Caller, bucket: &str, tags: Tags) -> S3Result<()> {
    let change = BucketChange { tags: Some(tags), ..BucketChange::default() };
    change_settings(app, caller, bucket, change).await.map_err(|error| to_s3_error(&error))
}
