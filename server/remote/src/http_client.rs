//! HTTP client of `object_store`, over the pooled client of `outbound`.

use std::fmt;

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use outbound::pooled::PooledClient;

/// Client of all requests to one remote store, those for its credentials included.
#[derive(Clone)]
pub(crate) struct StoreHttpClient(pub(crate) PooledClient<HttpRequestBody>);

#[async_trait]
impl HttpService for StoreHttpClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.send(request).await.map_err(|error| {
            let kind = match error.is_connect() {
                true => HttpErrorKind::Connect,
                // The request may have been received.
                false => HttpErrorKind::Interrupted,
            };
            HttpError::new(kind, error)
        })?;
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}

impl HttpConnector for StoreHttpClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl fmt::Debug for StoreHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreHttpClient")
    }
}
