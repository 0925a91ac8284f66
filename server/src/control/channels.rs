//! Content that a request reads or writes, over a second connection of the client.
//!
//! A request whose location is a stream names a channel in the header [`HEADER`]. The client opens the channel with
//! `PUT /channels/NAME`, whose body is what the request reads, or `GET /channels/NAME`, whose response body is what the
//! request writes. In the server each channel is an OS pipe. The command line thus reads and writes its files with its
//! own permissions, even if the server runs as another user or in a sandbox. Guarantees: content that ends early is
//! never taken for complete: its pipe stays open until the request has ended. Non-goals: use of the content by the
//! request.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Response};
use http_body_util::BodyExt;
use listener::incoming_body::IncomingBody;
use protocol::error::ApiError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::stream_body::StreamBody;
use crate::limits;

/// Name of the channel of a request.
pub(super) const HEADER: &str = "trug-channel";
/// Path of a channel, without its name.
pub(super) const PATH: &str = "/channels/";

/// Channels that are open and not yet used by a request.
#[derive(Default)]
pub(super) struct Channels {
    waiting: Mutex<HashMap<String, Channel>>,
    changed: Notify,
}

/// End of a channel that a request uses.
pub(super) struct Channel {
    end: OwnedFd,
    /// Other end of content that ended early, held open as long as this.
    _broken: Arc<Mutex<Option<pipe::Sender>>>,
}

/// Channel while its connection is open.
struct Open<'a> {
    channels: &'a Channels,
    name: &'a str,
}

/// Other end of received content.
struct Feed {
    sender: Option<pipe::Sender>,
    broken: Arc<Mutex<Option<pipe::Sender>>>,
}

impl Channels {
    /// Handles the request that opens a channel.
    pub(super) async fn open(
        self: Arc<Self>,
        request: http::Request<IncomingBody>,
    ) -> Result<Response<Body>, ApiError> {
        let name = request.uri().path().strip_prefix(PATH).unwrap_or_default().to_owned();
        let failed = |error: io::Error| ApiError::internal(format!("channel: {error}"));
        match *request.method() {
            Method::PUT => {
                self.receive(&name, request.into_body()).await.map_err(failed)?;
                Ok(Response::new(Body::empty()))
            }
            Method::GET => self.send(name).map_err(failed),
            _ => Err(ApiError::method_not_allowed("GET, PUT")),
        }
    }

    /// Waits for a channel that the client opens at the same time.
    pub(super) async fn take(&self, name: &str) -> Result<Channel, ApiError> {
        let taken = async {
            loop {
                let changed = self.changed.notified();
                if let Some(channel) = self.waiting().remove(name) {
                    self.changed.notify_waiters();
                    return channel;
                }
                changed.await;
            }
        };
        let missing = |_| ApiError::bad_request(format!("The channel {name:?} was not opened"));
        timeout(limits::control_socket::CHANNEL_WAIT, taken).await.map_err(missing)
    }

    async fn receive(&self, name: &str, mut body: IncomingBody) -> io::Result<()> {
        let (sender, receiver) = pipe::pipe()?;
        let mut feed = Feed { sender: Some(sender), broken: Arc::default() };
        let broken = Arc::clone(&feed.broken);
        let _open =
            self.insert(name, Channel { end: receiver.into_nonblocking_fd()?, _broken: broken });
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(io::Error::other)?;
            if let (Ok(bytes), Some(sender)) = (frame.into_data(), &mut feed.sender) {
                sender.write_all(&bytes).await?;
            }
        }
        // The content is complete.
        feed.sender = None;
        self.taken(name).await;
        Ok(())
    }

    fn send(self: Arc<Self>, name: String) -> io::Result<Response<Body>> {
        let (sender, mut receiver) = pipe::pipe()?;
        let channel = Channel { end: sender.into_nonblocking_fd()?, _broken: Arc::default() };
        let (pieces, body) = mpsc::channel::<Result<Bytes, Infallible>>(1);
        let channels = Arc::clone(&self);
        tokio::spawn(async move {
            let _open = channels.insert(&name, channel);
            loop {
                let mut piece = vec![0; limits::control_socket::PIECE_BYTES];
                let read = tokio::select! {
                    read = receiver.read(&mut piece) => read,
                    // The client disconnected. The request notices the closed pipe.
                    () = pieces.closed() => return,
                };
                match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => piece.truncate(count),
                }
                if pieces.send(Ok(piece.into())).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Body::new(StreamBody(body))))
    }

    fn insert<'a>(&'a self, name: &'a str, channel: Channel) -> Open<'a> {
        self.waiting().insert(name.to_owned(), channel);
        self.changed.notify_waiters();
        Open { channels: self, name }
    }

    /// Waits until a request uses a channel.
    async fn taken(&self, name: &str) {
        loop {
            let changed = self.changed.notified();
            if !self.waiting().contains_key(name) {
                return;
            }
            changed.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Channel>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// Returns the path by which this process opens the end again.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.end.as_raw_fd()))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.channels.waiting().remove(self.name);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        }
    }
}
