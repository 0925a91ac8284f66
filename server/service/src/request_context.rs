//! What is known of a request before it is handled: read from its head once, in `dispatch`.
//!
//! Guarantees: path and client address of a request are determined once; its handler gets the result. Non-goals: the
//! caller, whom `admission` authenticates.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use catalog::Bucket;
use engine::BucketName;
use http::Extensions;
use http::request::Parts;
use protocol::error::ApiError;
use protocol::object_path::ObjectPath;
use protocol::request_id::RequestId;
use usage::operation::Operation;
use usage::request_meter::RequestMeter;
use usage::spans::Span;

use crate::cors::CorsHeaders;
use crate::path_params::{PathParam, PathParams};
use crate::state::AppState;

/// Context of every request.
pub struct RequestContext {
    pub id: RequestId,
    /// Monotonic time of the arrival, in microseconds.
    pub began_us: u64,
    pub operation: Operation,
    /// Client address; `None` for a local client without one.
    pub client: Option<IpAddr>,
    /// Bucket that the path names, if it exists.
    pub bucket: Option<Arc<Bucket>>,
    pub cors: CorsHeaders,
    /// Span of a sampled request.
    pub span: Option<Arc<dyn Span>>,
}

/// Context of a request that is not a delivery, in the request's extensions. Cheap to clone.
#[derive(Clone)]
pub struct RoutedContext(Arc<Inner>);

struct Inner {
    id: RequestId,
    client: Option<IpAddr>,
    bucket: Option<Arc<Bucket>>,
    meter: RequestMeter,
    path: RoutedPath,
}

/// What the path of a route names.
pub enum RoutedPath {
    /// Object or folder of a bucket, or why there is none of that name.
    Object(Result<ObjectPath, ApiError>),
    /// Parameters of one of the server's own paths.
    Own(PathParams),
    /// Path of a request to the S3 gateway, in path style.
    Gateway(String),
}

impl fmt::Debug for RoutedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RoutedContext").field(&self.0.id).finish()
    }
}

impl RoutedContext {
    /// Creates the context of a request whose path names `path`.
    pub fn new(context: &RequestContext, meter: RequestMeter, path: RoutedPath) -> Self {
        let RequestContext { id, client, bucket, .. } = context;
        Self(Arc::new(Inner { id: *id, client: *client, bucket: bucket.clone(), meter, path }))
    }

    /// Returns the context of a request; `None` for deliveries.
    pub fn find(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Returns the client address; `None` for deliveries, and for a local client without one.
    pub fn client_ip(extensions: &Extensions) -> Option<IpAddr> {
        Self::find(extensions)?.0.client
    }

    /// Counts a request for a bucket that its path does not name.
    pub fn attribute(extensions: &Extensions, bucket: &Bucket, now_ms: u64) {
        if let Some(context) = Self::find(extensions) {
            context.meter().attribute_to(&bucket.traffic, now_ms);
        }
    }

    fn of(request: &Parts) -> Result<&Self, ApiError> {
        let missing = || ApiError::internal("the request has no context");
        Self::find(&request.extensions).ok_or_else(missing)
    }

    pub fn id(&self) -> RequestId {
        self.0.id
    }

    /// Returns the bucket that the path names, if it has this name and exists.
    pub fn bucket(&self, name: &BucketName) -> Option<&Arc<Bucket>> {
        self.0.bucket.as_ref().filter(|bucket| bucket.name == *name)
    }

    /// Returns the path of a request to the S3 gateway, in path style; empty for other requests.
    pub fn gateway_path(&self) -> &str {
        match &self.0.path {
            RoutedPath::Gateway(path) => path,
            RoutedPath::Object(_) | RoutedPath::Own(_) => "",
        }
    }

    fn params(&self) -> Result<&PathParams, ApiError> {
        match &self.0.path {
            RoutedPath::Own(params) => Ok(params),
            _ => Err(ApiError::internal("the path of the route has no parameters")),
        }
    }

    /// Returns the accounting of the request.
    pub fn meter(&self) -> &RequestMeter {
        &self.0.meter
    }
}

/// Parameter of the path of a request, or both.
pub struct Path<T>(pub T);

impl<T: PathParam> FromRequestParts<AppState> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        RoutedContext::of(parts)?.params()?.get(0).map(Self)
    }
}

impl<T: PathParam, U: PathParam> FromRequestParts<AppState> for Path<(T, U)> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let params = RoutedContext::of(parts)?.params()?;
        Ok(Self((params.get(0)?, params.get(1)?)))
    }
}

/// File or folder of a bucket that the path of a request names.
pub struct Target(pub ObjectPath);

impl FromRequestParts<AppState> for Target {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        match &RoutedContext::of(parts)?.0.path {
            RoutedPath::Object(target) => target.clone().map(Self),
            _ => Err(ApiError::internal("the path of the route names no object")),
        }
    }
}
