//! Connections to remote stores, and the runtime of their calls.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use engine::remote::RemoteStore;
use outbound::trust_anchors::TrustAnchors;
use remote::RemoteLocation;
use tests::SignedConnection;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Connects to a location.
pub(crate) fn connect(location: &RemoteLocation) -> Arc<dyn RemoteStore> {
    connect_with(location, &TrustAnchors::default())
}

/// Connects to a location with authorities in addition to Mozilla's.
pub(crate) fn connect_with(
    location: &RemoteLocation,
    roots: &TrustAnchors,
) -> Arc<dyn RemoteStore> {
    remote::connect(location, roots, RUNTIME.handle().clone()).unwrap()
}

/// Connects to a URL with an endpoint and credentials.
pub(crate) fn connect_to(url: &str, endpoint: &str, credentials: &str) -> Arc<dyn RemoteStore> {
    let location = RemoteLocation::parse(url).unwrap().with_endpoint(endpoint).unwrap();
    connect(&location.with_credentials(credentials).unwrap())
}

/// Creates the bucket `pics` of an S3 service.
pub(crate) fn create_bucket(service: SocketAddr, [id, secret]: [&str; 2]) {
    let mut connection = SignedConnection::connect(service, id, secret).unwrap();
    let created = connection.send("PUT", "/pics", &[("content-length", "0")], b"").unwrap();
    assert_eq!(created.status, 200, "{}", created.text());
}
