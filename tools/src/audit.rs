//! `trug audit`: who changed what.
//!
//! Never here: what is told of a change.

use server::limits::AUDIT_PAGE_MAX;
use server::management::{AuditAsked, Request};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

/// Show who changed what, the newest first: buckets, keys, accounts, organisations, sessions, jobs, webhooks.
///
/// Files are not in it. The newest 10,000 changes of the last 400 days are kept; of more, the oldest goes of whoever
/// made most.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug audit --data data --bucket pics --action bucket."))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Only what is about this bucket.
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Only actions that begin so, as "bucket." or "key.create".
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only what this key, session or account did.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Only what was before this entry.
    #[arg(long, value_name = "ENTRY")]
    before: Option<u64>,
    /// Show at most this many entries.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = SHOWN,
        value_parser = clap::value_parser!(u64).range(1..=AUDIT_PAGE_MAX as u64)
    )]
    limit: u64,
}

const SHOWN: u64 = 100;

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, action, actor, before, limit } = args;
    let before = before.map(|number| number.to_string());
    perform(&store, Request::Audit(AuditAsked { bucket, action, actor, before, limit }))
}
