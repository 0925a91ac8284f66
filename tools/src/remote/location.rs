//! Remote store of a command line or of the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use engine::remote::RemoteStore;
use engine::replication::ReplicationOptions;
use outbound::trust_anchors::TrustAnchors;
use remote::{InvalidLocation, RemoteLocation};
use service::config::RemoteSettings;
use tokio::runtime::{Handle, Runtime};

use crate::exit::Failure;
use crate::settings;

/// Remote store on the command line.
#[derive(clap::Args)]
pub(super) struct LocationArgs {
    /// URL of the remote store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or
    /// file:///ABSOLUTE/FOLDER.
    #[arg(env = "TRUG_REMOTE_URL")]
    url: String,
    /// URL of the service, for a store other than the provider's own.
    #[arg(long, value_name = "URL", env = "TRUG_REMOTE_ENDPOINT")]
    endpoint: Option<String>,
    /// Region of an S3 store. [default: us-east-1]
    #[arg(long, env = "TRUG_REMOTE_REGION")]
    region: Option<String>,
    /// File with two lines: access key and secret key (s3), account and key (az); or the JSON of a service account
    /// (gs). [default: the machine's own credentials]
    #[arg(long, value_name = "FILE", env = "TRUG_REMOTE_CREDENTIALS_FILE")]
    credentials_file: Option<PathBuf>,
    /// Root certificates (PEM) for the endpoint, in addition to Mozilla's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Connection of a command: the runtime runs as long as the store is used.
pub(super) struct RemoteConnection {
    pub(super) store: Arc<dyn RemoteStore>,
    pub(super) location: RemoteLocation,
    _runtime: Runtime,
}

impl LocationArgs {
    /// Connects to the remote store.
    pub(super) fn connect(self) -> Result<RemoteConnection, Failure> {
        let (location, roots) = self.location()?;
        let runtime = runtime()?;
        let store = remote::connect(&location, &roots, runtime.handle().clone())
            .map_err(|error| Failure::failed(error.to_string()))?;
        Ok(RemoteConnection { store, location, _runtime: runtime })
    }

    /// Returns the location of the arguments, and the authorities of its certificates.
    fn location(self) -> Result<(RemoteLocation, TrustAnchors), Failure> {
        let refuse = |error: InvalidLocation| Failure::wrong_usage(error.to_string());
        let mut location = RemoteLocation::parse(&self.url).map_err(refuse)?;
        if let Some(endpoint) = &self.endpoint {
            location = location.with_endpoint(endpoint).map_err(refuse)?;
        }
        if let Some(region) = &self.region {
            location = location.with_region(region).map_err(refuse)?;
        }
        if let Some(path) = &self.credentials_file {
            let named = |why: &dyn std::fmt::Display| {
                Failure::wrong_usage(format!("--credentials-file: {}: {why}", path.display()))
            };
            let text = settings::read_text(path, remote::limits::CREDENTIALS_BYTES_MAX);
            let text = text.map_err(|error| named(&error))?;
            location = location.with_credentials(&text).map_err(|error| named(&error))?;
        }
        let roots =
            self.ca_file.map(|path| settings::read_roots("--ca-file", &path)).transpose()?;
        Ok((location, roots.unwrap_or_default()))
    }
}

/// Starts a runtime for the requests of a command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}

/// Returns the location of the configuration, with its credentials.
pub(crate) fn configured(settings: &RemoteSettings) -> Result<RemoteLocation, Failure> {
    let refuse = |setting: &'static str| {
        move |error: InvalidLocation| Failure::wrong_usage(format!("{setting}: {error}"))
    };
    let mut location = RemoteLocation::parse(&settings.url).map_err(refuse("remote_url"))?;
    if let Some(endpoint) = &settings.endpoint {
        location = location.with_endpoint(endpoint).map_err(refuse("remote_endpoint"))?;
    }
    if let Some(region) = &settings.region {
        location = location.with_region(region).map_err(refuse("remote_region"))?;
    }
    if let Some(credentials) = &settings.credentials {
        let checked = location.with_credentials(credentials.text());
        location = checked.map_err(refuse("remote_credentials_file"))?;
    }
    Ok(location)
}

/// Connects to the remote store of the configuration, and returns the options of replication.
pub(crate) fn replication(
    settings: &RemoteSettings,
    runtime: Handle,
) -> Result<ReplicationOptions, Failure> {
    let location = configured(settings)?;
    let store = remote::connect(&location, &TrustAnchors::default(), runtime)
        .map_err(|error| Failure::failed(format!("remote_url: {error}")))?;
    let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis());
    Ok(ReplicationOptions {
        ack: settings.ack,
        ship_interval_ms: milliseconds(settings.ship_interval).unwrap_or(u64::MAX),
        lease_seconds: settings.lease_seconds,
        retention_ms: milliseconds(settings.retention).unwrap_or(u64::MAX),
        local_bytes_max: settings.local_cache_bytes,
        ..ReplicationOptions::new(store)
    })
}
