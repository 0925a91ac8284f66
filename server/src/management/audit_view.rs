//! Audit log, as shown to users and the operator.
//!
//! Non-goals: authorization; the caller decides which entries are visible.

use catalog::{
    AccountId, ActorKind, ApiKeyId, AuditEntry, AuditPage, Catalog, CatalogError, OrganisationId,
};
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limits::AUDIT_PAGE_MAX;

/// Filter of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditQuery {
    /// Bucket of the entries.
    pub bucket: Option<String>,
    /// Prefix of their actions.
    pub action: Option<String>,
    /// Id of the actor's key, session or account, or its name.
    pub actor: Option<String>,
    /// Only earlier entries: the cursor of another page.
    pub before: Option<String>,
    pub limit: u64,
}

/// Page of audit log entries, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditView {
    pub entries: Vec<AuditEntryView>,
    /// `before` of the next page; `null` on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// Audit log entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntryView {
    pub id: String,
    pub time: String,
    /// Action, such as `bucket.create`.
    pub action: String,
    pub actor: ActorView,
    #[schema(required)]
    pub bucket_name: Option<String>,
    /// Id of the changed resource, if not a bucket.
    #[schema(required)]
    pub target: Option<String>,
    /// Current name of the changed account, API key or organisation.
    #[serde(default)]
    #[schema(required)]
    pub target_name: Option<String>,
    /// Changed settings.
    #[schema(required)]
    pub detail: Option<String>,
    /// Client IP address.
    #[schema(required)]
    pub address: Option<String>,
    /// Request id, as in `X-Request-Id` of the response.
    #[schema(required)]
    pub request_id: Option<String>,
}

/// API key, session, operator or server that made a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorView {
    pub kind: ActorKind,
    /// Id of the API key or session.
    #[schema(required)]
    pub id: Option<String>,
    /// Name of the API key, or of the signed-in account.
    #[schema(required)]
    pub name: Option<String>,
    /// Account id.
    #[schema(required)]
    pub account: Option<String>,
}

/// Visible part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditVisibility {
    Nothing,
    /// All except the client address.
    WithoutOrigin,
    All,
}

/// Returns the matching entries, as far as they are visible.
pub fn audit(
    catalog: &Catalog,
    asked: &AuditQuery,
    seen: impl Fn(&AuditEntry) -> AuditVisibility,
) -> Result<AuditView, CatalogError> {
    let refuse =
        |rule: &str| CatalogError::InvalidSetting { setting: "before", rule: rule.to_owned() };
    let before = asked.before.as_deref().map(str::parse).transpose();
    let before = before.map_err(|_| refuse("must be the nextCursor of a page"))?;
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX).clamp(1, AUDIT_PAGE_MAX);
    let wants =
        |entry: &AuditEntry| asked.matches(entry) && seen(entry) != AuditVisibility::Nothing;
    let AuditPage { entries, next } = catalog.audit().page(wants, before, limit)?;
    let view = |(number, entry): (u64, AuditEntry)| {
        let seen = seen(&entry);
        view(catalog, number, entry, seen)
    };
    Ok(AuditView {
        entries: entries.into_iter().map(view).collect(),
        next_cursor: next.map(|number| number.to_string()),
    })
}

impl AuditQuery {
    fn matches(&self, entry: &AuditEntry) -> bool {
        let is = |asked: &Option<String>, known: &Option<String>| asked.is_none() || asked == known;
        let actor = &entry.actor;
        is(&self.bucket, &entry.bucket)
            && self.action.as_ref().is_none_or(|action| entry.action.starts_with(&**action))
            && (is(&self.actor, &actor.id)
                || is(&self.actor, &actor.account)
                || is(&self.actor, &actor.name))
    }
}

/// Returns the name of the changed record, if it exists and has one.
fn target_name(catalog: &Catalog, action: &str, target: &str) -> Option<String> {
    let (kind, _) = action.split_once('.')?;
    let account = || {
        let account = catalog.accounts().get(&AccountId::parse(target)?)?;
        Some(account.name.as_str().to_owned())
    };
    let organisation = || {
        let organisation = catalog.organisations().get(&OrganisationId::parse(target)?)?;
        Some(organisation.name.as_str().to_owned())
    };
    match kind {
        "account" | "password" | "session" => account(),
        "key" => catalog.api_keys().get(&ApiKeyId::parse(target)?).map(|key| key.name.clone()),
        "organisation" => organisation(),
        "member" => account().or_else(organisation),
        _ => None,
    }
}

fn view(
    catalog: &Catalog,
    number: u64,
    entry: AuditEntry,
    seen: AuditVisibility,
) -> AuditEntryView {
    let AuditEntry { at_ms, action, actor, bucket, target, detail, .. } = entry;
    let is_all = seen == AuditVisibility::All;
    AuditEntryView {
        id: number.to_string(),
        time: iso_time(at_ms),
        bucket_name: bucket,
        target_name: target.as_deref().and_then(|target| target_name(catalog, &action, target)),
        action,
        target,
        detail,
        address: actor.address.filter(|_| is_all).map(|address| address.to_string()),
        request_id: actor.request_id.filter(|_| is_all),
        actor: ActorView {
            kind: actor.kind,
            id: actor.id,
            name: actor.name,
            account: actor.account,
        },
    }
}
