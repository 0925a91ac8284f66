//! HTTP/2 over TLS: the same behaviour as over HTTP/1.1, byte for byte, with many concurrent requests.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use listener::accept::Shutdown;
use listener::options::ConnectionOptions;
use tests::secure::Http2;
use tests::wire::Listening;
use tests::{Authority, Client, Form, World};

const LATE: Duration = Duration::from_secs(10);
const LARGE_BYTES: usize = 5 << 20;

async fn listening() -> (World, Client, Authority, Listening) {
    let authority = Authority::new();
    let tls = Some(authority.server());
    let options = ConnectionOptions { tls, drain: LATE.into(), ..ConnectionOptions::new() };
    let (world, client, listening) = World::listening(options).await;
    (world, client, authority, listening)
}

fn large() -> Vec<u8> {
    (0..LARGE_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Uploads bytes as a form, in pieces as the window allows.
async fn upload(http2: &Http2, key: &str, name: &str, bytes: &[u8]) -> tests::Reply {
    let form = Form::new().file("file", name, None, bytes);
    let (key, kind) = (format!("Bearer {key}"), form.content_type());
    let headers = [("authorization", &*key), ("content-type", &*kind)];
    let sent = http2.send(Method::POST, "/photos/", &headers, Bytes::from(form.body())).await;
    sent.expect("it is answered")
}

#[tokio::test]
async fn http2_files_are_uploaded_and_downloaded_intact() {
    let (world, client, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    let bytes = large();
    let stored = upload(&http2, client.key(), "large.bin", &bytes).await;
    assert_eq!(stored.json()["url"], "https://cdn.example.com/photos/large.bin", "{stored:?}");
    let whole = http2.get("/photos/large.bin").await.unwrap();
    assert_eq!((whole.status.as_u16(), whole.body.len()), (200, LARGE_BYTES));
    assert!(whole.body == bytes);
    let near = client.get("/photos/large.bin").await;
    for name in ["etag", "content-type", "content-length", "accept-ranges", "cache-control"] {
        assert_eq!(whole.header(name), near.header(name), "{name}");
    }
    assert!(!whole.header("x-request-id").is_empty());
    for (range, from, to) in [("bytes=0-0", 0, 1), ("bytes=70000-2000000", 70_000, 2_000_001)] {
        let asked = [("range", range)];
        let part = http2.send(Method::GET, "/photos/large.bin", &asked, Bytes::new()).await;
        let part = part.unwrap();
        assert_eq!(part.status, 206);
        assert!(part.body == bytes[from..to], "{range}");
    }
    let head = http2.send(Method::HEAD, "/photos/large.bin", &[], Bytes::new()).await.unwrap();
    assert_eq!((head.header("content-length"), head.body.len()), ("5242880", 0));
    let etag = whole.header("etag");
    let again = [("if-none-match", etag)];
    let again = http2.send(Method::GET, "/photos/large.bin", &again, Bytes::new()).await.unwrap();
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(world.object_count("photos"), 2);
}

#[tokio::test]
async fn http2_requests_are_multiplexed_on_one_connection() {
    let (world, client, authority, server) = listening().await;
    let http2 = std::sync::Arc::new(authority.http2(server.address).await);
    let key = client.key().to_owned();
    let all: Vec<_> = (0..60)
        .map(|number| {
            let (http2, key) = (http2.clone(), key.clone());
            tokio::spawn(async move {
                let bytes = vec![number; 40_000];
                let name = format!("{number}.bin");
                assert_eq!(upload(&http2, &key, &name, &bytes).await.status, 200);
                let found = http2.get(&format!("/photos/{name}")).await.unwrap();
                assert!(found.body == bytes, "{name}");
            })
        })
        .collect();
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(world.object_count("photos"), 61);
}

#[tokio::test]
async fn http2_errors_match_http1() {
    let (_world, client, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    http2.get("/photos/none.txt").await.unwrap().check_error(404, "file_not_found");
    http2.get("/nobody/none.txt").await.unwrap().check_error(404, "bucket_not_found");
    let without = http2.send(Method::DELETE, "/photos/a.txt", &[], Bytes::new()).await.unwrap();
    assert_eq!(without.status, 401);
    // A body that is rejected at its head leaves the connection as it is.
    let key = format!("Bearer {}", client.key());
    let headers = [
        ("authorization", &*key),
        ("content-type", "multipart/form-data; boundary=b"),
        ("content-length", "999999999999"),
    ];
    let body = Bytes::from(vec![b'x'; 300_000]);
    if let Ok(refused) = http2.send(Method::POST, "/photos/", &headers, body).await {
        assert_eq!(refused.status, 413);
    }
    assert_eq!(http2.get("/photos/a.txt").await.unwrap().body, "hello");
    let long = "x".repeat(20_000);
    let long = http2.send(Method::GET, "/photos/a.txt", &[("x-long", &long)], Bytes::new()).await;
    assert!(long.is_err() || long.is_ok_and(|reply| reply.status == 431));
    let many: Vec<(String, &str)> = (0..65).map(|at| (format!("x-{at}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    let http2 = authority.http2(server.address).await;
    let many = http2.send(Method::GET, "/photos/a.txt", &many, Bytes::new()).await.unwrap();
    assert_eq!((many.status.as_u16(), &many.json()["code"]), (431, &"head_too_large".into()));
}

#[tokio::test]
async fn http2_authority_is_the_host_and_never_repeated() {
    let (_world, _client, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    let ask = |uri: &str, host: Option<&str>| {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.body(()).unwrap();
        http2.send_request(request, Bytes::new())
    };
    for (uri, host, status) in [
        ("https://localhost/photos/a.txt", None, 200),
        ("https://localhost/photos/a.txt", Some("localhost"), 200),
        ("https://localhost/photos/a.txt", Some("LOCALHOST:443"), 200),
        ("https://localhost:443/photos/a.txt", Some("localhost"), 200),
        ("https://localhost/photos/a.txt", Some("localhost:80"), 400),
        ("https://localhost/photos/a.txt", Some("elsewhere"), 400),
        // The host decides whether the dashboard responds.
        ("https://cdn.example.com/-/", None, 200),
        ("https://localhost/-/sign-in", None, 200),
        ("https://elsewhere/-/sign-in", None, 421),
        ("https://localhost/-/health", None, 200),
    ] {
        let reply = ask(uri, host).await.unwrap();
        assert_eq!(reply.status, status, "{uri} {host:?}: {}", reply.text());
    }
}

#[tokio::test]
async fn http2_reset_upload_is_atomic_and_connection_continues() {
    let (world, client, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    let form = Form::new().file("file", "b.txt", None, b"hello");
    let (key, kind) = (format!("Bearer {}", client.key()), form.content_type());
    let headers = [("authorization", &*key), ("content-type", &*kind)];
    let mut sender = http2.sender.clone().ready().await.unwrap();
    let request = Http2::request(Method::POST, "/photos/", &headers);
    let (answer, mut stream) = sender.send_request(request, false).unwrap();
    stream.send_data(Bytes::from(form.body()), true).unwrap();
    // The upload is in progress; then its client disconnects.
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop((answer, stream));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let found = client.get("/photos/b.txt").await;
    assert!(found.status == 404 || found.body == "hello", "{found:?}");
    // It does not block the next upload, and its name is taken or free.
    let next = upload(&http2, client.key(), "b.txt", b"hello").await.check_done();
    let taken = if found.status == 404 { "b.txt" } else { "b%20(1).txt" };
    assert!(next["url"].as_str().unwrap().ends_with(taken), "{next}");
    assert!(world.object_count("photos") <= 3);
    assert_eq!(http2.get("/photos/a.txt").await.unwrap().body, "hello");
}

#[tokio::test]
async fn http2_graceful_shutdown_drains_streams() {
    let (_world, client, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    let form = Form::new().file("file", "late.txt", None, b"late");
    let (key, kind) = (format!("Bearer {}", client.key()), form.content_type());
    let headers = [("authorization", &*key), ("content-type", &*kind)];
    let mut sender = http2.sender.clone().ready().await.unwrap();
    let request = Http2::request(Method::POST, "/photos/", &headers);
    let (answer, mut stream) = sender.send_request(request, false).unwrap();
    let body = form.body();
    let (first, rest) = body.split_at(body.len() / 2);
    stream.send_data(Bytes::copy_from_slice(first), false).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop.send(Shutdown::Drain).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(http2.get("/photos/a.txt").await.is_err(), "nothing new is taken");
    stream.send_data(Bytes::copy_from_slice(rest), true).unwrap();
    let (head, _) = answer.await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    assert!(!head.headers.contains_key("connection"), "{head:?}");
    assert_eq!(server.ended.await.unwrap().cut_off, 0);
    assert_eq!(client.get("/photos/late.txt").await.body, "late");
}
