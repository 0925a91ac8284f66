//! `trug audit`: shows the audit log.
//!
//! Non-goals: recording.

use server::limits::AUDIT_PAGE_MAX;
use server::management::{AdminRequest, AuditQuery};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show the audit log, newest first.
///
/// Records changes of buckets, API keys, accounts, organisations, sessions, jobs and webhooks, not of objects. Holds up
/// to 10,000 entries of the last 400 days; beyond that, the oldest entry of the most active actor is dropped.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug audit --data data --bucket pics --action bucket."))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
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
    before: Option<u64>,
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
    let Args { store, bucket, action, actor, before, limit } = args;
    let before = before.map(|number| number.to_string());
    perform(&store, AdminRequest::Audit(AuditQuery { bucket, action, actor, before, limit }))
}
