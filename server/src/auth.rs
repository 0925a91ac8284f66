//! Authentication and authorization.
//!
//! An API key is read from `Authorization`, then `X-API-Key`, then the query; the first value that looks like a key
//! decides, valid or not. Without a key, the session cookie decides, provided that the request is same-origin.
//! Guarantees: a bucket that the caller may not see returns the same response as one that does not exist, and an
//! authorization error never depends on whether an object exists; a cross-site request forgery has no session.
//! Non-goals: creation and storage of keys and sessions.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use engine::{BucketName, FolderKey, ObjectKey};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Extensions, Method, Uri};

use crate::catalog::{
    Access, Account, Actor, ActorKind, ApiKey, Bucket, Catalog, Issuer, KeyLimits, MemberRole,
    Organisation, OrganisationId, Plan, PresentedKey, Purpose, Role, Scope, SecretHash, Session,
    Standing,
};
use crate::client_address::client_address;
use crate::error::{ApiError, INVALID_API_KEY};
use crate::meter::Meter;
use crate::own_pages::Source;
use crate::query::Query;
use crate::state::{AppState, Endpoint};
use crate::target::{Place, Target};

/// Authenticated principal of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    account: Arc<Account>,
    credential: Credential,
    /// Request accounting, for requests that count for the bucket they concern.
    meter: Option<Meter>,
    /// Client address.
    address: Option<IpAddr>,
}

/// Returns the audit actor of a request whose caller is not known yet, with its client address.
pub fn unknown_actor(head: &Parts) -> Actor {
    Actor {
        kind: ActorKind::Session,
        address: client_address(&head.extensions),
        request_id: head.extensions.get::<Meter>().map(|meter| meter.request_id().to_owned()),
        ..Actor::default()
    }
}

/// Credential that authenticated a caller.
#[derive(Clone, Debug)]
pub enum Credential {
    Key(Arc<ApiKey>),
    /// Session, with all rights of its account.
    Session(Arc<Session>),
    /// Account without a session, for background work that a signed-in user started: all rights of the account. Never
    /// the credential of a request.
    Account,
}

/// Parts of a request that authenticate it.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    pub extensions: &'a Extensions,
}

/// Limits of a session.
static WHOLE_REACH: LazyLock<KeyLimits> = LazyLock::new(KeyLimits::default);

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY_PARAMETERS: &[&str] = &["apiKey", "api_key"];

impl<'a> Asking<'a> {
    pub fn of(head: &'a Parts) -> Self {
        let Parts { method, uri, headers, extensions, .. } = head;
        Self { method, uri, headers, extensions }
    }
}

impl Caller {
    /// Authenticates a request. A valid credential is never rejected because of failures from the same address: an
    /// invalid API key is charged to the address, and rejected with 429 once the address has used up its limit.
    /// Requests without a key, requests with an unknown cookie, and cross-site requests are not charged: any page can
    /// make a visitor's browser send those.
    pub fn recognise(app: &AppState, asking: Asking<'_>, query: &Query) -> Result<Self, ApiError> {
        let caller = Self::recognise_unmetered(app, asking, query)?;
        Ok(caller.asking(asking))
    }

    fn recognise_unmetered(
        app: &AppState,
        asking: Asking<'_>,
        query: &Query,
    ) -> Result<Self, ApiError> {
        Self::of(app, asking, query).map_err(|error| {
            let is_cross_site =
                Source::of(asking.method, asking.headers, asking.uri) == Source::Elsewhere;
            match client_address(asking.extensions) {
                Some(address) if error.code() == INVALID_API_KEY && !is_cross_site => {
                    match app.allowances.take_failure(address) {
                        Ok(()) => error,
                        Err(refused) => ApiError::rate_limited(&refused),
                    }
                }
                _ => error,
            }
        })
    }

    fn of(app: &AppState, asking: Asking<'_>, query: &Query) -> Result<Self, ApiError> {
        match credential(asking.headers, query)? {
            Some(text) => Self::of_key(&app.catalog, &text),
            None => Self::of_session(app, asking)?.ok_or_else(ApiError::missing_api_key),
        }
    }

    fn of_key(catalog: &Catalog, text: &str) -> Result<Self, ApiError> {
        let presented = PresentedKey::parse(text).ok_or_else(ApiError::invalid_api_key)?;
        let api_key = catalog.recognise(&presented).ok_or_else(ApiError::invalid_api_key)?;
        let account = catalog.account(&api_key.account).ok_or_else(ApiError::invalid_api_key)?;
        if account.standing == Standing::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Self::unmetered(account, Credential::Key(api_key)))
    }

    /// Returns the caller of a request signed with an S3 secret, whose signature was already verified.
    #[cfg(feature = "s3")]
    pub fn of_signature(
        app: &AppState,
        key: &crate::catalog::ApiKeyId,
        asking: Asking<'_>,
    ) -> Result<Self, ApiError> {
        let api_key = app.catalog.use_signed(key).ok_or_else(ApiError::invalid_api_key)?;
        let account = app.catalog.account(&api_key.account);
        let account = account.ok_or_else(ApiError::invalid_api_key)?;
        if account.standing == Standing::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Self::unmetered(account, Credential::Key(api_key)).asking(asking))
    }

    /// Returns the caller of a request's session cookie; `None` without a cookie. Ignores API keys.
    pub fn of_session(app: &AppState, asking: Asking<'_>) -> Result<Option<Self>, ApiError> {
        let Some(secret) = app.session_cookie.read(asking.headers) else { return Ok(None) };
        let Asking { method, uri, headers, .. } = asking;
        if !Source::of(method, headers, uri).lets_cookies_count(method) {
            return Err(ApiError::cross_site());
        }
        let presented = SecretHash::of(&secret);
        let session = presented.and_then(|presented| app.catalog.recognise_session(&presented));
        let session = session.ok_or_else(ApiError::session_ended)?;
        let account = app.catalog.account(&session.account).ok_or_else(ApiError::session_ended)?;
        if account.standing == Standing::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Some(Self::unmetered(account, Credential::Session(session)).asking(asking)))
    }

    /// Returns the issuer of a presigned upload as a caller, as long as the issuing credential is still valid.
    pub fn of_issuer(catalog: &Catalog, issuer: &Issuer) -> Option<Self> {
        let (account, credential) = match issuer {
            Issuer::Key(id) => {
                let api_key = catalog.live_api_key(id)?;
                (api_key.account.clone(), Credential::Key(api_key))
            }
            Issuer::Session(id) => {
                let session = catalog.session(id)?.session;
                (session.account.clone(), Credential::Session(session))
            }
            Issuer::Account(id) => (id.clone(), Credential::Account),
        };
        let account = catalog.account(&account)?;
        let is_suspended = account.standing == Standing::Suspended;
        (!is_suspended).then(|| Self::unmetered(account, credential))
    }

    fn asking(self, asking: Asking<'_>) -> Self {
        let address = client_address(asking.extensions);
        Self { meter: asking.extensions.get().cloned(), address, ..self }
    }

    fn unmetered(account: Arc<Account>, credential: Credential) -> Self {
        Self { account, credential, meter: None, address: None }
    }

    /// Returns the account of the key or session.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the credential that was presented.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Returns the limits of the credential.
    pub fn limits(&self) -> &KeyLimits {
        match &self.credential {
            Credential::Key(api_key) => &api_key.limits,
            Credential::Session(_) | Credential::Account => &WHOLE_REACH,
        }
    }

    /// Returns whether the credential has a scope.
    pub fn has_scope(&self, scope: Scope) -> bool {
        match &self.credential {
            Credential::Key(api_key) => api_key.allows(scope),
            Credential::Session(_) | Credential::Account => true,
        }
    }

    /// Returns the session of a signed-in user. Fails for API keys, which may not do what requires a user.
    pub fn session(&self) -> Result<&Arc<Session>, ApiError> {
        match &self.credential {
            Credential::Session(session) => Ok(session),
            Credential::Key(_) | Credential::Account => Err(ApiError::forbidden(
                "A session is required; API keys are not accepted here. Sign in.",
            )),
        }
    }

    /// Returns the audit actor of changes that the caller makes.
    pub fn actor(&self) -> Actor {
        let (kind, id, name) = match &self.credential {
            Credential::Key(api_key) => {
                (ActorKind::Key, api_key.id.to_string(), api_key.name.clone())
            }
            Credential::Session(session) => {
                (ActorKind::Session, session.id.to_string(), self.account.name.as_str().to_owned())
            }
            Credential::Account => {
                let account = &self.account;
                (ActorKind::Server, account.id.to_string(), account.name.as_str().to_owned())
            }
        };
        Actor {
            kind,
            id: Some(id),
            name: Some(name),
            account: Some(self.account.id.to_string()),
            address: self.address,
            request_id: self.meter.as_ref().map(|meter| meter.request_id().to_owned()),
        }
    }

    /// Returns the issuer that identifies the credential in a presigned upload.
    pub fn issuer(&self) -> Issuer {
        match &self.credential {
            Credential::Key(api_key) => Issuer::Key(api_key.id.clone()),
            Credential::Session(session) => Issuer::Session(session.id.clone()),
            Credential::Account => Issuer::Account(self.account.id.clone()),
        }
    }

    /// Returns the issuer of work that outlives a session: the API key, or the user's account.
    pub fn lasting_issuer(&self) -> Issuer {
        match &self.credential {
            Credential::Key(api_key) => Issuer::Key(api_key.id.clone()),
            Credential::Session(_) | Credential::Account => {
                Issuer::Account(self.account.id.clone())
            }
        }
    }

    /// Checks that the account's plan includes the endpoint.
    pub fn check_plan(&self, endpoint: Endpoint) -> Result<(), ApiError> {
        match (endpoint, self.account.plan) {
            (Endpoint::Premium, Plan::Free | Plan::Starter) => Err(ApiError::plan_required()),
            _ => Ok(()),
        }
    }

    /// Returns the bucket, if the scope allows the caller's operation in it.
    ///
    /// What the key itself rules out is rejected before the bucket lookup, so that the error reveals nothing about the
    /// bucket.
    pub fn bucket(
        &self,
        catalog: &Catalog,
        name: &BucketName,
        scope: Scope,
    ) -> Result<Arc<Bucket>, ApiError> {
        self.check_key(name, scope)?;
        let bucket = catalog.bucket(name).ok_or_else(ApiError::bucket_not_found)?;
        self.authorise(catalog, &bucket, scope)?;
        Ok(bucket)
    }

    /// Checks whether the caller has a scope in a bucket: by the key, and by the account's role in the bucket. The
    /// single authorization decision for buckets.
    pub fn authorise(
        &self,
        catalog: &Catalog,
        bucket: &Bucket,
        scope: Scope,
    ) -> Result<(), ApiError> {
        self.check_key(&bucket.name, scope)?;
        let role =
            catalog.role_in(&self.account.id, bucket).ok_or_else(ApiError::bucket_not_found)?;
        if let Some(meter) = &self.meter {
            meter.count_for(&bucket.traffic, catalog.now_ms());
        }
        if !role.allows(scope) {
            let role = role.as_str();
            return Err(ApiError::forbidden(format!("Role \"{role}\" does not permit this")));
        }
        // A suspended owner blocks members of its organisation from its buckets as well.
        match catalog.account(&bucket.owner) {
            Some(owner) if owner.standing != Standing::Suspended => Ok(()),
            Some(_) => Err(ApiError::account_suspended()),
            None => Err(ApiError::bucket_not_found()),
        }
    }

    /// Returns the scopes of the caller in a bucket, by its role and its key.
    pub fn scopes_in(&self, catalog: &Catalog, bucket: &Bucket) -> Vec<Scope> {
        let role = catalog.role_in(&self.account.id, bucket);
        let allows = |scope: &Scope| role.is_some_and(|role| role.allows(*scope));
        Scope::ALL.into_iter().filter(|scope| self.has_scope(*scope) && allows(scope)).collect()
    }

    /// Returns the bucket, if the caller may read its settings: with a managing key, in any role.
    pub fn visible_bucket(
        &self,
        catalog: &Catalog,
        name: &BucketName,
    ) -> Result<Arc<Bucket>, ApiError> {
        self.check_key(name, Scope::Manage)?;
        let bucket = catalog.bucket(name);
        let seen = bucket.filter(|bucket| catalog.role_in(&self.account.id, bucket).is_some());
        seen.ok_or_else(ApiError::bucket_not_found)
    }

    /// Returns the organisation with this id, if the caller has at least this role in it.
    pub fn organisation(
        &self,
        catalog: &Catalog,
        id: &str,
        least: MemberRole,
    ) -> Result<Arc<Organisation>, ApiError> {
        self.check_whole_reach()?;
        let found = OrganisationId::parse(id).and_then(|id| catalog.organisation(&id));
        let role = found.as_ref().and_then(|it| it.members.get(&self.account.id).copied());
        let (Some(organisation), Some(role)) = (found, role) else {
            return Err(ApiError::organisation_not_found());
        };
        if role < least {
            let (role, least) = (role.as_str(), least.as_str());
            let message = format!("Role \"{least}\" is required; the account has \"{role}\"");
            return Err(ApiError::forbidden(message));
        }
        Ok(organisation)
    }

    /// Checks that the key has a scope.
    pub fn check_scope(&self, scope: Scope) -> Result<(), ApiError> {
        if self.has_scope(scope) {
            return Ok(());
        }
        let scope = scope.as_str();
        Err(ApiError::forbidden(format!("The API key lacks scope \"{scope}\"")))
    }

    /// Checks that the key may manage resources that span more than one bucket.
    pub fn check_whole_reach(&self) -> Result<(), ApiError> {
        self.check_scope(Scope::Manage)?;
        if self.limits().bucket.is_some() {
            return Err(ApiError::forbidden("The API key is restricted to one bucket"));
        }
        self.check_folder(&FolderKey::root())
    }

    /// Checks that the caller is an operator. `does` describes the restricted operation, for the error.
    pub fn check_operator(&self, does: &str) -> Result<(), ApiError> {
        self.check_whole_reach()?;
        match self.account.role {
            Role::Operator => Ok(()),
            Role::User => Err(ApiError::forbidden(format!("Only the operator {does}"))),
        }
    }

    /// Returns whether the caller is an operator, without an error.
    pub fn is_operator(&self) -> bool {
        self.check_whole_reach().is_ok() && self.account.role == Role::Operator
    }

    /// Checks that the key's restrictions include a file.
    pub fn check_file(&self, key: &ObjectKey) -> Result<(), ApiError> {
        self.reaches(self.limits().reach_key(key))
    }

    /// Checks that the key's restrictions include a whole folder.
    pub fn check_folder(&self, folder: &FolderKey) -> Result<(), ApiError> {
        self.reaches(self.limits().reach_folder(folder))
    }

    /// Checks that the key's restrictions include every key with this prefix.
    pub fn check_prefix(&self, prefix: &str) -> Result<(), ApiError> {
        self.reaches(prefix.starts_with(self.limits().prefix.as_str()))
    }

    /// Checks that the key's restrictions include a file or folder.
    pub fn check_place(&self, place: &Place) -> Result<(), ApiError> {
        match place {
            Place::File(key) => self.check_file(key),
            Place::Folder(folder) => self.check_folder(folder),
        }
    }

    fn check_key(&self, name: &BucketName, scope: Scope) -> Result<(), ApiError> {
        self.check_scope(scope)?;
        if !self.limits().reach_bucket(name) {
            return Err(ApiError::forbidden("The API key is restricted to another bucket"));
        }
        Ok(())
    }

    fn reaches(&self, reached: bool) -> Result<(), ApiError> {
        if reached {
            return Ok(());
        }
        let prefix = &self.limits().prefix;
        Err(ApiError::forbidden(format!("The API key is restricted to the prefix \"{prefix}\"")))
    }
}

/// Extracts the caller that `admission` authenticated.
impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let unguarded = "route requires a caller but has no auth layer";
        parts.extensions.get::<Self>().cloned().ok_or_else(|| ApiError::internal(unguarded))
    }
}

/// Checks whether a file may be delivered: to anyone from a public bucket, else to a key or a session with read access,
/// or with a download link created by such a caller.
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
    // A key takes precedence; a session, which browsers send automatically, does not.
    if !has_key(&request.headers, query)
        && let Some(token) = query.text(&["token"])?
    {
        return check_link(app, target, &token);
    }
    let caller = Caller::recognise(app, Asking::of(request), query)?;
    let catalog = &app.catalog;
    // The URL already shows that the bucket exists, so the error for a key of another account can name the cause.
    if catalog.role_in(&caller.account.id, bucket).is_none() {
        return Err(ApiError::forbidden(match caller.credential {
            Credential::Key(_) => "The API key has no access to this bucket",
            Credential::Session(_) | Credential::Account => {
                "The account has no access to this bucket"
            }
        }));
    }
    caller.authorise(catalog, bucket, Scope::Read)?;
    caller.check_place(&target.place)
}

/// Checks whether a download link opens a file. The link has the current rights of its creator.
fn check_link(app: &AppState, target: &Target, token: &str) -> Result<(), ApiError> {
    let grant = app.catalog.grant(token).filter(|grant| grant.purpose == Purpose::Read);
    let grant = grant.ok_or_else(ApiError::token_not_found)?;
    let is_meant = grant.bucket == target.bucket && Place::from(grant.lock.clone()) == target.place;
    if !is_meant {
        return Err(ApiError::token_not_found());
    }
    if grant.is_expired(app.clock.unix_ms()) {
        return Err(ApiError::token_expired());
    }
    let maker = Caller::of_issuer(&app.catalog, &grant.issuer);
    let maker = maker.ok_or_else(ApiError::token_revoked)?;
    let may = maker
        .bucket(&app.catalog, &grant.bucket, Scope::Read)
        .and_then(|_| maker.bucket(&app.catalog, &grant.bucket, Scope::Presign))
        .and_then(|_| maker.check_place(&target.place));
    may.map_err(|why| ApiError::token_revoked().with_log(why.to_string()))
}

/// Returns whether a request carries a key, valid or not.
pub fn has_key(headers: &HeaderMap, query: &Query) -> bool {
    !matches!(credential(headers, query), Ok(None))
}

/// Returns the first key that a request carries.
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

/// Extracts the key from an `Authorization` value: after `Bearer` or `Key`, or on its own. Other schemes are ignored.
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
