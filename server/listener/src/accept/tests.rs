//! Tests of the accept loop over real sockets, with short time-outs.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use http_body_util::Full;
use hyper::service::service_fn;
use protocol::error::ErrorFormat;
use protocol::request_body::{BodyLimits, RequestBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Join, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};

use super::*;

const SHORT: Duration = Duration::from_millis(150);
const IDLE: Duration = Duration::from_millis(900);
const SOON: Duration = Duration::from_secs(5);

fn options() -> ConnectionOptions {
    let waits = Timeouts {
        head: SHORT,
        idle: IDLE,
        suspend: SHORT,
        answer: SHORT,
        presence: SHORT / 10,
        linger: Duration::from_secs(1),
        linger_bytes_max: 64 << 20,
    };
    ConnectionOptions { waits, drain: SOON.into(), ..ConnectionOptions::new() }
}

/// Serves `/large` with 64 MiB, `/slow` after a wait, `/limited` with a body limit of 10 bytes, `/take` with any body,
/// and "hello" elsewhere.
async fn answer(request: Request<IncomingBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let limits = |bytes_max| BodyLimits { bytes_max, window: SHORT, window_bytes_min: 100 };
    let say = |text: &'static str| Ok(Response::new(Full::from(text)));
    let bytes_max = match parts.uri.path() {
        "/large" => return Ok(Response::new(Full::from(vec![7; 64 << 20]))),
        "/slow" => {
            tokio::time::sleep(2 * SHORT).await;
            return say("slow");
        }
        "/limited" => 10,
        "/take" => 1 << 30,
        _ => return say("hello"),
    };
    let taken =
        async { RequestBody::new(&parts.headers, body, limits(bytes_max))?.collect().await };
    match taken.await {
        Ok(_) => say("taken"),
        Err(refusal) => Ok(refusal.response(&ErrorFormat::default()).map(Full::new)),
    }
}

struct Running {
    address: SocketAddr,
    stop: watch::Sender<Shutdown>,
    ended: tokio::task::JoinHandle<DrainReport>,
}

async fn run(options: ConnectionOptions) -> Running {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, seen) = watch::channel(Shutdown::Running);
    let ended = tokio::spawn(accept(listener, service_fn(answer), options, seen));
    Running { address, stop, ended }
}

async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Returns all data until the peer closes, and how long that took.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> (String, Duration) {
    let (began, mut bytes) = (now(), Vec::new());
    let read = stream.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(SOON, read).await.expect("the connection ends");
    (String::from_utf8_lossy(&bytes).into_owned(), began.elapsed())
}

#[allow(clippy::disallowed_methods, reason = "tests measure real time-outs")]
fn now() -> Instant {
    Instant::now()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST_GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn idle_and_partial_connections_time_out() {
    let server = run(options()).await;
    for start in [&b""[..], b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"] {
        let (answer, took) = rest(&mut send(server.address, start).await).await;
        assert_eq!(answer, "");
        assert!(took >= SHORT / 2 && took < 10 * SHORT, "{took:?}");
    }
}

#[tokio::test]
async fn suspended_connection_loses_no_input() {
    let waits = Timeouts { head: 2 * SOON, idle: 2 * SOON, ..options().waits };
    let server = run(ConnectionOptions { waits, ..options() }).await;
    let body = vec![b'x'; 300_000];
    let head = format!("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let get = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Pad: {}\r\n\r\n", "x".repeat(5_000));
    // Without a part of the next request, and with one that is read along with the body.
    for at in [0, 9, 4_000] {
        let (start, end) = get.as_bytes().split_at(at);
        let mut stream = send(server.address, &[head.as_bytes(), &body, start].concat()).await;
        for _ in 0..2 {
            tokio::time::sleep(3 * SHORT).await;
            stream.write_all(end).await.unwrap();
            stream.write_all(&[head.as_bytes(), &body, start].concat()).await.unwrap();
        }
        stream.write_all(&[end, LAST_GET].concat()).await.unwrap();
        let (answers, _) = rest(&mut stream).await;
        let texts =
            ["taken", "hello", "connection: close"].map(|text| answers.matches(text).count());
        assert_eq!(texts, [3, 4, 1], "{answers}");
    }
}

/// Listener that records the size of the buffer of each read.
struct RecordingListener {
    listener: TcpListener,
    buffer_bytes: Arc<AtomicUsize>,
}

struct RecordingReader {
    reader: OwnedReadHalf,
    buffer_bytes: Arc<AtomicUsize>,
}

impl Listener for RecordingListener {
    type Io = Join<RecordingReader, OwnedWriteHalf>;

    async fn accept(&mut self) -> io::Result<(Self::Io, Peer)> {
        let (stream, peer) = Listener::accept(&mut self.listener).await?;
        let (reader, writer) = stream.into_split();
        let buffer_bytes = self.buffer_bytes.clone();
        Ok((tokio::io::join(RecordingReader { reader, buffer_bytes }, writer), peer))
    }

    async fn first_byte(_: &Self::Io) -> io::Result<Option<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl AsyncRead for RecordingReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.buffer_bytes.store(buf.remaining(), Ordering::Relaxed);
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

#[tokio::test]
async fn suspended_connection_has_no_buffers() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let buffer_bytes = Arc::new(AtomicUsize::new(0));
    let listener = RecordingListener { listener, buffer_bytes: buffer_bytes.clone() };
    let (_stop, seen) = watch::channel(Shutdown::Running);
    let waits = Timeouts { idle: 2 * SOON, ..options().waits };
    let bounds = ConnectionOptions { waits, ..options() };
    tokio::spawn(accept(listener, service_fn(answer), bounds, seen));
    let body = vec![b'x'; 300_000];
    let head = format!("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = send(address, &[head.as_bytes(), &body].concat()).await;
    let mut answer = [0; 4_096];
    let bytes = stream.read(&mut answer).await.unwrap();
    assert!(answer[..bytes].ends_with(b"taken"));
    let began = now();
    // Hyper reads into 8 KiB at least.
    while buffer_bytes.load(Ordering::Relaxed) > 2_000 {
        assert!(began.elapsed() < SOON, "the connection is not suspended");
        tokio::time::sleep(SHORT / 10).await;
    }
}

#[tokio::test]
async fn slow_request_header_times_out() {
    let server = run(options()).await;
    let mut stream = send(server.address, b"GET / HTTP/1.1\r\nX: ").await;
    let began = now();
    while stream.write_all(b"x").await.is_ok() && began.elapsed() < SOON {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(began.elapsed() < 10 * SHORT, "{:?}", began.elapsed());
}

#[tokio::test]
async fn keep_alive_outlasts_the_header_timeout() {
    let server = run(options()).await;
    let mut stream = send(server.address, GET).await;
    tokio::time::sleep(SHORT + SHORT / 2).await;
    stream.write_all(GET).await.unwrap();
    let (answers, took) = rest(&mut stream).await;
    assert_eq!(answers.matches("hello").count(), 2, "{answers}");
    assert!(took >= SHORT + SHORT / 2, "{took:?}");

    let mut stream = send(server.address, GET).await;
    tokio::time::sleep(SHORT / 2).await;
    stream.write_all(b"GET / HT").await.unwrap();
    let (answers, took) = rest(&mut stream).await;
    assert_eq!(answers.matches("hello").count(), 1);
    assert!(took < IDLE, "{took:?}");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = run(options()).await;
    let both = [&b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"[..], LAST_GET].concat();
    let (answers, _) = rest(&mut send(server.address, &both).await).await;
    assert!(answers.find("slow").unwrap() < answers.find("hello").unwrap(), "{answers}");
}

#[tokio::test]
async fn host_header_is_required_exactly_once() {
    let server = run(options()).await;
    for (head, status) in [
        ("GET / HTTP/1.1\r\nHost: a", "200"),
        ("GET / HTTP/1.1\r\nHost: a:8080", "200"),
        ("GET / HTTP/1.1\r\nHost: [::1]:8080", "200"),
        ("GET / HTTP/1.1\r\nHost:", "200"),
        ("GET http://a/ HTTP/1.1\r\nHost: A:80", "200"),
        ("GET / HTTP/1.0\r\nX: y", "200"),
        ("GET / HTTP/1.1\r\nX: y", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a", "400"),
        ("GET / HTTP/1.1\r\nHost: a b", "400"),
        ("GET / HTTP/1.1\r\nHost: u@a", "400"),
        ("GET http://b/ HTTP/1.1\r\nHost: a", "400"),
        ("GET http://a:81/ HTTP/1.1\r\nHost: a", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost:", "400"),
    ] {
        let head = format!("{head}\r\nConnection: close\r\n\r\n");
        let (answer, _) = rest(&mut send(server.address, head.as_bytes()).await).await;
        assert!(answer.split(' ').nth(1) == Some(status), "{head:?} got {answer:?}");
        if status == "400" {
            assert!(answer.contains("\"success\":false"), "{answer}");
            assert!(answer.contains("access-control-allow-origin: *"), "{answer}");
        }
    }
}

#[tokio::test]
async fn oversized_request_header_is_rejected() {
    let server = run(options()).await;
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
    let fields = "X: y\r\n".repeat(limits::HEADERS_MAX - 1);
    let one_more = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    for head in [long, many, one_more] {
        let (answer, _) = rest(&mut send(server.address, head.as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        assert!(answer.contains("\"code\":\"head_too_large\""), "{answer}");
    }
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let server = run(options()).await;
    let mut stream = send(server.address, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(6 * SHORT).await;
    let (answer, _) = rest(&mut stream).await;
    assert!(answer.len() < 64 << 20, "the rest was never sent");
}

#[tokio::test]
async fn slow_reader_gets_the_whole_response() {
    let server = run(options()).await;
    let head = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut stream = send(server.address, head).await;
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => break,
            read => bytes += read,
        }
    }
    assert!(bytes > 64 << 20);
}

#[tokio::test]
async fn rejected_body_does_not_hide_the_response() {
    let server = run(options()).await;
    let head = format!("POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 32 << 20);
    let mut stream = send(server.address, head.as_bytes()).await;
    // As python-requests does: the whole request is sent before anything is read.
    let sent = stream.write_all(&vec![b'x'; 32 << 20]).await;
    assert!(sent.is_ok(), "{sent:?}");
    let (answer, _) = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"limit\":10"), "{answer}");
}

#[tokio::test]
async fn rejected_body_is_not_awaited_forever() {
    let server = run(options()).await;
    let head = b"POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
    let (answer, took) = rest(&mut send(server.address, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(took < 10 * SHORT, "{took:?}");
}

#[tokio::test]
async fn slow_request_body_times_out_with_a_response() {
    let server = run(options()).await;
    let head = b"POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc";
    let (answer, _) = rest(&mut send(server.address, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");

    let stream = send(server.address, head).await;
    let (mut read, mut write) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    let (answer, took) = rest(&mut read).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(took < 10 * SHORT, "{took:?}");
    trickle.abort();
}

#[tokio::test]
async fn half_closed_client_gets_the_response() {
    let server = run(options()).await;
    let mut stream = send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    stream.shutdown().await.unwrap();
    let (answer, _) = rest(&mut stream).await;
    assert!(answer.ends_with("slow"), "{answer}");
}

/// Runs a service that never responds, and reports each request by a channel that closes when its response is dropped.
async fn run_held() -> (SocketAddr, watch::Sender<Shutdown>, mpsc::UnboundedReceiver<Held>) {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, seen) = watch::channel(Shutdown::Running);
    let (begun, beginnings) = mpsc::unbounded_channel();
    let service = service_fn(move |_: Request<IncomingBody>| {
        let (alive, held) = oneshot::channel::<()>();
        begun.send(held).unwrap();
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            Ok::<_, Infallible>(Response::new(Full::from("never")))
        }
    });
    tokio::spawn(accept(listener, service, options(), seen));
    (address, stop, beginnings)
}

type Held = oneshot::Receiver<()>;

#[tokio::test]
async fn handler_is_dropped_on_client_disconnect() {
    let (address, _stop, mut beginnings) = run_held().await;
    for linger in [None, Some(Duration::ZERO)] {
        let stream = send(address, GET).await;
        let held = beginnings.recv().await.unwrap();
        // With a linger time of zero, closing sends a reset.
        #[allow(deprecated, reason = "zero does not block")]
        stream.set_linger(linger).unwrap();
        drop(stream);
        let dropped = tokio::time::timeout(SOON, held).await.expect("it is dropped");
        assert!(dropped.is_err(), "{linger:?}");
    }
}

#[tokio::test]
async fn unsafe_request_completes_after_disconnect() {
    let (address, _stop, mut beginnings) = run_held().await;
    for request in [
        &b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"[..],
        b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let stream = send(address, request).await;
        let held = beginnings.recv().await.unwrap();
        drop(stream);
        assert!(tokio::time::timeout(2 * SHORT, held).await.is_err(), "it goes on");
    }
}

#[tokio::test]
async fn half_closed_client_is_probed_with_102() {
    let server = run(options()).await;
    for (version, is_asked) in [("1.1", true), ("1.0", false)] {
        let head = format!("GET /slow HTTP/{version}\r\nHost: a\r\n\r\n");
        let mut stream = send(server.address, head.as_bytes()).await;
        stream.shutdown().await.unwrap();
        let (answer, _) = rest(&mut stream).await;
        let asked = "HTTP/1.1 102 Processing\r\n\r\n";
        assert_eq!(answer.starts_with(asked), is_asked, "{answer}");
        let answer = answer.trim_start_matches(asked);
        assert_eq!(answer.matches("HTTP/").count(), 1, "{answer}");
        assert!(answer.contains(" 200 OK") && answer.ends_with("slow"), "{answer}");
    }
}

#[tokio::test]
async fn pipelined_request_is_preserved() {
    let server = run(options()).await;
    let mut stream = send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(SHORT / 3).await;
    stream.write_all(LAST_GET).await.unwrap();
    let (answers, _) = rest(&mut stream).await;
    assert!(answers.contains("slow") && answers.ends_with("hello"), "{answers}");
    assert!(!answers.contains(" 102 "), "{answers}");
}

#[tokio::test]
async fn connections_per_ip_are_limited() {
    let exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync> = Arc::new(|_| false);
    let server = run(ConnectionOptions { per_address_max: 2, exempt, ..options() }).await;
    let mut first = send(server.address, GET).await;
    let mut second = send(server.address, GET).await;
    let mut head = [0; 15];
    first.read_exact(&mut head).await.unwrap();
    second.read_exact(&mut head).await.unwrap();
    let mut third = TcpStream::connect(server.address).await.unwrap();
    let _ = third.write_all(GET).await;
    assert_eq!(rest(&mut third).await.0, "");
    drop(first);
    tokio::time::sleep(SHORT).await;
    let (answer, _) = rest(&mut send(server.address, LAST_GET).await).await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn excess_connections_wait_for_a_permit() {
    let server = run(ConnectionOptions { connections_max: 1, ..options() }).await;
    let mut first =
        send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let mut second = send(server.address, LAST_GET).await;
    let (one, two) = tokio::join!(rest(&mut first), rest(&mut second));
    assert!(one.0.ends_with("slow") && two.0.ends_with("hello"));
    assert!(two.1 >= SHORT, "{:?}", two.1);
}

#[tokio::test]
async fn drain_finishes_requests_and_closes_idle_connections() {
    let server = run(options()).await;
    let mut slow = send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut idle = send(server.address, GET).await;
    tokio::time::sleep(SHORT / 3).await;
    server.stop.send(Shutdown::Drain).unwrap();
    let (slow, idle) = tokio::join!(rest(&mut slow), rest(&mut idle));
    assert!(slow.0.ends_with("slow") && slow.0.contains("connection: close"), "{}", slow.0);
    assert!(idle.0.ends_with("hello"));
    assert_eq!(server.ended.await.unwrap(), DrainReport { cut_off: 0 });
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn second_shutdown_signal_is_immediate() {
    let server = run(options()).await;
    let _slow = send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(SHORT / 3).await;
    server.stop.send(Shutdown::Drain).unwrap();
    tokio::task::yield_now().await;
    server.stop.send(Shutdown::Immediate).unwrap();
    let ended = tokio::time::timeout(SOON, server.ended).await.unwrap().unwrap();
    assert_eq!(ended, DrainReport { cut_off: 1 });
}

#[tokio::test]
async fn drain_timeout_closes_connections() {
    let server = run(ConnectionOptions { drain: (SHORT / 3).into(), ..options() }).await;
    let _slow = send(server.address, b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(SHORT / 3).await;
    drop(server.stop);
    assert_eq!(server.ended.await.unwrap(), DrainReport { cut_off: 1 });
}

#[tokio::test]
async fn burst_of_connections_waits_for_a_busy_accept_loop() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    // Nothing is accepted yet. A connection beyond the queue of the system would be retried after a second.
    let connect = || std::net::TcpStream::connect_timeout(&address, SOON / 10).unwrap();
    let connections: Vec<_> = (0..1_000).map(|_| connect()).collect();
    for _ in &connections {
        listener.accept().await.unwrap();
    }
}

#[tokio::test]
async fn unix_socket_is_served() {
    let path = std::env::temp_dir().join(format!("trug-control-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let (_stop, seen) = watch::channel(Shutdown::Running);
    tokio::spawn(accept(listener, service_fn(answer), options(), seen));
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(LAST_GET).await.unwrap();
    let (answer, _) = rest(&mut stream).await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[test]
fn ipv6_connections_count_per_network() {
    let addresses = Arc::new(ConnectionsPerIp::default());
    let bounds = ConnectionOptions { per_address_max: 1, ..options() };
    let enter = |text: &str| {
        ConnectionsPerIp::try_acquire(&addresses, Peer::Address(text.parse().unwrap()), &bounds)
    };
    let place = enter("[2001:db8:1:2::1]:9");
    assert!(place.is_some());
    assert!(enter("[2001:db8:1:2:ffff::2]:9").is_none());
    assert!(enter("[2001:db8:1:3::1]:9").is_some());
    assert!(enter("192.0.2.1:9").is_some());
    let mapped = enter("[::ffff:192.0.2.2]:9");
    assert!(mapped.is_some() && enter("192.0.2.2:9").is_none());
    assert!(enter("127.0.0.1:1").is_some() && enter("127.0.0.1:2").is_some());
    drop(place);
    assert!(enter("[2001:db8:1:2::2]:9").is_some());
    drop(mapped);
    let of_48 = |subnet: u32| enter(&format!("[2001:db8:1:{subnet:x}::1]:9"));
    let places: Vec<_> = (0..20).filter_map(of_48).collect();
    assert_eq!(places.len(), limits::ADDRESSES_PER_NETWORK.get() as usize);
    assert!(enter("[2001:db8:2:1::1]:9").is_some());
    drop(places);
    assert_eq!(addresses.known_count(), 0);
}
