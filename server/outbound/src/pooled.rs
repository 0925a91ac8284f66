//! Client with a connection pool, for an endpoint from the operator's configuration.
//!
//! Guarantees: redirects are not followed, proxies not used; bodies stream both ways. Non-goals: address rules, which
//! protect against URLs of users; retries; time-outs other than that of connecting.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use protocol::destination::Origin;
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

use crate::connect::Stream;
use crate::{AGENT, SendError, connect, limits};

/// HTTP/1.1 client with a connection pool. Clones share the pool.
#[derive(Clone)]
pub struct PooledClient<B>(Client<Connector, B>);

/// Failed request of a [`PooledClient`].
#[derive(Debug)]
pub struct PooledError(Error);

#[derive(Clone)]
struct Connector(Arc<ClientConfig>);

impl<B> PooledClient<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Creates a client.
    pub fn new(tls: Arc<ClientConfig>) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(limits::POOL_IDLE_TIMEOUT);
        Self(builder.build(Connector(tls)))
    }

    /// Sends a request to the absolute URL in it and returns the head of the response with its streaming body.
    ///
    /// A request is sent twice only if the reused connection was closed before any of it was sent.
    pub async fn send(&self, mut request: Request<B>) -> Result<Response<Incoming>, PooledError> {
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        self.0.request(request).await.map_err(PooledError)
    }
}

impl PooledError {
    /// Returns whether no connection could be established, so that nothing was sent.
    pub fn is_connect(&self) -> bool {
        self.0.is_connect()
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.0.clone();
        Box::pin(async move {
            let authority = uri.authority().map_or("", |authority| authority.as_str());
            let origin = format!("{}://{authority}", uri.scheme_str().unwrap_or_default());
            let origin = Origin::parse(&origin)
                .map_err(|error| io::Error::other(format!("{origin} {error}")))?;
            let connecting = connect::connect(&origin, true, &tls);
            match timeout(limits::CONNECT_TIMEOUT, connecting).await {
                Ok(connected) => connected.map_err(|error| match error {
                    SendError::Blocked => io::Error::other(format!(
                        "the host name {} does not resolve",
                        origin.host()
                    )),
                    error => io::Error::other(error),
                }),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            }
        })
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Describes the error with its cause.
impl fmt::Display for PooledError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::error::Error::source(&self.0) {
            Some(cause) => write!(f, "{cause}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl std::error::Error for PooledError {}
