//! Typed parameters of the path of a route.
//!
//! Guarantees: a parameter that cannot name anything is the same 404 as one that names nothing. Non-goals: whether it
//! exists, and whether the caller may know of it.

use catalog::{AccountId, ApiKeyId, JobId, OrganisationId, SessionId, SharedLinkId, WebhookId};
use engine::{BucketName, ObjectKey};
use protocol::error::ApiError;
use protocol::object_path::{PathInBucket, decode, last_segment};

/// Parameters of a path as sent, percent-encoded, in the order of the route.
#[derive(Clone, Debug, Default)]
pub struct PathParams(Vec<Box<str>>);

impl PathParams {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.map(Box::from).collect())
    }

    /// Parses a parameter.
    pub fn get<T: PathParam>(&self, index: usize) -> Result<T, ApiError> {
        let missing = || ApiError::internal("the route has fewer parameters than its handler");
        T::parse_encoded(self.0.get(index).ok_or_else(missing)?)
    }
}

/// Type of a path parameter.
pub trait PathParam: Sized {
    /// Parses the decoded parameter.
    fn parse(text: &str) -> Result<Self, ApiError>;

    /// Parses the parameter as sent, percent-encoded.
    fn parse_encoded(sent: &str) -> Result<Self, ApiError> {
        Self::parse(&last_segment(sent)?)
    }
}

/// Secret of a URL: of a presigned upload, a shared link or a prepared archive. Not decoded, so that it has a single
/// form.
pub struct UrlToken(pub String);

impl PathParam for UrlToken {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Ok(Self(text.to_owned()))
    }

    fn parse_encoded(sent: &str) -> Result<Self, ApiError> {
        Self::parse(sent)
    }
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

/// File below a path, percent-encoded.
pub struct FilePath(pub ObjectKey);

impl PathParam for FilePath {
    fn parse(text: &str) -> Result<Self, ApiError> {
        match PathInBucket::parse(text)? {
            PathInBucket::File(key) => Ok(Self(key)),
            PathInBucket::Folder(_) => Err(ApiError::file_not_found()),
        }
    }

    fn parse_encoded(sent: &str) -> Result<Self, ApiError> {
        Self::parse(&decode(sent)?)
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
    SharedLinkId shared_link_not_found;
    WebhookId webhook_not_found;
}
