//! Reads of bucket configuration that S3 has and trug does not: reported as not configured.
//!
//! Terraform, bucket browsers and rclone read all of it before they change anything. Guarantees: nothing is reported as
//! configured that is not in effect. Non-goals: writing configuration, except access control lists that match what is
//! in effect.

use engine::ObjectName;
use s3s::dto::{
    AccessControlPolicy, GetBucketAclInput, GetBucketAclOutput, GetBucketOwnershipControlsInput,
    GetBucketOwnershipControlsOutput, GetBucketPolicyStatusInput, GetBucketPolicyStatusOutput,
    GetBucketRequestPaymentInput, GetBucketRequestPaymentOutput, GetObjectAclInput,
    GetObjectAclOutput, GetObjectTaggingInput, GetObjectTaggingOutput, Grant, Grantee,
    ObjectOwnership, Owner, OwnershipControls, OwnershipControlsRule, Payer, Permission,
    PolicyStatus, PutBucketAclInput, PutBucketAclOutput, PutObjectAclInput, PutObjectAclOutput,
    Type,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use super::access::caller_of;
use super::buckets::look;
use super::errors::{code, refusal, refused};
use super::listing::owner_of;
use super::objects::{file_in, find, is_named};
use crate::auth::Caller;
use crate::catalog::{Access, Bucket, Scope};
use crate::error::ApiError;
use crate::state::AppState;

const ONLY_PRIVATE: &str = "Access is set for a bucket as a whole, in the dashboard or with \"trug bucket edit\": \
    the only access control list is \"private\", of a private bucket";

/// Returns the error for a configuration that no bucket has, or that of a missing bucket.
pub(super) fn not_configured(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    missing: &'static str,
) -> S3Error {
    match look(app, caller, bucket) {
        Ok(_) => {
            let mut error = refusal(code(missing), "The bucket has no such configuration");
            error.set_status_code(http::StatusCode::NOT_FOUND);
            error
        }
        Err(error) => refused(&error),
    }
}

/// Fails if the bucket does not exist or the caller may not access it.
pub(super) fn check_bucket(app: &AppState, caller: &Caller, bucket: &str) -> S3Result<()> {
    look(app, caller, bucket).map(drop).map_err(|error| refused(&error))
}

/// GetBucketAcl.
pub(super) async fn bucket_acl(
    app: &AppState,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<GetBucketAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket = look(app, &caller, &request.input.bucket).map_err(|error| refused(&error))?;
    let (owner, grants) = grants(app, &bucket);
    Ok(GetBucketAclOutput { owner: Some(owner), grants: Some(grants) })
}

/// GetObjectAcl: that of the bucket.
pub(super) async fn object_acl(
    app: &AppState,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<GetObjectAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket = check_object(app, &caller, &request.input.bucket, &request.input.key).await?;
    let (owner, grants) = grants(app, &bucket);
    let (owner, grants) = (Some(owner), Some(grants));
    Ok(GetObjectAclOutput { owner, grants, ..GetObjectAclOutput::default() })
}

/// GetObjectTagging: no tags.
pub(super) async fn object_tagging(
    app: &AppState,
    request: S3Request<GetObjectTaggingInput>,
) -> S3Result<GetObjectTaggingOutput> {
    let caller = caller_of(&request.extensions)?;
    check_object(app, &caller, &request.input.bucket, &request.input.key).await?;
    Ok(GetObjectTaggingOutput { tag_set: Vec::new(), version_id: None })
}

/// GetBucketOwnershipControls: objects have no access of their own.
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

/// GetBucketPolicyStatus: whether everybody may read.
pub(super) async fn policy_status(
    app: &AppState,
    request: S3Request<GetBucketPolicyStatusInput>,
) -> S3Result<GetBucketPolicyStatusOutput> {
    let caller = caller_of(&request.extensions)?;
    let bucket = look(app, &caller, &request.input.bucket).map_err(|error| refused(&error))?;
    let is_public = Some(bucket.access == Access::Public);
    Ok(GetBucketPolicyStatusOutput { policy_status: Some(PolicyStatus { is_public }) })
}

/// GetBucketRequestPayment: the owner's.
pub(super) async fn request_payment(
    app: &AppState,
    request: S3Request<GetBucketRequestPaymentInput>,
) -> S3Result<GetBucketRequestPaymentOutput> {
    let caller = caller_of(&request.extensions)?;
    check_bucket(app, &caller, &request.input.bucket)?;
    let payer = Some(Payer::from_static(Payer::BUCKET_OWNER));
    Ok(GetBucketRequestPaymentOutput { payer })
}

/// Returns the bucket of an object that exists and that the caller may read.
async fn check_object(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    sent_key: &str,
) -> S3Result<std::sync::Arc<Bucket>> {
    let ours = |error: ApiError| refused(&error);
    let (bucket, key) = file_in(app, caller, bucket, sent_key, Scope::Read).map_err(ours)?;
    let found = find(app, &ObjectName::new(bucket.name.clone(), key)).await.map_err(ours)?;
    let found = found.filter(|found| is_named(found, sent_key));
    found.map(|_| bucket).ok_or_else(|| ours(ApiError::file_not_found()))
}

/// Access control list in effect: full control for the owner, and read for everyone if the bucket is public.
fn grants(app: &AppState, bucket: &Bucket) -> (Owner, Vec<Grant>) {
    let owner = owner_of(app, bucket);
    let full = Grantee {
        display_name: owner.display_name.clone(),
        id: owner.id.clone(),
        email_address: None,
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    let mut grants = vec![grant(full, Permission::FULL_CONTROL)];
    if bucket.access == Access::Public {
        let everybody = Grantee {
            display_name: None,
            id: None,
            email_address: None,
            type_: Type::from_static(Type::GROUP),
            uri: Some("http://acs.amazonaws.com/groups/global/AllUsers".to_owned()),
        };
        grants.push(grant(everybody, Permission::READ));
    }
    (owner, grants)
}

fn grant(grantee: Grantee, permission: &'static str) -> Grant {
    Grant { grantee: Some(grantee), permission: Some(Permission::from_static(permission)) }
}

/// PutBucketAcl: `private`, of a private bucket.
pub(super) async fn put_bucket_acl(
    app: &AppState,
    request: S3Request<PutBucketAclInput>,
) -> S3Result<PutBucketAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let bucket = look(app, &caller, &input.bucket).map_err(|error| refused(&error))?;
    check_private(&bucket, input.access_control_policy.as_ref())?;
    Ok(PutBucketAclOutput {})
}

/// PutObjectAcl: `private`, in a private bucket.
pub(super) async fn put_object_acl(
    app: &AppState,
    request: S3Request<PutObjectAclInput>,
) -> S3Result<PutObjectAclOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    let bucket = check_object(app, &caller, &input.bucket, &input.key).await?;
    check_private(&bucket, input.access_control_policy.as_ref())?;
    Ok(PutObjectAclOutput::default())
}

/// Rejects access control lists that grant anything to others than the owner.
fn check_private(bucket: &Bucket, policy: Option<&AccessControlPolicy>) -> S3Result<()> {
    let owner = bucket.owner.to_string();
    let is_owners = |grant: &Grant| {
        let grantee = grant.grantee.as_ref().and_then(|grantee| grantee.id.as_deref());
        grantee == Some(&owner)
            && grant.permission.as_ref().map(Permission::as_str) == Some(Permission::FULL_CONTROL)
    };
    let grants = policy.and_then(|policy| policy.grants.as_deref()).unwrap_or_default();
    if bucket.access == Access::Private && grants.iter().all(is_owners) {
        return Ok(());
    }
    Err(refusal(S3ErrorCode::NotImplemented, ONLY_PRIVATE))
}
