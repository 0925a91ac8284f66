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
use catalog::{
    Access, Account, Actor, ActorKind, ApiKey, Bucket, Catalog, FairUseStanding, Issuer,
    KeyRestrictions, MemberRole, Organisation, OrganisationId, Plan, PresentedKey, Purpose, Role,
    Scope, SecretHash, Session,
};
use engine::{BucketName, FolderKey, ObjectKey};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Extensions, Method, Uri};
use protocol::error::{ApiError, INVALID_API_KEY};
use protocol::object_path::{ObjectPath, PathInBucket};
use protocol::query::Query;

use crate::own_pages::RequestOrigin;
use crate::request_context::RoutedContext;
use crate::state::{AppState, EndpointTier};

/// Authenticated principal of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    account: Arc<Account>,
    credential: Credential,
    /// Context of the request, which counts for the bucket it concerns; `None` for deliveries and for work without one.
    request: Option<RoutedContext>,
    /// Client address.
    address: Option<IpAddr>,
}

/// Returns the audit actor of a request whose caller is not known yet, with its client address.
pub fn anonymous_actor(head: &Parts) -> Actor {
    Actor {
        kind: ActorKind::Session,
        address: RoutedContext::client_ip(&head.extensions),
        request_id: RoutedContext::find(&head.extensions).map(|it| it.id().to_string()),
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
    Detached,
}

/// Parts of a request that authenticate it.
#[derive(Clone, Copy)]
pub struct PresentedCredentials<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    pub extensions: &'a Extensions,
    /// Client address.
    pub client: Option<IpAddr>,
}

/// Limits of a session.
static UNRESTRICTED: LazyLock<KeyRestrictions> = LazyLock::new(KeyRestrictions::default);

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY_PARAMETERS: &[&str] = &["apiKey", "api_key"];

impl<'a> PresentedCredentials<'a> {
    pub fn from_request(head: &'a Parts) -> Self {
        let Parts { method, uri, headers, extensions, .. } = head;
        let client = RoutedContext::client_ip(extensions);
        Self { method, uri, headers, extensions, client }
    }
}

impl Caller {
    /// Authenticates a request. A valid credential is never rejected because of failures from the same address: an
    /// invalid API key is charged to the address, and rejected with 429 once the address has used up its limit.
    /// Requests without a key, requests with an unknown cookie, and cross-site requests are not charged: any page can
    /// make a visitor's browser send those.
    pub fn authenticate(
        app: &AppState,
        asking: PresentedCredentials<'_>,
        query: &Query,
    ) -> Result<Self, ApiError> {
        let caller = Self::recognise_unmetered(app, asking, query)?;
        Ok(caller.with_request(asking.extensions))
    }

    fn recognise_unmetered(
        app: &AppState,
        asking: PresentedCredentials<'_>,
        query: &Query,
    ) -> Result<Self, ApiError> {
        Self::of(app, asking, query).map_err(|error| {
            let is_cross_site =
                RequestOrigin::from_headers(asking.method, asking.headers, asking.uri)
                    == RequestOrigin::CrossSite;
            match asking.client {
                Some(address) if error.code() == INVALID_API_KEY && !is_cross_site => {
                    match app.rate_limiter.take_failure(address) {
                        Ok(()) => error,
                        Err(refused) => refused.into(),
                    }
                }
                _ => error,
            }
        })
    }

    fn of(
        app: &AppState,
        asking: PresentedCredentials<'_>,
        query: &Query,
    ) -> Result<Self, ApiError> {
        match credential(asking.headers, query)? {
            Some(text) => Self::of_key(&app.catalog, &text),
            None => Self::from_session_cookie(app, asking)?.ok_or_else(ApiError::missing_api_key),
        }
    }

    fn of_key(catalog: &Catalog, text: &str) -> Result<Self, ApiError> {
        let presented = PresentedKey::parse(text).ok_or_else(ApiError::invalid_api_key)?;
        let api_key =
            catalog.api_keys().authenticate(&presented).ok_or_else(ApiError::invalid_api_key)?;
        let account =
            catalog.accounts().get(&api_key.account).ok_or_else(ApiError::invalid_api_key)?;
        if account.standing == FairUseStanding::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Self::unmetered(account, Credential::Key(api_key)))
    }

    /// Returns the caller of a request signed with an S3 secret, whose signature was already verified.
    pub fn from_signature(
        app: &AppState,
        key: &catalog::ApiKeyId,
        asking: PresentedCredentials<'_>,
    ) -> Result<Self, ApiError> {
        let api_key = app
            .catalog
            .api_keys()
            .authenticate_signed(key)
            .ok_or_else(ApiError::invalid_api_key)?;
        let account = app.catalog.accounts().get(&api_key.account);
        let account = account.ok_or_else(ApiError::invalid_api_key)?;
        if account.standing == FairUseStanding::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Self::unmetered(account, Credential::Key(api_key)).with_request(asking.extensions))
    }

    /// Returns the caller of a request's session cookie; `None` without a cookie. Ignores API keys.
    pub fn from_session_cookie(
        app: &AppState,
        asking: PresentedCredentials<'_>,
    ) -> Result<Option<Self>, ApiError> {
        let Some(secret) = app.session_cookie.read(asking.headers) else { return Ok(None) };
        let PresentedCredentials { method, uri, headers, .. } = asking;
        if !RequestOrigin::from_headers(method, headers, uri).allows_cookies(method) {
            return Err(ApiError::cross_site());
        }
        let presented = SecretHash::from_text(&secret);
        let session =
            presented.and_then(|presented| app.catalog.sessions().authenticate(&presented));
        let session = session.ok_or_else(ApiError::session_ended)?;
        let account =
            app.catalog.accounts().get(&session.account).ok_or_else(ApiError::session_ended)?;
        if account.standing == FairUseStanding::Suspended {
            return Err(ApiError::account_suspended());
        }
        Ok(Some(
            Self::unmetered(account, Credential::Session(session)).with_request(asking.extensions),
        ))
    }

    /// Returns the issuer of a presigned upload as a caller, as long as the issuing credential is still valid.
    pub fn from_issuer(catalog: &Catalog, issuer: &Issuer) -> Option<Self> {
        let (account, credential) = match issuer {
            Issuer::Key(id) => {
                let api_key = catalog.api_keys().active(id)?;
                (api_key.account.clone(), Credential::Key(api_key))
            }
            Issuer::Session(id) => {
                let session = catalog.sessions().get(id)?.session;
                (session.account.clone(), Credential::Session(session))
            }
            Issuer::Account(id) => (id.clone(), Credential::Detached),
        };
        let account = catalog.accounts().get(&account)?;
        let is_suspended = account.standing == FairUseStanding::Suspended;
        (!is_suspended).then(|| Self::unmetered(account, credential))
    }

    /// Sets the request, and the address of its client, which the audit log shows.
    pub fn with_request(self, extensions: &Extensions) -> Self {
        let address = RoutedContext::client_ip(extensions);
        Self { request: RoutedContext::find(extensions).cloned(), address, ..self }
    }

    fn unmetered(account: Arc<Account>, credential: Credential) -> Self {
        Self { account, credential, request: None, address: None }
    }

    /// Returns the account of the key or session.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns the credential that was presented.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Returns the limits of the credential.
    pub fn limits(&self) -> &KeyRestrictions {
        match &self.credential {
            Credential::Key(api_key) => &api_key.limits,
            Credential::Session(_) | Credential::Detached => &UNRESTRICTED,
        }
    }

    /// Returns whether the credential has a scope.
    pub fn has_scope(&self, scope: Scope) -> bool {
        match &self.credential {
            Credential::Key(api_key) => api_key.allows(scope),
            Credential::Session(_) | Credential::Detached => true,
        }
    }

    /// Returns the session of a signed-in user. Fails for API keys, which may not do what requires a user.
    pub fn session(&self) -> Result<&Arc<Session>, ApiError> {
        match &self.credential {
            Credential::Session(session) => Ok(session),
            Credential::Key(_) | Credential::Detached => Err(ApiError::forbidden(
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
            Credential::Detached => {
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
            request_id: self.request.as_ref().map(|request| request.id().to_string()),
        }
    }

    /// Returns the issuer that identifies the credential in a presigned upload.
    pub fn issuer(&self) -> Issuer {
        match &self.credential {
            Credential::Key(api_key) => Issuer::Key(api_key.id.clone()),
            Credential::Session(session) => Issuer::Session(session.id.clone()),
            Credential::Detached => Issuer::Account(self.account.id.clone()),
        }
    }

    /// Returns the issuer of work that outlives a session: the API key, or the user's account.
    pub fn durable_issuer(&self) -> Issuer {
        match &self.credential {
            Credential::Key(api_key) => Issuer::Key(api_key.id.clone()),
            Credential::Session(_) | Credential::Detached => {
                Issuer::Account(self.account.id.clone())
            }
        }
    }

    /// Checks that the account's plan includes the endpoint.
    pub fn require_plan(&self, endpoint: EndpointTier) -> Result<(), ApiError> {
        match (endpoint, self.account.plan) {
            (EndpointTier::Premium, Plan::Free | Plan::Starter) => Err(ApiError::plan_required()),
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
        let of_path = self.request.as_ref().and_then(|request| request.bucket(name)).cloned();
        let bucket = of_path.or_else(|| catalog.buckets().get(name));
        let bucket = bucket.ok_or_else(ApiError::bucket_not_found)?;
        self.authorize(catalog, &bucket, scope)?;
        Ok(bucket)
    }

    /// Checks whether the caller has a scope in a bucket: by the key, and by the account's role in the bucket. The
    /// single authorization decision for buckets.
    pub fn authorize(
        &self,
        catalog: &Catalog,
        bucket: &Bucket,
        scope: Scope,
    ) -> Result<(), ApiError> {
        self.check_key(&bucket.name, scope)?;
        let role = catalog
            .buckets()
            .role(&self.account.id, bucket)
            .ok_or_else(ApiError::bucket_not_found)?;
        if let Some(request) = &self.request {
            request.meter().attribute_to(&bucket.traffic, catalog.now_ms());
        }
        if !role.allows(scope) {
            let role = role.as_str();
            return Err(ApiError::forbidden(format!("Role \"{role}\" does not permit this")));
        }
        // A suspended owner blocks members of its organisation from its buckets as well.
        match catalog.accounts().get(&bucket.owner) {
            Some(owner) if owner.standing != FairUseStanding::Suspended => Ok(()),
            Some(_) => Err(ApiError::account_suspended()),
            None => Err(ApiError::bucket_not_found()),
        }
    }

    /// Returns the scopes of the caller in a bucket, by its role and its key.
    pub fn scopes_in(&self, catalog: &Catalog, bucket: &Bucket) -> Vec<Scope> {
        let role = catalog.buckets().role(&self.account.id, bucket);
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
        let bucket = catalog.buckets().get(name);
        let seen =
            bucket.filter(|bucket| catalog.buckets().role(&self.account.id, bucket).is_some());
        seen.ok_or_else(ApiError::bucket_not_found)
    }

    /// Returns the organisation with this id, if the caller has at least this role in it.
    pub fn organisation(
        &self,
        catalog: &Catalog,
        id: &OrganisationId,
        least: MemberRole,
    ) -> Result<Arc<Organisation>, ApiError> {
        self.require_unrestricted()?;
        let found = catalog.organisations().get(id);
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
    pub fn require_scope(&self, scope: Scope) -> Result<(), ApiError> {
        if self.has_scope(scope) {
            return Ok(());
        }
        let scope = scope.as_str();
        Err(ApiError::forbidden(format!("The API key lacks scope \"{scope}\"")))
    }

    /// Checks that the key may manage resources that span more than one bucket.
    pub fn require_unrestricted(&self) -> Result<(), ApiError> {
        self.require_scope(Scope::Manage)?;
        if self.limits().bucket.is_some() {
            return Err(ApiError::forbidden("The API key is restricted to one bucket"));
        }
        self.require_folder_access(&FolderKey::root())
    }

    /// Checks that the caller is an operator. `does` describes the restricted operation, for the error.
    pub fn require_operator(&self, does: &str) -> Result<(), ApiError> {
        self.require_unrestricted()?;
        match self.account.role {
            Role::Operator => Ok(()),
            Role::User => Err(ApiError::forbidden(format!("Only the operator {does}"))),
        }
    }

    /// Returns whether the caller is an operator, without an error.
    pub fn is_operator(&self) -> bool {
        self.require_unrestricted().is_ok() && self.account.role == Role::Operator
    }

    /// Checks that the key's restrictions include a file.
    pub fn require_key_access(&self, key: &ObjectKey) -> Result<(), ApiError> {
        self.reaches(self.limits().allows_key(key))
    }

    /// Checks that the key's restrictions include a whole folder.
    pub fn require_folder_access(&self, folder: &FolderKey) -> Result<(), ApiError> {
        self.reaches(self.limits().allows_folder(folder))
    }

    /// Checks that the key's restrictions include every key with this prefix.
    pub fn require_prefix_access(&self, prefix: &str) -> Result<(), ApiError> {
        self.reaches(prefix.starts_with(self.limits().prefix.as_str()))
    }

    /// Checks that the key's restrictions include a file or folder.
    pub fn require_path_access(&self, place: &PathInBucket) -> Result<(), ApiError> {
        match place {
            PathInBucket::File(key) => self.require_key_access(key),
            PathInBucket::Folder(folder) => self.require_folder_access(folder),
        }
    }

    fn check_key(&self, name: &BucketName, scope: Scope) -> Result<(), ApiError> {
        self.require_scope(scope)?;
        if !self.limits().allows_bucket(name) {
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
pub fn authorize_delivery(
    app: &AppState,
    bucket: &Bucket,
    target: &ObjectPath,
    request: &Parts,
    client: Option<IpAddr>,
    query: &Query,
) -> Result<(), ApiError> {
    if bucket.access == Access::Public {
        return Ok(());
    }
    // A key takes precedence; a session, which browsers send automatically, does not.
    if !presents_key(&request.headers, query)
        && let Some(token) = query.string(&["token"])?
    {
        return check_link(app, target, &token);
    }
    let asking = PresentedCredentials { client, ..PresentedCredentials::from_request(request) };
    let caller = Caller::authenticate(app, asking, query)?;
    let catalog = &app.catalog;
    // The URL already shows that the bucket exists, so the error for a key of another account can name the cause.
    if catalog.buckets().role(&caller.account.id, bucket).is_none() {
        return Err(ApiError::forbidden(match caller.credential {
            Credential::Key(_) => "The API key has no access to this bucket",
            Credential::Session(_) | Credential::Detached => {
                "The account has no access to this bucket"
            }
        }));
    }
    caller.authorize(catalog, bucket, Scope::Read)?;
    caller.require_path_access(&target.place)
}

/// Checks whether a download link opens a file. The link has the current rights of its creator.
fn check_link(app: &AppState, target: &ObjectPath, token: &str) -> Result<(), ApiError> {
    let grant = app.catalog.tokens().verify(token).filter(|grant| grant.purpose == Purpose::Read);
    let grant = grant.ok_or_else(ApiError::token_not_found)?;
    let is_meant = grant.bucket == target.bucket && grant.path == target.place;
    if !is_meant {
        return Err(ApiError::token_not_found());
    }
    if grant.is_expired(app.clock.unix_ms()) {
        return Err(ApiError::token_expired());
    }
    let maker = Caller::from_issuer(&app.catalog, &grant.issuer);
    let maker = maker.ok_or_else(ApiError::token_revoked)?;
    let may = maker
        .bucket(&app.catalog, &grant.bucket, Scope::Read)
        .and_then(|_| maker.bucket(&app.catalog, &grant.bucket, Scope::Presign))
        .and_then(|_| maker.require_path_access(&target.place));
    may.map_err(|why| ApiError::token_revoked().with_log(why.to_string()))
}

/// Returns whether a request carries a key, valid or not.
pub fn presents_key(headers: &HeaderMap, query: &Query) -> bool {
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
    let text = query.string(API_KEY_PARAMETERS)?;
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
        credential(&headers(pairs), &Query::from_uri(&uri)).unwrap()
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
    fn first_credential_takes_precedence() {
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
