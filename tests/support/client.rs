//! In-memory client that calls the service without a socket.

use std::net::SocketAddr;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use listener::peer::Peer;
use serde_json::Value;
use server::dispatch::HttpService;

use crate::Form;
use crate::browser::HOST;

/// A client.
#[derive(Clone)]
pub struct Client {
    app: HttpService,
    /// Sent as `Authorization: Bearer`.
    pub key: Option<String>,
    /// Source of the requests; without an address, no per-address limit applies.
    peer: Peer,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    pub fn new(app: HttpService, key: Option<String>) -> Self {
        Self { app, key, peer: Peer::Local }
    }

    /// Returns the same client without its key.
    pub fn without_key(&self) -> Self {
        Self { key: None, ..self.clone() }
    }

    /// Returns the same client with an address.
    pub fn at(&self, address: &str) -> Self {
        let address = address.parse().expect("the address is one");
        Self { peer: Peer::Address(SocketAddr::new(address, 40_000)), ..self.clone() }
    }

    /// Returns the key; empty when there is none.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(Method::GET, path, headers, Body::empty()).await
    }

    pub async fn head_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(Method::HEAD, path, headers, Body::empty()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], Body::empty()).await
    }

    pub async fn post_json(&self, path: &str, body: Value) -> Reply {
        self.send_json(Method::POST, path, body).await
    }

    pub async fn patch_json(&self, path: &str, body: Value) -> Reply {
        self.send_json(Method::PATCH, path, body).await
    }

    async fn send_json(&self, method: Method, path: &str, body: Value) -> Reply {
        let headers = [("content-type", "application/json")];
        self.send(method, path, &headers, Body::from(body.to_string())).await
    }

    pub async fn upload(&self, path: &str, form: Form) -> Reply {
        let (content_type, body) = (form.content_type(), form.body());
        let length = body.len().to_string();
        let headers = [("content-type", &*content_type), ("content-length", &*length)];
        self.send(Method::POST, path, &headers, Body::from(body)).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Reply {
        let (head, body) = self.request(method, path, headers, body).await.into_parts();
        let body = body.collect().await.expect("the body comes whole").to_bytes();
        Reply { status: head.status, headers: head.headers, body }
    }

    /// Sends a request, and returns the response with its body unread.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Body> {
        self.request(method, path, headers, Body::empty()).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        // Every request needs a `Host` header.
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header(header::HOST, HOST);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("the request is well-formed");
        self.app.call(request, self.peer).await.map(Body::new)
    }
}

/// Reads a body to its end or to where it breaks off; returns whether it was complete.
pub async fn read_until_closed(mut body: Body) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Err(_) => return (bytes, false),
        }
    }
    (bytes, true)
}

impl Reply {
    /// Returns the value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("the header is text"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.text()))
    }

    /// Checks that the request succeeded, and returns the response body.
    pub fn check_done(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        let body = self.json();
        assert_eq!(body["success"], true, "{body}");
        assert_eq!(self.header("cache-control"), "no-store");
        body
    }

    /// Checks that the request was rejected because of this parameter.
    pub fn check_parameter(&self, name: &str) {
        self.check_error(400, "bad_parameter");
        assert_eq!(self.json()["parameter"], name, "{}", self.text());
    }

    /// Checks that this is an error that every client can read.
    pub fn check_error(&self, status: u16, code: &str) {
        self.check_own_error(status, code);
        assert_eq!(self.header("access-control-allow-origin"), "*");
    }

    /// Checks that this is an error, which pages of other origins may not be able to read.
    pub fn check_own_error(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        let body = self.json();
        assert_eq!(self.header("content-type"), "application/json");
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(body["success"], false);
        assert_eq!(body["code"], code);
        assert_eq!(body["status"], status);
        assert!(body["error"].is_string() && body["error"] == body["message"], "{body}");
        assert_eq!(body["requestId"], self.header("x-request-id"));
    }
}
