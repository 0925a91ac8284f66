//! `trug audit`: shows the audit log.
//!
//! Non-goals: recording.

use server::limits::AUDIT_PAGE_MAX;
use server::management::{AdminRequest, AuditLog, AuditQuery};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show the audit log, newest first.
///
/// Records changes of buckets, API keys, accounts, organisations, sessions, jobs and webhooks; with --files, uploads,
/// copies and deletions of files. Retains up to 10,000 entries, and 200,000 of files, for 400 days; beyond that, the
/// oldest entries of the most active account are deleted.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug audit --data data --bucket pics --action bucket."))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Show uploads, copies and deletions of files.
    #[arg(long)]
    files: bool,
    /// Only this file, or the files below this folder if it ends with "/".
    #[arg(long, value_name = "PATH", requires = "files")]
    path: Option<String>,
    /// Only files whose path contains this text.
    #[arg(long, value_name = "TEXT", requires = "files")]
    name: Option<String>,
    /// Only entries about this bucket.
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Only actions with this prefix, such as "bucket." or "key.create".
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only entries of this API key, session or account (ID).
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Start after this entry (the last one of the previous page).
    #[arg(long, value_name = "ENTRY")]
    before: Option<String>,
    /// Maximum number of entries.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = ENTRIES_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=AUDIT_PAGE_MAX as u64)
    )]
    limit: u64,
}

const ENTRIES_DEFAULT: u64 = 100;

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, files, path, name, bucket, action, actor, before, limit } = args;
    let log = if files { AuditLog::Files } else { AuditLog::Changes };
    let asked = AuditQuery { log, path, name, bucket, action, actor, before, limit };
    perform(&store, AdminRequest::Audit(asked))
}
