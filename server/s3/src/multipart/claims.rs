//! Quota accounting of multipart uploads before they are completed.
//!
//! Guarantees: a part counts with its declared length from its first byte on, against the file size limit and quota of
//! its bucket, the quota of the bucket's owner, and the unfinished bytes of the account; a failed part stops counting.
//! Non-goals: the content.

use catalog::{Bucket, MultipartUpload, StoredAmount};
use engine::ObjectName;
use protocol::error::ApiError;
use service::limits;
use service::state::AppState;
use usage::task::blocking;
use uuid::Uuid;

/// Starts counting an upload, less the object that it replaces.
pub(super) async fn count_upload(
    app: &AppState,
    bucket: &Bucket,
    upload: &MultipartUpload,
) -> Result<(), ApiError> {
    let replaced = match app.catalog.quotas().is_limited(bucket) {
        true => app.store.get(&ObjectName::new(bucket.name.clone(), upload.key.clone()))?,
        false => None,
    };
    let replaced = replaced.filter(|old| !old.is_derived());
    let replaced = replaced.map(|old| StoredAmount { objects: 1, bytes: old.bytes() });
    let staged = upload.staged(replaced.unwrap_or_default());
    let room = app.catalog.reserve_quota(bucket, staged.claim(), None).await?;
    let bound = limits::UNFINISHED_BYTES_MAX;
    let is_counted = app.catalog.staging().insert(upload.id, staged, bound);
    drop(room);
    is_counted.then_some(()).ok_or_else(|| ApiError::too_many_unfinished_bytes(bound))
}

/// Accounting of a part while it is received.
pub(super) struct PartClaim {
    app: AppState,
    upload: Uuid,
    body: Uuid,
    bytes: u64,
    is_kept: bool,
}

impl PartClaim {
    /// Counts a part of this length or rejects it. A part with the same number counts until it is replaced.
    pub(super) async fn of(
        app: &AppState,
        bucket: &Bucket,
        upload: &MultipartUpload,
        number: u32,
        body: Uuid,
        bytes: u64,
    ) -> Result<Self, ApiError> {
        let (store, of) = (app.store.clone(), upload.clone());
        let before = blocking(move || of.part(&store, number)).await?;
        let replaced = before.map_or(0, |part| part.bytes);
        let (staging, id) = (app.catalog.staging(), upload.id);
        let growth = staging.claim_growth(id, bytes).ok_or_else(ApiError::upload_not_found)?;
        let room = app.catalog.reserve_quota(bucket, growth, None).await?;
        let bound = limits::UNFINISHED_BYTES_MAX;
        let length = staging.begin_part(id, body, bytes, bound);
        drop(room);
        let Some(length) = length else {
            return Err(match staging.contains(id) {
                true => ApiError::too_many_unfinished_bytes(bound),
                false => ApiError::upload_not_found(),
            });
        };
        let claim = Self { app: app.clone(), upload: id, body, bytes, is_kept: false };
        match bucket.file_bytes_max {
            Some(limit) if length.saturating_sub(replaced) > limit => {
                Err(ApiError::file_over_limit(limit))
            }
            _ => Ok(claim),
        }
    }

    /// Returns the id of the engine body of the part.
    pub(super) fn body(&self) -> Uuid {
        self.body
    }

    /// Counts a stored part for as long as its upload counts.
    pub(super) fn keep(mut self, bytes: u64) {
        let now_ms = self.app.clock.unix_ms();
        self.app.catalog.staging().record_received(self.upload, self.body, bytes, now_ms);
        self.is_kept = true;
    }
}

impl Drop for PartClaim {
    fn drop(&mut self) {
        if !self.is_kept {
            self.app.catalog.staging().remove_part(self.upload, self.body, self.bytes);
        }
    }
}
