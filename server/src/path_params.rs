//! Typed parameters of the path of a route.
//!
//! Guarantees: a parameter that cannot name anything is the same 404 as one that names nothing. Non-goals: whether it
//! exists, and whether the caller may know of it.

use axum::extract::FromRequestParts;
use catalog::{AccountId, ApiKeyId, JobId, OrganisationId, SessionId, WebhookId};
use engine::BucketName;
use http::request::Parts;
use protocol::error::ApiError;
use protocol::object_path::last_segment;

use crate::state::AppState;

/// Parameters of a path as sent, percent-encoded, in the order of the route.
#[derive(Clone, Debug)]
pub struct PathParams(Vec<Box<str>>);

impl PathParams {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.map(Box::from).collect())
    }
}

/// Type of a path parameter.
pub trait PathParam: Sized {
    /// Parses the decoded parameter.
    fn parse(text: &str) -> Result<Self, ApiError>;
}

impl PathParam for String {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Ok(text.to_owned())
    }
}

impl PathParam for BucketName {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Self::parse(text).map_err(|_| ApiError::bucket_not_found())
    }
}

/// Implements [`PathParam`] for ids.
macro_rules! ids {
    ($($id:ident $missing:ident;)*) => {
        $(impl PathParam for $id {
            fn parse(text: &str) -> Result<Self, ApiError> {
                Self::parse(text).ok_or_else(ApiError::$missing)
            }
        })*
    };
}

ids! {
    AccountId account_not_found;
    ApiKeyId api_key_not_found;
    JobId job_not_found;
    OrganisationId organisation_not_found;
    SessionId session_not_found;
    WebhookId webhook_not_found;
}

/// Extracts the parameter of a path, or both.
pub struct Path<T>(pub T);

impl<T: PathParam> FromRequestParts<AppState> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        param(parts, 0).map(Self)
    }
}

impl<T: PathParam, U: PathParam> FromRequestParts<AppState> for Path<(T, U)> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        Ok(Self((param(parts, 0)?, param(parts, 1)?)))
    }
}

fn param<T: PathParam>(parts: &Parts, index: usize) -> Result<T, ApiError> {
    let text = parts.extensions.get::<PathParams>().and_then(|params| params.0.get(index));
    let missing = || ApiError::internal("the route has fewer parameters than its handler");
    T::parse(&last_segment(text.ok_or_else(missing)?)?)
}
