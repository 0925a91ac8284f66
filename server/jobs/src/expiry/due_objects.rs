//! Objects with an expiry time of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::commit::commit;
use catalog::expiry::{self, ScheduledExpiry};
use engine::{Batch, BucketName, Object};
use protocol::error::ApiError;
use usage::task::blocking;

use super::ExpirySweep;
use crate::Context;
use crate::limits::{DELETE_FILES_MAX, EXPIRY_ENTRIES_MAX};

impl ExpirySweep {
    /// Deletes the objects that are due by the schedule, and their entries in it.
    pub(super) async fn delete_scheduled(&mut self) -> Result<(), ApiError> {
        loop {
            let now_ms = self.context.clock.unix_ms();
            let store = self.context.store.clone();
            let due = blocking(move || expiry::due(&store, now_ms, EXPIRY_ENTRIES_MAX)).await?;
            if due.is_empty() {
                return Ok(());
            }
            let (mut done, mut failed, mut is_complete) = (Batch::new(), Ok(()), true);
            for entry in due {
                if self.context.is_draining() {
                    return Ok(());
                }
                match self.delete_entry(&entry).await {
                    Ok(true) => done = done.delete_fact(entry.fact),
                    // Replaced concurrently: looked up again by the next sweep.
                    Ok(false) => is_complete = false,
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
            if !done.is_empty() {
                commit(&self.context.store, done).await?;
            }
            failed?;
            if !is_complete {
                return Ok(());
            }
        }
    }

    /// Deletes the objects of an entry that expire as scheduled; returns whether the entry is done.
    async fn delete_entry(&mut self, entry: &ScheduledExpiry) -> Result<bool, ApiError> {
        let expired = find_expired(&self.context, entry).await?;
        for (bucket, objects) in expired {
            let Some(bucket) = self.context.catalog.buckets().get(&bucket) else { continue };
            for objects in objects.chunks(DELETE_FILES_MAX) {
                if !self.delete(&bucket, None, objects.to_vec()).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns the objects of an entry whose expiry time is still that of the entry, by bucket.
async fn find_expired(
    context: &Arc<Context>,
    entry: &ScheduledExpiry,
) -> Result<BTreeMap<BucketName, Vec<Object>>, ApiError> {
    let (store, entry) = (context.store.clone(), entry.clone());
    let find = move || {
        let mut expired: BTreeMap<BucketName, Vec<Object>> = BTreeMap::new();
        for name in entry.names {
            let Some(object) = store.get(&name)? else { continue };
            let expires_ms = catalog::object_attributes::expires_ms(object.attributes());
            if !object.is_derived() && expires_ms == Some(entry.expires_ms) {
                expired.entry(name.bucket).or_default().push(object);
            }
        }
        Ok::<_, engine::Error>(expired)
    };
    Ok(blocking(find).await?)
}
