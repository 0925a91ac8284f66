//! `trug apikey`: what clients upload, delete and read with.
//!
//! Never here: how it is done; `management` does it.

use clap::{Args, Subcommand};
use server::catalog::Scope;
use server::management::{ApiKeySettings, Request};

use crate::choice;
use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make an API key. The key alone goes to stdout, this once; only its hash is kept.
    #[command(
        after_help = exit::help("trug apikey create --data data --account me --bucket pics --scope upload")
    )]
    Create(Create),
    /// List the API keys of an account, or all: what they open, not the keys.
    #[command(after_help = exit::help("trug apikey list --data data --account me"))]
    List(List),
    /// Show with what clients of S3 sign in the name of a key: as its access key id and its secret access key.
    #[cfg(feature = "s3")]
    #[command(after_help = exit::help("trug apikey s3 --data data --id abcdefghijklmnop"))]
    S3(Revoke),
    /// Revoke an API key: it opens nothing from now on.
    #[command(after_help = exit::help("trug apikey revoke --data data --id abcdefghijklmnop"))]
    Revoke(Revoke),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of the account whose key it is.
    #[arg(long)]
    account: String,
    /// A name for people to tell keys apart by.
    #[arg(long, default_value = "")]
    name: String,
    /// What the key may do, several with commas; without it, everything.
    #[arg(
        long = "scope",
        value_delimiter = ',',
        ignore_case = true,
        value_parser = choice::of(choice::SCOPE)
    )]
    scopes: Vec<Scope>,
    /// The only bucket that the key opens.
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// The only folder that the key reaches, at any depth.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<String>,
    /// When the key ends, as 2030-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Name or id of an account.
    #[arg(long)]
    account: Option<String>,
}

#[derive(Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    store: StoreArgs,
    /// Id of the key, as `trug apikey list` shows it: the second part of the key.
    #[arg(long)]
    id: String,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(create) => {
            let Create { store, account, name, scopes, bucket, prefix, expires_at } = create;
            let settings = ApiKeySettings { name, scopes, bucket, prefix, expires_at };
            perform(&store, Request::CreateApiKey { account, settings })
        }
        Command::List(List { store, account }) => perform(&store, Request::ListApiKeys { account }),
        #[cfg(feature = "s3")]
        Command::S3(Revoke { store, id }) => perform(&store, Request::ShowS3Credentials { id }),
        Command::Revoke(Revoke { store, id }) => perform(&store, Request::RevokeApiKey { id }),
    }
}
