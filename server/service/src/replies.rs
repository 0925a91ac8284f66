//! JSON response bodies, one file for each kind of response.
//!
//! Fields of the API are in one struct, compatibility aliases of other services in another, so that these can be
//! dropped in one place. Pure: every value is a parameter. Non-goals: errors (`error`).

mod delete;
mod list;
mod presign;
mod search;
mod upload_reply;

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use serde::Serialize;

use protocol::response_headers::allow_any_origin;

pub use self::delete::{DeleteReply, Truncation};
pub use self::list::{ListReply, ListedObject};
pub use self::presign::{PresignedUrlReply, TokenReply};
pub use self::search::{SearchFile, SearchHit, SearchPage, SearchReply};
pub use self::upload_reply::{UploadReply, UploadedFile};

/// Successful response: `success: true` and the fields of the body, as [`Json`].
#[derive(Clone, Copy, Debug)]
pub struct Success<T>(pub T);

#[derive(Serialize)]
struct Envelope<T> {
    success: bool,
    #[serde(flatten)]
    body: T,
}

impl<T: Serialize> IntoResponse for Success<T> {
    fn into_response(self) -> Response<Body> {
        Json(Envelope { success: true, body: self.0 }).into_response()
    }
}

/// JSON response with status 200, readable across origins and never cached.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response<Body> {
        // The server's own types have string keys and no fallible parts, so serialization cannot fail.
        answer("application/json", serde_json::to_vec(&self.0).unwrap_or_default())
    }
}

/// Plain text response, otherwise like [`Json`].
#[derive(Clone, Debug)]
pub struct PlainText(pub String);

impl IntoResponse for PlainText {
    fn into_response(self) -> Response<Body> {
        answer("text/plain; charset=utf-8", self.0.into_bytes())
    }
}

fn answer(content_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    allow_any_origin(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
