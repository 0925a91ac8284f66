//! Public access blocks of buckets.
//!
//! Guarantees: a block is enforced for S3, the API and delivery alike. Non-goals: blocks of accounts.

use catalog::{BucketChange, PublicAccessBlock};
use s3s::dto::{
    DeletePublicAccessBlockInput, DeletePublicAccessBlockOutput, GetPublicAccessBlockInput,
    GetPublicAccessBlockOutput, PublicAccessBlockConfiguration, PutPublicAccessBlockInput,
    PutPublicAccessBlockOutput,
};
use s3s::{S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;

use super::access::caller_of;
use super::buckets::{change_settings, head_bucket};
use super::configuration::not_configured;
use super::errors::to_s3_error;

/// Implements GetPublicAccessBlock.
pub(super) async fn get(
    app: &AppState,
    request: S3Request<GetPublicAccessBlockInput>,
) -> S3Result<GetPublicAccessBlockOutput> {
    let caller = caller_of(&request.extensions)?;
    let name = &request.input.bucket;
    let bucket = head_bucket(app, &caller, name).map_err(|error| to_s3_error(&error))?;
    let Some(block) = bucket.public_access_block else {
        return Err(not_configured(app, &caller, name, "NoSuchPublicAccessBlockConfiguration"));
    };
    let configuration = PublicAccessBlockConfiguration {
        block_public_acls: Some(block.block_public_acls),
        block_public_policy: Some(block.block_public_policy),
        ignore_public_acls: Some(block.ignore_public_acls),
        restrict_public_buckets: Some(block.restrict_public_buckets),
    };
    Ok(GetPublicAccessBlockOutput { public_access_block_configuration: Some(configuration) })
}

/// Implements PutPublicAccessBlock.
pub(super) async fn put(
    app: &AppState,
    request: S3Request<PutPublicAccessBlockInput>,
) -> S3Result<PutPublicAccessBlockOutput> {
    let caller = caller_of(&request.extensions)?;
    let wanted = request.input.public_access_block_configuration;
    let block = PublicAccessBlock {
        block_public_acls: wanted.block_public_acls.unwrap_or_default(),
        ignore_public_acls: wanted.ignore_public_acls.unwrap_or_default(),
        block_public_policy: wanted.block_public_policy.unwrap_or_default(),
        restrict_public_buckets: wanted.restrict_public_buckets.unwrap_or_default(),
    };
    set(app, &caller, &request.input.bucket, Some(block)).await?;
    Ok(PutPublicAccessBlockOutput {})
}

/// Implements DeletePublicAccessBlock: public access that was granted before is in effect again.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeletePublicAccessBlockInput>,
) -> S3Result<DeletePublicAccessBlockOutput> {
    let caller = caller_of(&request.extensions)?;
    set(app, &caller, &request.input.bucket, None).await?;
    Ok(DeletePublicAccessBlockOutput {})
}

async fn set(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    block: Option<PublicAccessBlock>,
) -> S3Result<()> {
    let change = BucketChange { public_access_block: Some(block), ..BucketChange::default() };
    change_settings(app, caller, bucket, change).await.map_err(|error| to_s3_error(&error))
}
