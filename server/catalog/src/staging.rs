//! Unfinished uploads: their share of the quotas and of the disk.
//!
//! A resumable upload counts against the quotas of its bucket and of the bucket's owner with its declared length, from
//! its creation on; an S3 multipart upload with its uploaded parts. The table is rebuilt from their records when the
//! catalog is opened. Guarantees: an upload is counted as unfinished or as stored, never as both; one that is being
//! stored is not evicted. Non-goals: the records, and the bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{BucketName, Store};
use uuid::Uuid;

use super::change::each_fact;
use super::id::{AccountId, SharedLinkId};
use super::record::decode;
use super::shared_link::SharedLink;
use super::upload_rules::UploadReservation;
use super::{CatalogError, PendingUpload, StoredAmount, pending_upload};
use crate::limits::TUS_EXPIRY_MS;

/// All unfinished uploads.
#[derive(Default)]
pub struct Staging(Mutex<HashMap<Uuid, StagedUpload>>);

/// Unfinished upload.
#[derive(Clone, Debug)]
pub struct StagedUpload {
    /// Account of the uploader.
    pub account: AccountId,
    pub bucket: BucketName,
    /// Declared length; for a multipart upload that of the parts that are uploaded or in flight.
    pub length: u64,
    /// Object that it replaces, as far as that is known.
    pub replaced: StoredAmount,
    /// Engine bodies with the received bytes, and their lengths: one for each part of a multipart upload.
    pub bodies: BTreeMap<Uuid, u64>,
    /// Time of the last received bytes.
    pub touched_ms: u64,
    /// Whether it is being stored, and therefore reserved in the ledger.
    pub is_completing: bool,
    /// Share of the limits of a link that requests files.
    pub reservation: Option<Arc<UploadReservation>>,
}

/// Totals of unfinished uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagedTotals {
    pub uploads: u64,
    /// Received bytes.
    pub bytes: u64,
}

impl Staging {
    /// Loads the records of unfinished uploads.
    pub(super) fn open(
        store: &Store,
        link: impl Fn(&SharedLinkId) -> Option<Arc<SharedLink>>,
    ) -> Result<Self, CatalogError> {
        let mut uploads = HashMap::new();
        each_fact(store, pending_upload::PREFIX, |fact, bytes| {
            let upload: PendingUpload = decode(fact, bytes)?;
            if !upload.is_stored {
                let link = upload.link.as_ref().and_then(&link);
                let amount = StoredAmount { objects: 1, bytes: upload.length };
                let reserve = |link: Arc<_>| Arc::new(UploadReservation::renewed(&link, amount));
                let reservation = link.map(reserve);
                let staged = StagedUpload { reservation, ..StagedUpload::of_pending(&upload) };
                uploads.insert(upload.id, staged);
            }
            Ok(())
        })?;
        uploads.extend(super::MultipartUpload::unfinished(store)?);
        Ok(Self(Mutex::new(uploads)))
    }

    /// Starts counting an upload, unless the declared lengths of its account would exceed the limit together.
    pub fn insert(&self, id: Uuid, upload: StagedUpload, account_bytes_max: u64) -> bool {
        let mut uploads = self.uploads();
        let own = uploads.values().filter(|other| other.account == upload.account);
        let bytes = own.fold(upload.length, |sum, other| sum.saturating_add(other.length));
        let fits = bytes <= account_bytes_max;
        if fits {
            uploads.insert(id, upload);
        }
        fits
    }

    /// Stops counting an upload that was stored, abandoned, or evicted.
    pub fn remove(&self, id: Uuid) -> Option<StagedUpload> {
        self.uploads().remove(&id)
    }

    /// Returns whether an upload is counted, which ends when it is evicted.
    pub fn contains(&self, id: Uuid) -> bool {
        self.uploads().contains_key(&id)
    }

    /// Returns the share of an upload in the limits of its link.
    pub fn reservation(&self, id: Uuid) -> Option<Arc<UploadReservation>> {
        self.uploads().get(&id)?.reservation.clone()
    }

    /// Returns by how much more bytes grow the claim of an upload; `None` if the upload is not counted.
    pub fn claim_growth(&self, id: Uuid, bytes: u64) -> Option<StoredAmount> {
        let uploads = self.uploads();
        let upload = uploads.get(&id)?;
        let length = upload.length.saturating_add(bytes);
        let grown = StagedUpload { length, ..upload.clone() }.claim();
        Some(StoredAmount { objects: 0, bytes: grown.bytes - upload.claim().bytes })
    }

    /// Counts a part with its declared length before it is received, and returns the length of the upload with it.
    /// `None` if the unfinished uploads of the account would exceed the limit.
    pub fn begin_part(
        &self,
        id: Uuid,
        body: Uuid,
        bytes: u64,
        account_bytes_max: u64,
    ) -> Option<u64> {
        let mut uploads = self.uploads();
        let account = uploads.get(&id)?.account.clone();
        let own = uploads.values().filter(|other| other.account == account);
        let sum = own.fold(bytes, |sum, other| sum.saturating_add(other.length));
        let upload = uploads.get_mut(&id).filter(|_| sum <= account_bytes_max)?;
        upload.length = upload.length.saturating_add(bytes);
        upload.bodies.insert(body, 0);
        Some(upload.length)
    }

    /// Stops counting a part that failed or was replaced.
    pub fn remove_part(&self, id: Uuid, body: Uuid, bytes: u64) {
        if let Some(upload) = self.uploads().get_mut(&id) {
            upload.length = upload.length.saturating_sub(bytes);
            upload.bodies.remove(&body);
        }
    }

    /// Records the received bytes of a body.
    pub fn record_received(&self, id: Uuid, body: Uuid, bytes: u64, now_ms: u64) {
        if let Some(upload) = self.uploads().get_mut(&id) {
            upload.bodies.insert(body, bytes);
            upload.touched_ms = now_ms;
        }
    }

    /// Returns the quota claim of the unfinished uploads to some buckets, except those that are being stored and `but`.
    pub(super) fn claimed(
        &self,
        is_in: impl Fn(&BucketName) -> bool,
        but: Option<Uuid>,
    ) -> StoredAmount {
        let uploads = self.uploads();
        let counted = uploads.iter().filter(|(id, upload)| {
            is_in(&upload.bucket) && !upload.is_completing && Some(**id) != but
        });
        counted.fold(StoredAmount::default(), |sum, (_, upload)| sum.plus(upload.claim()))
    }

    /// Marks an upload as being stored, or as unfinished again.
    pub(super) fn set_completing(&self, id: Uuid, is_completing: bool) {
        if let Some(upload) = self.uploads().get_mut(&id) {
            upload.is_completing = is_completing;
        }
    }

    /// Returns the totals of unfinished uploads to a bucket.
    pub fn totals_of(&self, bucket: &BucketName) -> StagedTotals {
        self.totals_where(|upload| upload.bucket == *bucket)
    }

    /// Returns the totals of all unfinished uploads.
    pub fn totals(&self) -> StagedTotals {
        self.totals_where(|_| true)
    }

    /// Evicts the least recently touched upload that holds bytes and is not in use, if any.
    pub fn evict(&self, is_in_use: impl Fn(Uuid) -> bool) -> Option<(Uuid, StagedUpload)> {
        let mut uploads = self.uploads();
        let candidates = uploads.iter().filter(|(id, upload)| {
            let is_idle = !is_in_use(**id) && !upload.bodies.keys().any(|body| is_in_use(*body));
            is_idle && !upload.is_completing && upload.bodies.values().any(|bytes| *bytes > 0)
        });
        let id = *candidates.min_by_key(|(_, upload)| upload.touched_ms)?.0;
        uploads.remove_entry(&id)
    }

    fn totals_where(&self, is_counted: impl Fn(&StagedUpload) -> bool) -> StagedTotals {
        let uploads = self.uploads();
        let counted = uploads.values().filter(|upload| is_counted(upload));
        counted.fold(StagedTotals::default(), |sum, upload| StagedTotals {
            uploads: sum.uploads + 1,
            bytes: sum.bytes + upload.bodies.values().sum::<u64>(),
        })
    }

    fn uploads(&self) -> MutexGuard<'_, HashMap<Uuid, StagedUpload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StagedUpload {
    /// Returns the quota claim: its length less the replaced object.
    pub fn claim(&self) -> StoredAmount {
        StoredAmount {
            objects: 1_u64.saturating_sub(self.replaced.objects),
            bytes: self.length.saturating_sub(self.replaced.bytes),
        }
    }

    fn of_pending(upload: &PendingUpload) -> Self {
        Self {
            account: upload.account.clone(),
            bucket: upload.bucket.clone(),
            length: upload.length,
            replaced: StoredAmount::default(),
            bodies: BTreeMap::from([(upload.id, upload.received_bytes)]),
            touched_ms: upload.expires_ms.saturating_sub(TUS_EXPIRY_MS),
            is_completing: false,
            reservation: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(bucket: &str, bytes: u64, touched_ms: u64) -> StagedUpload {
        StagedUpload {
            account: AccountId::issue(&engine::rng::SeededRng::new(1)),
            bucket: BucketName::parse(bucket).unwrap(),
            length: 100,
            replaced: StoredAmount::default(),
            bodies: BTreeMap::from([(Uuid::from_u128(u128::from(touched_ms)), bytes)]),
            touched_ms,
            is_completing: false,
            reservation: None,
        }
    }

    #[test]
    fn staging_evicts_least_recently_touched_idle_upload() {
        let staging = Staging::default();
        let [oldest, used, empty, newest] = [1, 2, 3, 4].map(Uuid::from_u128);
        assert!(staging.insert(newest, upload("pics", 5, 40), u64::MAX));
        assert!(staging.insert(oldest, upload("pics", 7, 10), u64::MAX));
        assert!(staging.insert(used, upload("pics", 9, 5), u64::MAX));
        assert!(staging.insert(empty, upload("pics", 0, 1), u64::MAX));
        let evict = || staging.evict(|id| id == used).map(|(id, _)| id);
        assert_eq!([evict(), evict(), evict()], [Some(oldest), Some(newest), None]);
        assert!(!staging.contains(oldest) && staging.contains(empty));
    }

    #[test]
    fn staging_claims_exclude_completing_uploads() {
        let staging = Staging::default();
        let (pics, id) = (BucketName::parse("pics").unwrap(), Uuid::from_u128(1));
        assert!(staging.insert(id, upload("pics", 5, 1), u64::MAX));
        assert!(staging.insert(Uuid::from_u128(2), upload("other", 6, 1), u64::MAX));
        assert_eq!(
            staging.claimed(|it| *it == pics, None),
            StoredAmount { objects: 1, bytes: 100 }
        );
        assert_eq!(staging.claimed(|it| *it == pics, Some(id)), StoredAmount::default());
        assert_eq!(staging.totals_of(&pics), StagedTotals { uploads: 1, bytes: 5 });
        assert_eq!(staging.totals(), StagedTotals { uploads: 2, bytes: 11 });
        staging.set_completing(id, true);
        assert_eq!(staging.claimed(|it| *it == pics, None), StoredAmount::default());
        assert_eq!(staging.evict(|id| id == Uuid::from_u128(2)).map(|(id, _)| id), None);
        staging.set_completing(id, false);
        assert_eq!(staging.claimed(|it| *it == pics, None).bytes, 100);
    }

    #[test]
    fn staging_limits_declared_bytes_per_account() {
        let staging = Staging::default();
        let replaced = StoredAmount { objects: 1, bytes: 100 };
        let overwriting = || StagedUpload { replaced, ..upload("pics", 0, 1) };
        assert!(staging.insert(Uuid::from_u128(1), overwriting(), 250));
        assert!(staging.insert(Uuid::from_u128(2), overwriting(), 250));
        assert!(!staging.insert(Uuid::from_u128(3), overwriting(), 250));
        assert!(!staging.contains(Uuid::from_u128(3)));
        let other = AccountId::issue(&engine::rng::SeededRng::new(2));
        let other = StagedUpload { account: other, ..overwriting() };
        assert!(staging.insert(Uuid::from_u128(3), other, 250));
    }

    #[test]
    fn staging_counts_parts_from_their_start() {
        let staging = Staging::default();
        let [id, first, second] = [1, 2, 3].map(Uuid::from_u128);
        let replaced = StoredAmount { objects: 1, bytes: 30 };
        let begun =
            StagedUpload { length: 0, replaced, bodies: BTreeMap::new(), ..upload("pics", 0, 1) };
        assert!(staging.insert(id, begun, 100));
        assert_eq!(staging.claim_growth(id, 50).unwrap().bytes, 20);
        assert_eq!(staging.begin_part(id, first, 50, 100), Some(50));
        assert_eq!(staging.claimed(|_| true, None), StoredAmount { objects: 0, bytes: 20 });
        assert_eq!(staging.begin_part(id, second, 51, 100), None, "the account has 100 bytes");
        assert_eq!(staging.begin_part(id, second, 50, 100), Some(100));
        staging.record_received(id, first, 50, 2);
        assert_eq!(staging.totals().bytes, 50);
        assert_eq!(staging.evict(|body| body == second).map(|(id, _)| id), None, "it is coming");
        staging.remove_part(id, second, 50);
        assert_eq!(staging.evict(|body| body == second).map(|(id, _)| id), Some(id));
        assert_eq!(staging.claim_growth(id, 1), None);
    }

    #[test]
    fn loaded_upload_was_touched_when_it_was_saved() {
        let upload = PendingUpload {
            id: Uuid::from_u128(1),
            account: AccountId::issue(&engine::rng::SeededRng::new(1)),
            bucket: BucketName::parse("pics").unwrap(),
            path: String::new(),
            overwrite: false,
            randomize_name: false,
            thumbnail: None,
            length: 9,
            metadata: String::new(),
            received_bytes: 5,
            received_hash: [0; 32],
            expires_ms: 1_000 + TUS_EXPIRY_MS,
            is_stored: false,
            key: None,
            link: None,
        };
        assert_eq!(StagedUpload::of_pending(&upload).touched_ms, 1_000);
    }
}
