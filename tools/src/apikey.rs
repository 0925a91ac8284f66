//! `trug apikey`: API keys and S3 credentials.
//!
//! Non-goals: the operations, which `management` performs.

use clap::{Args, Subcommand, ValueEnum};
use server::catalog::Scope;
use server::management::{ApiKeySettings, Reply, Request, S3CredentialsView};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform, request};
use crate::names::Id;
use crate::units;
use crate::{choice, output};

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
    #[cfg(feature = "s3")]
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
        value_parser = choice::of(choice::SCOPE)
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
    /// Print the S3 credentials of the key too.
    #[cfg(feature = "s3")]
    #[arg(long)]
    s3: bool,
    /// Print the S3 credentials instead of the key, for a shell, or as a section of an aws-cli or rclone configuration.
    #[cfg(feature = "s3")]
    #[arg(long, requires = "s3", conflicts_with = "json")]
    format: Option<S3Format>,
    /// Endpoint of the printed S3 credentials.
    #[cfg(feature = "s3")]
    #[arg(
        long,
        value_name = "URL",
        env = "TRUG_PUBLIC_URL",
        default_value = "http://127.0.0.1:8080",
        requires = "s3"
    )]
    endpoint: String,
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
        Command::Create(create) => run_create(create),
        Command::List(List { store, account }) => perform(&store, Request::ListApiKeys { account }),
        #[cfg(feature = "s3")]
        Command::S3(One { store, id }) => {
            perform(&store, Request::ShowS3Credentials { id: id.get() })
        }
        Command::Revoke(One { store, id }) => {
            perform(&store, Request::RevokeApiKey { id: id.get() })
        }
    }
}

#[cfg(feature = "s3")]
fn run_create(create: Create) -> Result<(), Failure> {
    let Create { store, account, name, scopes, bucket, prefix, expires, s3, format, endpoint } =
        create;
    let expires_at = expires.filter(|time| !time.is_empty());
    let settings = ApiKeySettings { name, scopes, bucket, prefix, expires_at };
    let reply = request(&store, Request::CreateApiKey { account, settings })?;
    let credentials = match &reply {
        Reply::ApiKeyIssued(issued) if s3 => issued.s3.as_ref(),
        _ => None,
    };
    match (credentials, format) {
        (Some(credentials), Some(format)) => output::result(&format.text(credentials, &endpoint)),
        (Some(credentials), None) => {
            output::reply(&reply, store.is_json())?;
            let S3CredentialsView { access_key_id, secret_access_key } = credentials;
            output::note(&format!(
                "S3 credentials\n\
                 endpoint           {endpoint}\n\
                 region             us-east-1\n\
                 access key ID      {access_key_id}\n\
                 secret access key  {secret_access_key}\n\
                 addressing         path-style"
            ));
            Ok(())
        }
        (None, _) => output::reply(&reply, store.is_json()),
    }
}

#[cfg(not(feature = "s3"))]
fn run_create(create: Create) -> Result<(), Failure> {
    let Create { store, account, name, scopes, bucket, prefix, expires } = create;
    let expires_at = expires.filter(|time| !time.is_empty());
    let settings = ApiKeySettings { name, scopes, bucket, prefix, expires_at };
    perform(&store, Request::CreateApiKey { account, settings })
}

/// Format of printed S3 credentials.
#[cfg(feature = "s3")]
#[derive(Clone, Copy, ValueEnum)]
enum S3Format {
    /// Environment variables for a shell.
    Env,
    /// Profile `trug` of aws-cli.
    Aws,
    /// Remote `trug` of rclone.
    Rclone,
}

#[cfg(feature = "s3")]
impl S3Format {
    fn text(self, credentials: &S3CredentialsView, endpoint: &str) -> String {
        let S3CredentialsView { access_key_id: id, secret_access_key: secret } = credentials;
        match self {
            Self::Env => format!(
                "export AWS_ACCESS_KEY_ID={id}\nexport AWS_SECRET_ACCESS_KEY={secret}\n\
                 export AWS_DEFAULT_REGION=us-east-1\nexport AWS_ENDPOINT_URL={}\n",
                crate::startup::quoted(endpoint)
            ),
            Self::Aws => format!(
                "[profile trug]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n\
                 region = us-east-1\nendpoint_url = {endpoint}\n"
            ),
            Self::Rclone => format!(
                "[trug]\ntype = s3\nprovider = Other\naccess_key_id = {id}\n\
                 secret_access_key = {secret}\nendpoint = {endpoint}\nupload_cutoff = 64M\n"
            ),
        }
    }
}
