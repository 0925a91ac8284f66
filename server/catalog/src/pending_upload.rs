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

use super::id::AccountId;
use super::record::{CatalogRecord, decode, encode};
use super::{CatalogError, hex};

const PREFIX: &str = "upload/";

/// Resumable upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingUpload {
    pub id: Uuid,
    pub account: AccountId,
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
    pub received: ResumePoint,
    pub expires_ms: u64,
    /// Whether the file is stored.
    pub is_stored: bool,
    /// Key of the file, if it is stored and the key could be recorded.
    pub key: Option<ObjectKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredUpload {
    bucket: String,
    path: String,
    overwrite: bool,
    randomize_name: bool,
    #[serde(default)]
    thumbnail: Option<bool>,
    length: u64,
    metadata: String,
    received_bytes: u64,
    /// BLAKE3 hash of the received bytes, hexadecimal.
    received_hash: String,
    expires_ms: u64,
    is_stored: bool,
    key: Option<String>,
}

impl CatalogRecord for StoredUpload {}

impl PendingUpload {
    /// Returns the upload of an account with this id.
    pub fn find(
        store: &Store,
        account: &AccountId,
        id: Uuid,
    ) -> Result<Option<Self>, CatalogError> {
        let fact = fact(account, id)?;
        store.fact(&fact)?.map(|bytes| Self::read(&fact, &bytes)).transpose()
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
        let uploads = facts.iter().map(|(name, bytes)| Self::read(name, bytes));
        Ok((uploads.collect::<Result<_, _>>()?, last))
    }

    /// Returns the fact and its encoded value.
    pub fn fact(&self) -> Result<(FactName, Bytes), CatalogError> {
        let fact = fact(&self.account, self.id)?;
        let stored = StoredUpload {
            bucket: self.bucket.to_string(),
            path: self.path.clone(),
            overwrite: self.overwrite,
            randomize_name: self.randomize_name,
            thumbnail: self.thumbnail,
            length: self.length,
            metadata: self.metadata.clone(),
            received_bytes: self.received.bytes,
            received_hash: hex::encode(&self.received.hash),
            expires_ms: self.expires_ms,
            is_stored: self.is_stored,
            key: self.key.as_ref().map(ToString::to_string),
        };
        let bytes = encode(&fact, &stored)?;
        Ok((fact, bytes))
    }

    fn read(fact: &FactName, bytes: &[u8]) -> Result<Self, CatalogError> {
        let stored: StoredUpload = decode(fact, bytes)?;
        let unreadable = |why: &str| super::record::corrupt_record(fact, &why);
        let name = fact.as_str().strip_prefix(PREFIX).and_then(|rest| rest.split_once('/'));
        let (account, id) = name.ok_or_else(|| unreadable("it has no account"))?;
        Ok(Self {
            id: Uuid::parse_str(id).map_err(|_| unreadable("its id is not a UUID"))?,
            account: AccountId::parse(account).ok_or_else(|| unreadable("invalid account id"))?,
            bucket: BucketName::parse(&stored.bucket)
                .map_err(|why| unreadable(&why.to_string()))?,
            path: stored.path,
            overwrite: stored.overwrite,
            randomize_name: stored.randomize_name,
            thumbnail: stored.thumbnail,
            length: stored.length,
            metadata: stored.metadata,
            received: ResumePoint {
                bytes: stored.received_bytes,
                hash: hex::decode(&stored.received_hash)
                    .ok_or_else(|| unreadable("invalid hash"))?,
            },
            expires_ms: stored.expires_ms,
            is_stored: stored.is_stored,
            key: match stored.key {
                Some(key) => {
                    Some(ObjectKey::parse(&key).map_err(|why| unreadable(&why.to_string()))?)
                }
                None => None,
            },
        })
    }
}

fn fact(account: &AccountId, id: Uuid) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{account}/{id}"))
}
