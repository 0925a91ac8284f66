//! TLS over real sockets: negotiation, handshake time-outs, and existing connections after a change of the certificate.

use std::time::Duration;

use listener::accept::Shutdown;
use listener::options::ConnectionOptions;
use listener::timeout_io::Timeouts;
use tests::secure::Holds;
use tests::wire::now;
use tests::{Authority, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(300);
const LATE: Duration = Duration::from_secs(6);

const GET: &[u8] = b"GET /photos/a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST_GET: &[u8] =
    b"GET /photos/a.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn options(authority: &Authority) -> ConnectionOptions {
    let waits = Timeouts {
        head: 2 * SHORT,
        idle: 5 * SHORT,
        suspend: 5 * SHORT,
        answer: SHORT,
        presence: SHORT / 10,
        linger: SHORT,
        linger_bytes_max: 64 << 20,
    };
    let tls = Some(authority.server());
    ConnectionOptions { waits, tls, drain: LATE.into(), ..ConnectionOptions::new() }
}

/// Returns everything received until the peer closes.
async fn rest(io: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    let read = io.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(2 * LATE, read).await.expect("the connection ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn tls_alpn_defaults_to_http_1() {
    let authority = Authority::new();
    let (_world, _client, server) = World::listening(options(&authority)).await;
    for protocols in [&[][..], &[&b"http/1.1"[..]], &[b"http/1.1", b"h2"]] {
        let mut io = authority.connect(server.address, protocols).await.unwrap();
        let agreed = io.get_ref().1.alpn_protocol();
        // The server's order counts where there is a choice.
        if protocols.len() > 1 {
            assert_eq!(agreed, Some(&b"h2"[..]));
            continue;
        }
        assert_eq!(agreed, protocols.first().copied());
        // Pipelined requests, as without TLS.
        io.write_all(&[GET, GET, LAST_GET].concat()).await.unwrap();
        let answer = rest(&mut io).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    }
    let none = authority.connect(server.address, &[b"spdy/3"]).await;
    assert!(none.is_err(), "nothing is spoken that both sides know");
}

#[tokio::test]
async fn tls_port_answers_plain_http_with_an_error() {
    let (_world, _client, server) = World::listening(options(&Authority::new())).await;
    let answer = server.request(GET).await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.contains("\"code\":\"tls_required\""), "{answer}");
    assert!(answer.contains("https://") && !answer.contains("hello"), "{answer}");
    for neither in [&b"\x00\x01\x02\x03"[..], b"\x80.", b"ssh"] {
        assert_eq!(server.request(neither).await, "");
    }
}

#[tokio::test]
async fn tls_handshake_timeout_closes_the_connection() {
    let authority = Authority::new();
    let (_world, _client, server) = World::listening(options(&authority)).await;
    // A record with a length of 512 bytes, of which a few are sent.
    let half = [22, 3, 1, 2, 0, 1, 0, 1];
    for start in [&b""[..], &half[..1], &half] {
        let began = now();
        let (answer, _) = server.send(start).await.read_remaining().await;
        assert!(answer.len() < 10, "at most an alert: {answer:?}");
        let took = began.elapsed();
        assert!(took >= SHORT && took < LATE, "{took:?}");
    }
    // Slow bytes do not extend the time-out.
    let mut io = TcpStream::connect(server.address).await.unwrap();
    let began = now();
    for byte in half.into_iter().cycle() {
        if io.write_all(&[byte]).await.is_err() || began.elapsed() > LATE {
            break;
        }
        tokio::time::sleep(SHORT / 5).await;
    }
    assert!(began.elapsed() < LATE, "{:?}", began.elapsed());
    // Other connections were served during that time, and still are.
    let mut io = authority.connect(server.address, &[]).await.unwrap();
    io.write_all(LAST_GET).await.unwrap();
    assert!(rest(&mut io).await.ends_with("hello"));
}

#[tokio::test]
async fn tls_idle_connection_is_closed_like_a_plain_one() {
    let authority = Authority::new();
    let (_world, _client, server) = World::listening(options(&authority)).await;
    for protocols in [&[&b"http/1.1"[..]], &[&b"h2"[..]]] {
        let mut io = authority.connect(server.address, protocols).await.unwrap();
        let began = now();
        rest(&mut io).await;
        assert!(began.elapsed() >= SHORT && began.elapsed() < LATE, "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn tls_connections_count_against_the_address_limit() {
    let authority = Authority::new();
    let exempt: std::sync::Arc<dyn Fn(std::net::IpAddr) -> bool + Send + Sync> =
        std::sync::Arc::new(|_| false);
    let bounds = ConnectionOptions { per_address_max: 1, exempt, ..options(&authority) };
    let (_world, _client, server) = World::listening(bounds).await;
    let silent = server.send(b"").await;
    tokio::time::sleep(SHORT / 3).await;
    assert!(authority.connect(server.address, &[]).await.is_err(), "there is one already");
    drop(silent);
    tokio::time::sleep(SHORT / 3).await;
    authority.connect(server.address, &[]).await.expect("the first one was closed");
}

#[tokio::test]
async fn tls_reloaded_certificate_is_for_new_connections_only() {
    let (first, second) = (Authority::new(), Authority::new());
    let options = options(&first);
    let tls = options.tls.clone().unwrap();
    let (_world, _client, server) = World::listening(options).await;
    let mut old = first.connect(server.address, &[]).await.unwrap();
    old.write_all(GET).await.unwrap();
    let mut answer = vec![0; 15];
    old.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 OK");

    tls.replace(&second.pair(Holds::Now).identity());
    assert!(first.connect(server.address, &[]).await.is_err(), "it does not vouch for this one");
    let mut new = second.connect(server.address, &[]).await.unwrap();
    for io in [&mut old, &mut new] {
        io.write_all(LAST_GET).await.unwrap();
        assert!(rest(io).await.ends_with("hello"));
    }
}

#[tokio::test]
async fn tls_graceful_shutdown_drains_requests() {
    let authority = Authority::new();
    let (_world, _client, server) = World::listening(options(&authority)).await;
    let mut io = authority.connect(server.address, &[]).await.unwrap();
    io.write_all(&LAST_GET[..20]).await.unwrap();
    // The incomplete handshake is ended, and delays nothing.
    let mut half = server.send([22, 3, 1]).await;
    tokio::time::sleep(SHORT / 3).await;
    server.stop.send(Shutdown::Drain).unwrap();
    io.write_all(&LAST_GET[20..]).await.unwrap();
    assert!(rest(&mut io).await.ends_with("hello"));
    half.read_remaining().await;
    assert_eq!(server.ended.await.unwrap().cut_off, 0);
}

#[test]
fn tls_mismatched_key_pair_is_rejected() {
    use listener::tls::{CertificateError, TlsIdentity};
    let authority = Authority::new();
    let (one, other) = (authority.pair(Holds::Now), authority.pair(Holds::Now));
    let refused =
        TlsIdentity::parse(one.certificates.as_bytes(), other.key.as_bytes()).unwrap_err();
    assert_eq!(refused, CertificateError::Key("it does not match the first certificate".into()));
    // Both in one file, as some write them.
    let both = format!("{}{}", one.key, one.certificates);
    let identity = TlsIdentity::parse(both.as_bytes(), both.as_bytes()).unwrap();
    assert_eq!(identity, one.identity());
    assert_ne!(identity, other.identity());
    assert!(!format!("{identity:?}").contains("PRIVATE"), "{identity:?}");

    let old = authority.pair(Holds::Before).identity();
    assert_eq!(old.not_after_text().as_deref(), Some("2002-01-01T00:00:00Z"));
    let (before, now_ms) = (1_000_000_000_000, 1_770_000_000_000);
    assert_eq!(old.warning(before), None);
    assert!(old.warning(now_ms).unwrap().contains("expired"));
    assert_eq!(identity.warning(now_ms), None);
}
