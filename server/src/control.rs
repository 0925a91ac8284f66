//! Control socket: access of the command line to a store that a running server has open.
//!
//! The socket is a file in the data folder that only its owner may open; a client that can open it is the operator. It
//! speaks HTTP: an [`AdminRequest`] as JSON in a POST, an [`AdminResponse`] or an error in the response. A long request
//! is answered with a stream of lines, each one JSON document: `{"progress":...}` repeatedly, then `{"reply":...}` or
//! `{"refusal":{"error":...,"code":...}}`. Guarantees: at most [`limits::control_socket::CONNECTIONS_MAX`] requests at
//! once, of bounded size, and one long one; a client that disconnects, and a server that stops, cancel the long work; a
//! socket that a killed server left behind is replaced. Non-goals: the operations themselves.

mod channels;
mod content;
mod long_work;
mod stream_body;

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use catalog::Actor;
use engine::progress::ProgressCallback;
use engine::rng::{Rng, SystemRng};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jobs::webhooks;
use listener::accept::{Shutdown, accept};
use listener::incoming_body::IncomingBody;
use listener::options::ConnectionOptions;
use protocol::error::{ApiError, ErrorFormat};
use serde::{Deserialize, Serialize};
use service::state::AppState;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedMutexGuard, watch};
use usage::task::blocking;
use uuid::Uuid;

use self::channels::{Channel, Channels};
use self::content::{Stream, transfer};
use self::long_work::ProgressBody;
use crate::limits;
use crate::management::{
    AdminRequest, AdminResponse, Direction, LinkLifetime, ObjectRequest, ProgressView,
    WebhookRequest, execute, webhook_id,
};

/// File name of the socket in the data folder.
pub const SOCKET_NAME: &str = "control.sock";

/// Error of a control request.
#[derive(Debug)]
pub enum ControlError {
    /// No server listens on the socket.
    NotRunning,
    /// The server rejected the request: message and error code.
    Refused { message: String, code: String },
    /// The connection broke.
    Disconnected(String),
    /// A stream of this process cannot be read or written.
    Stream(String),
}

/// Bound control socket; dropping it removes the file.
pub struct ControlSocket {
    listener: UnixListener,
    file: SocketFile,
}

struct SocketFile(PathBuf);

/// State shared by all control requests.
#[derive(Clone)]
struct ControlContext {
    app: AppState,
    channels: Arc<Channels>,
}

/// Line of the response to a long request.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum StreamLine {
    Progress(ProgressView),
    Reply(Box<AdminResponse>),
    Refusal { error: String, code: String },
}

impl ControlSocket {
    /// Binds the socket in the data folder. Only for the process that holds the store's lock.
    pub fn bind(data: &Path) -> io::Result<Self> {
        let path = data.join(SOCKET_NAME);
        // Bound under a temporary name until its permissions are set; the rename replaces a stale socket.
        let unfinished = data.join(format!(".{SOCKET_NAME}.{}", std::process::id()));
        remove_if_exists(&unfinished)?;
        let listener = UnixListener::bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o600))?;
        rename(&unfinished, &path)?;
        Ok(Self { listener, file: SocketFile(path) })
    }

    /// Serves requests until it is stopped, then removes the socket.
    pub async fn serve(self, app: AppState, stop: watch::Receiver<Shutdown>) {
        let operator = ControlContext { app, channels: Arc::default() };
        let service = service_fn(move |request| answer(operator.clone(), request));
        let connections_max = limits::control_socket::CONNECTIONS_MAX;
        let options = ConnectionOptions { connections_max, ..ConnectionOptions::new() };
        accept(self.listener, service, options, stop).await;
        drop(self.file);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = remove_if_exists(&self.0) {
            tracing::warn!(%error, "failed to remove the control socket");
        }
    }
}

/// Performs a request in the server that has the store of this data folder open. `watch` receives the progress of a
/// long request.
///
/// The future is boxed because an `async fn` is compiled into each crate that awaits it.
pub fn call<'a>(
    data: &'a Path,
    request: &'a AdminRequest,
    watch: &'a mut ProgressCallback<'_>,
) -> Pin<Box<dyn Future<Output = Result<AdminResponse, ControlError>> + 'a>> {
    Box::pin(exchange(data, request, watch))
}

async fn exchange(
    data: &Path,
    request: &AdminRequest,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, ControlError> {
    let socket = connect(data).await?;
    let Some((direction, path)) = request.clone().stream().map(|(to, path)| (to, path.clone()))
    else {
        return send_request(socket, request, None, watch).await;
    };
    let stream = match direction {
        Direction::ToServer => Stream::Input(path),
        Direction::FromServer => Stream::Output(path),
    };
    let name = new_channel_name();
    let mut transferring =
        AbortOnDrop(tokio::spawn(transfer(connect(data).await?, name.clone(), stream)));
    let asking = send_request(socket, request, Some(&name), watch);
    tokio::pin!(asking);
    let mut is_transferred = false;
    let reply = loop {
        tokio::select! {
            biased;
            transferred = &mut transferring.0, if !is_transferred => {
                transferred.map_err(broken)??;
                is_transferred = true;
            }
            reply = &mut asking => break reply?,
        }
    };
    if direction == Direction::FromServer && !is_transferred {
        (&mut transferring.0).await.map_err(broken)??;
    }
    Ok(reply)
}

/// Returns whether a server listens on the control socket of this data folder.
pub fn is_served(data: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(data.join(SOCKET_NAME)).is_ok()
}

async fn connect(data: &Path) -> Result<UnixStream, ControlError> {
    UnixStream::connect(data.join(SOCKET_NAME)).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NotRunning,
        _ => ControlError::Disconnected(error.to_string()),
    })
}

fn new_channel_name() -> String {
    let mut name = [0; 16];
    SystemRng.fill(&mut name);
    Uuid::from_bytes(name).to_string()
}

/// Sends a request over a connection and reads its reply.
async fn send_request(
    stream: UnixStream,
    request: &AdminRequest,
    channel: Option<&str>,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, ControlError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Dropping the connection tells the server that the client is gone.
    let _conversation = AbortOnDrop::spawn(connection);
    let body = serde_json::to_vec(request).map_err(broken)?;
    let is_long = request.is_long_running();
    let mut post = http::Request::post("/")
        .header(http::header::HOST, "localhost")
        .header(http::header::CONTENT_TYPE, "application/json");
    if let Some(channel) = channel {
        post = post.header(channels::HEADER, channel);
    }
    let request = post.body(Full::new(Bytes::from(body))).map_err(broken)?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    if status == StatusCode::OK && is_long {
        return read_lines(response.into_body(), watch).await;
    }
    let body = Limited::new(response.into_body(), limits::control_socket::REPLY_BYTES_MAX);
    let body = body.collect().await.map_err(broken)?.to_bytes();
    if status == StatusCode::OK {
        return serde_json::from_slice(&body).map_err(broken);
    }
    let body: serde_json::Value = serde_json::from_slice(&body).map_err(broken)?;
    let text = |field: &str| body.get(field).and_then(|it| it.as_str()).unwrap_or("").to_owned();
    Err(ControlError::Refused { message: text("error"), code: text("code") })
}

/// Reads the lines of a long request until the last one.
async fn read_lines(
    mut body: Incoming,
    watch: &mut ProgressCallback<'_>,
) -> Result<AdminResponse, ControlError> {
    let mut unread = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
        unread.extend_from_slice(&bytes);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            match serde_json::from_slice(&line).map_err(broken)? {
                StreamLine::Progress(progress) => {
                    if watch(progress.into()).is_break() {
                        return Err(ControlError::cancelled());
                    }
                }
                StreamLine::Reply(reply) => return Ok(*reply),
                StreamLine::Refusal { error, code } => {
                    return Err(ControlError::Refused { message: error, code });
                }
            }
        }
        if unread.len() > limits::control_socket::REPLY_BYTES_MAX {
            return Err(broken("the response is too long"));
        }
    }
    Err(broken("the connection closed before the operation finished"))
}

/// Task that is aborted when its owner is dropped.
struct AbortOnDrop<T = ()>(tokio::task::JoinHandle<T>);

impl AbortOnDrop {
    fn spawn(task: impl Future<Output: Send> + Send + 'static) -> Self {
        Self(tokio::spawn(async move { drop(task.await) }))
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(
    operator: ControlContext,
    request: http::Request<IncomingBody>,
) -> Result<http::Response<Body>, std::convert::Infallible> {
    Ok(perform(operator, request).await.unwrap_or_else(|error| {
        log(&error);
        let reply = ApiError::new(error.status(), error.code(), log_and_reply(&error).to_owned());
        reply.response(&ErrorFormat::default()).map(Body::from)
    }))
}

fn log(error: &ApiError) {
    if let Some(line) = error.log() {
        tracing::error!("control: {line}");
    }
}

/// Returns the full error message for the operator, as if the store were open in the operator's own process.
fn log_and_reply(error: &ApiError) -> &str {
    error.log().unwrap_or(error.message())
}

async fn perform(
    operator: ControlContext,
    request: http::Request<IncomingBody>,
) -> Result<http::Response<Body>, ApiError> {
    if request.uri().path().starts_with(channels::PATH) {
        return operator.channels.open(request).await;
    }
    if request.method() != Method::POST {
        return Err(ApiError::method_not_allowed("POST"));
    }
    const BYTES_MAX: usize = limits::control_socket::REQUEST_BYTES_MAX;
    let channel = request.headers().get(channels::HEADER).cloned();
    let body = Limited::new(request.into_body(), BYTES_MAX).collect().await;
    let body = body.map_err(|_| ApiError::file_too_large(BYTES_MAX as u64))?.to_bytes();
    let mut request: AdminRequest = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("Invalid request: {error}")))?;
    let ControlContext { app, channels } = operator;
    let channel = open_channel(&channels, &mut request, channel).await?;
    if request.is_long_running() {
        let turn = request.is_exclusive().then(|| lock_exclusive(&app)).transpose()?;
        let work = ProgressBody::start(app, request, (turn, channel));
        return Ok(http::Response::new(Body::new(work)));
    }
    let reply = match request {
        // This request requires a running server.
        AdminRequest::Webhook(WebhookRequest::Test { id }) => test_webhook(&app, &id).await?,
        request => {
            let request = with_server_settings(&app, request);
            let work = move || {
                execute(&app.store, &app.catalog.acting_as(Actor::operator()), request, &mut |_| {
                    ControlFlow::Continue(())
                })
            };
            blocking(work).await?
        }
    };
    let reply = serde_json::to_vec(&reply);
    Ok(http::Response::new(Body::from(
        reply.map_err(|error| ApiError::internal(error.to_string()))?,
    )))
}

/// Replaces the client's stream with the channel that it opens, which stays open while it is held.
async fn open_channel(
    channels: &Channels,
    request: &mut AdminRequest,
    name: Option<http::HeaderValue>,
) -> Result<Option<Channel>, ApiError> {
    let Some((_, path)) = request.stream() else { return Ok(None) };
    let unnamed = || ApiError::bad_request("The stream of the request has no channel");
    let name = name.as_ref().and_then(|name| name.to_str().ok()).ok_or_else(unnamed)?;
    let channel = channels.take(name).await?;
    *path = channel.path();
    Ok(Some(channel))
}

/// Takes the lock of exclusive requests. A store job holds the same lock.
fn lock_exclusive(app: &AppState) -> Result<OwnedMutexGuard<()>, ApiError> {
    let message = "Another long operation is running on the server: wait for it or cancel it";
    app.jobs.try_lock_whole_store().ok_or_else(|| ApiError::conflict(message))
}

/// Fills in the base URL of this server, unless the request has one, and the rule about lifetimes of links.
fn with_server_settings(app: &AppState, mut request: AdminRequest) -> AdminRequest {
    if let AdminRequest::InviteAccount { public_url, .. }
    | AdminRequest::Object(ObjectRequest::Presign { public_url, .. }) = &mut request
    {
        public_url.get_or_insert_with(|| app.public_url.as_str().to_owned());
    }
    if let AdminRequest::Link(link) = &mut request {
        let rule = LinkLifetime::of(&app.config());
        link.fill_in(app.public_url.as_str(), rule);
    }
    request
}

async fn test_webhook(app: &AppState, id: &str) -> Result<AdminResponse, ApiError> {
    let webhook =
        app.catalog.webhooks().get(&webhook_id(id)?).ok_or_else(ApiError::webhook_not_found)?;
    let tested =
        webhooks::test(&app.jobs, &webhook).await.ok_or_else(|| ApiError::overloaded(1))?;
    Ok(AdminResponse::WebhookTested(tested.into()))
}

#[allow(clippy::disallowed_methods, reason = "a socket is no file of the store")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

#[allow(clippy::disallowed_methods, reason = "a socket is no file of the store")]
fn remove_if_exists(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn broken(error: impl fmt::Display) -> ControlError {
    ControlError::Disconnected(error.to_string())
}

impl ControlError {
    /// Returns the error of long work that its caller cancelled.
    pub fn cancelled() -> Self {
        let message = engine::Error::Cancelled.to_string();
        Self::Refused { message, code: "cancelled".to_owned() }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => write!(f, "no server is running on this data folder"),
            Self::Refused { message, .. } => f.write_str(message),
            Self::Disconnected(why) => write!(f, "no response from the running server: {why}"),
            Self::Stream(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ControlError {}
