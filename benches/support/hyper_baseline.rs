//! A limit of servers with hyper as a contestant: hyper over tokio responds with a body that is in memory and with
//! prepared headers, whatever is requested.
//!
//! It has no routes, time-outs or checks: what a server with these libraries costs more is its own.

use std::convert::Infallible;
use std::future;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::arguments::Arguments;
use super::server::ServerKind;
use super::{baseline_process, data};

/// Option that runs the program as this server.
const OPTION: &str = "--bare-hyper";
const THREADS: usize = 2;
/// Number of headers among which the bytes of the head are divided.
const HEADERS: usize = 12;
/// Bytes of a response head besides its headers: status, length and date.
const OTHER_BYTES: usize = 17 + 24 + 37 + 2;

/// The server, and its responses.
pub struct BareHyper {
    /// Length of each response head in bytes, approximately.
    pub head_bytes: usize,
    /// Length of each response body in bytes.
    pub body_bytes: usize,
}

impl ServerKind for BareHyper {
    fn label(&self) -> &'static str {
        "bare hyper"
    }

    fn command(&self, _folder: &Path, address: SocketAddr) -> Result<Command, String> {
        baseline_process::command(OPTION, address, &[self.head_bytes, self.body_bytes])
    }

    fn path(&self, _name: &str) -> String {
        "/".to_owned()
    }
}

/// Runs the server until the process is ended, when the arguments request it. Returns false when they do not.
pub fn serve(arguments: &Arguments) -> Result<bool, String> {
    let Some((address, [head_bytes, body_bytes])) = baseline_process::requested(arguments, OPTION)?
    else {
        return Ok(false);
    };
    let (headers, body) = (headers(head_bytes), Bytes::from(data::bytes(4, body_bytes)));
    let service = service_fn(move |_| {
        let mut response = Response::new(Full::new(body.clone()));
        *response.headers_mut() = headers.clone();
        future::ready(Ok::<_, Infallible>(response))
    });
    run(address, service)?;
    Ok(true)
}

/// Runs a service on two threads until the process is ended.
pub(super) fn run<S, B>(address: SocketAddr, service: S) -> Result<(), String>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(text)?;
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(text)?;
    loop {
        let (stream, _) = runtime.block_on(listener.accept()).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        let stream = TokioIo::new(stream);
        runtime.spawn(http1::Builder::new().serve_connection(stream, service.clone()));
    }
}

fn headers(head_bytes: usize) -> HeaderMap {
    let value_bytes =
        (head_bytes.saturating_sub(OTHER_BYTES) / HEADERS).saturating_sub("x-00: \r\n".len());
    let value = HeaderValue::try_from("-".repeat(value_bytes)).expect("a header value");
    let name = |number| HeaderName::try_from(format!("x-{number:02}")).expect("a header name");
    (0..HEADERS).map(|number| (name(number), value.clone())).collect()
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
