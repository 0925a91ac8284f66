//! Thumbnails of the files of one request.
//!
//! Guarantees: they are rendered one after the other, so that a request does not take all threads, within a time limit;
//! if names conflict, the files of the request take precedence. Non-goals: rendering.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use catalog::Bucket;
use engine::{Batch, BucketName, ObjectName, StagedBody, Store};
use jobs::thumbnail_object::{
    ThumbnailSkip, delete_thumbnail, is_thumbnail_of, put_thumbnail, thumbnail_object_name,
};
use protocol::file_name::NameProposal;
use tokio::time::{Instant, timeout_at};

use super::receive::StagedFile;
use crate::limits::THUMBNAILS_TIMEOUT;
use crate::state::AppState;
use crate::variants::render_thumbnail;

/// Name of a file's thumbnail, or why there is none. `None` if none was requested.
pub(super) type ThumbnailKey = Option<Result<ObjectName, ThumbnailSkip>>;

/// Thumbnail of a file that could not be stored yet, preserved between attempts: it is rendered and charged once.
#[derive(Clone, Default)]
pub struct ThumbnailCache(Arc<OnceLock<StagedBody>>);

impl ThumbnailCache {
    /// Creates a holder with a rendered thumbnail, if any.
    pub fn new(rendered: Option<StagedBody>) -> Self {
        Self(Arc::new(rendered.map_or_else(OnceLock::new, OnceLock::from)))
    }

    /// Returns the thumbnail, if it is rendered.
    pub fn get(&self) -> Option<StagedBody> {
        self.0.get().cloned()
    }
}

/// Renders the thumbnails of files about to be stored, charged to their bucket.
pub(super) async fn render_all(app: &AppState, bucket: &Bucket, files: &mut [StagedFile]) {
    let deadline = Instant::now() + THUMBNAILS_TIMEOUT;
    let charge = |ms| app.rate_limiter.charge_image_cpu(None, &bucket.name, ms).is_ok();
    for file in files {
        if let Some(image) = file.thumbnail_cache.get() {
            file.thumbnail = Some(Ok(image));
            continue;
        }
        let rendered =
            render_thumbnail(&app.variants, &app.store, &file.staged, &bucket.traffic, charge);
        let rendered = timeout_at(deadline, rendered).await;
        let rendered = rendered.unwrap_or(Err(ThumbnailSkip::Busy));
        if let Ok(image) = &rendered {
            let _ = file.thumbnail_cache.0.set(image.clone());
        }
        file.thumbnail = Some(rendered);
    }
}

/// Selects the names of the rendered thumbnails, given the current objects. Blocks on the index.
pub(super) fn select_names(
    store: &Store,
    bucket: &BucketName,
    proposals: &[NameProposal],
    rendered: &[Option<Result<(), ThumbnailSkip>>],
) -> engine::Result<Vec<ThumbnailKey>> {
    let files = proposals.iter().map(|it| ObjectName::new(bucket.clone(), it.key.clone()));
    let files: Vec<_> = files.collect();
    let mut taken: BTreeSet<_> = files.iter().cloned().collect();
    let places = files.iter().zip(rendered).map(|(file, rendered)| match *rendered {
        None => Ok(None),
        Some(Err(why)) => Ok(Some(Err(why))),
        Some(Ok(())) => free_name(store, file, &mut taken).map(Some),
    });
    places.collect()
}

/// Returns the name of a file's thumbnail, unless another object has it or is about to.
fn free_name(
    store: &Store,
    file: &ObjectName,
    taken: &mut BTreeSet<ObjectName>,
) -> engine::Result<Result<ObjectName, ThumbnailSkip>> {
    let name = match thumbnail_object_name(file) {
        Ok(name) => name,
        Err(why) => return Ok(Err(why)),
    };
    let is_free = store.get(&name)?.is_none_or(|there| is_thumbnail_of(&there, &file.key));
    let is_ours = is_free && taken.insert(name.clone());
    Ok(is_ours.then_some(name).ok_or(ThumbnailSkip::NameTaken))
}

/// Adds the thumbnails to the batch of their files, and deletes existing thumbnails of files that get none.
pub(super) fn add(
    mut batch: Batch,
    bucket: &BucketName,
    files: &[StagedFile],
    proposals: &[NameProposal],
    placed: &[ThumbnailKey],
) -> Batch {
    for ((file, proposal), placed) in files.iter().zip(proposals).zip(placed) {
        batch = match (placed, file.rendered()) {
            (Some(Ok(name)), Some(image)) => {
                put_thumbnail(batch, &proposal.key, name.clone(), image.clone())
            }
            // Even if the name was free: an operator may have restored a thumbnail without its file.
            _ => delete_thumbnail(batch, &ObjectName::new(bucket.clone(), proposal.key.clone())),
        };
    }
    batch
}

impl StagedFile {
    /// Returns whether the thumbnail was rendered, if one was requested.
    pub(super) fn thumbnail_outcome(&self) -> Option<Result<(), ThumbnailSkip>> {
        self.thumbnail.as_ref().map(|rendered| rendered.as_ref().map(drop).map_err(|why| *why))
    }

    /// Returns the thumbnail, if one was rendered.
    fn rendered(&self) -> Option<&StagedBody> {
        self.thumbnail.as_ref().and_then(|rendered| rendered.as_ref().ok())
    }
}
