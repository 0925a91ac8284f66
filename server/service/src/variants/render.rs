//! Rendering of missing variants.
//!
//! Guarantees: one job per variant; it is cancelled when no request waits for it; a variant that cannot be cached is
//! served from memory; a file that cannot be transformed is not tried again for [`IMAGE_FAILURE_CACHE_TTL`]. Non-goals:
//! the transformation (`images`).

use std::sync::Arc;

use bytes::Bytes;
use engine::{Etag, Object};
use images::{Error, Plan, Source};
use usage::bucket_counters::BucketCounters;
use usage::task::blocking;

use super::cache::VariantKey;
use super::single_flight::WaiterToken;
use super::{RenderCost, RenderFailure, RenderedVariant, VariantError, VariantSource, Variants};
use crate::limits::{IMAGE_FAILURE_CACHE_TTL, IMAGE_JOBS_RETRIED_MAX};
use crate::object_body::read_all;

/// Variant to be rendered, with its plan.
#[derive(Clone, Debug)]
pub struct RenderTask {
    parent: Object,
    source: Source,
    plan: Plan,
    plan_name: String,
}

impl Variants {
    /// Returns whether a job currently renders the variant.
    pub fn is_rendering(&self, task: &RenderTask) -> bool {
        self.0.renders.is_running(&task.key())
    }

    /// Returns the number of variants that are being rendered or queued.
    pub fn rendering_count(&self) -> usize {
        self.0.renders.count()
    }

    /// Renders a missing variant, or joins a running job. Dropping the future stops waiting; a job without waiters is
    /// cancelled. The work counts as usage of the bucket.
    pub async fn render(
        &self,
        task: RenderTask,
        traffic: &Arc<BucketCounters>,
    ) -> Result<VariantSource, VariantError> {
        for _ in 0..IMAGE_JOBS_RETRIED_MAX {
            let job = |waiters| self.clone().work(task.clone(), traffic.clone(), waiters);
            match self.0.renders.join(task.key(), job).await {
                // The previous waiters left just as this request joined.
                Some(Err(VariantError::Abandoned)) => {}
                Some(rendered) => return rendered,
                None => return Err(VariantError::Failed("a job panicked".to_owned())),
            }
        }
        Err(VariantError::Busy)
    }

    /// Renders a missing variant, and caches it if possible.
    async fn work(
        self,
        task: RenderTask,
        traffic: Arc<BucketCounters>,
        waiters: WaiterToken<Result<VariantSource, VariantError>>,
    ) -> Result<VariantSource, VariantError> {
        let (inner, counting) = (self.0.clone(), self);
        let key = task.key();
        let RenderTask { parent, source, plan, plan_name } = task;
        let bytes = parent.bytes() + plan.memory_bytes(&source);
        let cost = RenderCost { ms: plan.cost_ms(&source), bytes };
        let (store, stored, render_waiters) =
            (inner.store.clone(), parent.clone(), waiters.clone());
        let rendering = inner.render_pool.run(cost, move || {
            let bytes = read_all(&store.body(&stored)?)?;
            let render =
                || images::render(&bytes, &source, &plan, &|| render_waiters.is_abandoned());
            Ok(counting.count(&traffic, render))
        });
        let rendered = tokio::select! {
            rendered = rendering => permanent_result(rendered)?,
            () = waiters.abandoned() => Err(Error::Cancelled),
        };
        let bytes = match rendered {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                if let Error::TooLarge(_) | Error::Undecodable(_) = error {
                    let until_ms =
                        inner.clock.unix_ms() + IMAGE_FAILURE_CACHE_TTL.as_millis() as u64;
                    inner.failures.insert(key, (error.clone(), until_ms));
                }
                return source_or_error(error);
            }
        };
        let (caching, cached) = (inner.clone(), bytes.clone());
        let content_type = plan.format.content_type();
        match blocking(move || caching.cache.put(&parent, &plan_name, content_type, &cached)).await
        {
            Ok(Some(variant)) => return Ok(VariantSource::Cached(variant, plan.format)),
            Ok(None) => {}
            // Images are served even if the store is full or read-only.
            Err(error) => tracing::debug!(%error, "image variant not cached"),
        }
        let etag = Etag::of_hash(blake3::hash(&bytes).as_bytes());
        Ok(VariantSource::Rendered(RenderedVariant { bytes, etag, format: plan.format }))
    }
}

impl RenderTask {
    /// Creates the task of a variant whose plan for the image is `plan`.
    pub(super) fn new(parent: Object, source: Source, plan: Plan) -> Self {
        Self { parent, source, plan, plan_name: plan.to_string() }
    }

    pub(super) fn plan_name(&self) -> &str {
        &self.plan_name
    }

    /// Replaces the properties of the image by more complete ones.
    pub(super) fn set_source(&mut self, source: Source) {
        self.source = source;
    }

    /// Returns the estimated CPU time in milliseconds; at least 1.
    pub fn cost_ms(&self) -> u64 {
        self.plan.cost_ms(&self.source).max(1)
    }

    pub(super) fn key(&self) -> VariantKey {
        (self.parent.lsn(), self.plan_name.clone())
    }
}

/// Separates permanent results of work on a file from transient errors.
pub(super) fn permanent_result<T>(
    done: Result<engine::Result<Result<T, Error>>, RenderFailure>,
) -> Result<Result<T, Error>, VariantError> {
    match done {
        Ok(read) => Ok(read?),
        // It would panic again.
        Err(RenderFailure::Panicked) => {
            Ok(Err(Error::Undecodable("its decoder failed".to_owned())))
        }
        Err(RenderFailure::Busy) => Err(VariantError::Busy),
    }
}

/// Returns the file as stored if a limit prevents the transformation.
pub(super) fn source_or_error(error: Error) -> Result<VariantSource, VariantError> {
    match error {
        Error::TooLarge(bound) => Ok(VariantSource::OverLimit(bound)),
        Error::Undecodable(why) => Err(VariantError::Undecodable(why)),
        Error::Cancelled => Err(VariantError::Abandoned),
        Error::Failed(why) => Err(VariantError::Failed(why)),
    }
}
