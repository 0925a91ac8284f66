//! What is shown at the address of a file: the file, or what the request wants made of a picture.
//!
//! Promises: parameters of pictures do nothing to what is none. Never here: status, ranges, and how it is sent.

use std::borrow::Cow;

use bytes::Bytes;
use engine::{Etag, Object};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use super::Undelivered;
use crate::content_type::{Activity, activity, essence};
use crate::image_wish::image_wish;
use crate::images::{Bound, Wanted};
use crate::object_name::split_extension;
use crate::query::Query;
use crate::state::AppState;
use crate::variants;

/// What is shown.
pub(super) struct Shown<'a> {
    content: Held<'a>,
    file_name: Cow<'a, str>,
    skipped: Option<Bound>,
    is_negotiated: bool,
}

/// Where its bytes are.
pub(super) enum Content<'a> {
    /// In the store.
    Stored(&'a Object),
    /// In memory.
    Made(&'a Bytes),
}

enum Held<'a> {
    Parent(&'a Object),
    Variant(Object),
    Made(variants::Made),
}

const IMAGE_TRANSFORM: HeaderName = HeaderName::from_static("x-image-transform");

impl<'a> Shown<'a> {
    /// What is shown of a file that the caller may see.
    pub(super) async fn of(
        app: &AppState,
        request: &Parts,
        query: &Query,
        object: &'a Object,
    ) -> Result<Self, Undelivered> {
        let as_stored = || Self {
            content: Held::Parent(object),
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
        let of_variant = |content: Held<'a>, extension: &str| {
            let (stem, _) = split_extension(object.name().key.file_name());
            let file_name = format!("{stem}.{extension}").into();
            Self { content, file_name, skipped: None, is_negotiated }
        };
        Ok(match app.variants.show(object, &wish).await? {
            variants::Shown::AsStored => Self { is_negotiated, ..as_stored() },
            variants::Shown::Skipped(bound) => {
                Self { skipped: Some(bound), is_negotiated, ..as_stored() }
            }
            variants::Shown::Kept(variant) => {
                let (_, extension) = split_extension(variant.name().key.file_name());
                let extension = extension.unwrap_or_default().to_owned();
                of_variant(Held::Variant(variant), &extension)
            }
            variants::Shown::Made(made) => {
                let extension = made.format.extension();
                of_variant(Held::Made(made), extension)
            }
        })
    }

    pub(super) fn content(&self) -> Content<'_> {
        match &self.content {
            Held::Parent(object) => Content::Stored(object),
            Held::Variant(object) => Content::Stored(object),
            Held::Made(made) => Content::Made(&made.bytes),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.content {
            Held::Parent(object) => object.bytes(),
            Held::Variant(object) => object.bytes(),
            Held::Made(made) => made.bytes.len() as u64,
        }
    }

    pub(super) fn etag(&self) -> Etag {
        match &self.content {
            Held::Parent(object) => object.etag(),
            Held::Variant(object) => object.etag(),
            Held::Made(made) => made.etag,
        }
    }

    pub(super) fn content_type(&self) -> &str {
        match &self.content {
            Held::Parent(object) => object.content_type(),
            Held::Variant(object) => object.content_type(),
            Held::Made(made) => made.format.content_type(),
        }
    }

    /// The name that it has as a download.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Adds what was, or was not, done to a picture.
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

/// Whether a file may be a picture of pixels: one that is drawn goes out as it is.
fn is_picture(content_type: &str) -> bool {
    let is_image =
        essence(content_type).get(..6).is_some_and(|it| it.eq_ignore_ascii_case("image/"));
    is_image && activity(content_type) == Activity::Inert
}
