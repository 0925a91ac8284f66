//! HTTP/2 attacks: resets, empty frames, endless heads, windows that never open.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use listener::options::ConnectionOptions;
use listener::timeout_io::Timeouts;
use tests::secure::Http2;
use tests::wire::{Listening, now};
use tests::{Authority, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const SHORT: Duration = Duration::from_millis(400);
const LATE: Duration = Duration::from_secs(10);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET https://localhost/photos/a.txt`, by the tables of RFC 7541: `:authority` and `:path` as they are.
const GET: &[u8] = b"\x82\x87\x01\x09localhost\x04\x0d/photos/a.txt";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const DATA: u8 = 0;
const PRIORITY: u8 = 2;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = bytes_of(payload.len() as u32);
    [&[high, middle, low, kind, flags], &bytes_of(stream)[..], payload].concat()
}

/// Encodes a number as in HTTP/2.
fn bytes_of(number: u32) -> [u8; 4] {
    [number >> 24, number >> 16, number >> 8, number].map(|part| part as u8)
}

async fn listening() -> (World, Authority, Listening) {
    waiting_for_answers(SHORT).await
}

/// Starts a service that waits for so long for clients that do not read the response.
async fn waiting_for_answers(answer: Duration) -> (World, Authority, Listening) {
    let (world, client) = World::with_bucket(1);
    client.put("/photos/", "a.txt", b"hello").await;
    client.put("/photos/", "large.bin", &vec![7; 2 << 20]).await;
    let authority = Authority::new();
    let waits = Timeouts {
        head: 2 * SHORT,
        idle: 3 * SHORT,
        suspend: 3 * SHORT,
        answer,
        presence: SHORT / 10,
        linger: SHORT,
        linger_bytes_max: 1 << 20,
    };
    let tls = Some(authority.server());
    let options = ConnectionOptions { waits, tls, ..ConnectionOptions::new() };
    let listening = world.listen(options).await;
    (world, authority, listening)
}

/// Opens a connection and sends the preface.
async fn raw(authority: &Authority, server: &Listening) -> TlsStream<TcpStream> {
    let mut io = authority.connect(server.address, &[b"h2"]).await.expect("TLS is agreed on");
    io.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    io
}

/// Writes these bytes again and again, reading everything received, until the peer closes; returns the number of
/// writes.
async fn flood(io: TlsStream<TcpStream>, bytes: impl Fn(u32) -> Vec<u8>, count: u32) -> u32 {
    let (mut read, mut write) = tokio::io::split(io);
    let reading = tokio::spawn(async move {
        let mut scratch = vec![0; 64 * 1_024];
        while let Ok(1..) = read.read(&mut scratch).await {}
    });
    for number in 0..count {
        if write.write_all(&bytes(number)).await.is_err() || write.flush().await.is_err() {
            return number;
        }
        if reading.is_finished() {
            return number;
        }
    }
    match tokio::time::timeout(LATE, reading).await {
        Ok(_) => count,
        Err(_) => panic!("the connection stands after {count}"),
    }
}

/// Checks that other clients are served.
async fn check_other_connections(authority: &Authority, server: &Listening) {
    let http2 = authority.http2(server.address).await;
    assert_eq!(http2.get("/photos/a.txt").await.expect("it is answered").body, "hello");
}

#[tokio::test]
async fn http2_test_header_block_is_valid() {
    let (_world, authority, server) = listening().await;
    let mut io = raw(&authority, &server).await;
    io.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 1, GET)).await.unwrap();
    let mut bytes = Vec::new();
    let began = now();
    while !bytes.ends_with(b"hello") && began.elapsed() < LATE {
        tokio::time::timeout(LATE, io.read_buf(&mut bytes)).await.unwrap().unwrap();
    }
    assert!(bytes.windows(5).any(|window| window == b"hello"), "{bytes:?}");
}

#[tokio::test]
async fn http2_rapid_reset_closes_the_connection() {
    let (_world, authority, server) = listening().await;
    let io = raw(&authority, &server).await;
    let reset = |number: u32| {
        let stream = 2 * number + 1;
        let head = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
        [head, frame(RST_STREAM, 0, stream, &bytes_of(8))].concat()
    };
    let done = flood(io, reset, 10_000).await;
    assert!(done < 10_000, "{done}");
    check_other_connections(&authority, &server).await;
    // In one piece, at full speed.
    let mut io = raw(&authority, &server).await;
    let all: Vec<u8> = (0..10_000).flat_map(reset).collect();
    let _ = io.write_all(&all).await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(LATE, io.read_to_end(&mut rest)).await.expect("it ends");
    assert!(rest.len() < 100_000, "{} bytes", rest.len());
    check_other_connections(&authority, &server).await;
}

#[tokio::test]
async fn http2_empty_frame_flood_closes_the_connection() {
    let (_world, authority, server) = listening().await;
    let floods: [(&str, Vec<u8>); 4] = [
        ("PING", frame(PING, 0, 0, &[0; 8])),
        ("SETTINGS", frame(SETTINGS, 0, 0, &[])),
        ("SETTINGS that say something", frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0])),
        ("PRIORITY", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9])),
    ];
    for (what, bytes) in floods {
        let io = raw(&authority, &server).await;
        // Some hundred at a time, as many as fit into a packet.
        let many = bytes.repeat(100);
        let done = flood(io, |_| many.clone(), 1_000).await;
        assert!(done < 1_000, "{what}: {done}");
        check_other_connections(&authority, &server).await;
    }
}

#[tokio::test]
async fn http2_tiny_or_padded_data_flood_closes_the_connection() {
    let (_world, authority, server) = listening().await;
    let padding = [&[255][..], &[0; 255]].concat();
    for (what, bytes) in [
        ("empty", frame(DATA, 0, 1, &[])),
        ("one byte", frame(DATA, 0, 1, b"x")),
        ("padding alone", frame(DATA, PADDED, 1, &padding)),
    ] {
        let mut io = raw(&authority, &server).await;
        io.write_all(&frame(HEADERS, END_HEADERS, 1, GET)).await.unwrap();
        let many = bytes.repeat(100);
        let done = flood(io, |_| many.clone(), 1_000).await;
        assert!(done < 1_000, "{what}: {done}");
        check_other_connections(&authority, &server).await;
    }
}

/// "MadeYouReset" (CVE-2025-8671): the client resets nothing itself.
#[tokio::test]
async fn http2_server_reset_flood_closes_the_connection() {
    type Fault = fn(u32) -> Vec<u8>;
    let (_world, authority, server) = listening().await;
    let faults: [(&str, Fault); 5] = [
        ("a window that grows by nothing", |stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4])),
        ("a window that is too large", |stream| {
            frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff])
        }),
        ("data behind the end", |stream| frame(DATA, 0, stream, b"x")),
        ("a head behind the end", |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, GET)),
        ("a stream that depends on itself", |stream| {
            frame(PRIORITY, 0, stream, &[&bytes_of(stream)[..], &[9]].concat())
        }),
    ];
    for (what, fault) in faults {
        let io = raw(&authority, &server).await;
        let faulty = |number: u32| {
            let stream = 2 * number + 1;
            [frame(HEADERS, END_STREAM | END_HEADERS, stream, GET), fault(stream)].concat()
        };
        let done = flood(io, faulty, 20_000).await;
        assert!(done < 20_000, "{what}: {done}");
        check_other_connections(&authority, &server).await;
    }
}

#[tokio::test]
async fn http2_endless_header_block_closes_the_connection() {
    let (_world, authority, server) = listening().await;
    let mut io = raw(&authority, &server).await;
    io.write_all(&frame(HEADERS, END_STREAM, 1, GET)).await.unwrap();
    // A field that is never indexed, again and again.
    let field = [&b"\x10\x01x\x7f\x81\x01"[..], &[b'y'; 256]].concat();
    let more = frame(CONTINUATION, 0, 1, &field.repeat(16));
    let done = flood(io, |_| more.clone(), 10_000).await;
    // Frames in transit count, too.
    assert!(done < 2_000, "{done} frames of {} bytes", more.len());
    // And one that waits.
    let mut io = raw(&authority, &server).await;
    io.write_all(&frame(HEADERS, END_STREAM, 1, GET)).await.unwrap();
    let (began, mut rest) = (now(), Vec::new());
    let _ = tokio::time::timeout(LATE, io.read_to_end(&mut rest)).await.expect("it ends");
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
    check_other_connections(&authority, &server).await;
}

#[tokio::test]
async fn http2_excess_streams_are_refused_and_others_continue() {
    let (_world, authority, server) = listening().await;
    let mut builder = h2::client::Builder::new();
    // Only the head of a response may be sent.
    let http2 = authority.http2_with(server.address, builder.initial_window_size(0)).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut sender = http2.sender.clone().ready().await.unwrap();
        let request = Http2::request(Method::GET, "/photos/large.bin", &[]);
        held.push(sender.send_request(request, true).unwrap());
    }
    let (first, _) = held.swap_remove(0);
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(http2.sender.current_max_send_streams(), 100, "as the server said");
    check_other_connections(&authority, &server).await;
}

#[tokio::test]
async fn http2_unread_response_ends_only_its_stream() {
    let (_world, authority, server) = listening().await;
    let mut builder = h2::client::Builder::new();
    let http2 =
        authority.http2_with(server.address, builder.initial_connection_window_size(1 << 20)).await;
    let mut sender = http2.sender.clone().ready().await.unwrap();
    let request = Http2::request(Method::GET, "/photos/large.bin", &[]);
    let (answer, _) = sender.send_request(request, true).unwrap();
    let (head, mut stalled) = answer.await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    // It reads nothing, while other streams of the connection are served.
    let began = now();
    while began.elapsed() < 3 * SHORT {
        assert_eq!(http2.get("/photos/a.txt").await.unwrap().body, "hello");
        tokio::time::sleep(SHORT / 4).await;
    }
    let mut taken = 0;
    let error = loop {
        match tokio::time::timeout(LATE, stalled.data()).await.expect("it ends") {
            Some(Ok(piece)) => taken += piece.len(),
            Some(Err(error)) => break error,
            None => panic!("all {taken} bytes came"),
        }
    };
    assert!(error.is_reset(), "{error}");
    assert!(taken < 2 << 20, "{taken}");
    assert_eq!(http2.get("/photos/a.txt").await.unwrap().body, "hello");
}

#[tokio::test]
async fn http2_slowly_read_response_is_complete() {
    let patience = 4 * SHORT;
    let (_world, authority, server) = waiting_for_answers(patience).await;
    let http2 = authority.http2(server.address).await;
    let mut sender = http2.sender.clone().ready().await.unwrap();
    let request = Http2::request(Method::GET, "/photos/large.bin", &[]);
    let (answer, _) = sender.send_request(request, true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    let (began, mut taken) = (now(), 0);
    while let Some(piece) = body.data().await {
        let piece: Bytes = piece.expect("it is not reset");
        taken += piece.len();
        body.flow_control().release_capacity(piece.len()).unwrap();
        // Slower than the reader, faster than the server's time-out.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(taken, 2 << 20);
    assert!(began.elapsed() > patience, "nothing was slow");
}

#[tokio::test]
async fn http2_idle_connection_gets_goaway_and_ping_timeout() {
    let (_world, authority, server) = listening().await;
    let http2 = authority.http2(server.address).await;
    assert_eq!(http2.get("/photos/a.txt").await.unwrap().body, "hello");
    let began = now();
    tokio::time::timeout(LATE, http2.driver).await.expect("it ends").unwrap().unwrap();
    assert!(began.elapsed() >= 2 * SHORT, "{:?}", began.elapsed());

    let mut io = raw(&authority, &server).await;
    let (began, mut rest) = (now(), Vec::new());
    let _ = tokio::time::timeout(LATE, io.read_to_end(&mut rest)).await.expect("it ends");
    assert!(began.elapsed() >= SHORT / 2, "{:?}", began.elapsed());
}
