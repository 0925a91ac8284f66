//! Requests to the authority, as the library for ACME wants them sent.
//!
//! Promises: bounded in time and size; they lead to the origin that is set, or to the internet at large.
//! Never here: what is asked.

use std::fmt::Display;
use std::pin::Pin;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::time::timeout;

use crate::destination::{Destination, Scheme};
use crate::limits;
use crate::outbound::Outbound;

/// What sends them.
pub(super) struct Asking(Outbound);

impl Asking {
    pub(super) fn new(outbound: Outbound) -> Self {
        Self(outbound)
    }
}

impl HttpClient for Asking {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let outbound = self.0.clone();
        Box::pin(async move {
            let address = request.uri().to_string();
            let broken = |why: &dyn Display| Error::Other(format!("{address}: {why}").into());
            let at = Destination::parse(&address).map_err(|why| broken(&why))?;
            if at.origin().scheme() != Scheme::Https {
                return Err(broken(&"the authority names an address without https"));
            }
            let is_get = request.method() == Method::GET;
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|why| broken(&why))?.to_bytes();
            let asked =
                outbound.ask(&at, Request::from_parts(head, body), limits::acme::ANSWER_BYTES_MAX);
            let answer = timeout(limits::acme::ANSWER_WAIT, asked).await;
            let answer = answer.map_err(|_| broken(&"no answer in time"))?;
            let answer = answer.map_err(|why| broken(&why))?;
            // What is posted is answered with a problem that says why; of a directory the library reads no status.
            if is_get && !answer.status().is_success() {
                return Err(broken(&format!("the answer is {}", answer.status().as_u16())));
            }
            Ok(BytesResponse::from(answer.map(Full::new)))
        })
    }
}
