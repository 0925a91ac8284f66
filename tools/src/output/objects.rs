//! Text output of objects and their usage.

use std::fmt::Write as _;

use server::management::{
    FolderView, LifecycleRuleView, LifecycleRulesView, ObjectView, ObjectsView, UsageView,
};

use super::table::Show::{Cut, Whole, Wide};
use super::table::{Column, table};
use super::{bytes_text, count_text, plain};
use crate::units::seconds_text;

/// Formats entries of a listing, folders first.
pub(crate) fn objects_text(objects: &ObjectsView) -> String {
    let mut text = String::new();
    for folder in &objects.folders {
        let _ = writeln!(text, "{:>9}  {:16}  {}", "-", "-", plain(folder));
    }
    for object in &objects.objects {
        let modified = object.last_modified.get(..16).unwrap_or_default().replace('T', " ");
        let size = bytes_text(object.bytes);
        let _ = writeln!(text, "{size:>9}  {modified:16}  {}", plain(&object.path));
    }
    text
}

pub(super) fn object_text(object: &ObjectView) -> String {
    let size = format!("{} ({} bytes)", bytes_text(object.bytes), count_text(object.bytes));
    let headers = &object.headers;
    let mut rows = vec![
        ("object", Some(format!("{}/{}", object.bucket_name, object.path))),
        ("size", Some(size)),
        ("type", Some(object.content_type.clone())),
        ("ETag", Some(object.etag.clone())),
        ("created", Some(object.created_at.clone())),
        ("modified", Some(object.last_modified.clone())),
        ("access", object.is_public.then(|| "public, by its access control list".to_owned())),
        ("expires", object.expires_at.clone()),
        ("thumbnail", object.is_thumbnail.then(|| "generated".to_owned())),
        ("Cache-Control", headers.cache_control.clone()),
        ("Content-Disposition", headers.content_disposition.clone()),
        ("Content-Encoding", headers.content_encoding.clone()),
        ("Content-Language", headers.content_language.clone()),
        ("Expires", headers.expires.clone()),
    ];
    let pairs = |what: &'static str, pairs: &std::collections::BTreeMap<String, String>| {
        let pair = |(name, value): (&String, &String)| (what, Some(format!("{name}: {value}")));
        pairs.iter().map(pair).collect::<Vec<_>>()
    };
    rows.extend(pairs("metadata", &object.metadata));
    rows.extend(pairs("tag", &object.tags));
    let mut text = String::new();
    for (name, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<20}{}", plain(&value));
        }
    }
    text
}

const FOLDER: &[Column] = &[("FOLDER", Cut), ("FILES", Whole), ("STORED", Whole)];

pub(super) fn folders_text(folders: &[FolderView], wide: bool) -> String {
    table(FOLDER, &folders.iter().map(folder_row).collect::<Vec<_>>(), wide)
}

pub(super) fn usage_text(usage: &UsageView, wide: bool) -> String {
    let mut rows: Vec<_> = usage.folders.iter().map(folder_row).collect();
    rows.push(folder_row(&FolderView {
        folder: format!("{}/{}", usage.bucket_name, usage.folder),
        object_count: usage.object_count,
        total_bytes: usage.total_bytes,
        modified_at: None,
        is_exact: true,
    }));
    table(FOLDER, &rows, wide)
}

fn folder_row(folder: &FolderView) -> Vec<String> {
    let FolderView { folder, object_count, total_bytes, .. } = folder;
    vec![folder.clone(), count_text(*object_count), bytes_text(*total_bytes)]
}

const RULE: &[Column] = &[("PREFIX", Cut), ("EXPIRES", Whole), ("ENABLED", Whole), ("ID", Wide)];

pub(super) fn lifecycle_text(lifecycle: &LifecycleRulesView, wide: bool) -> String {
    let row = |rule: &LifecycleRuleView| {
        let expires = match (rule.expire_after_seconds, &rule.expire_at) {
            (Some(seconds), _) => format!("after {}", seconds_text(seconds)),
            (None, at) => format!("at {}", at.as_deref().unwrap_or_default()),
        };
        let enabled = if rule.enabled { "yes" } else { "no" };
        vec![rule.prefix.clone(), expires, enabled.to_owned(), rule.id.clone()]
    };
    table(RULE, &lifecycle.rules.iter().map(row).collect::<Vec<_>>(), wide)
}
