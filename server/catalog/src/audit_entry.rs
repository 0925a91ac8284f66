//! Audit log entry: a record of one change that is not a change of files.
//!
//! Guarantees: an entry is in the batch of its change, so that it exists exactly if the change was made; it contains no
//! secrets. Non-goals: retention, and authorization of readers.

use std::net::IpAddr;

use engine::BucketName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{AccountId, OrganisationId};
use super::record::Record;
use super::{ApiKey, Bucket, Catalog};
use crate::limits::AUDIT_TEXT_CHARS_MAX;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAction {
    BucketCreate,
    BucketChange,
    BucketDelete,
    KeyCreate,
    KeyDelete,
    AccountCreate,
    AccountChange,
    AccountInvite,
    AccountDelete,
    OrganisationCreate,
    OrganisationChange,
    OrganisationDelete,
    MemberAdd,
    MemberInvite,
    MemberRemove,
    SessionBegin,
    SessionRefused,
    SessionEnd,
    PasswordChange,
    JobBegin,
    JobCancel,
    JobEnd,
    WebhookCreate,
    WebhookChange,
    WebhookDelete,
    LinkCreate,
    LinkChange,
    LinkEnd,
    LinkUpload,
    LinkDownload,
    LinkRefused,
    CompactionBegin,
    FileChange,
    LifecycleExpire,
}

/// Author of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    pub kind: ActorKind,
    /// Id of the key or session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the key, or of the signed-in account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Account of the key or session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Type of an actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// An API key.
    Key,
    /// A password, or a link that was sent.
    Session,
    /// The command line on the machine itself.
    Operator,
    /// The server did it by itself.
    #[default]
    Server,
}

/// Content of an entry, without time and author.
#[derive(Clone, Debug)]
pub(super) struct AuditRecord {
    pub(super) action: AuditAction,
    bucket: Option<BucketName>,
    target: Option<String>,
    detail: Option<String>,
    accounts: Vec<AccountId>,
    organisation: Option<OrganisationId>,
}

/// Entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    pub at_ms: u64,
    pub action: String,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Id of the changed record, unless it is a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Ids of the affected accounts, besides that of the author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<String>,
    /// Id of the organisation whose administrators may see the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}

impl Record for AuditEntry {}

impl AuditAction {
    /// Retention class of rejected sign-ins.
    pub(super) const REFUSED_CLASS: &str = "refused";

    /// Returns the name of the action, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BucketCreate => "bucket.create",
            Self::BucketChange => "bucket.change",
            Self::BucketDelete => "bucket.delete",
            Self::KeyCreate => "key.create",
            Self::KeyDelete => "key.delete",
            Self::AccountCreate => "account.create",
            Self::AccountChange => "account.change",
            Self::AccountInvite => "account.invite",
            Self::AccountDelete => "account.delete",
            Self::OrganisationCreate => "organisation.create",
            Self::OrganisationChange => "organisation.change",
            Self::OrganisationDelete => "organisation.delete",
            Self::MemberAdd => "member.add",
            Self::MemberInvite => "member.invite",
            Self::MemberRemove => "member.remove",
            Self::SessionBegin => "session.begin",
            Self::SessionRefused => "session.refused",
            Self::SessionEnd => "session.end",
            Self::PasswordChange => "password.change",
            Self::JobBegin => "job.begin",
            Self::JobCancel => "job.cancel",
            Self::JobEnd => "job.end",
            Self::WebhookCreate => "webhook.create",
            Self::WebhookChange => "webhook.change",
            Self::WebhookDelete => "webhook.delete",
            Self::LinkCreate => "link.create",
            Self::LinkChange => "link.change",
            Self::LinkEnd => "link.end",
            Self::LinkUpload => "link.upload",
            Self::LinkDownload => "link.download",
            Self::LinkRefused => "link.refused",
            Self::CompactionBegin => "compaction.begin",
            Self::FileChange => "file.change",
            Self::LifecycleExpire => "lifecycle.expire",
        }
    }
}

impl Actor {
    /// Returns the author of commands on the server's machine.
    pub fn operator() -> Self {
        Self { kind: ActorKind::Operator, ..Self::default() }
    }
}

impl AuditRecord {
    pub(super) fn new(action: AuditAction) -> Self {
        Self {
            action,
            bucket: None,
            target: None,
            detail: None,
            accounts: Vec::new(),
            organisation: None,
        }
    }

    /// Sets the bucket that was changed, and its owner as affected.
    pub(super) fn bucket(mut self, bucket: &Bucket) -> Self {
        self.bucket = Some(bucket.name.clone());
        self.organisation = bucket.organisation.clone().or(self.organisation);
        self.account(&bucket.owner)
    }

    /// Sets the bucket that was changed, which may be deleted.
    pub(super) fn bucket_named(self, name: &BucketName, catalog: &Catalog) -> Self {
        match catalog.buckets().get(name) {
            Some(bucket) => self.bucket(&bucket),
            None => Self { bucket: Some(name.clone()), ..self },
        }
    }

    /// Sets the key that was changed.
    pub(super) fn key(mut self, key: &ApiKey) -> Self {
        self.bucket = key.limits.bucket.clone();
        self.account(&key.account).target(&key.id).detail(format!("name: {}", key.name))
    }

    /// Adds an affected account.
    pub(super) fn account(mut self, account: &AccountId) -> Self {
        if !self.accounts.contains(account) {
            self.accounts.push(account.clone());
        }
        self
    }

    /// Sets the affected organisation.
    pub(super) fn organisation(mut self, organisation: &OrganisationId) -> Self {
        self.organisation = Some(organisation.clone());
        self
    }

    pub(super) fn target(mut self, target: &dyn std::fmt::Display) -> Self {
        self.target = Some(target.to_string());
        self
    }

    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail: String = detail.into();
        self.detail = Some(detail.chars().take(AUDIT_TEXT_CHARS_MAX).collect());
        self
    }

    pub(super) fn entry(self, at_ms: u64, actor: Actor) -> AuditEntry {
        AuditEntry {
            at_ms,
            action: self.action.as_str().to_owned(),
            actor,
            bucket: self.bucket.map(|bucket| bucket.to_string()),
            target: self.target,
            detail: self.detail.filter(|detail| !detail.is_empty()),
            accounts: self.accounts.iter().map(ToString::to_string).collect(),
            organisation: self.organisation.map(|organisation| organisation.to_string()),
        }
    }
}

impl AuditEntry {
    /// Returns the retention class, within which old entries are evicted: the account that made the change, or that it
    /// was made for.
    ///
    /// A busy account thus evicts its own entries, and not those of an operator. Rejected sign-ins, which have no
    /// account, are a class of their own.
    pub(super) fn retention_class(&self) -> &str {
        if self.action == AuditAction::SessionRefused.as_str() {
            return AuditAction::REFUSED_CLASS;
        }
        match (&self.actor.account, self.actor.kind) {
            (Some(account), _) => account,
            (None, ActorKind::Operator) => "operator",
            (None, _) => self.accounts.first().map_or("server", String::as_str),
        }
    }
}

/// Describes the changed settings with their new values, as they are stored; of hidden ones only the name.
pub(super) fn changed_settings<R: Record>(before: &R, after: &R, hidden: &[&str]) -> String {
    let fields = |record: &R| match serde_json::to_value(record) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::default(),
    };
    let (before, after) = (fields(before), fields(after));
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut changes: Vec<_> = removed.map(|name| format!("{name}: none")).collect();
    for (name, value) in after {
        if before.get(&name) == Some(&value) || name == "updated_ms" {
            continue;
        }
        changes.push(match value {
            _ if hidden.contains(&&*name) => name,
            serde_json::Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        });
    }
    changes.join(", ")
}
