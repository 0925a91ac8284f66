//! Authentication and rate limiting of S3 requests.
//!
//! Guarantees: a revoked, expired or suspended key is rejected from the next request on; each operation is charged to
//! the rate limit of the corresponding API operation, before a byte of the body is read. Non-goals: scopes and buckets,
//! which the operations check.

use async_trait::async_trait;
use engine::BucketName;
use http::{Extensions, HeaderMap};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::path::S3Path;
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::errors::refused;
use super::parameters::{self, NamedBucket};
use super::signed::Query;
use crate::admission::take;
use crate::auth::{Asking, Caller};
use crate::catalog::{AccountId, ApiKeyId};
use crate::error::ApiError;
use crate::rate_limit::LimitedAction;
use crate::state::AppState;
use crate::target::bucket_of;

/// Lookup of signing secrets for `s3s`.
pub(super) struct Keys {
    app: AppState,
}

/// Access check of `s3s`.
pub(super) struct Door {
    app: AppState,
}

impl Keys {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

impl Door {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

#[async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let id =
            ApiKeyId::parse(access_key).filter(|id| self.app.catalog.live_api_key(id).is_some());
        let id = id.ok_or_else(|| refused(&ApiError::invalid_api_key()))?;
        let secret = self.app.catalog.signature_secret(&id);
        let secret = secret.ok_or_else(|| S3Error::new(S3ErrorCode::ServiceUnavailable))?;
        Ok(SecretKey::from(secret))
    }
}

#[async_trait]
impl S3Access for Door {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let unsigned = || refused(&ApiError::missing_api_key());
        let key = context.credentials().and_then(|it| ApiKeyId::parse(&it.access_key));
        let key = key.ok_or_else(unsigned)?;
        let operation = context.s3_op().name().to_owned();
        let (method, uri, headers) = (context.method(), context.uri(), context.headers());
        let (method, uri, headers) = (method.clone(), uri.clone(), headers.clone());
        let bucket = bucket_in(context.s3_path());
        let extensions = context.extensions_mut();
        let asking =
            Asking { method: &method, uri: &uri, headers: &headers, extensions: &*extensions };
        let caller = self.let_in(&key, asking, &operation).map_err(|error| refused(&error))?;
        let account = caller.account().id.clone();
        extensions.insert(caller);
        check_parameters(&self.app, &account, bucket, &operation, &headers, &Query::of(&uri))
    }
}

impl Door {
    fn let_in(
        &self,
        key: &ApiKeyId,
        asking: Asking<'_>,
        operation: &str,
    ) -> Result<Caller, ApiError> {
        let caller = Caller::of_signature(&self.app, key, asking)?;
        caller.check_plan(self.app.endpoint())?;
        if let Some(action) = action_of(operation) {
            take(&self.app, action, &caller)?;
        }
        Ok(caller)
    }
}

/// Rejects parameters that an operation does not support. A bucket that the caller may not access is treated like one
/// that does not exist.
pub(super) fn check_parameters(
    app: &AppState,
    account: &AccountId,
    bucket: Option<BucketName>,
    operation: &str,
    headers: &HeaderMap,
    query: &Query,
) -> S3Result<()> {
    let bucket = bucket.and_then(|name| app.catalog.bucket(&name));
    let bucket = bucket.filter(|bucket| app.catalog.role_in(account, bucket).is_some());
    let bucket = bucket.as_deref().map(|bucket| NamedBucket {
        owner: bucket.owner.as_str(),
        access: bucket.access,
        blocks_public_acls: bucket.public_access_block.is_some_and(|it| it.block_public_acls),
    });
    parameters::check(operation, headers, query, bucket)
}

/// Returns the bucket that a request names.
fn bucket_in(path: &S3Path) -> Option<BucketName> {
    let named = path.as_object().map(|(bucket, _)| bucket).or_else(|| path.as_bucket());
    bucket_of(named?).ok()
}

/// Returns the rate limit of an operation; reading a file has none, as in delivery.
fn action_of(operation: &str) -> Option<LimitedAction> {
    match operation {
        "GetObject" | "HeadObject" => None,
        "PutObject" | "CopyObject" | "CreateMultipartUpload" => Some(LimitedAction::Upload),
        _ => Some(LimitedAction::Management),
    }
}

/// Returns the authenticated caller of a request.
pub(super) fn caller_of(extensions: &Extensions) -> S3Result<Caller> {
    let unguarded = "S3 operation is not covered by an access check";
    let caller = extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| refused(&ApiError::internal(unguarded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stores_a_file_counts_as_an_upload_and_reading_as_nothing() {
        assert!(matches!(action_of("PutObject"), Some(LimitedAction::Upload)));
        assert!(matches!(action_of("UploadPart"), Some(LimitedAction::Management)));
        assert!(matches!(action_of("ListObjectsV2"), Some(LimitedAction::Management)));
        assert!(action_of("GetObject").is_none());
    }
}
