//! Bucket operations: list, create, delete, head.
//!
//! Guarantees: a bucket that the caller may not access is reported as missing; new buckets are private, as S3 clients
//! expect, unless asked for `public-read`; only empty buckets are deleted. Non-goals: bucket settings.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::object_lock::BucketLock;
use catalog::versions::VersioningState;
use catalog::{
    Access, Bucket, BucketChange, BucketKind, CatalogError, NewBucket, NewBucketOwner, OnNonEmpty,
    Scope, new_bucket_name,
};
use engine::FolderKey;
use protocol::error::ApiError;
use protocol::object_path::parse_bucket_name;
use s3s::dto::{
    Bucket as NamedBucket, CreateBucketInput, CreateBucketOutput, DeleteBucketInput,
    DeleteBucketOutput, GetBucketLocationInput, GetBucketLocationOutput, HeadBucketInput,
    HeadBucketOutput, ListBucketsInput, ListBucketsOutput, Owner,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use service::auth::Caller;
use service::state::AppState;
use usage::task::blocking;

use super::access::caller_of;
use super::acl::bucket_access;
use super::errors::{s3_error, to_s3_error};
use super::objects::time_of;
use super::signed::REGION;

/// Maximum buckets per page (S3 API).
const PAGE_MAX: usize = 10_000;

/// Implements ListBuckets: a page of the buckets that the caller may access, by name.
pub(super) async fn list(
    app: &AppState,
    request: S3Request<ListBucketsInput>,
) -> S3Result<ListBucketsOutput> {
    let caller = caller_of(&request.extensions)?;
    let input = request.input;
    caller.require_scope(Scope::List).map_err(|error| to_s3_error(&error))?;
    let wanted = match input.max_buckets {
        None => PAGE_MAX,
        Some(wanted) => usize::try_from(wanted)
            .ok()
            .filter(|wanted| (1..=PAGE_MAX).contains(wanted))
            .ok_or_else(|| {
                s3_error(
                    S3ErrorCode::InvalidArgument,
                    "max-buckets must be a number from 1 to 10000",
                )
            })?,
    };
    let after = input.continuation_token.as_deref().map(read_token).transpose()?;
    let prefix = input.prefix.as_deref().unwrap_or_default();
    let account = caller.account();
    let mut visible: Vec<_> = app
        .catalog
        .buckets()
        .all()
        .into_iter()
        .filter(|bucket| {
            let name = bucket.name.as_str();
            name.starts_with(prefix)
                && after.as_deref().is_none_or(|after| name > after)
                && caller.limits().allows_bucket(&bucket.name)
                && app.catalog.buckets().role(&account.id, bucket).is_some()
        })
        .collect();
    visible.sort_by(|one, other| one.name.cmp(&other.name));
    let has_more = visible.len() > wanted;
    visible.truncate(wanted);
    let next = visible.last().filter(|_| has_more);
    let owner = Owner {
        id: Some(account.id.to_string()),
        display_name: Some(account.name.as_str().to_owned()),
    };
    Ok(ListBucketsOutput {
        continuation_token: next.map(|last| URL_SAFE_NO_PAD.encode(last.name.as_str())),
        buckets: Some(visible.iter().map(|bucket| named(bucket)).collect()),
        owner: Some(owner),
        prefix: input.prefix,
    })
}

fn named(bucket: &Bucket) -> NamedBucket {
    NamedBucket {
        name: Some(bucket.name.to_string()),
        creation_date: time_of(bucket.created_ms),
        bucket_region: Some(REGION.to_owned()),
    }
}

/// Parses the continuation token: the name of the last bucket of the previous page.
fn read_token(token: &str) -> S3Result<String> {
    let name = URL_SAFE_NO_PAD.decode(token).ok().and_then(|it| String::from_utf8(it).ok());
    let message = "The cursor was not issued by this server";
    name.ok_or_else(|| s3_error(S3ErrorCode::InvalidArgument, message))
}

/// Returns the bucket if the caller has any scope for its objects.
pub(super) fn head_bucket(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
) -> Result<std::sync::Arc<Bucket>, ApiError> {
    let name = parse_bucket_name(bucket)?;
    let scopes = [Scope::List, Scope::Read, Scope::Upload, Scope::Delete];
    let scope = scopes.into_iter().find(|scope| caller.has_scope(*scope)).unwrap_or(Scope::List);
    caller.bucket(&app.catalog, &name, scope)
}

/// Implements HeadBucket.
pub(super) async fn head(
    app: &AppState,
    request: S3Request<HeadBucketInput>,
) -> S3Result<HeadBucketOutput> {
    let caller = caller_of(&request.extensions)?;
    head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    let bucket_region = Some(REGION.to_owned());
    Ok(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() })
}

/// Implements GetBucketLocation: the default region, which has no name in the response.
pub(super) async fn location(
    app: &AppState,
    request: S3Request<GetBucketLocationInput>,
) -> S3Result<GetBucketLocationOutput> {
    let caller = caller_of(&request.extensions)?;
    head_bucket(app, &caller, &request.input.bucket).map_err(|error| to_s3_error(&error))?;
    Ok(GetBucketLocationOutput::default())
}

/// Returns whether a bucket name is a DNS name, as S3 requires of new buckets: clients make a host name of it. Buckets
/// that were not created through S3 may have other names.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.split('.').all(is_label) && name.parse::<std::net::Ipv4Addr>().is_err()
}

/// Creates a bucket of the caller's account: private, unless the request has the access control list `public-read`.
pub(super) async fn create(
    app: &AppState,
    request: S3Request<CreateBucketInput>,
) -> S3Result<CreateBucketOutput> {
    let caller = caller_of(&request.extensions)?;
    let CreateBucketInput { bucket, acl, object_lock_enabled_for_bucket: is_locked, .. } =
        request.input;
    let acl = acl.as_ref().map(|acl| bucket_access(acl.as_str())).transpose()?;
    let access = acl.flatten().unwrap_or(Access::Private);
    let ours = |error: ApiError| to_s3_error(&error);
    caller.require_unrestricted().map_err(ours)?;
    let name = new_bucket_name(&bucket).ok().filter(|name| is_dns_name(name.as_str()));
    let Some(name) = name else {
        let message = "Invalid bucket name: use 3 to 63 of a-z, 0-9, - and single dots, \
            as in a DNS name; not an IP address, and not a reserved name";
        return Err(s3_error(S3ErrorCode::InvalidBucketName, message));
    };
    if let Ok(there) = head_bucket(app, &caller, &bucket) {
        // As in the AWS region `us-east-1`, which all buckets here have; but access is never changed by it.
        if there.access == access {
            return Ok(CreateBucketOutput { location: Some(format!("/{bucket}")) });
        }
        let message =
            "You already own this bucket with another access: change it with PutBucketAcl";
        return Err(s3_error(S3ErrorCode::BucketAlreadyOwnedByYou, message));
    }
    let is_locked = is_locked == Some(true);
    let settings = BucketChange {
        access: Some(access),
        versioning: is_locked.then_some(VersioningState::Enabled),
        object_lock: is_locked.then(BucketLock::default),
        ..BucketChange::default()
    };
    let owner = NewBucketOwner::Account(caller.account().id.clone());
    let new = NewBucket { name, owner, kind: BucketKind::Standard, settings };
    let catalog = app.catalog.acting_as(caller.actor());
    match blocking(move || catalog.buckets().create(new)).await {
        Ok(_) => Ok(CreateBucketOutput { location: Some(format!("/{bucket}")) }),
        Err(CatalogError::AlreadyExists(_)) => {
            Err(s3_error(S3ErrorCode::BucketAlreadyExists, "The bucket already exists"))
        }
        Err(error) => Err(ours(error.into())),
    }
}

/// Changes settings of a bucket. Making its objects public requires that the caller may read them itself.
pub(super) async fn change_settings(
    app: &AppState,
    caller: &Caller,
    bucket: &str,
    change: BucketChange,
) -> Result<(), ApiError> {
    let name = parse_bucket_name(bucket)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage)?;
    caller.require_folder_access(&FolderKey::root())?;
    let unblocks = change.public_access_block.is_some() && bucket.hides_public_access();
    let opens = change.access == Some(Access::Public) || unblocks;
    if opens && bucket.access == Access::Private {
        caller.bucket(&app.catalog, &name, Scope::Read)?;
    }
    let catalog = app.catalog.acting_as(caller.actor());
    blocking(move || catalog.buckets().edit(&name, change)).await?;
    Ok(())
}

/// Deletes an empty bucket.
pub(super) async fn delete(
    app: &AppState,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<DeleteBucketOutput> {
    let caller = caller_of(&request.extensions)?;
    let ours = |error: ApiError| to_s3_error(&error);
    let name = parse_bucket_name(&request.input.bucket).map_err(ours)?;
    let bucket = caller.bucket(&app.catalog, &name, Scope::Manage).map_err(ours)?;
    caller.require_unrestricted().map_err(ours)?;
    let catalog = app.catalog.acting_as(caller.actor());
    let delete = move || catalog.buckets().delete(&bucket.name, OnNonEmpty::Refuse)?.finish();
    match blocking(delete).await {
        Ok(_) => Ok(DeleteBucketOutput {}),
        Err(CatalogError::NotEmpty(..)) => Err(s3_error(
            S3ErrorCode::BucketNotEmpty,
            "The bucket is not empty: delete its objects first",
        )),
        Err(error) => Err(ours(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_bucket_names_are_dns_names() {
        for name in ["pics", "a.b-c.d", "192.168.5", "1.2.3.4.5"] {
            assert!(is_dns_name(name), "{name}");
        }
        for name in ["foo_bar", "foo-", "foo..bar", "foo.-bar", "foo-.bar", "192.168.5.123", "foo."]
        {
            assert!(!is_dns_name(name), "{name}");
        }
    }
}
