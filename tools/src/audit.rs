//! `trug audit`: who changed what.
//!
//! Never here: what is told of a change.

use server::limits::AUDIT_PAGE_MAX;
use server::management::{AuditAsked, Request};

use crate::exit::{self, Failure};
use crate::management::{Shown, StoreArgs, perform};

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
    #[command(flatten)]
    shown: Shown<100, { AUDIT_PAGE_MAX as u64 }>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, bucket, action, actor, before, shown } = args;
    let before = before.map(|number| number.to_string());
    perform(
        &store,
        Request::Audit(AuditAsked { bucket, action, actor, before, limit: shown.limit }),
    )
}
