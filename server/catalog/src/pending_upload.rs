//! Resumable upload between its requests: owner, target, and offset.
//!
//! Guarantees: a record is written only after the bytes that it counts are durable; the record of a completed upload
//! remains until it expires, so that a client that missed the response does not start over. Non-goals: the protocol,
//! and the bytes.

use bytes::Bytes;
use engine::name::NameError;
use engine::upload::ResumePoint;
use engine::{BucketName, FactName, ObjectKey, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::id::{AccountId, SharedLinkId};
use super::record::{Record, decode, encode};
use super::stored_text::{StoredText, optional_text, text};
use super::{CatalogError, hex};

/// Prefix of the fact names of these records; the account and the id follow.
pub(super) const PREFIX: &str = "upload/";

/// Resumable upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingUpload {
    #[serde(skip)]
    pub id: Uuid,
    #[serde(skip, default = "AccountId::unnamed")]
    pub account: AccountId,
    #[serde(with = "text")]
    pub bucket: BucketName,
    /// Target folder, with a final `/` or empty, or target file.
    pub path: String,
    pub overwrite: bool,
    pub randomize_name: bool,
    /// Whether thumbnails were requested.
    pub thumbnail: Option<bool>,
    /// Length of the whole file.
    pub length: u64,
    /// Client metadata, verbatim.
    pub metadata: String,
    pub received_bytes: u64,
    /// BLAKE3 hash of the received bytes.
    #[serde(with = "hex")]
    pub received_hash: [u8; 32],
    pub expires_ms: u64,
    /// Whether the file is stored.
    pub is_stored: bool,
    /// Key of the file, if it is stored and the key could be recorded.
    #[serde(default, with = "optional_text")]
    pub key: Option<ObjectKey>,
    /// Link that requests the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<SharedLinkId>,
}

impl Record for PendingUpload {
    fn named(self, name: &str) -> Result<Self, String> {
        let (account, id) = parse_upload_name(name)?;
        Ok(Self { account, id, ..self })
    }
}

impl PendingUpload {
    /// Returns the upload of an account with this id.
    pub fn find(
        store: &Store,
        account: &AccountId,
        id: Uuid,
    ) -> Result<Option<Self>, CatalogError> {
        let fact = fact(account, id)?;
        store.fact(&fact)?.map(|bytes| decode(&fact, &bytes)).transpose()
    }

    /// Returns the number of uploads of an account, up to a limit.
    pub fn count(store: &Store, account: &AccountId, bound: usize) -> Result<usize, CatalogError> {
        Ok(store.facts(&format!("{PREFIX}{account}/"), None, bound)?.len())
    }

    /// Returns a page of all uploads, after a name; and the name of the last one.
    pub fn page(
        store: &Store,
        after: Option<&FactName>,
    ) -> Result<(Vec<Self>, Option<FactName>), CatalogError> {
        let facts = store.facts(PREFIX, after, engine::limits::LIST_PAGE_MAX)?;
        let last = facts.last().map(|(name, _)| name.clone());
        let uploads = facts.iter().map(|(name, bytes)| decode(name, bytes));
        Ok((uploads.collect::<Result<_, _>>()?, last))
    }

    /// Returns the fact and its encoded value.
    pub fn fact(&self) -> Result<(FactName, Bytes), CatalogError> {
        let fact = fact(&self.account, self.id)?;
        let bytes = encode(&fact, self)?;
        Ok((fact, bytes))
    }

    /// Returns the point from which the upload can be resumed.
    pub fn received(&self) -> ResumePoint {
        ResumePoint { bytes: self.received_bytes, hash: self.received_hash }
    }
}

/// Parses the account and the id from the name of an upload.
pub(super) fn parse_upload_name(name: &str) -> Result<(AccountId, Uuid), String> {
    let (account, id) = name.split_once('/').ok_or("its name has no account")?;
    Ok((AccountId::read(account)?, Uuid::from_text(id)?))
}

fn fact(account: &AccountId, id: Uuid) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{account}/{id}"))
}
