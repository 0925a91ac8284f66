//! Text output of shared links.

use std::fmt::Write as _;

use catalog::{LinkKind, LinkState};
use server::management::LinkView;

use super::table::Show::{Cut, Date, Whole, Wide};
use super::table::{Column, table};
use super::{count_text, plain};
use crate::units::bytes_text;

const LINK: &[Column] = &[
    ("ID", Whole),
    ("KIND", Whole),
    ("TARGET", Cut),
    ("USED", Whole),
    ("VIEWS", Whole),
    ("LAST USED", Date),
    ("EXPIRES", Date),
    ("TITLE", Wide),
    ("CREATED BY", Wide),
    ("CREATED", Wide),
    ("URL", Wide),
];

pub(super) fn links_text(links: &[LinkView], wide: bool) -> String {
    let row = |link: &LinkView| {
        vec![
            link.id.clone(),
            kind(link).to_owned(),
            target(link),
            used(link),
            count_text(link.view_count),
            last_used(link),
            expires(link),
            link.title.clone(),
            link.created_by.clone(),
            link.created_at.clone(),
            link.url.clone(),
        ]
    };
    table(LINK, &links.iter().map(row).collect::<Vec<_>>(), wide)
}

pub(super) fn link_text(link: &LinkView) -> String {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let size = |bytes: Option<u64>| bytes.map(bytes_text);
    let rows = [
        ("link", Some(link.id.clone())),
        ("URL", Some(link.url.clone())),
        ("kind", Some(kind(link).to_owned())),
        (
            "target",
            Some(
                link.paths
                    .iter()
                    .map(|path| format!("{}/{path}", link.bucket_name))
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        ),
        ("title", text(&link.title)),
        ("message", text(&link.message)),
        ("state", Some(state(link.state).to_owned())),
        ("expires", Some(link.expires_at.clone().unwrap_or_else(|| "never".to_owned()))),
        ("password", Some(if link.has_password { "yes" } else { "no" }.to_owned())),
        ("used", Some(used(link))),
        ("views", Some(count_text(link.view_count))),
        ("last used", Some(last_used(link))),
        ("uploaded", (link.kind == LinkKind::Upload).then(|| bytes_text(link.uploaded_bytes))),
        ("maximum files", link.files_max.map(count_text)),
        ("maximum size", size(link.bytes_max)),
        ("maximum file", size(link.file_bytes_max)),
        (
            "types",
            link.allowed_types
                .as_ref()
                .map(|types| types.join(", "))
                .filter(|types| !types.is_empty()),
        ),
        ("created by", text(&link.created_by)),
        ("created", Some(link.created_at.clone())),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<20}{}", plain(&value));
        }
    }
    text
}

fn kind(link: &LinkView) -> &'static str {
    match link.kind {
        LinkKind::Download => "download",
        LinkKind::Upload => "upload",
    }
}

fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Active => "active",
        LinkState::Expired => "expired",
        LinkState::UsedUp => "used up",
        LinkState::Ended => "ended",
        LinkState::Blocked => "blocked",
    }
}

/// Returns the expiry of a link that can be opened, otherwise its state.
fn expires(link: &LinkView) -> String {
    match link.state {
        LinkState::Active | LinkState::UsedUp => {
            link.expires_at.clone().unwrap_or_else(|| "never".to_owned())
        }
        other => state(other).to_owned(),
    }
}

fn target(link: &LinkView) -> String {
    let first = link.paths.first().map(String::as_str).unwrap_or_default();
    let more = match link.paths.len() {
        0 | 1 => String::new(),
        count => format!(" +{}", count - 1),
    };
    format!("{}/{first}{more}", link.bucket_name)
}

fn last_used(link: &LinkView) -> String {
    link.last_used_at.clone().unwrap_or_else(|| "never".to_owned())
}

fn used(link: &LinkView) -> String {
    match (link.kind, link.downloads_max) {
        (LinkKind::Upload, _) if link.uploaded_files == 1 => "1 file".to_owned(),
        (LinkKind::Upload, _) => format!("{} files", count_text(link.uploaded_files)),
        (LinkKind::Download, Some(max)) => {
            format!("{} of {}", count_text(link.download_count), count_text(max))
        }
        (LinkKind::Download, None) => count_text(link.download_count),
    }
}
