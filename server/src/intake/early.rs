//! Prechecks of an upload: rejects what is certain to fail before expensive work is done for it.
//!
//! Non-goals: guarantees. The result may differ when the batch is decided, which has preconditions of its own.

use engine::{Error, Health, ObjectKey, ObjectName};

use super::room::Growth;
use super::{Manner, Received, propose};
use crate::bridge::blocking;
use crate::catalog::{Bucket, Room};
use crate::error::ApiError;
use crate::object_name::NameRule;
use crate::state::AppState;

/// Checks for free names, room in the quotas, and a writable store, in the order in which storing the files checks
/// them, so that the error is the same.
pub(super) async fn check(
    app: &AppState,
    bucket: &Bucket,
    Manner { rule, completes, .. }: Manner,
    files: &[Received],
    wanted: &[ObjectKey],
) -> Result<(), ApiError> {
    let bytes: Vec<u64> = files.iter().map(|file| file.staged.bytes()).collect();
    let (app, bucket, wanted) = (app.clone(), bucket.clone(), wanted.to_vec());
    let look = move || {
        let (proposals, _claims) = propose(&app, &bucket.name, rule, &wanted)?;
        if app.catalog.is_limited(&bucket) {
            let mut growth = Growth::default();
            for (bytes, proposal) in bytes.into_iter().zip(&proposals) {
                let name = ObjectName::new(bucket.name.clone(), proposal.key.clone());
                let replaces = match proposal.rule {
                    NameRule::Overwrite => app.store.get(&name)?,
                    NameRule::Suffix => None,
                };
                growth.count(bytes, replaces.as_ref());
            }
            if let Room::Exceeded(exceeded) =
                app.catalog.reserve(&bucket, growth.amount(), completes)?
            {
                return Err(ApiError::quota_exceeded(exceeded));
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
