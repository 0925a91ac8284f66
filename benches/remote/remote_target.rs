//! Remote store to measure against: a Ceph cluster with a gateway on this machine, or a URL.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::remote::RemoteStore;
use outbound::trust_anchors::TrustAnchors;
use remote::RemoteLocation;
use tempfile::TempDir;
use tests::SignedConnection;
use tests::ceph::{self, ACCESS_KEY, Ceph, SECRET_KEY};
use tokio::runtime::Runtime;

/// URL of a remote store, such as `s3://bucket/prefix`.
const URL: &str = "TRUG_BENCH_REMOTE_URL";
/// URL of its service, if it is not the provider's.
const ENDPOINT: &str = "TRUG_BENCH_REMOTE_ENDPOINT";
/// File with its credentials.
const CREDENTIALS: &str = "TRUG_BENCH_REMOTE_CREDENTIALS_FILE";
const BUCKET: &str = "bench";
/// Number of objects per page while they are removed.
const PAGE: usize = 1_000;

/// Remote store. Stores of one run have a prefix of their own.
pub(crate) struct RemoteTarget {
    url: String,
    endpoint: Option<String>,
    credentials_file: Option<PathBuf>,
    runtime: Runtime,
    /// Ended with this value, with the file of its credentials.
    ceph: Option<(Ceph, TempDir)>,
}

impl RemoteTarget {
    /// Takes the remote store of the environment, or else starts a Ceph cluster.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub(crate) fn find() -> Result<Self, String> {
        if std::env::var_os(URL).is_some() {
            return Self::of_environment(&format!("/{}", run_id()));
        }
        if let Some(program) = ceph::missing_program() {
            return Err(format!(
                "{program} is not installed: install Ceph (ceph-mon, ceph-mgr, ceph-osd, radosgw, ceph-common), or set \
                 {URL}, {ENDPOINT} and {CREDENTIALS} to a remote store"
            ));
        }
        let cluster = Ceph::start();
        let gateway = cluster.gateways()[0];
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("credentials");
        fs::write(&file, format!("{ACCESS_KEY}\n{SECRET_KEY}\n"))
            .map_err(|error| error.to_string())?;
        let created =
            SignedConnection::connect(gateway, ACCESS_KEY, SECRET_KEY).and_then(|mut it| {
                it.send("PUT", &format!("/{BUCKET}"), &[("content-length", "0")], b"")
            });
        let created = created.map_err(|error| format!("creating a bucket: {error}"))?;
        if created.status != 200 {
            return Err(format!("creating a bucket: {}: {}", created.status, created.text()));
        }
        Ok(Self {
            url: format!("s3://{BUCKET}/{}", run_id()),
            endpoint: Some(format!("http://{gateway}")),
            credentials_file: Some(file),
            runtime: runtime()?,
            ceph: Some((cluster, folder)),
        })
    }

    /// Takes the remote store of the environment, with a suffix of its prefix.
    pub(crate) fn of_environment(suffix: &str) -> Result<Self, String> {
        let url = std::env::var(URL).map_err(|error| format!("{URL}: {error}"))?;
        Ok(Self {
            url: format!("{}{suffix}", url.trim_end_matches('/')),
            endpoint: std::env::var(ENDPOINT).ok(),
            credentials_file: std::env::var_os(CREDENTIALS).map(PathBuf::from),
            runtime: runtime()?,
            ceph: None,
        })
    }

    /// Returns the environment with which a child process finds this remote store.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = vec![(URL, self.url.clone())];
        environment.extend(self.endpoint.clone().map(|endpoint| (ENDPOINT, endpoint)));
        let file = self.credentials_file.as_ref();
        environment.extend(file.map(|file| (CREDENTIALS, file.display().to_string())));
        environment
    }

    /// Returns a description for the tables.
    pub(crate) fn description(&self) -> &str {
        if self.ceph.is_some() { "Ceph on this machine" } else { &self.url }
    }

    /// Returns an empty remote store of this name.
    pub(crate) fn connect(&self, name: &str) -> Result<Arc<dyn RemoteStore>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let url = format!("{}/{name}", self.url);
        if let Some(folder) = url.strip_prefix("file://") {
            fs::create_dir_all(folder).map_err(|why| text(&why))?;
        }
        let mut location = RemoteLocation::parse(&url).map_err(|why| text(&why))?;
        if let Some(endpoint) = &self.endpoint {
            location = location.with_endpoint(endpoint).map_err(|why| text(&why))?;
        }
        if let Some(file) = &self.credentials_file {
            let credentials =
                fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            location = location.with_credentials(&credentials).map_err(|why| text(&why))?;
        }
        let runtime = self.runtime.handle().clone();
        remote::connect(&location, &TrustAnchors::default(), runtime).map_err(|why| text(&why))
    }

    /// Removes the objects of all stores of this run, unless the cluster ends with this value.
    pub(crate) fn clear(&self) -> Result<(), String> {
        if self.ceph.is_some() {
            return Ok(());
        }
        for name in super::STORES {
            let store = self.connect(name)?;
            loop {
                let page = store.list("", None, PAGE).map_err(|error| error.to_string())?;
                for object in &page {
                    store.remove(&object.name).map_err(|error| error.to_string())?;
                }
                if page.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| format!("starting a runtime: {error}"))
}

/// Returns a path segment that no other run uses.
fn run_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", now.as_millis(), std::process::id())
}
