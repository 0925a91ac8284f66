//! Output of commands: results on stdout, everything else on stderr.
//!
//! Guarantees: with `--json` stdout holds one JSON document and nothing else; no text can control the terminal; a
//! reader that closes the pipe early is not a failure. Non-goals: the log.

mod audit_text;
mod links;
mod objects;
mod table;
mod versions;
mod webhooks;
mod whole_store;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

use catalog::FairUseStanding;
use jobs::archive::{ExportReport, ImportReport, NamedIssue, TruncatedList};
use serde::Serialize;
use server::management::{
    AccountView, AdminResponse, ApiKeyIssuedView, ApiKeyView, BucketView, InvitedView, MemberView,
    OrganisationView, StandingStepView, SweepReportView,
};

use server::management::S3CredentialsView;

use self::audit_text::{audit_note, audit_text};
use self::links::{link_text, links_text};
pub(crate) use self::objects::objects_text;
use self::objects::{folders_text, lifecycle_text, object_text, usage_text};
use self::table::Show::{Cut, Date, Whole, Wide};
use self::table::{Column, table};
use self::versions::{history_note, history_text, undeleted_text};
use self::webhooks::{dead_letters_text, tested_text, webhooks_text};
use self::whole_store::{
    backed_up_text, compacted_text, scrubbed_text, selection_text, stats_text, time_text,
};

use crate::exit::Failure;
use crate::units::bytes_text;
use crate::value_parsers;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    /// As one JSON document.
    pub(crate) json: bool,
    /// With all columns of tables, uncut.
    pub(crate) wide: bool,
}

fn text(reply: &AdminResponse, format: Format) -> Result<String, Failure> {
    if format.json { json_of(reply) } else { Ok(text_of(reply, format.wide)) }
}

/// Prints the reply to a request.
pub(crate) fn reply(reply: &AdminResponse, format: Format) -> Result<(), Failure> {
    let text = text(reply, format)?;
    if let AdminResponse::ApiKeyIssued(issued) = reply {
        let id = &issued.api_key.id;
        print_note(&format!("API key {id} created. Save the key now; it will not be shown again."));
    }
    if let AdminResponse::Invited(invited) = reply {
        let InvitedView { name, expires_at, url, .. } = invited;
        print_note(&format!(
            "for {name}; works once, until {expires_at}. Save it now; it will not be shown again."
        ));
        if url.starts_with('/') {
            print_note("prefix it with the server's address, or use --public-url");
        }
    }
    if let AdminResponse::WebhookCreated(created) = reply {
        let id = &created.webhook.id;
        print_note(&format!(
            "webhook {id} created. Save the secret now; it will not be shown again."
        ));
    }
    if let AdminResponse::Folders(folders) = reply
        && let Some(last) = &folders.next_cursor
    {
        print_note(&format!("more folders: use --after {last:?}"));
    }
    if let AdminResponse::History(history) = reply
        && let Some(text) = history_note(history)
    {
        print_note(&text);
    }
    if let AdminResponse::Audit(audit) = reply
        && let Some(text) = audit_note(audit)
    {
        print_note(&text);
    }
    result(&text)
}

/// Prints the reply to a request to stderr, since stdout has the content.
pub(crate) fn reply_to_stderr(reply: &AdminResponse, format: Format) -> Result<(), Failure> {
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
pub(crate) fn print_note(text: &str) {
    // Nothing can be done about a stderr that is closed.
    let _ = writeln!(io::stderr(), "trug: {}", lines(text));
}

/// Prints the failure to stderr.
pub(crate) fn failure(failure: &Failure) {
    print_note(&failure.to_string());
}

fn text_of(reply: &AdminResponse, wide: bool) -> String {
    match reply {
        AdminResponse::Account(account) => table(ACCOUNT, &[account_row(account)], wide),
        AdminResponse::Accounts(accounts) => {
            table(ACCOUNT, &accounts.iter().map(account_row).collect::<Vec<_>>(), wide)
        }
        AdminResponse::AccountDeleted(deleted) => format!(
            "deleted the account {} and {} objects\n",
            plain(&deleted.name),
            count_text(deleted.deleted_count)
        ),
        AdminResponse::Swept(swept) => swept_text(swept, wide),
        AdminResponse::PasswordSet(set) => format!(
            "{} has a new password; {} sessions ended\n",
            plain(&set.name),
            set.ended_session_count
        ),
        AdminResponse::Invited(invited) => format!("{}\n", plain(&invited.url)),
        AdminResponse::Bucket(bucket) => table(BUCKET, &[bucket_row(bucket)], wide),
        AdminResponse::Buckets(buckets) => {
            table(BUCKET, &buckets.iter().map(bucket_row).collect::<Vec<_>>(), wide)
        }
        AdminResponse::BucketDeleted(deleted) => format!(
            "deleted the bucket {} and {} files\n",
            plain(&deleted.bucket_name),
            deleted.deleted_count
        ),
        AdminResponse::Folders(folders) => folders_text(&folders.folders, wide),
        AdminResponse::Organisation(organisation) => {
            organisations_text(std::slice::from_ref(organisation), wide)
        }
        AdminResponse::Organisations(organisations) => organisations_text(organisations, wide),
        AdminResponse::OrganisationDeleted(deleted) => {
            format!("deleted the organisation {}\n", plain(&deleted.id))
        }
        AdminResponse::ApiKeyIssued(ApiKeyIssuedView { key, .. }) => format!("{}\n", plain(key)),
        AdminResponse::S3Credentials(S3CredentialsView { access_key_id, secret_access_key }) => {
            let (id, secret) = (plain(access_key_id), plain(secret_access_key));
            format!("AWS_ACCESS_KEY_ID={id}\nAWS_SECRET_ACCESS_KEY={secret}\n")
        }
        AdminResponse::ApiKey(api_key) => table(API_KEY, &[api_key_row(api_key)], wide),
        AdminResponse::ApiKeys(api_keys) => {
            table(API_KEY, &api_keys.iter().map(api_key_row).collect::<Vec<_>>(), wide)
        }
        AdminResponse::WebhookCreated(created) => format!("{}\n", plain(&created.secret)),
        AdminResponse::Webhook(webhook) => webhooks_text(std::slice::from_ref(webhook), wide),
        AdminResponse::Webhooks(webhooks) => webhooks_text(webhooks, wide),
        AdminResponse::WebhookDeleted(deleted) => {
            format!("deleted the webhook {}\n", plain(&deleted.id))
        }
        AdminResponse::WebhookTested(tested) => tested_text(tested),
        AdminResponse::LinkCreated(link) => format!("{}\n", plain(&link.url)),
        AdminResponse::Link(link) => link_text(link),
        AdminResponse::Links(links) => links_text(links, wide),
        AdminResponse::DeadLetters(letters) => dead_letters_text(letters, wide),
        AdminResponse::DeadLettersRetried(retried) => {
            format!("{} events queued again\n", retried.retried_count)
        }
        AdminResponse::DeadLettersForgotten(forgotten) => {
            format!("{} events deleted\n", forgotten.deleted_count)
        }
        AdminResponse::Lifecycle(lifecycle) => lifecycle_text(lifecycle, wide),
        AdminResponse::Objects(objects) => objects_text(objects),
        AdminResponse::Object(object) => object_text(object),
        AdminResponse::Usage(usage) => usage_text(usage, wide),
        AdminResponse::ObjectRead(it)
        | AdminResponse::ObjectCopied(it)
        | AdminResponse::ObjectMoved(it) => {
            format!("{}/{}  {}\n", plain(&it.bucket_name), plain(&it.path), bytes_text(it.bytes))
        }
        AdminResponse::ObjectsDeleted(deleted) => {
            format!("deleted {} objects\n", deleted.deleted_count)
        }
        AdminResponse::Presigned(presigned) => format!("{}\n", plain(&presigned.url)),
        AdminResponse::Stats(stats) => stats_text(stats, wide),
        AdminResponse::Exported(report) => exported_text(report),
        AdminResponse::Imported(report) => imported_text(report),
        AdminResponse::History(history) => history_text(history, wide),
        AdminResponse::Audit(audit) => audit_text(audit, wide),
        AdminResponse::Undeleted(undeleted) => undeleted_text(undeleted),
        AdminResponse::BackedUp(backed_up) => backed_up_text(backed_up),
        AdminResponse::Selection(selection) => selection_text(selection, wide),
        AdminResponse::Compacted(compacted) => compacted_text(compacted),
        AdminResponse::Scrubbed(scrubbed) => scrubbed_text(scrubbed),
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
        value_parsers::word(value_parsers::ROLE, &account.role).to_owned(),
        value_parsers::word(value_parsers::PLAN, &account.plan).to_owned(),
        value_parsers::word(value_parsers::STANDING, &account.standing).to_owned(),
        bytes(account.storage_bytes_max),
        number(account.object_count_max),
        account.created_at.clone(),
        account.standing_changes.last().map(|change| change.reason.clone()).unwrap_or_default(),
    ]
}

const STEP: &[Column] =
    &[("ID", Whole), ("NAME", Whole), ("FROM", Whole), ("TO", Whole), ("REASON", Cut)];

fn swept_text(swept: &SweepReportView, wide: bool) -> String {
    let SweepReportView { account_count, violation_count, steps } = swept;
    let mut text = format!("{account_count} accounts, {violation_count} break fair use\n");
    if !steps.is_empty() {
        let word =
            |it: &FairUseStanding| value_parsers::word(value_parsers::STANDING, it).to_owned();
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
    ("COMPRESSION", Wide),
    ("CACHE-CONTROL", Wide),
    ("PLACEHOLDER", Wide),
];

fn bucket_row(bucket: &BucketView) -> Vec<String> {
    vec![
        bucket.bucket_name.clone(),
        bucket.account.clone(),
        bucket.organisation.clone().unwrap_or_default(),
        value_parsers::word(value_parsers::KIND, &bucket.kind).to_owned(),
        value_parsers::word(value_parsers::ACCESS, &bucket.access).to_owned(),
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
        if bucket.compression { "yes" } else { "no" }.to_owned(),
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
    let scopes: Vec<_> = api_key
        .scopes
        .iter()
        .map(|scope| value_parsers::word(value_parsers::SCOPE, scope))
        .collect();
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
        let role = value_parsers::word(value_parsers::MEMBER_ROLE, &member.role).to_owned();
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
    push_issues(&mut text, "damaged", &report.damaged);
    push_issues(&mut text, "not written", &report.not_written);
    text
}

fn imported_text(report: &ImportReport) -> String {
    let mut text = format!("imported      {} files\n", report.imported_count);
    count_line(&mut text, "replaced", report.replaced_count);
    count_line(&mut text, "renamed", report.renamed_count);
    let _ = writeln!(text, "stored        {}", bytes_text(report.imported_bytes));
    count_line(&mut text, "unchanged", report.unchanged_count);
    push_issues(&mut text, "skipped", &report.skipped);
    push_issues(&mut text, "refused", &report.refused);
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

fn push_issues(text: &mut String, what: &str, list: &TruncatedList) {
    count_line(text, what, list.count);
    for NamedIssue { name, why } in &list.listed {
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

fn json_of(reply: &AdminResponse) -> Result<String, Failure> {
    match reply {
        AdminResponse::Account(it) => document(it),
        AdminResponse::Accounts(it) => document(it),
        AdminResponse::AccountDeleted(it) => document(it),
        AdminResponse::Swept(it) => document(it),
        AdminResponse::PasswordSet(it) => document(it),
        AdminResponse::Invited(it) => document(it),
        AdminResponse::Bucket(it) => document(it),
        AdminResponse::Buckets(it) => document(it),
        AdminResponse::BucketDeleted(it) => document(it),
        AdminResponse::Folders(it) => document(it),
        AdminResponse::Organisation(it) => document(it),
        AdminResponse::Organisations(it) => document(it),
        AdminResponse::OrganisationDeleted(it) => document(it),
        AdminResponse::ApiKeyIssued(it) => document(it),
        AdminResponse::S3Credentials(it) => document(it),
        AdminResponse::ApiKey(it) => document(it),
        AdminResponse::ApiKeys(it) => document(it),
        AdminResponse::WebhookCreated(it) => document(it),
        AdminResponse::Webhook(it) => document(it),
        AdminResponse::Webhooks(it) => document(it),
        AdminResponse::WebhookDeleted(it) => document(it),
        AdminResponse::WebhookTested(it) => document(it),
        AdminResponse::LinkCreated(it) | AdminResponse::Link(it) => document(it),
        AdminResponse::Links(it) => document(it),
        AdminResponse::DeadLetters(it) => document(it),
        AdminResponse::DeadLettersRetried(it) => document(it),
        AdminResponse::DeadLettersForgotten(it) => document(it),
        AdminResponse::Lifecycle(it) => document(it),
        AdminResponse::Objects(it) => document(it),
        AdminResponse::Object(it) => document(it),
        AdminResponse::Usage(it) => document(it),
        AdminResponse::ObjectRead(it)
        | AdminResponse::ObjectCopied(it)
        | AdminResponse::ObjectMoved(it) => document(it),
        AdminResponse::ObjectsDeleted(it) => document(it),
        AdminResponse::Presigned(it) => document(it),
        AdminResponse::Stats(it) => document(it),
        AdminResponse::Exported(it) => document(it),
        AdminResponse::Imported(it) => document(it),
        AdminResponse::History(it) => document(it),
        AdminResponse::Audit(it) => document(it),
        AdminResponse::Undeleted(it) => document(it),
        AdminResponse::BackedUp(it) => document(it),
        AdminResponse::Selection(it) => document(it),
        AdminResponse::Compacted(it) => document(it),
        AdminResponse::Scrubbed(it) => document(it),
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
mod tests;
