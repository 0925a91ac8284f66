//! Tests of tables and texts.

use catalog::{Plan, Role};
use server::management::{
    BackedUpView, CompactedView, ContentView, DamageView, HistoryView, PlaceView,
    RefusedSegmentView, RefusedVersionView, RestoredView, ScrubbedView, StateView, StatsView,
    UndeletedView, VersionView,
};

use super::*;

fn account(name: &str) -> AccountView {
    AccountView {
        id: "abcdefghijklmnop".into(),
        name: name.into(),
        has_password: false,
        role: Role::User,
        plan: Plan::Pro,
        standing: FairUseStanding::Good,
        standing_changes: Vec::new(),
        storage_bytes_max: None,
        object_count_max: None,
        created_at: "2026-01-31T12:00:00.000Z".into(),
    }
}

#[test]
fn terminal_escapes_are_sanitized() {
    let evil = "a\u{1b}[31m\u{9b}2J\r\n\u{202e}b\u{7}";
    let listed = vec![NamedIssue { name: evil.into(), why: evil.into() }];
    let list = TruncatedList { count: 3, listed };
    let exported = ExportReport { damaged: list.clone(), ..ExportReport::default() };
    let imported = ImportReport { refused: list, ..ImportReport::default() };
    let version = VersionView {
        path: evil.into(),
        lsn: 7,
        at: String::new(),
        state: StateView::Replaced,
        content: Some(ContentView { content_type: evil.into(), ..ContentView::default() }),
    };
    let restored = RestoredView { path: evil.into(), ..RestoredView::default() };
    let refused = RefusedVersionView { path: evil.into(), why: evil.into(), damaged: true };
    let undeleted = UndeletedView {
        restored: vec![restored],
        refused: vec![refused],
        ..UndeletedView::default()
    };
    let damage = vec![evil.into()];
    let backed_up = BackedUpView { to: evil.into(), damage, ..BackedUpView::default() };
    let place = PlaceView { name: Some(evil.into()), why: evil.into(), ..PlaceView::default() };
    let damaged = DamageView { count: 2, places: vec![place] };
    let refused = vec![RefusedSegmentView { id: 7, why: evil.into() }];
    let compacted = CompactedView { refused, ..CompactedView::default() };
    let replies = [
        AdminResponse::Account(account(evil)),
        AdminResponse::Accounts(vec![account(evil)]),
        AdminResponse::Exported(exported),
        AdminResponse::Imported(imported),
        AdminResponse::History(HistoryView { versions: vec![version], ..HistoryView::default() }),
        AdminResponse::Undeleted(undeleted),
        AdminResponse::BackedUp(backed_up),
        AdminResponse::Compacted(compacted),
        AdminResponse::Scrubbed(ScrubbedView {
            damage: damaged.clone(),
            ..ScrubbedView::default()
        }),
        AdminResponse::Stats(Box::new(StatsView { damage: damaged, ..StatsView::default() })),
    ];
    for reply in &replies {
        for text in [text_of(reply, true), json_of(reply).unwrap()] {
            let steering = text.chars().filter(|c| *c != '\n' && steers(*c)).count();
            assert_eq!(steering, 0, "{text:?}");
        }
    }
    let back: serde_json::Value = serde_json::from_str(&json_of(&replies[0]).unwrap()).unwrap();
    assert_eq!(back["name"], evil);
    assert_eq!(lines("a\u{1b}\nb"), "a\\u{1b}\n      b");
}

#[test]
fn new_api_key_is_printed_alone() {
    let api_key = ApiKeyView {
        id: "abcdefghijklmnop".into(),
        account: "x".into(),
        name: String::new(),
        scopes: Vec::new(),
        bucket_name: None,
        prefix: String::new(),
        created_at: String::new(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    };
    let issued = ApiKeyIssuedView { key: "trug_a_b_c".into(), s3: None, api_key };
    assert_eq!(text_of(&AdminResponse::ApiKeyIssued(issued), false), "trug_a_b_c\n");
}

#[test]
fn counts_have_thousands_separators() {
    for (count, text) in [(0, "0"), (999, "999"), (10_396, "10,396"), (1_000_000, "1,000,000")] {
        assert_eq!(count_text(count), text);
    }
}
