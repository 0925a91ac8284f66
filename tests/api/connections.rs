//! Connections, as bytes over real sockets with short time-outs: clients 7 and 12, product 5.1.
//!
//! The accept loop with arbitrary services is tested in `server/listener/src/accept/tests.rs`; here with the whole
//! service behind it.

use std::sync::Arc;
use std::time::Duration;

use listener::accept::DrainReport;
use listener::accept::Shutdown;
use listener::options::ConnectionOptions;
use listener::timeout_io::Timeouts;
use tests::wire::{Listening, now};
use tests::{Client, Form, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_millis(1_500);
/// Upper bound for every expected end: the machine may be busy.
const LATE: Duration = Duration::from_secs(6);

const LARGE_BYTES: usize = 32 << 20;
const GET: &str = "GET /photos/a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST_GET: &str = "GET /photos/a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn options() -> ConnectionOptions {
    let waits = Timeouts {
        head: SHORT,
        idle: IDLE,
        suspend: SHORT,
        answer: SHORT,
        presence: SHORT / 10,
        linger: Duration::from_secs(2),
        linger_bytes_max: 64 << 20,
    };
    ConnectionOptions { waits, drain: LATE.into(), ..ConnectionOptions::new() }
}

/// Builds an upload, with additional headers after the usual ones.
fn post(client: &Client, more: &str, body: &[u8]) -> Vec<u8> {
    let (key, kind) = (client.key(), Form::new().content_type());
    let head = format!(
        "POST /photos/ HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: {kind}\r\n{more}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}")
}

fn form(bytes: &[u8]) -> Vec<u8> {
    Form::new().file("file", "b.txt", None, bytes).body()
}

/// Checks that these bytes get an error in JSON and the end of the connection.
async fn check_rejected(server: &Listening, bytes: impl AsRef<[u8]>, status: u16, code: &str) {
    let shown =
        String::from_utf8_lossy(&bytes.as_ref()[..bytes.as_ref().len().min(90)]).into_owned();
    let answer = server.request(bytes).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("the answer has a head");
    assert!(head.contains("content-type: application/json"), "{shown:?}: {head}");
    assert!(head.contains("access-control-allow-origin: *"), "{shown:?}: {head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{shown:?}: {head}");
    let body: serde_json::Value =
        serde_json::from_str(body).expect("one JSON body, and nothing behind it");
    assert_eq!(
        (&body["success"], &body["code"]),
        (&false.into(), &code.into()),
        "{shown:?}: {body}"
    );
    assert!(body["error"].is_string(), "{body}");
}

#[tokio::test]
async fn slow_header_connection_is_closed_on_timeout() {
    let (_world, _client, server) = World::listening(options()).await;
    for start in ["", "G", "\r\n", "GET /photos/a.txt HTTP/1.1\r\nHost: a\r\n"] {
        let (answer, took) = server.send(start).await.read_remaining().await;
        assert_eq!(answer, "", "{start:?}");
        assert!(took >= SHORT / 2 && took < LATE, "{start:?} took {took:?}");
    }
    let mut trickle = server.send("GET /photos/a.txt HTTP/1.1\r\nX: ").await;
    let began = now();
    while trickle.0.write_all(b"x").await.is_ok() && began.elapsed() < LATE {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(began.elapsed() < LATE);
}

#[tokio::test]
async fn idle_keep_alive_connection_is_closed_on_timeout() {
    let (_world, _client, server) = World::listening(options()).await;
    let mut wire = server.send(GET).await;
    wire.read_to("hello").await;
    tokio::time::sleep(2 * SHORT).await;
    wire.write(GET).await;
    wire.read_to("hello").await;
    let (rest, took) = wire.read_remaining().await;
    assert!(rest.is_empty() && took >= IDLE / 2 && took < LATE, "{took:?} {rest}");
}

#[tokio::test]
async fn slow_body_is_rejected_and_stores_nothing() {
    let (world, client, server) = World::listening(options()).await;
    let mut wire = server.send(post(&client, &length(100_000), &form(b"x")[..80])).await;
    let (mut read, mut write) = wire.0.split();
    let trickle = async {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 3).await;
        }
    };
    let mut answer = String::new();
    let read = tokio::time::timeout(3 * LATE, read.read_to_string(&mut answer));
    let (read, ()) = tokio::join!(read, trickle);
    assert!(read.is_ok(), "it is answered and ended");
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("request_timeout"), "{answer}");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let (_world, client, server) = World::listening(options()).await;
    client.put("/photos/", "large.bin", &vec![7; LARGE_BYTES]).await;
    let mut wire = server.send("GET /photos/large.bin HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(4 * SHORT).await;
    let (answer, _) = wire.read_remaining().await;
    assert!(answer.contains("content-length: 33554432"));
    assert!(answer.len() < LARGE_BYTES, "the rest was never sent");
}

#[tokio::test]
async fn connection_limits_apply_in_total_and_per_address() {
    let bounds = ConnectionOptions { connections_max: 1, ..options() };
    let (_world, _client, server) = World::listening(bounds).await;
    let mut first = server.send(GET).await;
    first.read_to("hello").await;
    let mut second = server.send(LAST_GET).await;
    let began = now();
    // The first is idle, so it is closed for the second at once.
    second.read_to("hello").await;
    assert!(began.elapsed() < IDLE / 2, "{:?}", began.elapsed());
    assert_eq!(first.read_remaining().await.0, "");

    let exempt: Arc<dyn Fn(std::net::IpAddr) -> bool + Send + Sync> = Arc::new(|_| false);
    let bounds = ConnectionOptions { per_address_max: 2, exempt, ..options() };
    let (_world, _client, server) = World::listening(bounds).await;
    let (mut one, mut two) = (server.send(GET).await, server.send(GET).await);
    one.read_to("hello").await;
    two.read_to("hello").await;
    assert_eq!(server.request(LAST_GET).await, "");
    drop(one);
    let began = now();
    while server.request(LAST_GET).await.is_empty() {
        assert!(began.elapsed() < LATE, "the place was never given back");
        tokio::time::sleep(SHORT / 10).await;
    }
}

#[tokio::test]
async fn request_must_have_exactly_one_host() {
    let (_world, _client, server) = World::listening(options()).await;
    for head in [
        "GET /photos/a.txt HTTP/1.1\r\nX: y",
        "GET /photos/a.txt HTTP/1.1\r\nHost: a\r\nHost: a",
        "GET /photos/a.txt HTTP/1.1\r\nHost: a\r\nHost: b",
        "GET /photos/a.txt HTTP/1.1\r\nHost: a b",
        "GET /photos/a.txt HTTP/1.1\r\nHost: user@a",
        "GET http://b/photos/a.txt HTTP/1.1\r\nHost: a",
        "GET http://a:81/photos/a.txt HTTP/1.1\r\nHost: a",
    ] {
        let head = format!("{head}\r\nConnection: close\r\n\r\n");
        // Also after a valid request of the connection with the same host.
        let mut wire = server.send(GET).await;
        assert_eq!(wire.read_response().await.status, 200);
        wire.write(&head).await;
        assert_eq!(wire.read_response().await.status, 400, "{head:?}");
        check_rejected(&server, head, 400, "bad_request").await;
    }
    for head in [
        "GET /photos/a.txt HTTP/1.1\r\nHost: cdn.example.com:8080",
        "GET http://a/photos/a.txt HTTP/1.1\r\nHost: A:80",
        "GET /photos/a.txt HTTP/1.0\r\nX: y",
    ] {
        let answer = server.request(format!("{head}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.contains(" 200 OK") && answer.ends_with("hello"), "{head:?}: {answer}");
    }
    // RFC 9112 2.2 allows a bare line feed at the end of a line of the head; it changes no framing.
    let answer = server.request("GET /photos/a.txt HTTP/1.1\nHost: a\nConnection: close\n\n").await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn non_http_input_is_rejected_in_json() {
    let (_world, _client, server) = World::listening(options()).await;
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(20 * 1_024));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(120));
    let address = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(70_000));
    for head in [long, many, address] {
        check_rejected(&server, head, 431, "head_too_large").await;
    }
    for head in [
        &b"nonsense\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"POST /photos/ HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nabcde",
        b"POST /photos/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    ] {
        check_rejected(&server, head, 400, "bad_request").await;
    }
}

#[tokio::test]
async fn garbage_after_a_request_is_rejected_after_its_response() {
    let (_world, _client, server) = World::listening(options()).await;
    let answers = server.request(format!("{GET}nonsense\r\n\r\n")).await;
    let (first, second) = answers.split_once("hello").expect("the request is answered");
    assert!(first.starts_with("HTTP/1.1 200 OK"), "{first}");
    assert!(
        second.starts_with("HTTP/1.1 400 ") && second.contains("\"success\":false"),
        "{second}"
    );

    let mut wire = server.send(GET).await;
    wire.read_to("hello").await;
    wire.write("nonsense\r\n\r\n").await;
    let (second, _) = wire.read_remaining().await;
    assert!(
        second.starts_with("HTTP/1.1 400 ") && second.contains("\"success\":false"),
        "{second}"
    );
}

#[tokio::test]
async fn stored_file_resembling_an_error_is_served_unchanged() {
    let (_world, client, server) = World::listening(options()).await;
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    client.put("/photos/?overwrite=1", "a.txt", refusal.as_bytes()).await;
    let mut wire = server.send("").await;
    for _ in 0..3 {
        wire.write(GET).await;
        assert!(wire.read_to(refusal).await.ends_with(refusal));
    }
    wire.write(format!("{GET}{GET}{LAST_GET}")).await;
    assert_eq!(wire.read_remaining().await.0.matches(refusal).count(), 3);
}

#[tokio::test]
async fn unusual_request_targets_get_json_errors() {
    let (_world, _client, server) = World::listening(options()).await;
    for (head, status, code) in [
        ("GET * HTTP/1.1\r\nHost: a", 404, "not_found"),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a:80", 404, "not_found"),
        ("BREW /photos/a.txt HTTP/1.1\r\nHost: a", 405, "method_not_allowed"),
        ("PUT /photos/a.txt HTTP/1.1\r\nHost: a", 405, "method_not_allowed"),
        ("GET // HTTP/1.1\r\nHost: a", 404, "bucket_not_found"),
    ] {
        check_rejected(&server, format!("{head}\r\nConnection: close\r\n\r\n"), status, code).await;
    }
    let answer = server.request("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
}

#[tokio::test]
async fn request_smuggling_by_two_content_lengths_is_rejected() {
    let (world, client, server) = World::listening(options()).await;
    let credential = format!("Host: a\r\nAuthorization: Bearer {}", client.key());
    let hidden = format!("DELETE /photos/a.txt HTTP/1.1\r\n{credential}\r\n\r\n");
    for framing in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Transfer-Encoding: identity, chunked\r\nContent-Length: 4",
        "Transfer-Encoding: identity\r\nContent-Length: 4",
        "Content-Length: 5\r\nContent-Length: 4",
    ] {
        for line in ["DELETE /photos/none.txt", "POST /photos/", "GET /photos/none.txt"] {
            let request =
                format!("{line} HTTP/1.1\r\n{credential}\r\n{framing}\r\n\r\n0\r\n\r\n{hidden}");
            let answers = server.request(request).await;
            assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{line} {framing}: {answers}");
            assert!(answers.starts_with("HTTP/1.1 4"), "{line} {framing}: {answers}");
        }
    }
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn chunked_body_is_stored_and_broken_one_is_not() {
    let (world, client, server) = World::listening(options()).await;
    let body = form(b"from axios");
    let mut chunked = Vec::new();
    for piece in body.chunks(9) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    let framing = "Transfer-Encoding: chunked\r\nConnection: close";
    for (end, status) in
        [("ffffffffffffffffff\r\n", 400), ("zz\r\n", 400), ("5\n", 400), ("0\r\n\r\n", 200)]
    {
        // Without its end the form is not whole, so what breaks the framing decides.
        let cut = if status == 200 { chunked.len() } else { chunked.len() / 2 / 14 * 14 };
        let body = [&chunked[..cut], end.as_bytes()].concat();
        let answer = server.request(post(&client, framing, &body)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{end:?}: {answer}");
        let stored = if status == 200 { 2 } else { 1 };
        assert_eq!(world.object_count("photos"), stored, "{end:?}");
    }
}

#[tokio::test]
async fn early_rejection_is_readable_despite_unread_body() {
    let (world, client, server) = World::listening(options()).await;
    let body = form(&vec![b'x'; 8 << 20]);
    let anonymous = client.without_key();
    // Like python-requests: everything is sent before anything is read.
    let answer = server.request(post(&anonymous, &length(body.len()), &body)).await;
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("missing_api_key"), "{answer}");
    let answer = server.request(post(&client, &length(105_000_000), &body)).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"limit\":104857600"), "{answer}");
    // A client that half-closes midway, and still reads.
    let mut half = server.send(post(&client, &length(body.len()), &body[..body.len() / 2])).await;
    half.0.shutdown().await.unwrap();
    let (answer, _) = half.read_remaining().await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("incomplete_body"), "{answer}");
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn expect_continue_is_answered_or_rejected_at_once() {
    let (_world, client, server) = World::listening(options()).await;
    let body = form(b"from curl");
    let more = format!("{}\r\nExpect: 100-continue\r\nConnection: close", length(body.len()));
    let mut wire = server.send(post(&client, &more, b"")).await;
    assert!(wire.read_to("\r\n\r\n").await.starts_with("HTTP/1.1 100 "));
    wire.write(&body).await;
    let (answer, _) = wire.read_remaining().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let refused = server.request(post(&client.without_key(), &more, b"")).await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
}

#[tokio::test]
async fn graceful_shutdown_drains_uploads_and_accepts_no_more() {
    let (world, client, server) = World::listening(options()).await;
    let body = form(b"in flight");
    let mut idle = server.send(GET).await;
    idle.read_to("hello").await;
    let more = format!("{}\r\nExpect: 100-continue", length(body.len()));
    let mut upload = server.send(post(&client, &more, b"")).await;
    upload.read_to("\r\n\r\n").await;
    server.stop.send(Shutdown::Drain).unwrap();
    assert_eq!(idle.read_remaining().await.0, "");
    assert!(TcpStream::connect(server.address).await.is_err());
    upload.write(&body).await;
    let (answer, _) = upload.read_remaining().await;
    assert!(answer.contains(" 200 OK") && answer.contains("connection: close"), "{answer}");
    assert_eq!(server.ended.await.unwrap(), DrainReport { cut_off: 0 });
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn second_shutdown_signal_stops_at_once() {
    let (world, client, server) = World::listening(options()).await;
    let mut upload = server.send(post(&client, &length(100_000), &form(b"x")[..50])).await;
    tokio::time::sleep(SHORT / 3).await;
    server.stop.send(Shutdown::Drain).unwrap();
    tokio::time::sleep(SHORT / 10).await;
    let began = now();
    server.stop.send(Shutdown::Immediate).unwrap();
    assert_eq!(server.ended.await.unwrap(), DrainReport { cut_off: 1 });
    assert!(began.elapsed() < LATE / 2, "{:?}", began.elapsed());
    upload.read_remaining().await;
    assert_eq!(world.object_count("photos"), 1);
}

#[tokio::test]
async fn idle_connections_are_cheap_and_closed_on_timeout() {
    const COUNT: usize = 2_000;
    // Share of the server and of this test in a connection; the memory of concurrent tests is included.
    const BYTES_MAX: usize = 48 * 1_024;
    let (_world, _client, server) = World::listening(options()).await;
    let before = resident_bytes();
    let mut wires = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        wires.push(server.send(GET).await);
    }
    for wire in &mut wires {
        wire.read_to("hello").await;
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < COUNT * BYTES_MAX, "{grown} bytes for {COUNT} connections");
    let began = now();
    for wire in &mut wires {
        assert_eq!(wire.read_remaining().await.0, "");
    }
    assert!(began.elapsed() < LATE, "{:?}", began.elapsed());
}

/// Returns the current memory of this process.
#[allow(clippy::disallowed_methods, reason = "/proc is no file of a store")]
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[tokio::test]
async fn idle_connections_are_evicted_at_the_limit() {
    const COUNT: usize = 64;
    let waits = Timeouts { head: LATE * 2, idle: LATE * 4, ..options().waits };
    let bounds = ConnectionOptions { connections_max: COUNT, waits, ..options() };
    let (_world, _client, server) = World::listening(bounds).await;
    let mut wires = Vec::new();
    for number in 0..COUNT {
        // Half of them send nothing; of the others the first ones are idle longest.
        let mut wire = server.send(if number % 2 == 0 { "" } else { GET }).await;
        if number % 2 == 1 {
            wire.read_to("hello").await;
        }
        wires.push(wire);
    }
    for _ in 0..COUNT {
        let began = now();
        assert!(server.request(LAST_GET).await.ends_with("hello"));
        assert!(began.elapsed() < SHORT * 3, "{:?}", began.elapsed());
    }
    let newest = wires.last_mut().unwrap();
    newest.write(LAST_GET).await;
    newest.read_to("hello").await;
}

#[tokio::test]
async fn refused_body_closes_connection_and_says_so() {
    let (_world, client, server) = World::listening(options()).await;
    let body = form(b"1");
    let anonymous = client.without_key();
    let length = length(body.len());
    for more in [length.clone(), format!("{length}\r\nExpect: 100-continue")] {
        let mut wire = server.send(post(&anonymous, &more, b"")).await;
        let (answer, _) = wire.read_remaining().await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    // Without a body, and with one that was read, the connection stays.
    let mut wire = server.send(post(&anonymous, "Content-Length: 0", b"")).await;
    assert!(!wire.read_to("\r\n\r\n").await.contains("connection: close"));
    let mut wire = server.send(post(&client, &length, &body)).await;
    let head = wire.read_to("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("connection: close"), "{head}");
    let chunked = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let mut wire = server.send(post(&client, "Transfer-Encoding: chunked", &chunked)).await;
    let head = wire.read_to("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("connection: close"), "{head}");
}

#[tokio::test]
async fn following_request_is_not_read_as_body() {
    let (_world, client, server) = World::listening(options()).await;
    let anonymous = client.without_key();
    for round in 0..100 {
        // A rejected client sends its next request instead of the body.
        let head = post(&anonymous, "Content-Length: 2\r\nExpect: 100-continue", b"");
        let mut wire = server.send(head).await;
        let refusal = wire.read_to("\r\n\r\n").await;
        assert!(refusal.contains("\r\nconnection: close\r\n"), "{round}: {refusal}");
        wire.write(GET).await;
        let (rest, _) = wire.read_remaining().await;
        assert!(!rest.contains("HTTP/1.1"), "{round}: {rest}");
    }
}

#[tokio::test]
async fn expect_continue_is_answered_for_an_empty_body() {
    let (_world, client, server) = World::listening(options()).await;
    let more = "Content-Length: 0\r\nExpect: 100-continue\r\nConnection: close";
    let answer = server.request(post(&client, more, b"")).await;
    let rest = answer.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n");
    assert!(rest.is_some_and(|rest| rest.starts_with("HTTP/1.1 400 ")), "{answer}");
}
