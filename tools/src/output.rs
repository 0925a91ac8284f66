//! Output of commands: results on stdout, everything else on stderr.
//!
//! Guarantees: with `--json` stdout holds one JSON document and nothing else; no text can control the terminal; a
//! reader that closes the pipe early is not a failure. Non-goals: the log.

mod audit;
mod objects;
mod table;
mod versions;
mod webhooks;
mod whole_store;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

use serde::Serialize;
use server::archive::{ExportReport, ImportReport, Named, NamedList};
use server::catalog::Standing;
use server::management::{
    AccountView, ApiKeyIssuedView, ApiKeyView, BucketView, InvitedView, MemberView,
    OrganisationView, Reply, StandingStepView, SweptView,
};

#[cfg(feature = "s3")]
use server::management::S3CredentialsView;

use self::audit::{audit_note, audit_text};
pub(crate) use self::objects::objects_text;
use self::objects::{folders_text, object_text, usage_text};
use self::table::Show::{Cut, Date, Whole, Wide};
use self::table::{Column, table};
use self::versions::{history_note, history_text, undeleted_text};
use self::webhooks::{dead_letters_text, tested_text, webhooks_text};
use self::whole_store::{
    backed_up_text, compacted_text, scrubbed_text, selection_text, stats_text, time_text,
};

use crate::choice;
use crate::exit::Failure;
use crate::units::bytes_text;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    /// As one JSON document.
    pub(crate) json: bool,
    /// With all columns of tables, uncut.
    pub(crate) wide: bool,
}

fn text(reply: &Reply, format: Format) -> Result<String, Failure> {
    if format.json { json_of(reply) } else { Ok(text_of(reply, format.wide)) }
}

/// Prints the reply to a request.
pub(crate) fn reply(reply: &Reply, format: Format) -> Result<(), Failure> {
    let text = text(reply, format)?;
    if let Reply::ApiKeyIssued(issued) = reply {
        let id = &issued.api_key.id;
        note(&format!("API key {id} created. Save the key now; it will not be shown again."));
    }
    if let Reply::Invited(invited) = reply {
        let InvitedView { name, expires_at, url, .. } = invited;
        note(&format!(
            "for {name}; works once, until {expires_at}. Save it now; it will not be shown again."
        ));
        if url.starts_with('/') {
            note("prefix it with the server's address, or use --public-url");
        }
    }
    if let Reply::WebhookCreated(created) = reply {
        let id = &created.webhook.id;
        note(&format!("webhook {id} created. Save the secret now; it will not be shown again."));
    }
    if let Reply::Folders(folders) = reply
        && let Some(last) = &folders.next_cursor
    {
        note(&format!("more folders: use --after {last:?}"));
    }
    if let Reply::History(history) = reply
        && let Some(text) = history_note(history)
    {
        note(&text);
    }
    if let Reply::Audit(audit) = reply
        && let Some(text) = audit_note(audit)
    {
        note(&text);
    }
    result(&text)
}

/// Prints the reply to a request to stderr, since stdout has the content.
pub(crate) fn reply_to_stderr(reply: &Reply, format: Format) -> Result<(), Failure> {
    let text = text(reply, format)?;
    // Nothing can be done about a stderr that is closed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
    Ok(())
}

/// Returns the failure for a reply of another kind than the request has.
pub(crate) fn unexpected() -> Failure {
    Failure::failed("the server sent an unexpected reply; is it another version of trug?")
}

/// Prints a result to stdout.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a note to stderr, in addition to the result.
pub(crate) fn note(text: &str) {
    // Nothing can be done about a stderr that is closed.
    let _ = writeln!(io::stderr(), "trug: {}", lines(text));
}

/// Prints the failure to stderr.
pub(crate) fn failure(failure: &Failure) {
    note(&failure.to_string());
}

fn text_of(reply: &Reply, wide: bool) -> String {
    match reply {
        Reply::Account(account) => table(ACCOUNT, &[account_row(account)], wide),
        Reply::Accounts(accounts) => {
            table(ACCOUNT, &accounts.iter().map(account_row).collect::<Vec<_>>(), wide)
        }
        Reply::AccountDeleted(deleted) => format!(
            "deleted the account {} and {} objects\n",
            plain(&deleted.name),
            count_text(deleted.deleted_count)
        ),
        Reply::Swept(swept) => swept_text(swept, wide),
        Reply::PasswordSet(set) => format!(
            "{} has a new password; {} sessions ended\n",
            plain(&set.name),
            set.ended_session_count
        ),
        Reply::Invited(invited) => format!("{}\n", plain(&invited.url)),
        Reply::Bucket(bucket) => table(BUCKET, &[bucket_row(bucket)], wide),
        Reply::Buckets(buckets) => {
            table(BUCKET, &buckets.iter().map(bucket_row).collect::<Vec<_>>(), wide)
        }
        Reply::BucketDeleted(deleted) => format!(
            "deleted the bucket {} and {} files\n",
            plain(&deleted.bucket_name),
            deleted.deleted_count
        ),
        Reply::Folders(folders) => folders_text(&folders.folders, wide),
        Reply::Organisation(organisation) => {
            organisations_text(std::slice::from_ref(organisation), wide)
        }
        Reply::Organisations(organisations) => organisations_text(organisations, wide),
        Reply::OrganisationDeleted(deleted) => {
            format!("deleted the organisation {}\n", plain(&deleted.id))
        }
        Reply::ApiKeyIssued(ApiKeyIssuedView { key, .. }) => format!("{}\n", plain(key)),
        #[cfg(feature = "s3")]
        Reply::S3Credentials(S3CredentialsView { access_key_id, secret_access_key }) => {
            let (id, secret) = (plain(access_key_id), plain(secret_access_key));
            format!("AWS_ACCESS_KEY_ID={id}\nAWS_SECRET_ACCESS_KEY={secret}\n")
        }
        Reply::ApiKey(api_key) => table(API_KEY, &[api_key_row(api_key)], wide),
        Reply::ApiKeys(api_keys) => {
            table(API_KEY, &api_keys.iter().map(api_key_row).collect::<Vec<_>>(), wide)
        }
        Reply::WebhookCreated(created) => format!("{}\n", plain(&created.secret)),
        Reply::Webhook(webhook) => webhooks_text(std::slice::from_ref(webhook), wide),
        Reply::Webhooks(webhooks) => webhooks_text(webhooks, wide),
        Reply::WebhookDeleted(deleted) => format!("deleted the webhook {}\n", plain(&deleted.id)),
        Reply::WebhookTested(tested) => tested_text(tested),
        Reply::DeadLetters(letters) => dead_letters_text(letters, wide),
        Reply::DeadLettersRetried(retried) => {
            format!("{} events queued again\n", retried.retried_count)
        }
        Reply::DeadLettersForgotten(forgotten) => {
            format!("{} events deleted\n", forgotten.deleted_count)
        }
        Reply::Objects(objects) => objects_text(objects),
        Reply::Object(object) => object_text(object),
        Reply::Usage(usage) => usage_text(usage, wide),
        Reply::ObjectRead(it) | Reply::ObjectCopied(it) | Reply::ObjectMoved(it) => {
            format!("{}/{}  {}\n", plain(&it.bucket_name), plain(&it.path), bytes_text(it.bytes))
        }
        Reply::ObjectsDeleted(deleted) => format!("deleted {} objects\n", deleted.deleted_count),
        Reply::Presigned(presigned) => format!("{}\n", plain(&presigned.url)),
        Reply::Stats(stats) => stats_text(stats, wide),
        Reply::Exported(report) => exported_text(report),
        Reply::Imported(report) => imported_text(report),
        Reply::History(history) => history_text(history, wide),
        Reply::Audit(audit) => audit_text(audit, wide),
        Reply::Undeleted(undeleted) => undeleted_text(undeleted),
        Reply::BackedUp(backed_up) => backed_up_text(backed_up),
        Reply::Selection(selection) => selection_text(selection, wide),
        Reply::Compacted(compacted) => compacted_text(compacted),
        Reply::Scrubbed(scrubbed) => scrubbed_text(scrubbed),
    }
}

const ACCOUNT: &[Column] = &[
    ("ID", Whole),
    ("NAME", Cut),
    ("ROLE", Whole),
    ("PLAN", Wide),
    ("STANDING", Whole),
    ("LIMIT", Whole),
    ("FILES MAX", Whole),
    ("CREATED", Date),
    ("REASON", Wide),
];

fn account_row(account: &AccountView) -> Vec<String> {
    vec![
        account.id.clone(),
        account.name.clone(),
        choice::word(choice::ROLE, &account.role).to_owned(),
        choice::word(choice::PLAN, &account.plan).to_owned(),
        choice::word(choice::STANDING, &account.standing).to_owned(),
        bytes(account.storage_bytes_max),
        number(account.object_count_max),
        account.created_at.clone(),
        account.standing_changes.last().map(|change| change.reason.clone()).unwrap_or_default(),
    ]
}

const STEP: &[Column] =
    &[("ID", Whole), ("NAME", Whole), ("FROM", Whole), ("TO", Whole), ("REASON", Cut)];

fn swept_text(swept: &SweptView, wide: bool) -> String {
    let SweptView { account_count, violation_count, steps } = swept;
    let mut text = format!("{account_count} accounts, {violation_count} break fair use\n");
    if !steps.is_empty() {
        let word = |it: &Standing| choice::word(choice::STANDING, it).to_owned();
        let row = |step: &StandingStepView| {
            let StandingStepView { account, name, from, to, reason } = step;
            vec![account.clone(), name.clone(), word(from), word(to), reason.clone()]
        };
        text.push_str(&table(STEP, &steps.iter().map(row).collect::<Vec<_>>(), wide));
    }
    text
}

const BUCKET: &[Column] = &[
    ("NAME", Cut),
    ("ACCOUNT", Whole),
    ("ORGANISATION", Wide),
    ("TYPE", Wide),
    ("ACCESS", Whole),
    ("FILES", Whole),
    ("FILES MAX", Wide),
    ("STORED", Whole),
    ("QUOTA", Whole),
    ("FILE MAX", Wide),
    ("TYPES", Wide),
    ("ORIGINS", Wide),
    ("HTML", Wide),
    ("THUMBNAILS", Wide),
    ("INDEX", Wide),
    ("CACHE-CONTROL", Wide),
    ("PLACEHOLDER", Wide),
];

fn bucket_row(bucket: &BucketView) -> Vec<String> {
    vec![
        bucket.bucket_name.clone(),
        bucket.account.clone(),
        bucket.organisation.clone().unwrap_or_default(),
        choice::word(choice::KIND, &bucket.kind).to_owned(),
        choice::word(choice::ACCESS, &bucket.access).to_owned(),
        count_text(bucket.object_count),
        number(bucket.quota_objects),
        bytes_text(bucket.total_bytes),
        bytes(bucket.quota_bytes),
        bytes(bucket.file_bytes_max),
        bucket.allowed_types.join(","),
        bucket.cors_origins.join(","),
        if bucket.serve_html { "pages" } else { "text" }.to_owned(),
        if bucket.thumbnails { "yes" } else { "no" }.to_owned(),
        if bucket.index { "yes" } else { "no" }.to_owned(),
        bucket.cache_control.clone().unwrap_or_default(),
        bucket.placeholder.clone().unwrap_or_default(),
    ]
}

const API_KEY: &[Column] = &[
    ("ID", Whole),
    ("ACCOUNT", Wide),
    ("NAME", Whole),
    ("SCOPES", Cut),
    ("BUCKET", Whole),
    ("PREFIX", Wide),
    ("CREATED", Wide),
    ("EXPIRES", Date),
    ("USED", Wide),
    ("REVOKED", Date),
];

fn api_key_row(api_key: &ApiKeyView) -> Vec<String> {
    let scopes: Vec<_> =
        api_key.scopes.iter().map(|scope| choice::word(choice::SCOPE, scope)).collect();
    vec![
        api_key.id.clone(),
        api_key.account.clone(),
        api_key.name.clone(),
        scopes.join(","),
        api_key.bucket_name.clone().unwrap_or_default(),
        api_key.prefix.clone(),
        api_key.created_at.clone(),
        api_key.expires_at.clone().unwrap_or_default(),
        api_key.last_used_at.clone().unwrap_or_default(),
        api_key.revoked_at.clone().unwrap_or_default(),
    ]
}

const ORGANISATION: &[Column] =
    &[("ID", Whole), ("NAME", Cut), ("MEMBER ID", Wide), ("MEMBER", Whole), ("ROLE", Whole)];

/// Formats organisations, with one line per member.
fn organisations_text(organisations: &[OrganisationView], wide: bool) -> String {
    let row = |organisation: &OrganisationView, member: &MemberView| {
        let role = choice::word(choice::MEMBER_ROLE, &member.role).to_owned();
        let (id, name) = (organisation.id.clone(), organisation.name.clone());
        vec![id, name, member.account.clone(), member.name.clone(), role]
    };
    let rows = organisations.iter().flat_map(|it| it.members.iter().map(|member| row(it, member)));
    table(ORGANISATION, &rows.collect::<Vec<_>>(), wide)
}

fn number(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

fn bytes(bytes: Option<u64>) -> String {
    bytes.map(bytes_text).unwrap_or_default()
}

fn exported_text(report: &ExportReport) -> String {
    let bytes = bytes_text(report.exported_bytes);
    let mut text = format!("exported      {} files, {bytes}\n", report.exported_count);
    count_line(&mut text, "unchanged", report.unchanged_count);
    named_lines(&mut text, "damaged", &report.damaged);
    named_lines(&mut text, "not written", &report.not_written);
    text
}

fn imported_text(report: &ImportReport) -> String {
    let mut text = format!("imported      {} files\n", report.imported_count);
    count_line(&mut text, "replaced", report.replaced_count);
    count_line(&mut text, "renamed", report.renamed_count);
    let _ = writeln!(text, "stored        {}", bytes_text(report.imported_bytes));
    count_line(&mut text, "unchanged", report.unchanged_count);
    named_lines(&mut text, "skipped", &report.skipped);
    named_lines(&mut text, "refused", &report.refused);
    let seconds = report.duration_ms.div_ceil(1_000);
    let _ = writeln!(text, "took          {}", time_text(seconds));
    text
}

/// Appends a line with a count, unless it is zero.
fn count_line(text: &mut String, what: &str, count: u64) {
    if count > 0 {
        let _ = writeln!(text, "{what:<14}{count} files");
    }
}

fn named_lines(text: &mut String, what: &str, list: &NamedList) {
    count_line(text, what, list.count);
    for Named { name, why } in &list.listed {
        let _ = writeln!(text, "  {}: {}", plain(name), plain(why));
    }
    let more = list.count.saturating_sub(list.listed.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// Formats a count with thousands separators, such as `10,396`.
pub(crate) fn count_text(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn json_of(reply: &Reply) -> Result<String, Failure> {
    match reply {
        Reply::Account(it) => document(it),
        Reply::Accounts(it) => document(it),
        Reply::AccountDeleted(it) => document(it),
        Reply::Swept(it) => document(it),
        Reply::PasswordSet(it) => document(it),
        Reply::Invited(it) => document(it),
        Reply::Bucket(it) => document(it),
        Reply::Buckets(it) => document(it),
        Reply::BucketDeleted(it) => document(it),
        Reply::Folders(it) => document(it),
        Reply::Organisation(it) => document(it),
        Reply::Organisations(it) => document(it),
        Reply::OrganisationDeleted(it) => document(it),
        Reply::ApiKeyIssued(it) => document(it),
        #[cfg(feature = "s3")]
        Reply::S3Credentials(it) => document(it),
        Reply::ApiKey(it) => document(it),
        Reply::ApiKeys(it) => document(it),
        Reply::WebhookCreated(it) => document(it),
        Reply::Webhook(it) => document(it),
        Reply::Webhooks(it) => document(it),
        Reply::WebhookDeleted(it) => document(it),
        Reply::WebhookTested(it) => document(it),
        Reply::DeadLetters(it) => document(it),
        Reply::DeadLettersRetried(it) => document(it),
        Reply::DeadLettersForgotten(it) => document(it),
        Reply::Objects(it) => document(it),
        Reply::Object(it) => document(it),
        Reply::Usage(it) => document(it),
        Reply::ObjectRead(it) | Reply::ObjectCopied(it) | Reply::ObjectMoved(it) => document(it),
        Reply::ObjectsDeleted(it) => document(it),
        Reply::Presigned(it) => document(it),
        Reply::Stats(it) => document(it),
        Reply::Exported(it) => document(it),
        Reply::Imported(it) => document(it),
        Reply::History(it) => document(it),
        Reply::Audit(it) => document(it),
        Reply::Undeleted(it) => document(it),
        Reply::BackedUp(it) => document(it),
        Reply::Selection(it) => document(it),
        Reply::Compacted(it) => document(it),
        Reply::Scrubbed(it) => document(it),
    }
}

/// Formats a JSON document; control characters can only occur in its strings, where they are escaped.
pub(crate) fn document(value: &impl Serialize) -> Result<String, Failure> {
    let written = serde_json::to_string_pretty(value);
    let written = written.map_err(|error| Failure::failed(format!("no JSON: {error}")))?;
    let mut text = String::with_capacity(written.len() + 1);
    for c in written.chars() {
        if c != '\n' && steers(c) {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    Ok(text)
}

/// Escapes characters that control a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Escapes each line of a text like [`plain`].
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n      ")
}

/// Returns whether the character is a control character or changes the text direction. All of them have four
/// hexadecimal digits.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use server::catalog::{Plan, Role};
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
            standing: Standing::Good,
            standing_changes: Vec::new(),
            storage_bytes_max: None,
            object_count_max: None,
            created_at: "2026-01-31T12:00:00.000Z".into(),
        }
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let evil = "a\u{1b}[31m\u{9b}2J\r\n\u{202e}b\u{7}";
        let listed = vec![Named { name: evil.into(), why: evil.into() }];
        let list = NamedList { count: 3, listed };
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
            Reply::Account(account(evil)),
            Reply::Accounts(vec![account(evil)]),
            Reply::Exported(exported),
            Reply::Imported(imported),
            Reply::History(HistoryView { versions: vec![version], ..HistoryView::default() }),
            Reply::Undeleted(undeleted),
            Reply::BackedUp(backed_up),
            Reply::Compacted(compacted),
            Reply::Scrubbed(ScrubbedView { damage: damaged.clone(), ..ScrubbedView::default() }),
            Reply::Stats(Box::new(StatsView { damage: damaged, ..StatsView::default() })),
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
    fn a_new_key_stands_alone() {
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
        assert_eq!(text_of(&Reply::ApiKeyIssued(issued), false), "trug_a_b_c\n");
    }

    #[test]
    fn counts_have_thousands_separators() {
        for (count, text) in [(0, "0"), (999, "999"), (10_396, "10,396"), (1_000_000, "1,000,000")]
        {
            assert_eq!(count_text(count), text);
        }
    }
}
