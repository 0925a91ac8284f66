//! `trug apikey`: API keys and S3 credentials.
//!
//! Non-goals: the operations, which `management` performs.

use catalog::Scope;
use clap::{Args, Subcommand};
use server::management::{AdminRequest, ApiKeySettings};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::Id;
use crate::s3_credentials;
use crate::units;
use crate::value_parsers;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create an API key. The key alone is written to stdout, once; only its hash is stored.
    #[command(
        visible_alias = "mk",
        after_help = exit::help("trug apikey create --account me --bucket pics --scope upload --data data")
    )]
    Create(Create),
    /// List API keys (not the secrets).
    #[command(
        visible_alias = "ls",
        after_help = exit::help("trug apikey list --account me --data data")
    )]
    List(List),
    /// Show the S3 credentials of an API key.
    #[command(after_help = exit::help("trug apikey s3 abcdefghijklmnop --data data"))]
    S3(One),
    /// Revoke an API key.
    #[command(
        visible_aliases = ["delete", "rm"],
        after_help = exit::help("trug apikey revoke abcdefghijklmnop --data data")
    )]
    Revoke(One),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// Account of the key (name or ID).
    #[arg(long)]
    account: String,
    /// Label of the key.
    #[arg(long, default_value = "")]
    name: String,
    /// Scopes, comma-separated [default: all].
    #[arg(
        long = "scope",
        value_delimiter = ',',
        ignore_case = true,
        value_parser = value_parsers::of(value_parsers::SCOPE)
    )]
    scopes: Vec<Scope>,
    /// Limit the key to one bucket.
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Limit the key to one folder of the bucket.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// Expiry: a duration such as 30d, a date, or "never".
    #[arg(long, value_name = "WHEN", alias = "expires-at", value_parser = units::expiry)]
    expires: Option<String>,
    #[command(flatten)]
    s3: s3_credentials::Args,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Only keys of this account (name or ID).
    #[arg(long)]
    account: Option<String>,
}

#[derive(Args)]
pub(crate) struct One {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(create) => {
            let expires_at = create.expires.filter(|time| !time.is_empty());
            let Create { store, account, name, scopes, bucket, prefix, .. } = create;
            let settings = ApiKeySettings { name, scopes, bucket, prefix, expires_at };
            let request = AdminRequest::CreateApiKey { account, settings };
            create.s3.perform(&store, request)
        }
        Command::List(List { store, account }) => {
            perform(&store, AdminRequest::ListApiKeys { account })
        }
        Command::S3(One { store, id }) => {
            perform(&store, AdminRequest::ShowS3Credentials { id: id.get() })
        }
        Command::Revoke(One { store, id }) => {
            perform(&store, AdminRequest::RevokeApiKey { id: id.get() })
        }
    }
}
