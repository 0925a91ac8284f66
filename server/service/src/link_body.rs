//! Response body of a download from a shared link.
//!
//! Guarantees: a download ends at its next frame, of at most 256 KiB, after the link was ended or deleted or its
//! creator lost the right to share; the connection closes before the promised length, so that a client never takes
//! the truncated body for a complete one. Non-goals: expiry and maximum of downloads, which refuse new downloads only.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use catalog::{Catalog, SharedLinkId};
use http_body::{Frame, SizeHint};

use crate::link_access::shared_bucket;

/// Body that is cut off when its link no longer gives access.
struct LinkBody {
    inner: Body,
    catalog: Catalog,
    link: SharedLinkId,
}

/// Wraps the body of a download from a link.
pub fn link_body(catalog: &Catalog, link: &SharedLinkId, inner: Body) -> Body {
    Body::new(LinkBody { inner, catalog: catalog.clone(), link: link.clone() })
}

impl LinkBody {
    fn has_access(&self) -> bool {
        let link = self.catalog.shared_links().get(&self.link);
        let link = link.filter(|link| link.ended_ms.is_none());
        link.is_some_and(|link| shared_bucket(&self.catalog, &link).is_ok())
    }
}

impl http_body::Body for LinkBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.has_access() {
            let error = io::Error::other("the shared link no longer gives access");
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
