//! Text output of version history and restore results.

use std::fmt::Write as _;

use server::management::{
    HistoryView, RefusedVersionView, RestoredView, StateView, UndeletedView, VersionView,
};

use super::table::Show::{Cut, Minute, Whole, Wide};
use super::table::{Column, table};
use super::{bytes_text, count_line, plain};

const VERSION: &[Column] = &[
    ("PATH", Cut),
    ("VERSION", Whole),
    ("WHEN", Minute),
    ("STATE", Whole),
    ("SIZE", Whole),
    ("TYPE", Wide),
    ("ETAG", Wide),
    ("RECOVERABLE", Whole),
];

pub(super) fn history_text(history: &HistoryView, wide: bool) -> String {
    table(VERSION, &history.versions.iter().map(version_row).collect::<Vec<_>>(), wide)
}

/// Returns a note on what the table omits.
pub(super) fn history_note(history: &HistoryView) -> Option<String> {
    let is_past = |it: &&VersionView| matches!(it.state, StateView::Replaced | StateView::Deleted);
    let mut past = history.versions.iter().filter(is_past).filter_map(|it| it.content.as_ref());
    let mut sentences = Vec::new();
    if history.truncated {
        sentences.push("more versions: use a larger --limit or name a folder");
    }
    if history.versions.is_empty() {
        sentences.push("no versions found");
    }
    if past.any(|content| content.recoverable) {
        sentences.push(
            "recoverable versions can be restored with `trug undelete` until compaction removes \
            them",
        );
    }
    Some(sentences.join("\n")).filter(|text| !text.is_empty())
}

fn version_row(version: &VersionView) -> Vec<String> {
    let state = match version.state {
        StateView::Current => "current",
        StateView::Replaced => "replaced",
        StateView::Deleted => "deleted",
        StateView::Deletion => "deletion",
    };
    let mut row =
        vec![version.path.clone(), version.lsn.to_string(), version.at.clone(), state.to_owned()];
    match &version.content {
        Some(content) => row.extend([
            bytes_text(content.bytes),
            content.content_type.clone(),
            content.etag.clone(),
            match &content.unrecoverable_because {
                Some(why) => format!("no: {why}"),
                None => "yes".to_owned(),
            },
        ]),
        None => row.resize(VERSION.len(), String::new()),
    }
    row
}

pub(super) fn undeleted_text(undeleted: &UndeletedView) -> String {
    let mut text = format!("restored      {} files\n", undeleted.restored.len());
    for RestoredView { path, lsn, newer_is_lost_because } in &undeleted.restored {
        let _ = write!(text, "  {}: version {lsn}", plain(path));
        if let Some(why) = newer_is_lost_because {
            let _ = write!(text, ", since of a newer one {}", plain(why));
        }
        text.push('\n');
    }
    count_line(&mut text, "not restored", undeleted.refused.len() as u64);
    for RefusedVersionView { path, why, .. } in &undeleted.refused {
        let _ = writeln!(text, "  {}: {}", plain(path), plain(why));
    }
    text
}
