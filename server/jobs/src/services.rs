//! What jobs and copies need of the server above them.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use catalog::{Account, Actor, Bucket, Job, OnConflict};
use engine::{Batch, Object, StagedBody};
use http_body_util::combinators::UnsyncBoxBody;
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::request_body::RequestBody;

/// Future of an object-safe trait.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Body of a download.
pub type DownloadBody = RequestBody<UnsyncBoxBody<Bytes, hyper::Error>>;

/// Principal that started a job, with its current rights.
pub struct JobPrincipal {
    pub account: Arc<Account>,
    /// Audit actor of its changes.
    pub actor: Actor,
    /// Largest upload in bytes, by the plan of the account.
    pub upload_bytes_max: u64,
}

/// File to be stored like an upload. Dropping it deletes it.
pub enum NewFile {
    /// Downloaded file.
    Download { body: StagedBody, name: Option<String>, declared_type: Option<String> },
    /// Copy of a stored file, with its media type, headers, S3 attributes and tags.
    Copy { body: StagedBody, of: Object },
}

/// Stored file.
pub struct StoredFile {
    pub object: Object,
    /// Whether the wanted name was in use.
    pub renamed: bool,
}

/// Services of the server: authorization, rate limits and the upload pipeline.
pub trait Services: Send + Sync {
    /// Checks that the credential that started a job, and its account, still permit the work.
    fn authorize(&self, job: &Job) -> Result<JobPrincipal, ApiError>;

    /// Charges an upload to the rate limit of an account. Returns false if the account is over the limit.
    fn charge_upload(&self, account: &Account) -> bool;

    /// Receives the body of a file, up to the file size limit of the bucket.
    fn receive<'a>(
        &'a self,
        bucket: &'a Bucket,
        body: DownloadBody,
    ) -> BoxFuture<'a, Result<StagedBody, ApiError>>;

    /// Stores a file under a key, or under its own name in a folder, together with the changes in `along`, on behalf of
    /// an author.
    ///
    /// # Errors
    ///
    /// `already_exists` if the name is in use and to be refused, and those of an upload.
    fn store<'a>(
        &'a self,
        actor: Actor,
        bucket: &'a Arc<Bucket>,
        place: PathInBucket,
        file: NewFile,
        on_conflict: OnConflict,
        along: Batch,
    ) -> BoxFuture<'a, Result<StoredFile, ApiError>>;
}
