//! S3 multipart upload between its requests: its target, and its uploaded parts.
//!
//! Each part is a fact, and a body of the engine that outlives the process. Guarantees: a part has a record only after
//! its bytes are durable; the record of a completed upload remains until it expires, so that a client that missed the
//! response can retry. Non-goals: the protocol, and the bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use engine::name::NameError;
use engine::upload::ResumePoint;
use engine::{Batch, BucketName, FactName, ObjectKey, Precondition, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::change::each_fact;
use super::id::AccountId;
use super::pending_upload::parse_upload_name;
use super::record::{Record, corrupt_record, decode, encode};
use super::stored_text::text;
use super::{CatalogError, StagedUpload, Staging, StoredAmount, hex};
use crate::limits;
use crate::object_attributes::{StoredAttributes, StoredChecksum};

const PREFIX: &str = "s3-upload/";
const PART_PREFIX: &str = "s3-part/";

/// Multipart upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultipartUpload {
    #[serde(skip)]
    pub id: Uuid,
    #[serde(skip, default = "AccountId::unnamed")]
    pub account: AccountId,
    #[serde(with = "text")]
    pub bucket: BucketName,
    #[serde(with = "text")]
    pub key: ObjectKey,
    /// Attributes of the object that do not depend on its content.
    pub attributes: StoredAttributes,
    /// Checksum algorithm of the parts, and checksum type of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<UploadChecksum>,
    #[serde(rename = "begun_ms")]
    pub started_ms: u64,
    /// Entity tag of the object, once it is stored.
    pub done: Option<String>,
    /// Checksum of the object, once it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_checksum: Option<StoredChecksum>,
}

/// Checksum options that an upload was created with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadChecksum {
    /// Algorithm name as in `x-amz-checksum-crc32`: the last word.
    pub algorithm: String,
    /// `FULL_OBJECT` or `COMPOSITE`.
    pub kind: String,
}

/// Uploaded part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadedPart {
    #[serde(skip)]
    pub number: u32,
    /// Engine body with the content.
    #[serde(with = "text")]
    pub file: Uuid,
    pub bytes: u64,
    /// BLAKE3 hash of the bytes.
    #[serde(with = "hex")]
    pub hash: [u8; 32],
    /// Entity tag: the MD5 of the bytes, hexadecimal.
    pub etag: String,
    /// Checksum by the algorithm of the upload, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    pub stored_ms: u64,
}

impl Record for MultipartUpload {
    fn named(self, name: &str) -> Result<Self, String> {
        let (account, id) = parse_upload_name(name)?;
        Ok(Self { account, id, ..self })
    }
}

impl Record for UploadedPart {
    fn named(self, name: &str) -> Result<Self, String> {
        let number = name.rsplit('/').next().and_then(|number| number.parse().ok());
        Ok(Self { number: number.ok_or("its name does not end in a number")?, ..self })
    }
}

impl MultipartUpload {
    /// Returns the upload of an account with this id.
    pub fn find(
        store: &Store,
        account: &AccountId,
        id: Uuid,
    ) -> Result<Option<Self>, CatalogError> {
        let fact = fact(account, id)?;
        store.fact(&fact)?.map(|bytes| decode(&fact, &bytes)).transpose()
    }

    /// Returns the uploads of an account, by id, up to a limit.
    pub fn list_for_account(
        store: &Store,
        account: &AccountId,
        bound: usize,
    ) -> Result<Vec<Self>, CatalogError> {
        let facts = store.facts(&format!("{PREFIX}{account}/"), None, bound)?;
        facts.iter().map(|(fact, bytes)| decode(fact, bytes)).collect()
    }

    /// Returns the key as the client sent it.
    pub fn sent_key(&self) -> &str {
        let sent = self.attributes.s3.as_ref().and_then(|s3| s3.key.as_deref());
        sent.unwrap_or(self.key.as_str())
    }

    /// Returns the fact and its encoded value.
    pub fn fact(&self) -> Result<(FactName, Bytes), CatalogError> {
        let fact = fact(&self.account, self.id)?;
        let bytes = encode(&fact, self)?;
        Ok((fact, bytes))
    }

    /// Returns a batch that records a part, provided that the upload still exists.
    pub fn record_part(&self, part: &UploadedPart) -> Result<Batch, CatalogError> {
        let fact = part_fact(self.id, part.number)?;
        let bytes = encode(&fact, part)?;
        let batch = Batch::new().require(Precondition::FactPresent(self.fact()?.0));
        Ok(batch.put_fact(fact, bytes))
    }

    /// Returns an uploaded part.
    pub fn part(&self, store: &Store, number: u32) -> Result<Option<UploadedPart>, CatalogError> {
        let fact = part_fact(self.id, number)?;
        store.fact(&fact)?.map(|bytes| decode(&fact, &bytes)).transpose()
    }

    /// Returns uploaded parts by number, after a given one, up to a limit.
    pub fn parts(
        &self,
        store: &Store,
        after: u32,
        bound: usize,
    ) -> Result<Vec<UploadedPart>, CatalogError> {
        let mut parts = Vec::new();
        let mut after = part_fact(self.id, after)?;
        while parts.len() < bound {
            let wanted = (bound - parts.len()).min(engine::limits::LIST_PAGE_MAX);
            let prefix = format!("{PART_PREFIX}{}/", self.id);
            let facts = store.facts(&prefix, Some(&after), wanted)?;
            let is_last = facts.len() < wanted;
            for (fact, bytes) in facts {
                parts.push(decode(&fact, &bytes)?);
                after = fact;
            }
            if is_last {
                break;
            }
        }
        Ok(parts)
    }

    /// Deletes the parts, and then their bytes. Blocks on the disk.
    pub fn remove_parts(&self, store: &Store) -> Result<(), CatalogError> {
        loop {
            let parts = self.parts(store, 0, engine::limits::LIST_PAGE_MAX)?;
            if parts.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new();
            for part in &parts {
                batch = batch.delete_fact(part_fact(self.id, part.number)?);
            }
            store.commit(batch)?;
            for part in &parts {
                store.remove_upload(part.file)?;
            }
        }
    }

    /// Returns the uploads that are not completed, as they count against quotas.
    pub(super) fn unfinished(store: &Store) -> Result<HashMap<Uuid, StagedUpload>, CatalogError> {
        let mut uploads = HashMap::new();
        each_fact(store, PREFIX, |fact, bytes| {
            let upload: Self = decode(fact, bytes)?;
            if upload.done.is_none() {
                uploads.insert(upload.id, upload.staged(StoredAmount::default()));
            }
            Ok(())
        })?;
        each_fact(store, PART_PREFIX, |fact, bytes| {
            let part: UploadedPart = decode(fact, bytes)?;
            if let Some(staged) = uploads.get_mut(&upload_of(fact)?) {
                staged.length = staged.length.saturating_add(part.bytes);
                staged.bodies.insert(part.file, part.bytes);
                staged.touched_ms = staged.touched_ms.max(part.stored_ms);
            }
            Ok(())
        })?;
        Ok(uploads)
    }

    /// Returns the quota entry of an upload without parts.
    pub fn staged(&self, replaced: StoredAmount) -> StagedUpload {
        StagedUpload {
            account: self.account.clone(),
            bucket: self.bucket.clone(),
            length: 0,
            replaced,
            bodies: BTreeMap::new(),
            touched_ms: self.started_ms,
            is_completing: false,
            reservation: None,
        }
    }

    /// Deletes expired or evicted uploads, and parts whose upload is completed or deleted; returns the bodies still in
    /// use. Blocks on the disk.
    pub fn sweep(
        store: &Store,
        staging: &Staging,
        now_ms: u64,
    ) -> Result<BTreeSet<Uuid>, CatalogError> {
        let mut newest: BTreeMap<Uuid, u64> = BTreeMap::new();
        each_fact(store, PART_PREFIX, |fact, bytes| {
            let (upload, part): (_, UploadedPart) = (upload_of(fact)?, decode(fact, bytes)?);
            let newest = newest.entry(upload).or_default();
            *newest = part.stored_ms.max(*newest);
            Ok(())
        })?;
        let (mut open, mut over) = (BTreeSet::new(), Vec::new());
        each_fact(store, PREFIX, |fact, bytes| {
            let upload: Self = decode(fact, bytes)?;
            let last_ms =
                newest.get(&upload.id).copied().unwrap_or_default().max(upload.started_ms);
            let is_evicted = upload.done.is_none() && !staging.contains(upload.id);
            if is_evicted || last_ms.saturating_add(limits::TUS_EXPIRY_MS) <= now_ms {
                over.push(fact.clone());
                staging.remove(upload.id);
            } else if upload.done.is_none() {
                open.insert(upload.id);
            }
            Ok(())
        })?;
        let mut kept = BTreeSet::new();
        each_fact(store, PART_PREFIX, |fact, bytes| {
            let part: UploadedPart = decode(fact, bytes)?;
            // A recent part may belong to an upload that was created after the first scan.
            let since_ms =
                part.stored_ms.saturating_add(limits::millis(limits::TUS_SWEEP_INTERVAL));
            if open.contains(&upload_of(fact)?) || since_ms > now_ms {
                kept.insert(part.file);
            } else {
                over.push(fact.clone());
            }
            Ok(())
        })?;
        for facts in over.chunks(engine::limits::LIST_PAGE_MAX) {
            let forgetting = |batch: Batch, fact: &FactName| batch.delete_fact(fact.clone());
            store.commit(facts.iter().fold(Batch::new(), forgetting))?;
        }
        Ok(kept)
    }
}

impl UploadedPart {
    /// Returns the end of the part, for reading it.
    pub fn received(&self) -> ResumePoint {
        ResumePoint { bytes: self.bytes, hash: self.hash }
    }
}

/// Parses the upload id from the name of a part's fact.
fn upload_of(fact: &FactName) -> Result<Uuid, CatalogError> {
    let id = fact.as_str().strip_prefix(PART_PREFIX).and_then(|rest| rest.split('/').next());
    let id = id.and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| corrupt_record(fact, &"its name has no upload id"))
}

fn fact(account: &AccountId, id: Uuid) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PREFIX}{account}/{id}"))
}

fn part_fact(upload: Uuid, number: u32) -> Result<FactName, NameError> {
    FactName::parse(&format!("{PART_PREFIX}{upload}/{number:05}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::clock::SimClock;
    use engine::disk::sim::SimDisk;
    use engine::rng::SeededRng;
    use engine::{Create, Environment, OpenOptions};

    use super::*;
    use crate::object_attributes::Tags;

    fn store() -> Store {
        let surroundings = Environment {
            disk: Arc::new(SimDisk::new()),
            clock: Arc::new(SimClock::at(0)),
            rng: Arc::new(SeededRng::new(1)),
            remote: None,
        };
        Store::open(surroundings, OpenOptions::new(Create::IfMissing)).unwrap().0
    }

    fn upload(number: u128) -> MultipartUpload {
        MultipartUpload {
            id: Uuid::from_u128(number),
            account: AccountId::parse("aaaaaaaaaaaaaaaa").unwrap(),
            bucket: BucketName::parse("photos").unwrap(),
            key: ObjectKey::parse("a/b.bin").unwrap(),
            attributes: StoredAttributes {
                declared_type: Some("image/png".into()),
                tags: Tags::from([("a".to_owned(), "b".to_owned())]),
                ..StoredAttributes::default()
            },
            checksum: Some(UploadChecksum { algorithm: "crc32".into(), kind: "COMPOSITE".into() }),
            started_ms: 1_000,
            done: None,
            done_checksum: None,
        }
    }

    fn part(number: u32, stored_ms: u64) -> UploadedPart {
        let (file, etag) = (Uuid::from_u128(u128::from(number)), "0f".repeat(16));
        let (hash, checksum) = ([number as u8; 32], Some("AAAAAA==".into()));
        UploadedPart { number, file, bytes: 5, hash, etag, checksum, stored_ms }
    }

    fn put(store: &Store, upload: &MultipartUpload) {
        let (fact, bytes) = upload.fact().unwrap();
        store.commit(Batch::new().put_fact(fact, bytes)).unwrap();
    }

    #[test]
    fn multipart_upload_and_parts_round_trip_in_order() {
        let (store, upload) = (store(), upload(7));
        let refused = store.commit(upload.record_part(&part(1, 5)).unwrap());
        assert!(refused.is_err(), "there is no such upload yet");
        put(&store, &upload);
        for number in [10_000, 2, 1, 10] {
            store.commit(upload.record_part(&part(number, 5)).unwrap()).unwrap();
        }
        assert_eq!(
            MultipartUpload::find(&store, &upload.account, upload.id).unwrap(),
            Some(upload.clone())
        );
        let numbers = |after, bound| {
            let parts = upload.parts(&store, after, bound).unwrap();
            parts.iter().map(|part| part.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0, 100), [1, 2, 10, 10_000]);
        assert_eq!(numbers(1, 2), [2, 10]);
        assert_eq!(upload.part(&store, 10).unwrap(), Some(part(10, 5)));
        upload.remove_parts(&store).unwrap();
        assert_eq!(numbers(0, 100), [0; 0]);
    }

    #[test]
    fn sweep_deletes_expired_multipart_uploads() {
        let store = store();
        let (old, fresh) = (upload(1), upload(2));
        let done = MultipartUpload { done: Some("abc".into()), ..upload(3) };
        let now_ms = limits::TUS_EXPIRY_MS + 500;
        for (upload, part) in
            [(&old, part(1, 400)), (&fresh, part(2, 5_000)), (&done, part(3, 900))]
        {
            let upload = MultipartUpload { started_ms: 400, ..upload.clone() };
            put(&store, &upload);
            store.commit(upload.record_part(&part).unwrap()).unwrap();
        }
        put(&store, &MultipartUpload { started_ms: 600, ..done.clone() });
        let staging = Staging::open(&store, |_| None).unwrap();
        assert_eq!((staging.totals().uploads, staging.totals().bytes), (2, 10));
        let kept = MultipartUpload::sweep(&store, &staging, now_ms).unwrap();
        assert_eq!(kept, BTreeSet::from([Uuid::from_u128(2)]));
        assert_eq!((staging.totals().uploads, staging.totals().bytes), (1, 5));
        let found = |upload: &MultipartUpload| {
            MultipartUpload::find(&store, &upload.account, upload.id).unwrap().is_some()
        };
        assert!(!found(&old) && found(&fresh) && found(&done), "finished uploads are kept");
        assert!(done.parts(&store, 0, 9).unwrap().is_empty());
        // Its bytes were evicted for other uploads.
        staging.remove(fresh.id);
        assert!(MultipartUpload::sweep(&store, &staging, now_ms).unwrap().is_empty());
        assert!(!found(&fresh) && found(&done));
    }
}
