//! Who is asking, and whether they may.
//!
//! A credential is looked for in `Authorization`, then `X-API-Key`, then the query; the first that looks like one
//! decides, right or wrong. Promises: a bucket that the caller may not see is answered like one that does not exist,
//! and a refusal never depends on whether an object exists.
//! Never here: how keys are made and kept.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use engine::{BucketName, FolderKey, ObjectKey};
use http::Extensions;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use crate::catalog::{Access, Account, ApiKey, Bucket, Catalog, PresentedKey, Scope, Standing};
use crate::client_address::client_address;
use crate::error::{ApiError, INVALID_API_KEY};
use crate::query::Query;
use crate::state::AppState;
use crate::target::{Place, Target};

/// Somebody whose key was recognised.
#[derive(Clone, Debug)]
pub struct Caller {
    account: Arc<Account>,
    api_key: Arc<ApiKey>,
}

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY_PARAMETERS: &[&str] = &["apiKey", "api_key"];

impl Caller {
    /// Recognises the credential of a request. An address that presented too many wrong ones is refused before anything
    /// is looked up; a request without any is not counted.
    pub fn recognise(
        app: &AppState,
        headers: &HeaderMap,
        query: &Query,
        extensions: &Extensions,
    ) -> Result<Self, ApiError> {
        let Some(address) = client_address(extensions) else {
            return Self::of(&app.catalog, headers, query);
        };
        let allowances = &app.allowances;
        allowances.check_failures(address).map_err(|refused| ApiError::rate_limited(&refused))?;
        Self::of(&app.catalog, headers, query).inspect_err(|error| {
            if error.code() == INVALID_API_KEY {
                allowances.note_failure(address);
            }
        })
    }

    /// Whose key it is.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn of(catalog: &Catalog, headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        let text = credential(headers, query)?.ok_or_else(ApiError::missing_api_key)?;
        let presented = PresentedKey::parse(&text).ok_or_else(ApiError::invalid_api_key)?;
        let api_key = catalog.recognise(&presented).ok_or_else(ApiError::invalid_api_key)?;
        let account = catalog.account(&api_key.account).ok_or_else(ApiError::invalid_api_key)?;
        if account.standing == Standing::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Self { account, api_key })
    }

    /// The bucket, when the caller may do in it what the scope names.
    ///
    /// What the key itself rules out is refused before the bucket is looked up, so that the refusal says nothing about
    /// it.
    pub fn bucket(
        &self,
        catalog: &Catalog,
        name: &BucketName,
        scope: Scope,
    ) -> Result<Arc<Bucket>, ApiError> {
        self.check_key(name, scope)?;
        match catalog.bucket(name) {
            Some(bucket) if bucket.owner == self.account.id => Ok(bucket),
            _ => Err(ApiError::bucket_not_found()),
        }
    }

    /// Whether the key reaches a file.
    pub fn check_file(&self, key: &ObjectKey) -> Result<(), ApiError> {
        self.reaches(self.api_key.limits.reach_key(key))
    }

    /// Whether the key reaches everything in a folder.
    pub fn check_folder(&self, folder: &FolderKey) -> Result<(), ApiError> {
        self.reaches(self.api_key.limits.reach_folder(folder))
    }

    /// Whether the key reaches a place.
    pub fn check_place(&self, place: &Place) -> Result<(), ApiError> {
        match place {
            Place::File(key) => self.check_file(key),
            Place::Folder(folder) => self.check_folder(folder),
        }
    }

    fn check_key(&self, name: &BucketName, scope: Scope) -> Result<(), ApiError> {
        if !self.api_key.allows(scope) {
            let scope = scope.as_str();
            return Err(ApiError::forbidden(format!("The API key lacks the scope \"{scope}\"")));
        }
        if !self.api_key.limits.reach_bucket(name) {
            return Err(ApiError::forbidden("The API key is for another bucket"));
        }
        Ok(())
    }

    fn reaches(&self, reached: bool) -> Result<(), ApiError> {
        if reached {
            return Ok(());
        }
        let prefix = &self.api_key.limits.prefix;
        Err(ApiError::forbidden(format!("The API key only reaches the folder \"{prefix}\"")))
    }
}

/// The caller whom `admission` recognised.
impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let unguarded =
            || ApiError::internal("a route that needs a caller stands without admission");
        parts.extensions.get::<Self>().cloned().ok_or_else(unguarded)
    }
}

/// Whether a file may be delivered: to anybody from a public bucket, else to a key of its owner that may read there.
pub fn check_delivery(
    app: &AppState,
    bucket: &Bucket,
    target: &Target,
    request: &Parts,
    query: &Query,
) -> Result<(), ApiError> {
    if bucket.access == Access::Public {
        return Ok(());
    }
    let caller = Caller::recognise(app, &request.headers, query, &request.extensions)?;
    if bucket.owner != caller.account.id {
        return Err(ApiError::forbidden("The API key does not open this bucket"));
    }
    caller.check_key(&bucket.name, Scope::Read)?;
    caller.check_place(&target.place)
}

/// The text of the first credential that a request carries.
fn credential(headers: &HeaderMap, query: &Query) -> Result<Option<String>, ApiError> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).iter().map(text_of);
    if let Some(text) = authorizations.find_map(|value| authorization(&value).map(str::to_owned)) {
        return Ok(Some(text));
    }
    let mut api_keys = headers.get_all(API_KEY_HEADER).iter().map(text_of);
    if let Some(text) = api_keys.find(|value| !value.trim().is_empty()) {
        return Ok(Some(text.trim().to_owned()));
    }
    let text = query.text(API_KEY_PARAMETERS)?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// The key in a value of `Authorization`: after `Bearer` or `Key`, or standing alone. Other schemes are somebody
/// else's.
fn authorization(value: &str) -> Option<&str> {
    let is_ours = |scheme: &str| ["bearer", "key"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
    let value = value.trim();
    match value.split_once([' ', '\t']) {
        Some((scheme, key)) => Some(key.trim()).filter(|_| is_ours(scheme)),
        None => Some(value).filter(|bare| !bare.is_empty() && !is_ours(bare)),
    }
}

fn text_of(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn found(pairs: &[(&'static str, &str)], query: &str) -> Option<String> {
        let uri = format!("/b/x?{query}").parse().unwrap();
        credential(&headers(pairs), &Query::of(&uri)).unwrap()
    }

    #[test]
    fn every_form_of_authorization_is_read() {
        for value in ["Bearer K", "bearer K", "BEARER   K ", "Key K", "key K", "K", " K", "\tK"] {
            assert_eq!(found(&[("authorization", value)], ""), Some("K".into()), "{value:?}");
        }
        for value in ["", " ", "Bearer", "Bearer ", "Basic K", "Digest a=b", "Token K"] {
            assert_eq!(found(&[("authorization", value)], ""), None, "{value:?}");
        }
    }

    #[test]
    fn the_first_credential_decides() {
        let both = [("x-api-key", "X"), ("authorization", "A")];
        assert_eq!(found(&both, "apiKey=Q"), Some("A".into()));
        let skipped = [("authorization", "Basic dTpw"), ("x-api-key", " X ")];
        assert_eq!(found(&skipped, "apiKey=Q"), Some("X".into()));
        assert_eq!(found(&[("authorization", "Basic dTpw")], "apiKey=Q"), Some("Q".into()));
        assert_eq!(found(&[("x-api-key", "")], "api_key=Q"), Some("Q".into()));
        let twice = [("authorization", "Basic dTpw"), ("authorization", "Bearer A")];
        assert_eq!(found(&twice, ""), Some("A".into()));
        assert_eq!(found(&[], "apiKey="), None);
    }
}
