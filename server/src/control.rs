//! The control socket: the command line's way to a store that a server has open.
//!
//! It lies in the data folder and only its owner may open it; who can open it is the operator. It speaks HTTP: a
//! [`Request`] as JSON in a POST, a [`Reply`] or an error back. Promises: at most [`limits::CONTROL_CONNECTIONS_MAX`]
//! requests at once, of bounded size; a socket that a killed server left behind is replaced.
//! Never here: what the requests do.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::bridge::blocking;
use crate::connection::{ConnectionOptions, Stop, accept};
use crate::error::{ApiError, Asked};
use crate::limits;
use crate::management::{Reply, Request, execute};
use crate::state::AppState;

/// What the socket is called in the data folder.
pub const SOCKET_NAME: &str = "control.sock";

/// Why the running server did not do what it was asked.
#[derive(Debug)]
pub enum ControlError {
    /// No server listens there.
    NotRunning,
    /// The server said no: its sentence and its code.
    Refused { message: String, code: String },
    /// The conversation broke off.
    Broken(String),
}

/// The socket, bound; dropping it removes it.
pub struct ControlSocket {
    listener: UnixListener,
    file: SocketFile,
}

struct SocketFile(PathBuf);

impl ControlSocket {
    /// Binds the socket in the data folder. Only for the process that holds the store's lock.
    pub fn bind(data: &Path) -> io::Result<Self> {
        let path = data.join(SOCKET_NAME);
        // Under a name that nobody knows until only the owner may open it; the renaming replaces what was left behind.
        let unfinished = data.join(format!(".{SOCKET_NAME}.{}", std::process::id()));
        remove_if_there(&unfinished)?;
        let listener = UnixListener::bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o600))?;
        rename(&unfinished, &path)?;
        Ok(Self { listener, file: SocketFile(path) })
    }

    /// Answers requests until it is stopped, then removes the socket.
    pub async fn serve(self, app: AppState, stop: watch::Receiver<Stop>) {
        let service = service_fn(move |request| answer(app.clone(), request));
        let connections_max = limits::CONTROL_CONNECTIONS_MAX;
        let options = ConnectionOptions { connections_max, ..ConnectionOptions::new() };
        accept(self.listener, service, options, stop).await;
        drop(self.file);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = remove_if_there(&self.0) {
            tracing::warn!(%error, "the control socket stays behind");
        }
    }
}

/// Asks the server that has the store in this data folder open.
pub async fn call(data: &Path, request: &Request) -> Result<Reply, ControlError> {
    let stream = match UnixStream::connect(data.join(SOCKET_NAME)).await {
        Ok(stream) => stream,
        Err(error) => {
            return Err(match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ControlError::NotRunning
                }
                _ => ControlError::Broken(error.to_string()),
            });
        }
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let conversation = tokio::spawn(connection);
    let body = serde_json::to_vec(request).map_err(broken)?;
    let request = http::Request::post("/")
        .header(http::header::HOST, "localhost")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(broken)?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), limits::CONTROL_REPLY_BYTES_MAX);
    let body = body.collect().await.map_err(broken)?.to_bytes();
    conversation.abort();
    if status == StatusCode::OK {
        return serde_json::from_slice(&body).map_err(broken);
    }
    let body: serde_json::Value = serde_json::from_slice(&body).map_err(broken)?;
    let text = |field: &str| body.get(field).and_then(|it| it.as_str()).unwrap_or("").to_owned();
    Err(ControlError::Refused { message: text("error"), code: text("code") })
}

async fn answer(
    app: AppState,
    request: http::Request<Incoming>,
) -> Result<http::Response<Body>, std::convert::Infallible> {
    Ok(match perform(app, request).await {
        Ok(reply) => http::Response::new(Body::from(reply)),
        Err(error) => {
            if let Some(line) = error.log() {
                tracing::error!("control: {line}");
            }
            error.response(&Asked::default()).map(Body::from)
        }
    })
}

async fn perform(app: AppState, request: http::Request<Incoming>) -> Result<Vec<u8>, ApiError> {
    if request.method() != Method::POST {
        return Err(ApiError::method_not_allowed("POST"));
    }
    const BYTES_MAX: usize = limits::CONTROL_REQUEST_BYTES_MAX;
    let body = Limited::new(request.into_body(), BYTES_MAX).collect().await;
    let body = body.map_err(|_| ApiError::file_too_large(BYTES_MAX as u64))?.to_bytes();
    let request: Request = serde_json::from_slice(&body).map_err(|error| {
        ApiError::bad_request(format!("The request is not understood: {error}"))
    })?;
    let reply = blocking(move || execute(&app.store, &app.catalog, request)).await?;
    serde_json::to_vec(&reply).map_err(|error| ApiError::internal(error.to_string()))
}

#[allow(clippy::disallowed_methods, reason = "a socket is no file of the store")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

#[allow(clippy::disallowed_methods, reason = "a socket is no file of the store")]
fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn broken(error: impl fmt::Display) -> ControlError {
    ControlError::Broken(error.to_string())
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => write!(f, "no server is running on this data folder"),
            Self::Refused { message, .. } => f.write_str(message),
            Self::Broken(why) => write!(f, "the running server did not answer: {why}"),
        }
    }
}

impl std::error::Error for ControlError {}
