//! Prechecks of an upload: rejects what is certain to fail before expensive work is done for it.
//!
//! Non-goals: guarantees. The result may differ when the batch is decided, which has preconditions of its own.

use catalog::{Bucket, QuotaDecision, QuotaDelta};
use engine::{Error, Health, ObjectKey, ObjectName};
use protocol::error::ApiError;
use protocol::file_name::ConflictRule;
use usage::task::blocking;

use super::{StagedFile, UploadOptions};
use crate::state::AppState;

/// Checks for free names, room in the quotas, and a writable store, in the order in which storing the files checks
/// them, so that the error is the same.
pub(super) async fn check(
    app: &AppState,
    bucket: &Bucket,
    UploadOptions { rule, completes, .. }: UploadOptions,
    files: &[StagedFile],
    wanted: &[ObjectKey],
) -> Result<(), ApiError> {
    let bytes: Vec<u64> = files.iter().map(|file| file.staged.bytes()).collect();
    let (app, bucket, wanted) = (app.clone(), bucket.clone(), wanted.to_vec());
    let look = move || {
        let (proposals, _claims) =
            app.claims.claim_keys(&app.store, &bucket.name, rule, &wanted)?;
        if app.catalog.has_quota(&bucket) {
            let mut growth = QuotaDelta::default();
            for (bytes, proposal) in bytes.into_iter().zip(&proposals) {
                let name = ObjectName::new(bucket.name.clone(), proposal.key.clone());
                let replaces = match proposal.rule {
                    ConflictRule::Overwrite => app.store.get(&name)?,
                    ConflictRule::Rename => None,
                };
                growth.count(bytes, replaces.as_ref());
            }
            if let QuotaDecision::Exceeded(exceeded) =
                app.catalog.reserve(&bucket, growth.amount(), completes)?
            {
                return Err(exceeded.into());
            }
        }
        match app.store.health() {
            Health::Writable => Ok(()),
            Health::Full { .. } => Err(Error::NoSpace.into()),
            Health::ReadOnly(why) => Err(Error::ReadOnly(why).into()),
        }
    };
    blocking(look).await
}
