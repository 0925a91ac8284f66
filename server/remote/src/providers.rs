//! Clients of the kinds of stores, each twice: with retries, and without them for creations.

use std::fmt::Display;
use std::sync::Arc;

use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use outbound::pooled::PooledClient;
use outbound::trust_anchors::TrustAnchors;

use crate::http_client::StoreHttpClient;
use crate::location::{Credentials, Kind, RemoteLocation};
use crate::open_folder::OpenFolder;
use crate::{ConnectError, limits};

/// Clients of one remote store.
pub(crate) struct Clients {
    /// Client that repeats failed requests.
    pub(crate) retrying: Arc<dyn ObjectStore>,
    /// Client that sends each request once.
    pub(crate) once: Arc<dyn ObjectStore>,
    /// Whether listings are in the byte order of names.
    pub(crate) lists_in_order: bool,
    /// Prefix of the names of all objects, which is empty or ends with `/`.
    pub(crate) prefix: String,
    /// Folder whose prefix it is, if the store is a folder.
    pub(crate) folder: Option<OpenFolder>,
}

/// Creates the clients of a location.
pub(crate) fn clients(
    location: &RemoteLocation,
    roots: &TrustAnchors,
) -> Result<Clients, ConnectError> {
    if location.kind() == Kind::Folder {
        return folder(location);
    }
    let tls = roots.client().map_err(|error| refused(location, &error))?;
    let http = StoreHttpClient(PooledClient::new(tls));
    let built = match location.kind() {
        Kind::GoogleCloud => google_cloud(location, &http),
        Kind::Azure => azure(location, &http),
        Kind::S3 | Kind::Folder => s3(location, &http),
    };
    built.map_err(|error| refused(location, &error))
}

fn refused(location: &RemoteLocation, error: &dyn Display) -> ConnectError {
    ConnectError(format!("{location}: {error}"))
}

/// Returns the clients of a folder. Files are written under temporary names, synced, and linked (creations) or renamed
/// (uploads), and the folder is synced. Empty folders are removed, so that a name may later be that of a file.
fn folder(location: &RemoteLocation) -> Result<Clients, ConnectError> {
    let folder = OpenFolder::open(location.folder()).map_err(|error| {
        let why = "the folder must exist, so that an unmounted disk is not mistaken for it";
        ConnectError(format!("{location}: {why}: {error}"))
    })?;
    let files = LocalFileSystem::new().with_fsync(true).with_automatic_cleanup(true);
    let files: Arc<dyn ObjectStore> = Arc::new(files);
    let (prefix, folder) = (folder.prefix(), Some(folder));
    Ok(Clients { retrying: files.clone(), once: files, lists_in_order: false, prefix, folder })
}

fn in_order<T: ObjectStore>(location: &RemoteLocation, retrying: T, once: T) -> Clients {
    let (retrying, once) = (Arc::new(retrying), Arc::new(once));
    let prefix = location.prefix().to_owned();
    Clients { retrying, once, lists_in_order: true, prefix, folder: None }
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { max_backoff: limits::RETRY_DELAY_MAX, ..BackoffConfig::default() },
        max_retries: limits::RETRIES_MAX,
        retry_timeout: limits::REQUEST_TIMEOUT,
    }
}

fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..retries() }
}

fn s3(location: &RemoteLocation, http: &StoreHttpClient) -> object_store::Result<Clients> {
    let is_https = location.endpoint().is_none_or(|endpoint| endpoint.starts_with("https:"));
    let mut builder = match location.credentials() {
        Some(Credentials::Pair { id, secret }) => {
            AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(secret)
        }
        _ => AmazonS3Builder::from_env(),
    };
    builder = builder
        .with_bucket_name(location.container())
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_disable_bulk_delete(true)
        .with_allow_http(true)
        // TLS protects the payload already: hashing it as well takes as long as all other work on it.
        .with_unsigned_payload(is_https)
        .with_http_connector(http.clone());
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
    }
    if let Some(region) = location.region() {
        builder = builder.with_region(region);
    }
    let retrying: AmazonS3 = builder.clone().with_retry(retries()).build()?;
    let credentials = retrying.credentials().clone();
    let once = builder.with_retry(no_retries()).with_credentials(credentials).build()?;
    Ok(in_order(location, retrying, once))
}

fn google_cloud(
    location: &RemoteLocation,
    http: &StoreHttpClient,
) -> object_store::Result<Clients> {
    let mut builder = match location.credentials() {
        Some(Credentials::ServiceAccount(json)) => {
            GoogleCloudStorageBuilder::new().with_service_account_key(json)
        }
        _ => GoogleCloudStorageBuilder::from_env(),
    };
    builder = builder.with_bucket_name(location.container()).with_http_connector(http.clone());
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_base_url(endpoint);
    }
    let retrying: GoogleCloudStorage = builder.clone().with_retry(retries()).build()?;
    let credentials = retrying.credentials().clone();
    let once = builder.with_retry(no_retries()).with_credentials(credentials).build()?;
    Ok(in_order(location, retrying, once))
}

fn azure(location: &RemoteLocation, http: &StoreHttpClient) -> object_store::Result<Clients> {
    let mut builder = match location.credentials() {
        Some(Credentials::Pair { id, secret }) => {
            MicrosoftAzureBuilder::new().with_account(id).with_access_key(secret)
        }
        _ => MicrosoftAzureBuilder::from_env(),
    };
    builder = builder
        .with_container_name(location.container())
        .with_allow_http(true)
        .with_http_connector(http.clone());
    if let Some(endpoint) = location.endpoint() {
        builder = builder.with_endpoint(endpoint.to_owned());
    }
    let retrying: MicrosoftAzure = builder.clone().with_retry(retries()).build()?;
    let credentials = retrying.credentials().clone();
    let once = builder.with_retry(no_retries()).with_credentials(credentials).build()?;
    Ok(in_order(location, retrying, once))
}
