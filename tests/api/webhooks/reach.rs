//! Destinations of webhooks: the receiver is on this machine, so any delivery without the operator's permission is an
//! SSRF hole. The table of addresses is tested in `protocol::destination`.

use std::sync::Arc;

use jobs::webhooks::deliver_due;
use outbound::trust_anchors::TrustAnchors;
use protocol::destination::Origin;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use service::Config;
use tests::{Client, Receiver, Scripted, World};

use super::{HOOKS, HOUR_MS, config, hook, hooked, keys, pass, webhook};

async fn tested(client: &Client, path: &str) -> Value {
    let path = format!("{path}/test");
    client.post(&path).await.check_done()
}

const NOWHERE: &str = "the host name does not resolve to a public address";

#[tokio::test]
async fn ssrf_non_public_ip_literals_are_rejected_at_once() {
    let receiver = Receiver::start();
    let (_world, client) = World::with_bucket(1);
    let port = receiver.port();
    for host in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::1]",
        "[2001::1]",
        "[fc00::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
    ] {
        let body =
            json!({"url": format!("http://{host}:{port}/"), "events": ["s3:ObjectCreated:*"]});
        client.post_json(HOOKS, body).await.check_parameter("url");
    }
    let (path, _) = hook(&client, "http://hooks.example.com/", &["s3:ObjectCreated:*"]).await;
    let body = json!({"url": receiver.url("/")});
    client.patch_json(&path, body).await.check_parameter("url");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn ssrf_names_resolving_to_loopback_are_rejected_on_send() {
    let receiver = Receiver::start();
    let (world, client) = World::with_bucket(1);
    let port = receiver.port();
    let hosts = ["localhost", "LOCALHOST", "127.1", "0x7f.1", "2130706433", "017700000001", "0"];
    for host in hosts {
        let url = format!("http://{host}:{port}/");
        let (path, _) = hook(&client, &url, &["s3:ObjectCreated:*"]).await;
        client.put("/photos/", "a.txt", b"1").await;
        deliver_due(&world.state.jobs).await;
        let state = webhook(&client, &path).await;
        let error = state["lastError"].as_str().unwrap();
        assert_eq!(error, NOWHERE, "{host}");
        let tested = tested(&client, &path).await;
        assert_eq!(
            (&tested["delivered"], &tested["deliveryError"]),
            (&json!(false), &json!(error))
        );
        client.delete(&path).await.check_done();
    }
    let (path, _) =
        hook(&client, &format!("http://localhost:{port}/"), &["s3:ObjectCreated:*"]).await;
    assert_eq!(tested(&client, &path).await["deliveryError"], NOWHERE);
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn webhook_allow_list_matches_the_exact_origin() {
    let (allowed, other) = (Receiver::start(), Receiver::start());
    let (world, client) = World::with_bucket_and(1, config(&allowed));
    let local = format!("http://localhost:{}/", allowed.port());
    for (url, is_allowed) in [
        (allowed.url("/any/path?and=query"), true),
        (other.url("/"), false),
        (local, false),
        (format!("https://127.0.0.1:{}/", allowed.port()), false),
    ] {
        let body = json!({"url": url, "events": ["s3:ObjectCreated:*"]});
        let made = client.post_json(HOOKS, body).await;
        if made.status != 200 {
            made.check_parameter("url");
            assert!(!is_allowed, "{url}");
            continue;
        }
        let path = format!("{HOOKS}/{}", made.json()["webhook"]["id"].as_str().unwrap());
        assert_eq!(tested(&client, &path).await["delivered"], is_allowed, "{url}");
    }
    deliver_due(&world.state.jobs).await;
    assert_eq!((allowed.connections(), other.connections()), (1, 0));
    // An allowed name may resolve to any address.
    let name = format!("http://localhost:{}", other.port());
    let webhook_allow = vec![Origin::parse(&name).unwrap()];
    let (_world, client) = World::with_bucket_and(2, Config { webhook_allow, ..Config::default() });
    let (path, _) = hook(&client, &format!("{name}/"), &["s3:ObjectCreated:*"]).await;
    assert_eq!(tested(&client, &path).await["delivered"], true);
}

#[tokio::test]
async fn webhook_removed_allow_list_entry_stops_delivery() {
    let (world, client, receiver, path) = hooked().await;
    client.put("/photos/", "a.txt", b"1").await;
    world.store.close().unwrap();
    let strict = Config { webhook_allow: Vec::new(), ..Config::clone(&world.state.config()) };
    let world = world.found_with(world.disk.fork(), strict);
    let client = Client::new(world.app(), client.key.clone());
    deliver_due(&world.state.jobs).await;
    assert_eq!(receiver.connections(), 0);
    assert_eq!(webhook(&client, &path).await["lastError"], NOWHERE);
}

#[tokio::test]
async fn webhook_redirect_is_not_followed() {
    let (world, client, receiver, path) = hooked().await;
    let secret = Receiver::start();
    for (status, place) in [
        (301, receiver.url("/elsewhere")),
        (302, secret.url("/")),
        (303, secret.url("/")),
        (307, secret.url("/")),
        (308, receiver.url("/elsewhere")),
    ] {
        let headers = vec![("location", place)];
        receiver.script([Scripted { headers, ..Scripted::status(status) }]);
        client.put("/photos/", "a.txt", b"1").await;
        deliver_due(&world.state.jobs).await;
        let state = webhook(&client, &path).await;
        let error = format!("response status {status}; redirects are not followed");
        assert_eq!(state["lastError"], error);
        assert_eq!(receiver.take_received().len(), 1);
        pass(&world, HOUR_MS).await;
        assert_eq!(receiver.take_received().len(), 1);
    }
    assert_eq!(secret.connections(), 0);
}

/// Returns an authority, and a server certificate of it for these names.
fn authority(names: Vec<String>) -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(names).unwrap().signed_by(&server_key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![server.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der())),
        )
        .unwrap();
    (root.pem(), Arc::new(config))
}

#[tokio::test]
async fn webhook_tls_certificate_is_verified() {
    let names = vec!["127.0.0.1".to_owned()];
    let ((root, trusted), (_, untrusted)) = (authority(names.clone()), authority(names));
    let (good, bad) = (Receiver::start_tls(trusted), Receiver::start_tls(untrusted));
    let plain = Receiver::start();
    let mut config = config(&good);
    config.webhook_allow.extend(super::config(&bad).webhook_allow);
    config.webhook_roots = TrustAnchors::parse(root.as_bytes()).unwrap();
    let disguised = format!("https://127.0.0.1:{}", plain.port());
    config.webhook_allow.push(Origin::parse(&disguised).unwrap());
    let (world, client) = World::with_bucket_and(1, config);
    let (path, _) = hook(&client, &good.url("/hook"), &["s3:ObjectCreated:*"]).await;
    let (refused, _) = hook(&client, &bad.url("/hook"), &["s3:ObjectCreated:*"]).await;
    let (no_tls, _) = hook(&client, &disguised, &["s3:ObjectCreated:*"]).await;
    for name in ["a.txt", "b.txt"] {
        client.put("/photos/", name, b"1").await;
    }
    deliver_due(&world.state.jobs).await;
    assert_eq!(keys(&good.seen()), ["a.txt", "b.txt"]);
    assert_eq!(good.connections(), 1);
    assert_eq!(webhook(&client, &path).await["lastStatus"], 200);
    for path in [refused, no_tls] {
        let error = webhook(&client, &path).await["lastError"].as_str().unwrap().to_owned();
        assert!(error.starts_with("TLS handshake failed: "), "{error}");
    }
    assert_eq!((bad.seen().len(), plain.seen().len()), (0, 0));
}

#[tokio::test]
async fn webhook_certificate_with_many_names_is_a_failure() {
    let names = (0..1_200).map(|number| format!("host{number}.of.a.long.name.example.com"));
    let (root, others) = authority(names.collect());
    let receiver = Receiver::start_tls(others);
    let webhook_roots = TrustAnchors::parse(root.as_bytes()).unwrap();
    let (world, client) = World::with_bucket_and(1, Config { webhook_roots, ..config(&receiver) });
    let (path, _) = hook(&client, &receiver.url("/"), &["s3:ObjectCreated:*"]).await;
    client.put("/photos/", "a.txt", b"1").await;
    deliver_due(&world.state.jobs).await;
    let state = webhook(&client, &path).await;
    assert_eq!((&state["pendingCount"], &state["retryingCount"]), (&json!(1), &json!(1)));
    let error = state["lastError"].as_str().unwrap();
    assert!(error.starts_with("TLS handshake failed: ") && error.len() <= 300, "{error}");
    for _ in 0..100 {
        pass(&world, HOUR_MS).await;
    }
    assert_eq!(webhook(&client, &path).await["deadLetterCount"], 1);
    assert_eq!(receiver.seen().len(), 0);
}

#[tokio::test]
async fn webhook_non_http_or_absent_receiver_reports_failure() {
    let closed = Receiver::start();
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut config = config(&closed);
    let nobody = format!("http://127.0.0.1:{port}");
    config.webhook_allow.push(Origin::parse(&nobody).unwrap());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let odd = format!("http://{}", silent.local_addr().unwrap());
    config.webhook_allow.push(Origin::parse(&odd).unwrap());
    std::thread::spawn(move || {
        for stream in silent.incoming().map_while(Result::ok) {
            let _ = std::io::Write::write_all(&mut &stream, b"220 mail.example.com ESMTP\r\n");
        }
    });
    let (_world, client) = World::with_bucket_and(1, config);
    for (url, beginning) in [(nobody, "connection failed: "), (odd, "HTTP error: ")] {
        let (path, _) = hook(&client, &url, &["s3:ObjectCreated:*"]).await;
        let tested = tested(&client, &path).await;
        let error = tested["deliveryError"].as_str().unwrap();
        assert!(error.starts_with(beginning), "{error}");
        assert_eq!(tested["status"], json!(null));
    }
}
