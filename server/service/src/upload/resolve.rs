//! Upload, step 3: free names for the files, and the batch that stores them.
//!
//! Guarantees: two uploads never get the same name; no file of a request replaces another of the same request; the
//! batch is committed only if the names are still free. Non-goals: the commit.

use catalog::QuotaDelta;
use catalog::claims::{Claim, ClaimedKeys};
use catalog::object_attributes::StoredAttributes;
use catalog::{Bucket, EventKind, ObjectEvent};
use engine::{Batch, Etag, ObjectKey, ObjectName, Precondition, PutOptions};
use jobs::object_operations::find_object;
use protocol::error::ApiError;
use protocol::file_name::{ConflictRule, NameProposal};
use usage::task::blocking;

use super::UploadOptions;
use super::receive::StagedFile;
use super::thumbnails::{self, ThumbnailKey};
use crate::limits::INLINE_LOOKUPS_MAX;
use crate::state::AppState;

/// Batch of an upload, given the current objects.
pub(super) struct ResolvedUpload {
    /// Key of each file.
    pub(super) proposals: Vec<NameProposal>,
    /// Thumbnail of each file.
    pub(super) thumbnails: Vec<ThumbnailKey>,
    pub(super) batch: Batch,
    pub(super) growth: QuotaDelta,
    /// Event of each file.
    pub(super) events: Vec<ObjectEvent>,
    /// Held until the batch is stored or rejected.
    _claims: Vec<Claim<ObjectName>>,
}

/// Chooses free names, and adds the files, their thumbnails and preconditions to `along`.
///
/// # Errors
///
/// `conflict` if no numbered name is free.
pub(super) async fn resolve(
    app: &AppState,
    bucket: &Bucket,
    options: &UploadOptions,
    along: Batch,
    files: &[StagedFile],
    wanted: &[ObjectKey],
) -> Result<ResolvedUpload, ApiError> {
    let ((proposals, claims), placed) =
        choose_names(app, bucket, options.rule, files, wanted).await?;
    // In a versioned bucket a replaced object still uses its space.
    let frees_space = app.catalog.quotas().is_limited(bucket) && bucket.versioning.is_none();
    let (mut batch, mut growth, mut events) = (along, QuotaDelta::default(), Vec::new());
    for (file, proposal) in files.iter().zip(&proposals) {
        let name = ObjectName::new(bucket.name.clone(), proposal.key.clone());
        let replaced = match proposal.rule {
            ConflictRule::Overwrite if frees_space => find_object(&app.store, &name).await?,
            _ => None,
        };
        // The quota counts the difference to the replaced object only if that is still present when the batch is
        // decided.
        if let Some(old) = &replaced {
            batch = batch.require(Precondition::KeyHasEtag(name.clone(), old.etag()));
        } else if frees_space || proposal.rule == ConflictRule::Rename {
            batch = batch.require(Precondition::KeyAbsent(name.clone()));
        }
        growth.count(file.staged.bytes(), replaced.as_ref());
        let put_options = file.put_options(&proposal.key);
        events.push(file.event(options.event, &proposal.key, &put_options));
        batch = batch.put(name, file.staged.clone(), put_options);
    }
    batch = thumbnails::add(batch, &bucket.name, files, &proposals, &placed);
    Ok(ResolvedUpload { proposals, thumbnails: placed, batch, growth, events, _claims: claims })
}

/// Chooses and claims the names of files and thumbnails: inline if a few index lookups suffice, which cost as much as
/// that of a GET, otherwise on a blocking thread.
async fn choose_names(
    app: &AppState,
    bucket: &Bucket,
    rule: ConflictRule,
    files: &[StagedFile],
    wanted: &[ObjectKey],
) -> Result<(ClaimedKeys, Vec<ThumbnailKey>), ApiError> {
    let has_no_thumbnail = files.iter().all(|file| file.thumbnail.is_none());
    if has_no_thumbnail
        && wanted.len() <= INLINE_LOOKUPS_MAX
        && let Some(claimed) =
            app.jobs.claims.claim_wanted(&app.store, &bucket.name, rule, wanted)?
    {
        return Ok((claimed, vec![None; files.len()]));
    }
    let (app, bucket, wanted) = (app.clone(), bucket.name.clone(), wanted.to_vec());
    let rendered = files.iter().map(StagedFile::thumbnail_outcome).collect::<Vec<_>>();
    let choose = move || {
        let claimed = app.jobs.claims.claim_keys(&app.store, &bucket, rule, &wanted)?;
        let placed = thumbnails::select_names(&app.store, &bucket, &claimed.0, &rendered)?;
        Ok((claimed, placed))
    };
    blocking(choose).await
}

impl StagedFile {
    fn event(&self, event: EventKind, key: &ObjectKey, options: &PutOptions) -> ObjectEvent {
        let (bytes, etag) = (self.staged.bytes(), Etag::of_hash(self.staged.hash()));
        ObjectEvent::created(event, key.clone(), bytes, etag, options.content_type.clone())
    }

    pub(super) fn put_options(&self, key: &ObjectKey) -> PutOptions {
        let declared_type = self.declared_type.as_deref();
        let content_type = self.content_type(key).into_owned();
        // The declared type is stored only if it differs from the detected one.
        let differs = declared_type.filter(|declared| *declared != content_type);
        let attributes = StoredAttributes {
            declared_type: differs.map(str::to_owned),
            ..self.attributes.clone()
        };
        PutOptions {
            content_type,
            attributes: attributes.encoded().unwrap_or_default(),
            ..PutOptions::default()
        }
    }
}
