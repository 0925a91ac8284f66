//! Audit logs of changes and of files, as shown to users and the operator.
//!
//! Non-goals: authorization; the caller decides which entries are visible.

use std::fmt::Display;
use std::str::FromStr;

use catalog::{
    AccountId, ActorKind, ApiKeyId, AuditEntry, AuditPage, Catalog, CatalogError, OrganisationId,
};
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limits::AUDIT_PAGE_MAX;

/// Audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AuditLog {
    /// Changes of buckets, keys, accounts and other resources.
    #[default]
    Changes,
    /// Uploads, copies and deletions of files.
    Files,
}

/// Filter of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditQuery {
    #[serde(default)]
    pub log: AuditLog,
    /// Path of a file, or of a folder with all files in it, if it ends in `/`.
    #[serde(default)]
    pub path: Option<String>,
    /// Part of the path of a file, regardless of case.
    #[serde(default)]
    pub name: Option<String>,
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
    /// Id of the changed resource, if not a bucket; path of a changed file.
    #[schema(required)]
    pub target: Option<String>,
    /// Current name of the changed account, API key or organisation.
    #[serde(default)]
    #[schema(required)]
    pub target_name: Option<String>,
    /// Changed settings; size of an uploaded file.
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
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX).clamp(1, AUDIT_PAGE_MAX);
    let asked_name = asked.name.as_ref().map(|name| name.to_lowercase());
    let wants = |entry: &AuditEntry| {
        asked.matches(entry)
            && asked_name.as_ref().is_none_or(|name| names(entry, name))
            && seen(entry) != AuditVisibility::Nothing
    };
    let log = catalog.audit();
    match asked.log {
        AuditLog::Changes => {
            let page = log.page(wants, asked.before()?, limit)?;
            Ok(page_view(catalog, page, seen))
        }
        AuditLog::Files => {
            let page = log.file_page(asked.bucket.as_deref(), wants, asked.before()?, limit)?;
            Ok(page_view(catalog, page, seen))
        }
    }
}

fn page_view<I: Display>(
    catalog: &Catalog,
    AuditPage { entries, next }: AuditPage<I>,
    seen: impl Fn(&AuditEntry) -> AuditVisibility,
) -> AuditView {
    let view = |(id, entry): (I, AuditEntry)| {
        let seen = seen(&entry);
        view(catalog, &id, entry, seen)
    };
    AuditView {
        entries: entries.into_iter().map(view).collect(),
        next_cursor: next.map(|id| id.to_string()),
    }
}

/// Returns whether the path of an entry contains a text in lower case.
fn names(entry: &AuditEntry, text: &str) -> bool {
    entry.target.as_ref().is_some_and(|path| path.to_lowercase().contains(text))
}

impl AuditQuery {
    fn before<I: FromStr>(&self) -> Result<Option<I>, CatalogError> {
        let before = self.before.as_deref().map(str::parse).transpose();
        before.map_err(|_| CatalogError::InvalidSetting {
            setting: "before",
            rule: "must be the nextCursor of a page".to_owned(),
        })
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let is = |asked: &Option<String>, known: &Option<String>| asked.is_none() || asked == known;
        let actor = &entry.actor;
        let is_path = |path: &String| match path.ends_with('/') {
            true => entry.target.as_ref().is_some_and(|target| target.starts_with(&**path)),
            false => entry.target.as_ref() == Some(path),
        };
        is(&self.bucket, &entry.bucket)
            && self.path.as_ref().is_none_or(is_path)
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
    id: &impl Display,
    entry: AuditEntry,
    seen: AuditVisibility,
) -> AuditEntryView {
    let AuditEntry { at_ms, action, actor, bucket, target, detail, .. } = entry;
    let is_all = seen == AuditVisibility::All;
    AuditEntryView {
        id: id.to_string(),
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
