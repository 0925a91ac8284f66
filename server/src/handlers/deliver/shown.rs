//! Representation at the URL of a file: the file itself, or a variant of an image.
//!
//! Guarantees: transform options have no effect on other files. Non-goals: status, ranges, and transfer.

use std::borrow::Cow;

use bytes::Bytes;
use engine::{Etag, Object};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use images::{Bound, Format, Wanted, Wish};

use super::Undelivered;
use crate::catalog::Bucket;
use crate::client_address::client_address;
use crate::content_type::{Activity, activity, essence};
use crate::error::ApiError;
use crate::image_wish::image_wish;
use crate::object_attributes::StoredAttributes;
use crate::object_name::split_extension;
use crate::query::Query;
use crate::state::AppState;
use crate::stored_headers::StoredHeaders;
use crate::variants::{self, Found, Missing};

/// Representation of a file.
pub(super) struct Shown<'a> {
    content: Held<'a>,
    file_name: Cow<'a, str>,
    skipped: Option<Bound>,
    is_negotiated: bool,
}

/// Location of the bytes.
pub(super) enum Content<'a> {
    /// Object in the store.
    Stored(&'a Object),
    /// Buffer in memory.
    Made(&'a Bytes),
}

enum Held<'a> {
    /// File, borrowed, or a variant of it.
    Stored(Cow<'a, Object>),
    Made(variants::Made),
}

const IMAGE_TRANSFORM: HeaderName = HeaderName::from_static("x-image-transform");

impl<'a> Shown<'a> {
    /// Selects the representation of a file that the caller may read.
    pub(super) async fn of(
        app: &AppState,
        request: &Parts,
        query: &Query,
        bucket: &Bucket,
        object: &'a Object,
    ) -> Result<Self, Undelivered> {
        let as_stored = || Self {
            content: Held::Stored(Cow::Borrowed(object)),
            file_name: object.name().key.file_name().into(),
            skipped: None,
            is_negotiated: false,
        };
        if query.is_empty() || !is_picture(object.content_type()) {
            return Ok(as_stored());
        }
        let wish = image_wish(query, &request.headers)?;
        if !wish.is_any() {
            return Ok(as_stored());
        }
        let is_negotiated = matches!(wish.format, Wanted::Auto { .. });
        let of_variant = |content: Held<'a>, format: Format| {
            let (stem, _) = split_extension(object.name().key.file_name());
            let file_name = format!("{stem}.{}", format.extension()).into();
            Self { content, file_name, skipped: None, is_negotiated }
        };
        Ok(match Box::pin(look_or_make(app, request, bucket, object, &wish)).await? {
            variants::Shown::AsStored => Self { is_negotiated, ..as_stored() },
            variants::Shown::Skipped(bound) => {
                Self { skipped: Some(bound), is_negotiated, ..as_stored() }
            }
            variants::Shown::Kept(variant, format) => {
                of_variant(Held::Stored(Cow::Owned(variant)), format)
            }
            variants::Shown::Made(made) => {
                let format = made.format;
                of_variant(Held::Made(made), format)
            }
        })
    }

    pub(super) fn content(&self) -> Content<'_> {
        match &self.content {
            Held::Stored(object) => Content::Stored(object),
            Held::Made(made) => Content::Made(&made.bytes),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.content {
            Held::Stored(object) => object.bytes(),
            Held::Made(made) => made.bytes.len() as u64,
        }
    }

    pub(super) fn etag(&self) -> Etag {
        match &self.content {
            Held::Stored(object) => object.etag(),
            Held::Made(made) => made.etag,
        }
    }

    pub(super) fn content_type(&self) -> &str {
        match &self.content {
            Held::Stored(object) => object.content_type(),
            Held::Made(made) => made.format.content_type(),
        }
    }

    /// Returns the cached variant that is served, if any.
    pub(super) fn variant(&self) -> Option<&Object> {
        match &self.content {
            Held::Stored(Cow::Owned(variant)) => Some(variant),
            _ => None,
        }
    }

    /// Returns the file name of a download.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the response headers that were stored with the file, if the file itself is served.
    pub(super) fn stored_headers(&self) -> Option<StoredHeaders> {
        let Held::Stored(Cow::Borrowed(object)) = &self.content else { return None };
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
async fn look_or_make(
    app: &AppState,
    request: &Parts,
    bucket: &Bucket,
    object: &Object,
    wish: &Wish,
) -> Result<variants::Shown, Undelivered> {
    match app.variants.look(object, wish).await? {
        Found::Shown(shown) => Ok(shown),
        Found::Missing(missing) => {
            pay(app, request, object, &missing)?;
            Ok(app.variants.make(missing, &bucket.traffic).await?)
        }
    }
}

/// Charges the cost of rendering to the image processing limits, unless another request already renders it.
fn pay(
    app: &AppState,
    request: &Parts,
    object: &Object,
    missing: &Missing,
) -> Result<(), ApiError> {
    if app.variants.is_in_work(missing) {
        return Ok(());
    }
    let address = client_address(&request.extensions);
    let bucket = &object.name().bucket;
    let taken = app.allowances.take_picture_time(address, bucket, missing.cost_ms());
    taken.map_err(|refused| ApiError::rate_limited(&refused))
}

/// Returns whether a file may be a raster image; a vector image is served as it is.
fn is_picture(content_type: &str) -> bool {
    let is_image =
        essence(content_type).get(..6).is_some_and(|it| it.eq_ignore_ascii_case("image/"));
    is_image && activity(content_type) == Activity::Inert
}
