//! Counting of downloads from shared links, and of refused requests.
//!
//! Guarantees: a download is counted before its first byte is sent. Non-goals: the pages.

use std::sync::Arc;

use axum::response::Response;
use catalog::{LinkEvent, SharedLink};
use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use protocol::error::ApiError;
use protocol::query::Query;
use service::request_context::RoutedContext;
use service::state::AppState;
use service::transform_params::transform_params;
use usage::task::blocking;

use super::Refusal;
use super::html::Notice;
use crate::limits::LIMITED_PREVIEW_SIDE_MAX;

pub(super) const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

/// Records an event for the audit log.
pub(super) fn record(app: &AppState, link: &Arc<SharedLink>, event: LinkEvent, head: &Parts) {
    app.catalog.shared_links().record_event(
        link,
        event,
        RoutedContext::client_ip(&head.extensions),
    );
}

/// Counts a download, or refuses it.
pub(super) async fn count(
    app: &AppState,
    link: &Arc<SharedLink>,
    event: LinkEvent,
    head: &Parts,
) -> Result<(), Refusal> {
    let (catalog, id) = (app.catalog.clone(), link.id.clone());
    let counted = blocking(move || catalog.shared_links().count_download(&id)).await;
    let is_counted = counted.map_err(ApiError::from)?;
    record(app, link, if is_counted { event } else { LinkEvent::LimitReached }, head);
    if is_counted { Ok(()) } else { Err(Notice::UsedUp.into()) }
}

/// Returns whether a request is for a small version of an image.
pub(super) fn is_small_preview(head: &Parts) -> Result<bool, ApiError> {
    let options = transform_params(&Query::from_uri(&head.uri), &head.headers)?;
    let is_small = |side: Option<u32>| side.is_none_or(|side| side <= LIMITED_PREVIEW_SIDE_MAX);
    let is_bounded = options.width.is_some() || options.height.is_some();
    Ok(is_bounded && is_small(options.width) && is_small(options.height))
}

/// Returns whether a response has the whole file, or its first byte.
pub(super) fn is_whole_or_start(response: &Response) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).map(HeaderValue::as_bytes);
    match response.status() {
        StatusCode::OK => true,
        // Several ranges have no such header.
        StatusCode::PARTIAL_CONTENT => range.is_none_or(|range| range.starts_with(b"bytes 0-")),
        _ => false,
    }
}
