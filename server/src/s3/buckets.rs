//! Buckets: listed, made and looked at.
//!
//! Promises: a bucket that the caller may not see is answered like one that does not exist; one that is made here is
//! private, as clients of S3 expect. Never here: settings of buckets.

use s3s::dto::{Bucket as NamedBucket, ListBucketsOutput, Owner};
use s3s::{S3ErrorCode, S3Result};

use super::errors::{refusal, refused};
use super::objects::time_of;
use crate::auth::Caller;
use crate::bridge::blocking;
use crate::catalog::{
    Access, BucketChange, BucketKind, CatalogError, NewBucket, NewBucketOwner, Scope,
    new_bucket_name,
};
use crate::error::ApiError;
use crate::state::AppState;
use crate::target::bucket_of;

/// The buckets that the caller reaches.
pub(super) fn list(app: &AppState, caller: &Caller) -> Result<ListBucketsOutput, ApiError> {
    caller.check_scope(Scope::List)?;
    let account = caller.account();
    let visible = app.catalog.buckets().into_iter().filter(|bucket| {
        caller.limits().reach_bucket(&bucket.name)
            && app.catalog.role_in(&account.id, bucket).is_some()
    });
    let named = visible.map(|bucket| NamedBucket {
        name: Some(bucket.name.to_string()),
        creation_date: time_of(bucket.created_ms),
        ..NamedBucket::default()
    });
    let owner = Owner {
        id: Some(account.id.to_string()),
        display_name: Some(account.name.as_str().to_owned()),
    };
    let buckets = Some(named.collect());
    Ok(ListBucketsOutput { buckets, owner: Some(owner), ..ListBucketsOutput::default() })
}

/// Whether there is such a bucket for the caller: who may do anything with its files may know that.
pub(super) fn look(app: &AppState, caller: &Caller, bucket: &str) -> Result<(), ApiError> {
    let name = bucket_of(bucket)?;
    let scopes = [Scope::List, Scope::Read, Scope::Upload, Scope::Delete];
    let scope = scopes.into_iter().find(|scope| caller.has_scope(*scope)).unwrap_or(Scope::List);
    caller.bucket(&app.catalog, &name, scope).map(drop)
}

/// Makes a private bucket of the caller's account.
pub(super) async fn create(app: &AppState, caller: &Caller, bucket: &str) -> S3Result<()> {
    let ours = |error: ApiError| refused(&error);
    caller.check_whole_reach().map_err(ours)?;
    let Ok(name) = new_bucket_name(bucket) else {
        let message = "A bucket has not such a name here";
        return Err(refusal(S3ErrorCode::InvalidBucketName, message));
    };
    if look(app, caller, bucket).is_ok() {
        let message = "The bucket is yours already";
        return Err(refusal(S3ErrorCode::BucketAlreadyOwnedByYou, message));
    }
    let settings = BucketChange { access: Some(Access::Private), ..BucketChange::default() };
    let owner = NewBucketOwner::Account(caller.account().id.clone());
    let new = NewBucket { name, owner, kind: BucketKind::Standard, settings };
    let catalog = app.catalog.by(caller.actor());
    match blocking(move || catalog.create_bucket(new)).await {
        Ok(_) => Ok(()),
        Err(CatalogError::Exists(_)) => {
            Err(refusal(S3ErrorCode::BucketAlreadyExists, "There is a bucket of that name already"))
        }
        Err(error) => Err(ours(error.into())),
    }
}
