//! Representation at the URL of a file: the file itself, its compressed form, or a variant of an image.
//!
//! Guarantees: transform options have no effect on other files; a file with a stored content coding, or that may not
//! be transformed, is sent as it is, and a range is always one of the file itself. Non-goals: status, ranges, and
//! transfer.

use std::borrow::Cow;

use bytes::Bytes;
use catalog::Bucket;
use catalog::object_attributes::{StoredAttributes, last_modified_ms};
use compression::Coding;
use engine::Object;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use images::{Format, LimitKind, OutputFormat, TransformOptions};
use protocol::conditional::Validators;
use protocol::content_type::{ActiveContent, active_content, essence, is_compressible};
use protocol::error::ApiError;
use protocol::file_name::split_extension;
use protocol::preferences::preferred_coding;
use protocol::stored_headers::StoredHeaders;

use super::{FileRequest, Retry};
use crate::limits::{COMPRESSED_BYTES_MAX, COMPRESSED_BYTES_MIN};
use crate::transform_params::transform_params;
use crate::variants::{CompressedFile, RenderTask, RenderedVariant, VariantLookup, VariantSource};

/// Representation of a file.
pub(super) struct Representation<'a> {
    content: RepresentationSource<'a>,
    file_name: Cow<'a, str>,
    skipped: Option<LimitKind>,
    /// Request header that selected among several representations.
    negotiated: Option<&'static str>,
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
    /// File, and its form in a content coding.
    Compressed(&'a Object, CompressedFile, Coding),
}

/// Codings by name, in the order of preference.
const CODINGS: [&str; 3] = [Coding::ALL[0].name(), Coding::ALL[1].name(), Coding::ALL[2].name()];
const IMAGE_TRANSFORM: HeaderName = HeaderName::from_static("x-image-transform");

impl<'a> Representation<'a> {
    /// Selects the representation of a file that the caller may read.
    pub(super) async fn select(
        request: &FileRequest<'_>,
        object: &'a Object,
    ) -> Result<Self, Retry> {
        let FileRequest { app, head, query, bucket, .. } = request;
        let as_stored = || Self::as_stored(object);
        if query.is_empty() || !may_be_raster_image(object.content_type()) {
            app.deliveries.record();
            return match may_be_compressed(bucket, object) {
                true => Box::pin(Self::select_coding(request, object)).await,
                false => Ok(as_stored()),
            };
        }
        let wish = transform_params(query, &head.headers)?;
        if wish.is_identity() {
            app.deliveries.record();
            return Ok(as_stored());
        }
        let negotiated = matches!(wish.format, OutputFormat::Auto { .. }).then_some("accept");
        let of_variant = |content: RepresentationSource<'a>, format: Format| {
            let (stem, _) = split_extension(object.name().key.file_name());
            let file_name = format!("{stem}.{}", format.extension()).into();
            Self { content, file_name, skipped: None, negotiated }
        };
        Ok(match Box::pin(lookup_or_render(request, object, &wish)).await? {
            VariantSource::Original => Self { negotiated, ..as_stored() },
            VariantSource::OverLimit(bound) => {
                Self { skipped: Some(bound), negotiated, ..as_stored() }
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

    /// Returns whether this is the file itself, in any content coding.
    pub(super) fn is_original(&self) -> bool {
        match &self.content {
            RepresentationSource::Stored(content) => matches!(content, Cow::Borrowed(_)),
            RepresentationSource::Compressed(..) => true,
            RepresentationSource::Rendered(_) => false,
        }
    }

    fn as_stored(object: &'a Object) -> Self {
        Self {
            content: RepresentationSource::Stored(Cow::Borrowed(object)),
            file_name: object.name().key.file_name().into(),
            skipped: None,
            negotiated: None,
        }
    }

    /// Selects the content coding of a file that may be compressed: the one that the client prefers, if it is there in
    /// time.
    async fn select_coding(request: &FileRequest<'_>, object: &'a Object) -> Result<Self, Retry> {
        let FileRequest { app, head, bucket, client, .. } = request;
        let stored = Self::as_stored(object);
        if is_fixed(bucket, &StoredAttributes::of(object).headers) {
            return Ok(stored);
        }
        let stored = Self { negotiated: Some("accept-encoding"), ..stored };
        let preferred = match head.headers.contains_key(header::RANGE) {
            true => None,
            false => preferred_coding(&head.headers, &CODINGS),
        };
        let coding = Coding::ALL.into_iter().find(|coding| Some(coding.name()) == preferred);
        let Some(coding) = coding else { return Ok(stored) };
        let charge =
            |ms| app.rate_limiter.charge_image_cpu(*client, &object.name().bucket, ms).is_ok();
        Ok(match app.variants.compressed(object, coding, charge).await? {
            Some(file) => {
                Self { content: RepresentationSource::Compressed(object, file, coding), ..stored }
            }
            None => stored,
        })
    }

    pub(super) fn content(&self) -> RepresentationData<'_> {
        match &self.content {
            RepresentationSource::Stored(object) => RepresentationData::Stored(object),
            RepresentationSource::Rendered(made) => RepresentationData::Memory(&made.bytes),
            RepresentationSource::Compressed(_, CompressedFile::Cached(variant), _) => {
                RepresentationData::Stored(variant)
            }
            RepresentationSource::Compressed(_, CompressedFile::Memory(bytes), _) => {
                RepresentationData::Memory(bytes)
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.content {
            RepresentationSource::Stored(object) => object.bytes(),
            RepresentationSource::Rendered(made) => made.bytes.len() as u64,
            RepresentationSource::Compressed(_, file, _) => file.bytes(),
        }
    }

    /// Returns the validators of a representation of this object. Each content coding has an entity tag of its own.
    pub(super) fn validators(&self, object: &Object) -> Validators {
        let (created_ms, modified_ms) = (object.created_ms(), last_modified_ms(object));
        match &self.content {
            RepresentationSource::Stored(object) => {
                Validators::of_object(object.etag(), created_ms, modified_ms)
            }
            RepresentationSource::Rendered(made) => {
                Validators::of_object(made.etag, created_ms, modified_ms)
            }
            RepresentationSource::Compressed(file, _, coding) => {
                let etag = format!("{}-{}", file.etag(), coding.name());
                Validators::of_object(etag, created_ms, modified_ms)
            }
        }
    }

    /// Returns the key of this representation of a file without a query in the response-header cache: the LSN of the
    /// object that is sent.
    pub(super) fn lsn(&self) -> Option<u64> {
        match self.content() {
            RepresentationData::Stored(object) => Some(object.lsn()),
            RepresentationData::Memory(_) => None,
        }
    }

    pub(super) fn content_type(&self) -> &str {
        match &self.content {
            RepresentationSource::Stored(object) => object.content_type(),
            RepresentationSource::Rendered(made) => made.format.content_type(),
            RepresentationSource::Compressed(file, ..) => file.content_type(),
        }
    }

    /// Returns the cached variant that is served, if any.
    pub(super) fn variant(&self) -> Option<&Object> {
        match &self.content {
            RepresentationSource::Stored(Cow::Owned(variant))
            | RepresentationSource::Compressed(_, CompressedFile::Cached(variant), _) => {
                Some(variant)
            }
            _ => None,
        }
    }

    /// Returns the file name of a download.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the response headers that were stored with the file, if its own content is served.
    pub(super) fn stored_headers(&self) -> Option<StoredHeaders> {
        let (RepresentationSource::Stored(Cow::Borrowed(object))
        | RepresentationSource::Compressed(object, ..)) = &self.content
        else {
            return None;
        };
        let headers = StoredAttributes::of(object).headers;
        (!headers.is_empty()).then_some(headers)
    }

    /// Adds headers that describe the selection of the representation.
    pub(super) fn describe(&self, headers: &mut HeaderMap) {
        if let Some(name) = self.negotiated {
            headers.append(header::VARY, HeaderValue::from_static(name));
        }
        let skipped = self.skipped.map(|bound| format!("skipped; reason={}", bound.as_str()));
        if let Some(Ok(value)) = skipped.map(HeaderValue::try_from) {
            headers.insert(IMAGE_TRANSFORM, value);
        }
    }

    /// Adds headers that describe the whole content as it is sent. A content coding hides the support of ranges, which
    /// clients would otherwise request of the compressed form (RFC 9110 section 14.3).
    pub(super) fn describe_content(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.bytes()));
        if let RepresentationSource::Compressed(_, _, coding) = &self.content {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
            headers.remove(header::ACCEPT_RANGES);
        }
    }
}

/// Returns whether files of this kind are compressed in a bucket.
fn may_be_compressed(bucket: &Bucket, object: &Object) -> bool {
    (COMPRESSED_BYTES_MIN..=COMPRESSED_BYTES_MAX).contains(&object.bytes())
        && bucket.compression
        && is_compressible(object.content_type())
}

/// Returns whether a file has a content coding already, or may not get one.
fn is_fixed(bucket: &Bucket, stored: &StoredHeaders) -> bool {
    let of_bucket = bucket.cache_control.as_ref().map(|value| value.as_str());
    let rules = stored.cache_control.as_deref().into_iter().chain(of_bucket);
    let mut directives = rules.flat_map(|rule| rule.split(',')).map(str::trim);
    stored.content_encoding.is_some()
        || directives.any(|directive| directive.eq_ignore_ascii_case("no-transform"))
}

/// Looks up the variant for the transform options, and renders it if it is missing and permitted.
async fn lookup_or_render(
    request: &FileRequest<'_>,
    object: &Object,
    wish: &TransformOptions,
) -> Result<VariantSource, Retry> {
    let FileRequest { app, bucket, .. } = request;
    match app.variants.lookup(object, wish).await? {
        VariantLookup::Found(source) => {
            app.deliveries.record();
            Ok(source)
        }
        VariantLookup::Miss(missing) => {
            pay(request, object, &missing)?;
            Ok(app.variants.render(missing, &bucket.traffic).await?)
        }
    }
}

/// Charges the cost of rendering to the image processing limits, unless another request already renders it.
fn pay(request: &FileRequest<'_>, object: &Object, missing: &RenderTask) -> Result<(), ApiError> {
    let FileRequest { app, client, .. } = request;
    if app.variants.is_rendering(missing) {
        return Ok(());
    }
    let bucket = &object.name().bucket;
    let taken = app.rate_limiter.charge_image_cpu(*client, bucket, missing.cost_ms());
    taken.map_err(ApiError::from)
}

/// Returns whether a file may be a raster image; a vector image is served as it is.
fn may_be_raster_image(content_type: &str) -> bool {
    let is_image =
        essence(content_type).get(..6).is_some_and(|it| it.eq_ignore_ascii_case("image/"));
    is_image && active_content(content_type) == ActiveContent::None
}
