//! Authentication and rate limiting of S3 requests.
//!
//! Guarantees: a revoked, expired or suspended key is rejected from the next request on; each operation is charged to
//! the rate limit of the corresponding API operation, before a byte of the body is read. Non-goals: scopes and buckets,
//! which the operations check.

use async_trait::async_trait;
use catalog::{AccountId, ApiKeyId};
use engine::BucketName;
use http::{Extensions, HeaderMap};
use protocol::error::ApiError;
use protocol::object_path::parse_bucket_name;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::path::S3Path;
use s3s::{S3Error, S3ErrorCode, S3Result};
use service::admission::charge;
use service::auth::{Caller, PresentedCredentials};
use service::rate_limit::RateClass;
use service::request_context::RoutedContext;
use service::state::AppState;

use super::acl::blocks_public_acls;
use super::errors::to_s3_error;
use super::parameters::{self, RequestBucket};
use super::signed::SignedQuery;

/// Lookup of signing secrets for `s3s`.
pub(super) struct S3SecretProvider {
    app: AppState,
}

/// Access check of `s3s`.
pub(super) struct S3Authorizer {
    app: AppState,
}

impl S3SecretProvider {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

impl S3Authorizer {
    pub(super) fn new(app: AppState) -> Self {
        Self { app }
    }
}

#[async_trait]
impl S3Auth for S3SecretProvider {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let id = ApiKeyId::parse(access_key)
            .filter(|id| self.app.catalog.api_keys().active(id).is_some());
        let id = id.ok_or_else(|| to_s3_error(&ApiError::invalid_api_key()))?;
        let secret = self.app.catalog.api_keys().s3_secret(&id);
        let secret = secret.ok_or_else(|| S3Error::new(S3ErrorCode::ServiceUnavailable))?;
        Ok(SecretKey::from(secret))
    }
}

#[async_trait]
impl S3Access for S3Authorizer {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let unsigned = || to_s3_error(&ApiError::missing_api_key());
        let key = context.credentials().and_then(|it| ApiKeyId::parse(&it.access_key));
        let key = key.ok_or_else(unsigned)?;
        let operation = context.s3_op().name().to_owned();
        let (method, uri, headers) = (context.method(), context.uri(), context.headers());
        let (method, uri, headers) = (method.clone(), uri.clone(), headers.clone());
        let bucket = bucket_in(context.s3_path());
        let extensions = context.extensions_mut();
        let asking = PresentedCredentials {
            method: &method,
            uri: &uri,
            headers: &headers,
            extensions: &*extensions,
            client: RoutedContext::client_ip(extensions),
        };
        let caller =
            self.authorize_key(&key, asking, &operation).map_err(|error| to_s3_error(&error))?;
        let account = caller.account().id.clone();
        extensions.insert(caller);
        check_parameters(&self.app, &account, bucket, &operation, &headers, &SignedQuery::of(&uri))
    }
}

impl S3Authorizer {
    fn authorize_key(
        &self,
        key: &ApiKeyId,
        asking: PresentedCredentials<'_>,
        operation: &str,
    ) -> Result<Caller, ApiError> {
        let caller = Caller::from_signature(&self.app, key, asking)?;
        caller.require_plan(self.app.endpoint())?;
        if let Some(action) = action_of(operation) {
            charge(&self.app, action, &caller)?;
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
    query: &SignedQuery,
) -> S3Result<()> {
    let bucket = bucket.and_then(|name| app.catalog.buckets().get(&name));
    let bucket = bucket.filter(|bucket| app.catalog.buckets().role(account, bucket).is_some());
    let bucket = bucket.as_deref().map(|bucket| RequestBucket {
        owner: bucket.owner.as_str(),
        blocks_public_acls: blocks_public_acls(bucket),
    });
    parameters::check(operation, headers, query, bucket)
}

/// Returns the bucket that a request names.
fn bucket_in(path: &S3Path) -> Option<BucketName> {
    let named = path.as_object().map(|(bucket, _)| bucket).or_else(|| path.as_bucket());
    parse_bucket_name(named?).ok()
}

/// Returns the rate limit of an operation; reading a file has none, as in delivery.
fn action_of(operation: &str) -> Option<RateClass> {
    match operation {
        "GetObject" | "HeadObject" => None,
        "PutObject" | "CopyObject" | "CreateMultipartUpload" => Some(RateClass::Upload),
        _ => Some(RateClass::Management),
    }
}

/// Returns the authenticated caller of a request.
pub(super) fn caller_of(extensions: &Extensions) -> S3Result<Caller> {
    let unguarded = "S3 operation is not covered by an access check";
    let caller = extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| to_s3_error(&ApiError::internal(unguarded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_writes_charge_the_upload_rate_limit() {
        assert!(matches!(action_of("PutObject"), Some(RateClass::Upload)));
        assert!(matches!(action_of("UploadPart"), Some(RateClass::Management)));
        assert!(matches!(action_of("ListObjectsV2"), Some(RateClass::Management)));
        assert!(action_of("GetObject").is_none());
    }
}
