//! Client end of a channel: a stream of this process, to the server or from it.
//!
//! Non-goals: the request that uses the channel.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "streams are outside the store"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use jobs::archive::standard_stream;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::stream_body::StreamBody;
use super::{AbortOnDrop, ControlError, broken, channels};
use crate::limits;

/// Stream of this process, by its path in `/proc`.
#[derive(Clone, Debug)]
pub(super) enum Stream {
    /// Input of the request.
    Input(PathBuf),
    /// Output of the request.
    Output(PathBuf),
}

/// Transfers the content of a channel to its end.
pub(super) async fn transfer(
    socket: UnixStream,
    name: String,
    stream: Stream,
) -> Result<(), ControlError> {
    let path = format!("{}{name}", channels::PATH);
    match stream {
        Stream::Input(file) => send(socket, &path, file).await,
        Stream::Output(file) => receive(socket, &path, &file).await,
    }
}

async fn send(socket: UnixStream, path: &str, file: PathBuf) -> Result<(), ControlError> {
    let (pieces, body) = mpsc::channel(2);
    let (failed, mut failure) = oneshot::channel();
    // Not a task: a read of a terminal or pipe cannot be cancelled, and must not delay the end of this process.
    thread::spawn(move || {
        if let Err(error) = read_pieces(&file, &pieces) {
            let _ = failed.send(error.to_string());
            let _ = pieces.blocking_send(Err(error));
        }
    });
    let (mut sender, _connection) = connect(socket).await?;
    let request = http::Request::put(path).header(http::header::HOST, "localhost");
    let request = request.body(StreamBody(body)).map_err(broken)?;
    let answered = sender.send_request(request).await;
    let unread = |why: String| ControlError::Stream(format!("cannot read the input: {why}"));
    // The reply to the request states whether the content arrived.
    drop(answered);
    failure.try_recv().map_or(Ok(()), |why| Err(unread(why)))
}

/// Sends the content of a file in chunks. Ends early when the receiver is gone.
fn read_pieces(path: &Path, pieces: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut file = match standard_stream(path)? {
        Some(file) => file,
        None => File::open(path)?,
    };
    loop {
        let mut piece = vec![0; limits::control_socket::PIECE_BYTES];
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => piece.truncate(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if pieces.blocking_send(Ok(piece.into())).is_err() {
            return Ok(());
        }
    }
}

async fn receive(socket: UnixStream, path: &str, file: &Path) -> Result<(), ControlError> {
    let unwritten =
        |error: io::Error| ControlError::Stream(format!("cannot write the output: {error}"));
    let mut file = match standard_stream(file).map_err(unwritten)? {
        Some(file) => file,
        None => OpenOptions::new().append(true).open(file).map_err(unwritten)?,
    };
    let (mut sender, _connection) = connect(socket).await?;
    let request = http::Request::get(path).header(http::header::HOST, "localhost");
    let request = request.body(Empty::<Bytes>::new()).map_err(broken)?;
    let mut body = sender.send_request(request).await.map_err(broken)?.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
        let written = spawn_blocking(move || file.write_all(&piece).map(|()| file));
        file = written.await.map_err(broken)?.map_err(unwritten)?;
    }
    Ok(())
}

async fn connect<B>(socket: UnixStream) -> Result<(SendRequest<B>, AbortOnDrop), ControlError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (sender, connection) = handshake(TokioIo::new(socket)).await.map_err(broken)?;
    Ok((sender, AbortOnDrop::spawn(connection)))
}
