//! Rendering of a thumbnail from a staged body.
//!
//! The work runs in the render pool, within its memory limit and queue. A cancelled request is noticed. Non-goals: the
//! name of the thumbnail.

use std::sync::Arc;

use engine::{Staged, Store};
use images::limits::SOURCE_BYTES_MAX;
use images::{Error, Fit, Format, Plan, Planned, Source, Stop, Wanted, Wish};

use super::NoThumbnail;
use crate::bridge::read_staged;
use crate::limits::{THUMBNAIL_QUALITY, THUMBNAIL_SIDE_MAX};
use crate::traffic::Traffic;
use crate::variants::{Cost, Purpose, Undone, Variants, read_header};

/// Renders the thumbnail of a file: its first frame, in its display orientation, no side longer than
/// [`THUMBNAIL_SIDE_MAX`] and never enlarged, as WebP. `pays` charges the cost in milliseconds of CPU, or rejects it;
/// the work counts for `traffic`.
///
/// # Errors
///
/// Every [`NoThumbnail`] that does not concern the name.
pub async fn make(
    variants: &Variants,
    store: &Store,
    file: &Staged,
    traffic: &Arc<Traffic>,
    pays: impl FnOnce(u64) -> bool,
) -> Result<Staged, NoThumbnail> {
    Format::of(file.head()).ok_or(NoThumbnail::NotAPicture)?;
    if file.bytes() > SOURCE_BYTES_MAX {
        return Err(NoThumbnail::TooLarge);
    }
    let cost = Cost { ms: 1, bytes: file.bytes() };
    let read = {
        let file = file.clone();
        variants.run(cost, move || read_source(&file))
    };
    let source = read.await??;
    let plan = plan(&source)?;
    let ms = plan.cost_ms(&source);
    if !pays(ms) {
        return Err(NoThumbnail::Busy);
    }
    let cost = Cost { ms, bytes: file.bytes() + plan.memory_bytes(&source) };
    let asking = Arc::new(());
    let rendered = {
        let (file, asking) = (file.clone(), Arc::downgrade(&asking));
        let is_forgotten = move || asking.strong_count() == 0;
        let (counting, traffic) = (variants.clone(), traffic.clone());
        variants.run(cost, move || {
            counting.count(&traffic, || render(&file, &source, &plan, &is_forgotten))
        })
    };
    let picture = rendered.await??;
    // Far smaller than an upload that needs a file of its own, unless the memory for uploads is exhausted.
    let mut upload = store.upload();
    match upload.push_in_memory(&picture)? {
        true => Ok(upload.finish()?),
        false => Err(NoThumbnail::Busy),
    }
}

fn read_source(file: &Staged) -> Result<Source, NoThumbnail> {
    let read = |bytes| read_staged(file, bytes);
    let header = read_header(file.bytes(), Purpose::Reckoning, read)?;
    let source = header?.ok_or(NoThumbnail::NotAPicture)?;
    // Only the first frame of an animation.
    Ok(Source { frames: 1, ..source })
}

fn plan(source: &Source) -> Result<Plan, NoThumbnail> {
    let wish = Wish {
        format: Wanted::Format(Format::WebP),
        width: Some(THUMBNAIL_SIDE_MAX),
        height: Some(THUMBNAIL_SIDE_MAX),
        quality: Some(THUMBNAIL_QUALITY),
        fit: Fit::Contain,
    };
    match images::plan(source, &wish)? {
        Planned::Made(plan) => Ok(plan),
        Planned::AsStored => Err(NoThumbnail::Failed),
    }
}

fn render(
    file: &Staged,
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Vec<u8>, NoThumbnail> {
    if stop() {
        return Err(NoThumbnail::Busy);
    }
    Ok(images::render(&read_staged(file, file.bytes())?, source, plan, stop)?)
}

impl From<Undone> for NoThumbnail {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Busy => Self::Busy,
            Undone::Panicked => Self::Undecodable,
        }
    }
}

impl From<Error> for NoThumbnail {
    fn from(error: Error) -> Self {
        match error {
            Error::Undecodable(_) => Self::Undecodable,
            Error::TooLarge(_) => Self::TooLarge,
            Error::Cancelled => Self::Busy,
            Error::Failed(why) => {
                tracing::error!(why, "thumbnail rendering failed");
                Self::Failed
            }
        }
    }
}

impl From<engine::Error> for NoThumbnail {
    fn from(error: engine::Error) -> Self {
        tracing::warn!(%error, "thumbnail rendering failed");
        Self::Failed
    }
}
