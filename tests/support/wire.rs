//! The whole service behind a real local socket, and clients that write raw bytes.
//!
//! Non-goals: an HTTP client; these tests send arbitrary bytes, also malformed HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body as HttpBody;
use hyper::service::service_fn;
use listener::accept::Shutdown;
use listener::accept::{DrainReport, accept};
use listener::incoming_body::IncomingBody;
use listener::options::ConnectionOptions;
use listener::peer::Peer;
use server::admin::AdminService;
use server::dispatch::HttpService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Reply;

/// Timeout for every wait of a test.
pub const SOON: Duration = Duration::from_secs(15);

/// A listening service.
pub struct Listening {
    pub address: SocketAddr,
    pub stop: watch::Sender<Shutdown>,
    pub ended: JoinHandle<DrainReport>,
}

/// One raw connection.
pub struct Wire(pub TcpStream);

impl Listening {
    pub async fn start(app: HttpService, options: ConnectionOptions) -> Self {
        Self::serving(options, move |request, peer| {
            let app = app.clone();
            async move { app.call(request, peer).await }
        })
        .await
    }

    /// Starts the admin listener of a service.
    pub async fn admin(app: AdminService, options: ConnectionOptions) -> Self {
        Self::serving(options, move |request, _| {
            let app = app.clone();
            async move { app.call(request).await }
        })
        .await
    }

    async fn serving<F, B>(
        options: ConnectionOptions,
        call: impl Fn(http::Request<Body>, Peer) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Response<B>> + Send + 'static,
        B: HttpBody<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let service = service_fn(move |request: http::Request<IncomingBody>| {
            let peer = request.body().peer();
            let answer = call(request.map(Body::new), peer);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = watch::channel(Shutdown::Running);
        let ended = tokio::spawn(accept(listener, service, options, stopped));
        Self { address, stop, ended }
    }

    /// Opens a connection and sends these bytes.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> Wire {
        let mut wire = Wire(TcpStream::connect(self.address).await.expect("a connection"));
        wire.write(bytes).await;
        wire
    }

    /// Sends these bytes and returns everything received until the peer closes.
    pub async fn request(&self, bytes: impl AsRef<[u8]>) -> String {
        self.send(bytes).await.read_remaining().await.0
    }
}

impl Wire {
    /// Writes bytes; a closed peer is no failure here.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref()).await;
    }

    /// Returns everything received until the peer closes, and how long that took.
    pub async fn read_remaining(&mut self) -> (String, Duration) {
        let (began, mut bytes) = (now(), Vec::new());
        let read = self.0.read_to_end(&mut bytes);
        let _ = tokio::time::timeout(SOON, read).await.expect("the end of the connection");
        (String::from_utf8_lossy(&bytes).into_owned(), began.elapsed())
    }

    /// Reads one response, and leaves the bytes after it unread. Interim responses are skipped.
    pub async fn read_response(&mut self) -> Reply {
        let mut reply = self.read_response_to_head().await;
        let length = reply.header("content-length");
        let length = if length.is_empty() { 0 } else { length.parse().expect("a length") };
        let mut body = vec![0; length];
        let read = tokio::time::timeout(SOON, self.0.read_exact(&mut body)).await;
        read.expect("a body in time").expect("a whole body");
        reply.body = body.into();
        reply
    }

    /// Reads the response of a request whose response has no body.
    pub async fn read_response_to_head(&mut self) -> Reply {
        loop {
            let head = self.head().await;
            let mut lines = head.split("\r\n");
            let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            let status: StatusCode = status.parse().expect("a status");
            if status.is_informational() {
                continue;
            }
            let fields = lines.filter_map(|line| line.split_once(": "));
            let headers: HeaderMap = fields
                .map(|(name, value)| {
                    let name: HeaderName = name.parse().expect("a valid header name");
                    (name, HeaderValue::from_str(value).expect("a valid header value"))
                })
                .collect();
            return Reply { status, headers, body: Bytes::new() };
        }
    }

    /// Reads a response head, and no byte after it.
    async fn head(&mut self) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let read = tokio::time::timeout(SOON, self.0.read_u8()).await;
            let read = read.expect("bytes in time");
            bytes.push(read.unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&bytes))
            }));
        }
        String::from_utf8(bytes).expect("a head in UTF-8")
    }

    /// Reads until the text was received.
    pub async fn read_to(&mut self, text: &str) -> String {
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains(text) {
            let read = tokio::time::timeout(SOON, self.0.read_buf(&mut bytes)).await;
            let read = read.expect("bytes in time").expect("an open connection");
            assert!(read > 0, "it ended with {:?}", String::from_utf8_lossy(&bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[allow(clippy::disallowed_methods, reason = "these tests measure real time-outs")]
pub fn now() -> Instant {
    Instant::now()
}
