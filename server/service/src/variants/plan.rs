//! Plan of a variant: which image is stored, and what the transform options make of it.
//!
//! Guarantees: the header of a file is parsed once, for most files from its first bytes alone. Non-goals: rendering.

use engine::Object;
use images::limits::SOURCE_BYTES_MAX;
use images::{Error, Format, LimitKind, PlanOutcome, Source, TransformOptions};

use super::render::{RenderTask, permanent_result, source_or_error};
use super::{RenderCost, VariantError, VariantSource, Variants};
use crate::limits::IMAGE_HEAD_BYTES;
use crate::object_body::read_prefix;

/// Header of a file: the image's properties, `None` for another type, or why it cannot be parsed.
pub type ImageHeader = Result<Option<Source>, Error>;

/// Purpose of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderDepth {
    /// Choosing the plan.
    Planning,
    /// Estimating the cost as well, which may require the whole file.
    Cost,
}

/// Result of a lookup.
#[derive(Clone, Debug)]
pub enum VariantLookup {
    /// Representation that can be served.
    Found(VariantSource),
    /// Variant that has to be rendered.
    Miss(RenderTask),
}

impl Variants {
    /// Looks up the representation of a file for transform options.
    pub async fn lookup(
        &self,
        parent: &Object,
        options: &TransformOptions,
    ) -> Result<VariantLookup, VariantError> {
        let source = match self.header(parent, HeaderDepth::Planning).await? {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(VariantLookup::Found(VariantSource::Original)),
            Err(error) => return source_or_error(error).map(VariantLookup::Found),
        };
        let plan = match images::plan(&source, options) {
            Ok(PlanOutcome::Transform(plan)) => plan,
            Ok(PlanOutcome::Original) => return Ok(VariantLookup::Found(VariantSource::Original)),
            Err(error) => return source_or_error(error).map(VariantLookup::Found),
        };
        let mut task = RenderTask::new(parent.clone(), source, plan);
        if let Some(variant) = self.0.cache.get(parent, task.plan_name())? {
            self.0.hits.add(1);
            return Ok(VariantLookup::Found(VariantSource::Cached(variant, plan.format)));
        }
        match self.0.failures.get(&task.key()) {
            Some((error, until_ms)) if self.0.clock.unix_ms() < until_ms => {
                source_or_error(error).map(VariantLookup::Found)
            }
            _ => {
                if let Ok(Some(source)) = self.header(parent, HeaderDepth::Cost).await? {
                    task.set_source(source);
                }
                self.0.misses.add(1);
                Ok(VariantLookup::Miss(task))
            }
        }
    }

    /// Returns the displayed width and height of an image in pixels; `None` for other files, and for images whose
    /// header cannot be read.
    pub async fn image_size(&self, parent: &Object) -> Option<(u32, u32)> {
        if !parent.content_type().starts_with("image/") {
            return None;
        }
        let header = self.header(parent, HeaderDepth::Planning).await.ok()?;
        header.ok()?.map(|source| source.oriented_size())
    }

    /// Returns the header of a file, cached or parsed.
    async fn header(
        &self,
        parent: &Object,
        depth: HeaderDepth,
    ) -> Result<ImageHeader, VariantError> {
        let version = parent.lsn();
        if let Some(cached) = self.0.headers.get(&version).filter(|cached| depth.is_met(cached)) {
            return Ok(cached);
        }
        if parent.bytes() > SOURCE_BYTES_MAX {
            return Ok(Err(Error::TooLarge(LimitKind::Bytes)));
        }
        let job = |_| {
            let (inner, parent) = (self.0.clone(), parent.clone());
            async move {
                let cost = RenderCost { ms: 1, bytes: parent.bytes() };
                let store = inner.store.clone();
                let read = inner.render_pool.run(cost, move || {
                    let body = store.body(&parent)?;
                    read_header(body.bytes(), depth, |bytes| read_prefix(&body, bytes))
                });
                let header = permanent_result(read.await)?;
                inner.headers.insert(version, header.clone());
                Ok(header)
            }
        };
        let panicked = || Err(VariantError::Failed("reading a header panicked".to_owned()));
        self.0.header_reads.join((version, depth), job).await.unwrap_or_else(panicked)
    }
}

impl HeaderDepth {
    /// Returns whether a header is sufficient for this purpose.
    fn is_met(self, header: &ImageHeader) -> bool {
        match (self, header) {
            (Self::Cost, Ok(Some(source))) => source.has_complete_cost(),
            _ => true,
        }
    }
}

/// Parses the header of a file, for most files from its start alone. `read` returns up to that many of its first bytes.
pub fn read_header(
    bytes: u64,
    depth: HeaderDepth,
    read: impl Fn(u64) -> engine::Result<Vec<u8>>,
) -> engine::Result<ImageHeader> {
    let start = read(IMAGE_HEAD_BYTES)?;
    let Some(format) = Format::detect(&start) else { return Ok(Ok(None)) };
    let header = Ok(images::read_source_of_start(format, &start));
    if matches!(header, Ok(Some(_))) && depth.is_met(&header) {
        return Ok(header);
    }
    let whole = if start.len() as u64 == bytes { start } else { read(bytes)? };
    Ok(images::read_source(format, &whole).map(Some))
}
