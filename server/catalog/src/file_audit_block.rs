//! Stored form of the file audit: a block of changes of one bucket, with each author once.
//!
//! Non-goals: retention, and the order of changes of several buckets.

use std::net::IpAddr;

use engine::{BucketName, ObjectKey};
use serde::{Deserialize, Serialize};

use super::Bucket;
use super::audit_entry::{Actor, AuditEntry};
use super::event::EventKind;
use super::record::Record;

/// Changed file.
pub(super) struct ChangedFile {
    pub(super) kind: EventKind,
    pub(super) key: ObjectKey,
    /// Size of the stored file; `None` for a deleted one.
    pub(super) bytes: Option<u64>,
}

/// Block of changes of one bucket, oldest first.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileAuditBlock {
    pub(super) bucket: String,
    /// Account id of the owner of the bucket; `None` if the bucket was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) organisation: Option<String>,
    /// Authors, without request ids.
    actors: Vec<Actor>,
    pub(super) changes: Vec<StoredChange>,
}

/// Change of one file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredChange {
    pub(super) at_ms: u64,
    kind: EventKind,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Index of the author.
    actor: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Record for FileAuditBlock {
    fn named(self, _name: &str) -> Result<Self, String> {
        match self.changes.iter().all(|it| it.actor < self.actors.len()) {
            true => Ok(self),
            false => Err("a change has no author".to_owned()),
        }
    }
}

impl FileAuditBlock {
    pub(super) fn new(name: &BucketName, bucket: Option<&Bucket>) -> Self {
        Self {
            bucket: name.to_string(),
            owner: bucket.map(|it| it.owner.to_string()),
            organisation: bucket.and_then(|it| it.organisation.as_ref()).map(ToString::to_string),
            actors: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds a change; returns how many bytes the block grows, encoded.
    pub(super) fn add(&mut self, at_ms: u64, actor: &Actor, file: &ChangedFile) -> usize {
        let is_same = |known: &Actor| {
            let Actor { kind, id, name, account, address, request_id: _ } = known;
            let same: (_, _, _, _, &Option<IpAddr>) = (kind, id, name, account, address);
            same == (&actor.kind, &actor.id, &actor.name, &actor.account, &actor.address)
        };
        let mut grown = 0;
        let index = self.actors.iter().rposition(is_same).unwrap_or_else(|| {
            let author = Actor { request_id: None, ..actor.clone() };
            grown += encoded_bytes(&author);
            self.actors.push(author);
            self.actors.len() - 1
        });
        let change = StoredChange {
            at_ms,
            kind: file.kind,
            key: file.key.to_string(),
            bytes: file.bytes,
            actor: index,
            request_id: actor.request_id.clone(),
        };
        grown += encoded_bytes(&change);
        self.changes.push(change);
        grown
    }

    /// Returns a change as an entry of the audit log.
    pub(super) fn entry(&self, index: usize) -> Option<AuditEntry> {
        let change = self.changes.get(index)?;
        let request_id = change.request_id.clone();
        Some(AuditEntry {
            at_ms: change.at_ms,
            action: action(change.kind).to_owned(),
            actor: Actor { request_id, ..self.actors.get(change.actor)?.clone() },
            bucket: Some(self.bucket.clone()),
            target: Some(change.key.clone()),
            detail: change.bytes.map(|bytes| format!("{bytes} bytes")),
            accounts: self.owner.iter().cloned().collect(),
            organisation: self.organisation.clone(),
        })
    }
}

/// Returns the action of an event, as in the audit log.
fn action(kind: EventKind) -> &'static str {
    match kind {
        EventKind::CreatedByPut | EventKind::CreatedByPost | EventKind::CreatedByMultipart => {
            "file.upload"
        }
        EventKind::CreatedByCopy => "file.copy",
        EventKind::Removed => "file.delete",
        EventKind::Expired => "file.expire",
    }
}

/// Returns the length of a part of a block, with the comma after it.
fn encoded_bytes(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(0, |text| text.len() + 1)
}
