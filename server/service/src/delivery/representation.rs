//! Representation at the URL of a file: the file itself, or a variant of an image.
//!
//! Guarantees: transform options have no effect on other files. Non-goals: status, ranges, and transfer.

use std::borrow::Cow;

use bytes::Bytes;
use catalog::Bucket;
use catalog::object_attributes::StoredAttributes;
use engine::{Etag, Object};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use images::{Format, LimitKind, OutputFormat, TransformOptions};
use listener::trusted_proxies::client_ip;
use protocol::content_type::{ActiveContent, active_content, essence};
use protocol::error::ApiError;
use protocol::file_name::split_extension;
use protocol::query::Query;
use protocol::stored_headers::StoredHeaders;

use super::Retry;
use crate::state::AppState;
use crate::transform_params::transform_params;
use crate::variants::{RenderTask, RenderedVariant, VariantLookup, VariantSource};

/// Representation of a file.
pub(super) struct Representation<'a> {
    content: RepresentationSource<'a>,
    file_name: Cow<'a, str>,
    skipped: Option<LimitKind>,
    is_negotiated: bool,
}

/// Location of the bytes.
pub(super) enum RepresentationData<'a> {
    /// Object in the store.
    Stored(&'a Object),
    /// Buffer in memory.
    Memory(&'a Bytes),
}

enum RepresentationSource<'a> {
    /// File, borrowed, or a variant of it.
    Stored(Cow<'a, Object>),
    Rendered(RenderedVariant),
}

const IMAGE_TRANSFORM: HeaderName = HeaderName::from_static("x-image-transform");

impl<'a> Representation<'a> {
    /// Selects the representation of a file that the caller may read.
    pub(super) async fn select(
        app: &AppState,
        request: &Parts,
        query: &Query,
        bucket: &Bucket,
        object: &'a Object,
    ) -> Result<Self, Retry> {
        let as_stored = || Self {
            content: RepresentationSource::Stored(Cow::Borrowed(object)),
            file_name: object.name().key.file_name().into(),
            skipped: None,
            is_negotiated: false,
        };
        if query.is_empty() || !may_be_raster_image(object.content_type()) {
            return Ok(as_stored());
        }
        let wish = transform_params(query, &request.headers)?;
        if wish.is_identity() {
            return Ok(as_stored());
        }
        let is_negotiated = matches!(wish.format, OutputFormat::Auto { .. });
        let of_variant = |content: RepresentationSource<'a>, format: Format| {
            let (stem, _) = split_extension(object.name().key.file_name());
            let file_name = format!("{stem}.{}", format.extension()).into();
            Self { content, file_name, skipped: None, is_negotiated }
        };
        Ok(match Box::pin(lookup_or_render(app, request, bucket, object, &wish)).await? {
            VariantSource::Original => Self { is_negotiated, ..as_stored() },
            VariantSource::OverLimit(bound) => {
                Self { skipped: Some(bound), is_negotiated, ..as_stored() }
            }
            VariantSource::Cached(variant, format) => {
                of_variant(RepresentationSource::Stored(Cow::Owned(variant)), format)
            }
            VariantSource::Rendered(made) => {
                let format = made.format;
                of_variant(RepresentationSource::Rendered(made), format)
            }
        })
    }

    /// Returns whether this is the file itself.
    pub(super) fn is_original(&self) -> bool {
        matches!(self.content, RepresentationSource::Stored(Cow::Borrowed(_)))
    }

    pub(super) fn content(&self) -> RepresentationData<'_> {
        match &self.content {
            RepresentationSource::Stored(object) => RepresentationData::Stored(object),
            RepresentationSource::Rendered(made) => RepresentationData::Memory(&made.bytes),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.content {
            RepresentationSource::Stored(object) => object.bytes(),
            RepresentationSource::Rendered(made) => made.bytes.len() as u64,
        }
    }

    pub(super) fn etag(&self) -> Etag {
        match &self.content {
            RepresentationSource::Stored(object) => object.etag(),
            RepresentationSource::Rendered(made) => made.etag,
        }
    }

    pub(super) fn content_type(&self) -> &str {
        match &self.content {
            RepresentationSource::Stored(object) => object.content_type(),
            RepresentationSource::Rendered(made) => made.format.content_type(),
        }
    }

    /// Returns the cached variant that is served, if any.
    pub(super) fn variant(&self) -> Option<&Object> {
        match &self.content {
            RepresentationSource::Stored(Cow::Owned(variant)) => Some(variant),
            _ => None,
        }
    }

    /// Returns the file name of a download.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the response headers that were stored with the file, if the file itself is served.
    pub(super) fn stored_headers(&self) -> Option<StoredHeaders> {
        let RepresentationSource::Stored(Cow::Borrowed(object)) = &self.content else {
            return None;
        };
        let headers = StoredAttributes::of(object).headers;
        (!headers.is_empty()).then_some(headers)
    }

    /// Adds headers that describe the transformation of an image, or why there is none.
    pub(super) fn describe(&self, headers: &mut HeaderMap) {
        if self.is_negotiated {
            headers.append(header::VARY, HeaderValue::from_static("accept"));
        }
        let skipped = self.skipped.map(|bound| format!("skipped; reason={}", bound.as_str()));
        if let Some(Ok(value)) = skipped.map(HeaderValue::try_from) {
            headers.insert(IMAGE_TRANSFORM, value);
        }
    }
}

/// Looks up the variant for the transform options, and renders it if it is missing and permitted.
async fn lookup_or_render(
    app: &AppState,
    request: &Parts,
    bucket: &Bucket,
    object: &Object,
    wish: &TransformOptions,
) -> Result<VariantSource, Retry> {
    match app.variants.lookup(object, wish).await? {
        VariantLookup::Found(source) => Ok(source),
        VariantLookup::Miss(missing) => {
            pay(app, request, object, &missing)?;
            Ok(app.variants.render(missing, &bucket.traffic).await?)
        }
    }
}

/// Charges the cost of rendering to the image processing limits, unless another request already renders it.
fn pay(
    app: &AppState,
    request: &Parts,
    object: &Object,
    missing: &RenderTask,
) -> Result<(), ApiError> {
    if app.variants.is_rendering(missing) {
        return Ok(());
    }
    let address = client_ip(&request.extensions);
    let bucket = &object.name().bucket;
    let taken = app.rate_limiter.charge_image_cpu(address, bucket, missing.cost_ms());
    taken.map_err(ApiError::from)
}

/// Returns whether a file may be a raster image; a vector image is served as it is.
fn may_be_raster_image(content_type: &str) -> bool {
    let is_image =
        essence(content_type).get(..6).is_some_and(|it| it.eq_ignore_ascii_case("image/"));
    is_image && active_content(content_type) == ActiveContent::None
}
