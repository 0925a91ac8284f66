//! Rendering of a thumbnail from a staged body.
//!
//! The work runs in the render pool, within its memory limit and queue. A cancelled request is noticed. A failure is
//! reported and does not fail the upload. Non-goals: the name of the thumbnail.

use std::sync::Arc;

use engine::{StagedBody, Store};
use images::limits::SOURCE_BYTES_MAX;
use images::{Error, Fit, Format, OutputFormat, Plan, PlanOutcome, Source, Stop, TransformOptions};
use jobs::thumbnail_object::ThumbnailSkip;
use usage::bucket_counters::BucketCounters;

use super::{HeaderDepth, RenderCost, RenderFailure, Variants, read_header};
use crate::limits::{THUMBNAIL_QUALITY, THUMBNAIL_SIDE_MAX};
use crate::object_body::read_staged_prefix;

/// Renders the thumbnail of a file: its first frame, in its display orientation, no side longer than
/// [`THUMBNAIL_SIDE_MAX`] and never enlarged, as WebP. `charge` charges the cost in milliseconds of CPU, or rejects it;
/// the work counts as usage of the bucket.
///
/// # Errors
///
/// Every [`ThumbnailSkip`] that does not concern the name.
pub async fn render_thumbnail(
    variants: &Variants,
    store: &Store,
    file: &StagedBody,
    traffic: &Arc<BucketCounters>,
    charge: impl FnOnce(u64) -> bool,
) -> Result<StagedBody, ThumbnailSkip> {
    Format::detect(file.head()).ok_or(ThumbnailSkip::NotAnImage)?;
    if file.bytes() > SOURCE_BYTES_MAX {
        return Err(ThumbnailSkip::TooLarge);
    }
    let cost = RenderCost { ms: 1, bytes: file.bytes() };
    let read = {
        let file = file.clone();
        variants.run(cost, move || read_source(&file))
    };
    let source = read.await??;
    let plan = plan(&source)?;
    let ms = plan.cost_ms(&source);
    if !charge(ms) {
        return Err(ThumbnailSkip::Busy);
    }
    let cost = RenderCost { ms, bytes: file.bytes() + plan.memory_bytes(&source) };
    let request = Arc::new(());
    let rendered = {
        let (file, request) = (file.clone(), Arc::downgrade(&request));
        let is_cancelled = move || request.strong_count() == 0;
        let (counting, traffic) = (variants.clone(), traffic.clone());
        variants.run(cost, move || {
            counting.count(&traffic, || render(&file, &source, &plan, &is_cancelled))
        })
    };
    let image = rendered.await??;
    // Far smaller than an upload that needs a file of its own, unless the memory for uploads is exhausted.
    let mut upload = store.upload();
    match upload.push_in_memory(&image).map_err(store_failed)? {
        true => upload.finish().map_err(store_failed),
        false => Err(ThumbnailSkip::Busy),
    }
}

fn read_source(file: &StagedBody) -> Result<Source, ThumbnailSkip> {
    let read = |bytes| read_staged_prefix(file, bytes);
    let header = read_header(file.bytes(), HeaderDepth::Cost, read).map_err(store_failed)?;
    let source = header.map_err(skip_reason)?.ok_or(ThumbnailSkip::NotAnImage)?;
    // Only the first frame of an animation.
    Ok(Source { frames: 1, ..source })
}

fn plan(source: &Source) -> Result<Plan, ThumbnailSkip> {
    let options = TransformOptions {
        format: OutputFormat::Format(Format::WebP),
        width: Some(THUMBNAIL_SIDE_MAX),
        height: Some(THUMBNAIL_SIDE_MAX),
        quality: Some(THUMBNAIL_QUALITY),
        fit: Fit::Contain,
    };
    match images::plan(source, &options).map_err(skip_reason)? {
        PlanOutcome::Transform(plan) => Ok(plan),
        PlanOutcome::Original => Err(ThumbnailSkip::Failed),
    }
}

fn render(
    file: &StagedBody,
    source: &Source,
    plan: &Plan,
    stop: Stop<'_>,
) -> Result<Vec<u8>, ThumbnailSkip> {
    if stop() {
        return Err(ThumbnailSkip::Busy);
    }
    let bytes = read_staged_prefix(file, file.bytes()).map_err(store_failed)?;
    images::render(&bytes, source, plan, stop).map_err(skip_reason)
}

impl From<RenderFailure> for ThumbnailSkip {
    fn from(undone: RenderFailure) -> Self {
        match undone {
            RenderFailure::Busy => Self::Busy,
            RenderFailure::Panicked => Self::Undecodable,
        }
    }
}

fn skip_reason(error: Error) -> ThumbnailSkip {
    match error {
        Error::Undecodable(_) => ThumbnailSkip::Undecodable,
        Error::TooLarge(_) => ThumbnailSkip::TooLarge,
        Error::Cancelled => ThumbnailSkip::Busy,
        Error::Failed(why) => {
            tracing::error!(why, "thumbnail rendering failed");
            ThumbnailSkip::Failed
        }
    }
}

fn store_failed(error: engine::Error) -> ThumbnailSkip {
    tracing::warn!(%error, "thumbnail rendering failed");
    ThumbnailSkip::Failed
}
