//! Endpoints with TLS: authorities of the operator, and reuse of connections.

use std::sync::Arc;

use bytes::Bytes;
use engine::remote::{Created, RemoteStore};
use outbound::trust_anchors::TrustAnchors;
use remote::RemoteLocation;
use tests::{Authority, Receiver, Scripted};

use crate::endpoint::connect_with;

/// Starts an endpoint, and connects to it with these authorities.
fn connect(authority: &Authority, roots: &TrustAnchors) -> (Receiver, Arc<dyn RemoteStore>) {
    let receiver = Receiver::start_tls(authority.server().config());
    let headers = vec![("etag", "\"1\"".to_owned())];
    receiver.otherwise(Scripted { headers, ..Scripted::status(200) });
    let endpoint = format!("https://localhost:{}", receiver.port());
    let location = RemoteLocation::parse("s3://pics").unwrap().with_endpoint(&endpoint).unwrap();
    let location = location.with_credentials("key-id-1\nsecret-1").unwrap();
    (receiver, connect_with(&location, roots))
}

#[test]
fn endpoint_with_operator_authority_reuses_its_connection() {
    let authority = Authority::new();
    let roots = TrustAnchors::parse(authority.pem().as_bytes()).unwrap();
    let (receiver, remote) = connect(&authority, &roots);
    for number in 0..20 {
        let body = [Bytes::from_static(b"one")];
        assert_eq!(remote.create(&format!("log/{number}"), &body).unwrap(), Created::New);
    }
    // A connection returns to the pool shortly after its response.
    assert_eq!(receiver.seen().len(), 20);
    assert!(receiver.connections() < 10, "{}", receiver.connections());
}

#[test]
fn endpoint_with_unknown_authority_gets_no_request() {
    let (receiver, remote) = connect(&Authority::new(), &TrustAnchors::default());
    let failed = remote.create("log/1", &[]).unwrap_err().to_string();
    assert!(failed.contains("TLS handshake failed"), "{failed}");
    assert_eq!(receiver.seen().len(), 0);
}
