//! Text output of the audit log.

use catalog::ActorKind;
use server::management::{ActorView, AuditEntryView, AuditView};

use super::table::Show::{Cut, Minute, Whole, Wide};
use super::table::{Column, table};

const ENTRY: &[Column] = &[
    ("ENTRY", Whole),
    ("WHEN", Minute),
    ("ACTION", Whole),
    ("BY", Whole),
    ("FROM", Wide),
    ("BUCKET", Whole),
    ("TARGET", Cut),
    ("DETAIL", Wide),
];

pub(super) fn audit_text(audit: &AuditView, wide: bool) -> String {
    table(ENTRY, &audit.entries.iter().map(row).collect::<Vec<_>>(), wide)
}

/// Returns a note on how to show the next page.
pub(super) fn audit_note(audit: &AuditView) -> Option<String> {
    let last = audit.next_cursor.as_ref()?;
    Some(format!("older entries: use --before {last}"))
}

fn row(entry: &AuditEntryView) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        entry.id.clone(),
        entry.time.clone(),
        entry.action.clone(),
        format_actor(&entry.actor),
        text(&entry.address),
        text(&entry.bucket_name),
        text(&entry.target),
        text(&entry.detail),
    ]
}

fn format_actor(actor: &ActorView) -> String {
    let ActorView { kind, id, name, account } = actor;
    let kind = match kind {
        ActorKind::Key => "key",
        ActorKind::Session => "session",
        ActorKind::Operator => return "operator".to_owned(),
        ActorKind::Server => return "server".to_owned(),
    };
    let words = [Some(kind), name.as_deref(), id.as_deref().or(account.as_deref())];
    words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
