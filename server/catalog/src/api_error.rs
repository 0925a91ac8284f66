//! Responses to errors of the catalog.

use http::StatusCode;
use protocol::error::ApiError;

use super::CatalogError;

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let message = error.to_string();
        let refuse = |status, code| Self::new(status, code, message.clone());
        match error {
            CatalogError::Store(error) => error.into(),
            CatalogError::CorruptRecord { .. } => Self::internal(message),
            CatalogError::AlreadyExists(_) => refuse(StatusCode::CONFLICT, "already_exists"),
            CatalogError::NotFound(_) => refuse(StatusCode::NOT_FOUND, "not_found"),
            CatalogError::BucketNotFound(_) => refuse(StatusCode::NOT_FOUND, "bucket_not_found"),
            CatalogError::InvalidRequest(_) => refuse(StatusCode::BAD_REQUEST, "bad_request"),
            CatalogError::InvalidSetting { setting, .. } => {
                refuse(StatusCode::BAD_REQUEST, "bad_parameter").with("parameter", setting)
            }
            CatalogError::NotEmpty(..) => refuse(StatusCode::CONFLICT, "bucket_not_empty"),
            CatalogError::OwnsProperty { .. } => refuse(StatusCode::CONFLICT, "account_not_empty"),
            CatalogError::HasBuckets(..) => refuse(StatusCode::CONFLICT, "organisation_not_empty"),
            CatalogError::OwnsOrganisation => refuse(StatusCode::CONFLICT, "last_owner"),
            CatalogError::SetupDone => Self::set_up_done(),
            CatalogError::LinkInvalid => Self::link_not_found(),
            CatalogError::LinkEnded => refuse(StatusCode::CONFLICT, "link_ended"),
            CatalogError::PasswordChanged => Self::wrong_password(),
            CatalogError::Suspended => Self::account_suspended(),
        }
    }
}
