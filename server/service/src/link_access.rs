//! Access to shared links: current rights of the creator, and passwords that were entered.
//!
//! Guarantees: a link has the rights of the key that created it, or else of the account; a browser that has entered the
//! password stays unlocked for [`LINK_UNLOCK_LIFETIME`], or until the password changes. Non-goals: checking of
//! passwords.

use std::sync::Arc;

use catalog::{Bucket, Catalog, LinkKind, LinkState, Scope, SharedLink};
use cookie::{Cookie, SameSite, time};
use http::header::{self, HeaderMap, HeaderValue};
use protocol::error::ApiError;
use protocol::object_path::PathInBucket;
use protocol::reserved_paths::LINK_PATH;

use crate::auth::Caller;
use crate::limits::LINK_UNLOCK_LIFETIME;
use crate::state::AppState;

/// Returns the bucket of a link, if the creator may still share its files, or request them.
pub fn shared_bucket(catalog: &Catalog, link: &SharedLink) -> Result<Arc<Bucket>, ApiError> {
    creator_and_bucket(catalog, link).map(|(_, bucket)| bucket)
}

/// Returns the creator of a link with its current rights, and the bucket like [`shared_bucket`].
pub fn creator_and_bucket(
    catalog: &Catalog,
    link: &SharedLink,
) -> Result<(Caller, Arc<Bucket>), ApiError> {
    let creator = Caller::from_issuer(catalog, &link.issuer());
    let creator = creator.ok_or_else(ApiError::token_revoked)?;
    let bucket = check_link_rights(catalog, &creator, link.kind(), &link.bucket, &link.places())?;
    // Not another bucket that was created under the name since.
    match bucket.created_ms > link.created_ms {
        true => Err(ApiError::bucket_not_found()),
        false => Ok((creator, bucket)),
    }
}

/// Checks that a caller may share files and folders, or request files into a folder; returns the bucket.
pub fn check_link_rights(
    catalog: &Catalog,
    caller: &Caller,
    kind: LinkKind,
    bucket: &engine::BucketName,
    places: &[PathInBucket],
) -> Result<Arc<Bucket>, ApiError> {
    caller.bucket(catalog, bucket, Scope::Presign)?;
    let found = match kind {
        LinkKind::Download => caller.bucket(catalog, bucket, Scope::Read)?,
        LinkKind::Upload => caller.bucket(catalog, bucket, Scope::Upload)?,
    };
    for place in places {
        if matches!(place, PathInBucket::Folder(_)) && kind == LinkKind::Download {
            caller.bucket(catalog, bucket, Scope::List)?;
        }
        caller.require_path_access(place)?;
    }
    Ok(found)
}

/// Returns the current state of a link.
pub fn link_state(catalog: &Catalog, link: &SharedLink) -> LinkState {
    match link.state(catalog.now_ms()) {
        LinkState::Active if shared_bucket(catalog, link).is_err() => LinkState::Blocked,
        state => state,
    }
}

/// Returns whether a browser may see the content: there is no password, or it was entered.
pub fn is_unlocked(app: &AppState, link: &SharedLink, headers: &HeaderMap) -> bool {
    if link.password.is_none() {
        return true;
    }
    let name = cookie_name(link);
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = texts.flat_map(|text| Cookie::split_parse(text).filter_map(Result::ok));
    cookies.any(|it| it.name() == name && app.catalog.tokens().unlocks(it.value_trimmed(), link))
}

/// Returns the `Set-Cookie` value that unlocks a link. `None` while the server has no signing key.
pub fn unlock_cookie(app: &AppState, link: &SharedLink) -> Option<HeaderValue> {
    let life = LINK_UNLOCK_LIFETIME.as_secs();
    let expires_ms = app.clock.unix_ms().saturating_add(1_000 * life);
    let token = app.catalog.tokens().unlock_token(link, expires_ms)?;
    let cookie = Cookie::build((cookie_name(link), token))
        .path(format!("{LINK_PATH}{}", link.secret.text()))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(app.public_url.is_https())
        .max_age(time::Duration::seconds(i64::try_from(life).unwrap_or(i64::MAX)));
    HeaderValue::try_from(cookie.build().to_string()).ok()
}

fn cookie_name(link: &SharedLink) -> String {
    format!("trug-link-{}", link.id)
}
