//! `trug lifecycle`: expiry rules of a bucket.
//!
//! Non-goals: the operations, which `management` performs.

use clap::{Args, Subcommand};
use server::management::{AdminRequest, LifecycleRequest};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::units;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the expiry rules of a bucket.
    #[command(
        visible_alias = "ls",
        after_help = exit::help("trug lifecycle list pics --data data")
    )]
    List(List),
    /// Add or replace an expiry rule.
    ///
    /// A running server deletes objects within a minute after they have expired.
    #[command(after_help = exit::help("trug lifecycle set pics tmp/ --after 30d --data data"))]
    Set(Set),
    /// Delete an expiry rule.
    #[command(
        visible_alias = "rm",
        after_help = exit::help("trug lifecycle delete pics tmp/ --data data")
    )]
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Bucket.
    #[arg(value_name = "BUCKET")]
    bucket: String,
}

#[derive(Args)]
pub(crate) struct Set {
    #[command(flatten)]
    store: StoreArgs,
    /// Bucket.
    #[arg(value_name = "BUCKET")]
    bucket: String,
    /// Start of the keys to which the rule applies; empty for the whole bucket.
    prefix: String,
    /// Age since the last modification, such as 90m, 12h or 30d.
    #[arg(long, value_name = "DURATION", value_parser = units::seconds)]
    after: u64,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    store: StoreArgs,
    /// Bucket.
    #[arg(value_name = "BUCKET")]
    bucket: String,
    /// Prefix of the rule.
    prefix: String,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let (store, request) = match command {
        Command::List(List { store, bucket }) => (store, LifecycleRequest::List { bucket }),
        Command::Set(Set { store, bucket, prefix, after: after_seconds }) => {
            (store, LifecycleRequest::Set { bucket, prefix, after_seconds })
        }
        Command::Delete(Delete { store, bucket, prefix }) => {
            (store, LifecycleRequest::Delete { bucket, prefix })
        }
    };
    perform(&store, AdminRequest::Lifecycle(request))
}
