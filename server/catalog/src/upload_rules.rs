//! Rules of shared links that request files, and the uploads that count against them.
//!
//! Guarantees: stored and reserved uploads of a link never exceed its limits together, unless these were lowered; a
//! reservation that is dropped is released. Non-goals: the limits of buckets and accounts, which hold as well.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::name::NameError;
use engine::{Batch, FactName, Precondition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::bucket::Bucket;
use super::bucket_rules::AllowedTypes;
use super::id::{OfSharedLink, SharedLinkId};
use super::record::{Record, encode};
use super::shared_link::SharedLink;
use super::{CatalogError, StoredAmount};

/// Prefix of the fact names of uploads; the id of the link and that of the upload follow.
pub(super) const UPLOADS_PREFIX: &str = "link-uploads/";

/// Rules of a link that requests files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadRules {
    /// Maximum number of files.
    pub files_max: u64,
    /// Maximum size of all files together, in bytes.
    pub bytes_max: u64,
    /// Maximum size of a file in bytes, besides that of the bucket.
    pub file_bytes_max: Option<u64>,
    /// Accepted media types, besides those of the bucket.
    pub allowed_types: AllowedTypes,
    pub ask_name: AskName,
}

/// Change of the rules; `None` leaves a field unchanged.
#[derive(Default)]
pub struct UploadRulesChange {
    pub files_max: Option<u64>,
    pub bytes_max: Option<u64>,
    pub file_bytes_max: Option<Option<u64>>,
    pub allowed_types: Option<AllowedTypes>,
    pub ask_name: Option<AskName>,
}

/// Whether the page asks for the name of the person who uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskName {
    No,
    #[default]
    Optional,
    Required,
}

/// Uploads of a link: stored ones, and those in flight. Not part of the equality of records.
#[derive(Default)]
pub struct UploadTally(Mutex<Tally>);

#[derive(Clone, Copy, Default)]
struct Tally {
    stored: StoredAmount,
    reserved: StoredAmount,
}

/// Share of the limits of a link, for files that are not stored yet. Released when dropped.
#[derive(Debug)]
pub struct UploadReservation {
    tally: Arc<UploadTally>,
    link: SharedLinkId,
    amount: StoredAmount,
    is_settled: AtomicBool,
}

/// Files that were stored by one request.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLinkUpload {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Record for StoredLinkUpload {}

impl StoredLinkUpload {
    pub(super) fn amount(&self) -> StoredAmount {
        StoredAmount { objects: self.files, bytes: self.bytes }
    }
}

impl UploadRules {
    /// Returns a bucket with the stricter of its own limits and these.
    pub fn restrict(&self, bucket: &Bucket) -> Bucket {
        let limits = bucket.file_bytes_max.into_iter().chain(self.file_bytes_max);
        Bucket {
            file_bytes_max: limits.min(),
            allowed_types: bucket.allowed_types.intersection(&self.allowed_types),
            ..bucket.clone()
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: UploadRulesChange) {
        self.files_max = change.files_max.unwrap_or(self.files_max);
        self.bytes_max = change.bytes_max.unwrap_or(self.bytes_max);
        self.file_bytes_max = change.file_bytes_max.unwrap_or(self.file_bytes_max);
        self.ask_name = change.ask_name.unwrap_or(self.ask_name);
        if let Some(types) = change.allowed_types {
            self.allowed_types = types;
        }
    }

    /// Returns what may be uploaded after an amount.
    fn rest(&self, used: StoredAmount) -> StoredAmount {
        StoredAmount {
            objects: self.files_max.saturating_sub(used.objects),
            bytes: self.bytes_max.saturating_sub(used.bytes),
        }
    }
}

impl UploadRulesChange {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let Self { files_max, bytes_max, file_bytes_max, allowed_types, ask_name } = self;
        files_max.is_none()
            && bytes_max.is_none()
            && file_bytes_max.is_none()
            && allowed_types.is_none()
            && ask_name.is_none()
    }
}

impl UploadTally {
    /// Returns the stored files and bytes.
    pub fn stored(&self) -> StoredAmount {
        self.lock().stored
    }

    /// Returns whether the stored files reach a limit.
    pub fn is_full(&self, rules: &UploadRules) -> bool {
        let rest = rules.rest(self.stored());
        rest.objects == 0 || rest.bytes == 0
    }

    /// Returns what may be uploaded besides the stored files and those in flight.
    pub fn rest(&self, rules: &UploadRules) -> StoredAmount {
        let Tally { stored, reserved } = *self.lock();
        rules.rest(stored.plus(reserved))
    }

    pub(super) fn add_stored(&self, amount: StoredAmount) {
        let mut tally = self.lock();
        tally.stored = tally.stored.plus(amount);
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UploadReservation {
    /// Reserves an amount, if the limits of the link allow it.
    pub(super) fn new(link: &SharedLink, amount: StoredAmount) -> Option<Self> {
        let rules = link.upload.as_ref()?;
        let mut tally = link.uploads.lock();
        let rest = rules.rest(tally.stored.plus(tally.reserved));
        if amount.objects > rest.objects || amount.bytes > rest.bytes {
            return None;
        }
        tally.reserved = tally.reserved.plus(amount);
        Some(Self::of(link, amount))
    }

    /// Reserves an amount again, after a restart.
    pub(super) fn renewed(link: &SharedLink, amount: StoredAmount) -> Self {
        let mut tally = link.uploads.lock();
        tally.reserved = tally.reserved.plus(amount);
        Self::of(link, amount)
    }

    fn of(link: &SharedLink, amount: StoredAmount) -> Self {
        let (tally, link) = (link.uploads.clone(), link.id.clone());
        Self { tally, link, amount, is_settled: AtomicBool::new(false) }
    }

    /// Adds to a batch that the files are stored, on condition that the link exists. Each upload has its own fact, so
    /// that concurrent batches do not depend on each other.
    pub fn record(&self, batch: Batch, upload: Uuid) -> Result<Batch, CatalogError> {
        let fact = upload_fact(&self.link, upload)?;
        let StoredAmount { objects: files, bytes } = self.amount;
        let value = encode(&fact, &StoredLinkUpload { files, bytes })?;
        let exists = Precondition::FactPresent(self.link.fact()?);
        Ok(batch.require(exists).put_fact(fact, value))
    }

    /// Counts the files as stored, after the batch was committed.
    pub fn settle(&self) {
        if !self.is_settled.swap(true, Ordering::Relaxed) {
            let mut tally = self.tally.lock();
            tally.reserved = less(tally.reserved, self.amount);
            tally.stored = tally.stored.plus(self.amount);
        }
    }
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        if !*self.is_settled.get_mut() {
            let mut tally = self.tally.lock();
            tally.reserved = less(tally.reserved, self.amount);
        }
    }
}

impl PartialEq for UploadTally {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for UploadTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.stored())
    }
}

/// Returns the prefix of the facts of a link's uploads.
pub(super) fn uploads_of(link: &SharedLinkId) -> String {
    format!("{UPLOADS_PREFIX}{link}/")
}

/// Parses the link from the name of an upload, without the prefix.
pub(super) fn link_of_upload(name: &str) -> Option<SharedLinkId> {
    super::id::Id::<OfSharedLink>::parse(name.split_once('/')?.0)
}

fn upload_fact(link: &SharedLinkId, upload: Uuid) -> Result<FactName, NameError> {
    FactName::parse(&format!("{}{upload}", uploads_of(link)))
}

fn less(amount: StoredAmount, other: StoredAmount) -> StoredAmount {
    StoredAmount {
        objects: amount.objects.saturating_sub(other.objects),
        bytes: amount.bytes.saturating_sub(other.bytes),
    }
}
