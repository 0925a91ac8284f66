//! Request body, as the service gets it.
//!
//! Guarantees: the exchange of an HTTP/1 request knows whether the body was read to its end, which decides whether
//! another request can follow on the connection (RFC 9112 sections 9.3 and 9.6). Non-goals: limits
//! (`protocol::request_body`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::peer::Peer;
use crate::timeout_io::ExchangeState;

/// Request body.
#[derive(Debug)]
pub struct IncomingBody {
    body: Incoming,
    peer: Peer,
    /// Notified at the end of the body; `None` from then on, and for HTTP/2.
    exchange: Option<Arc<ExchangeState>>,
}

impl IncomingBody {
    /// Wraps the body of an HTTP/1 request.
    pub(crate) fn of_exchange(
        request: Request<Incoming>,
        peer: Peer,
        exchange: &Arc<ExchangeState>,
    ) -> Request<Self> {
        request.map(|body| {
            let exchange = (!body.is_end_stream()).then(|| Arc::clone(exchange));
            Self { body, peer, exchange }
        })
    }

    /// Wraps the body of an HTTP/2 request, whose stream ends on its own.
    pub(crate) fn of_stream(request: Request<Incoming>, peer: Peer) -> Request<Self> {
        request.map(|body| Self { body, peer, exchange: None })
    }

    /// Returns the peer of the connection.
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if (frame.is_none() || self.body.is_end_stream())
            && let Some(exchange) = self.exchange.take()
        {
            exchange.end_body();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
