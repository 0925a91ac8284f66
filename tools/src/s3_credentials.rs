//! S3 credentials of a new API key.
//!
//! Non-goals: how they are derived.

use clap::ValueEnum;
use server::management::{AdminRequest, AdminResponse, S3CredentialsView};

use crate::exit::Failure;
use crate::management::{StoreArgs, request};
use crate::output;
use crate::startup::quoted;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the S3 credentials of the key too.
    #[arg(long)]
    s3: bool,
    /// Print the S3 credentials instead of the key, for a shell, or as a section of an aws-cli or rclone configuration.
    #[arg(long, requires = "s3", conflicts_with = "json")]
    format: Option<Format>,
    /// Endpoint of the printed S3 credentials.
    #[arg(
        long,
        value_name = "URL",
        env = "TRUG_PUBLIC_URL",
        default_value = "http://127.0.0.1:8080"
    )]
    endpoint: String,
}

impl Args {
    /// Creates the API key of the request and prints it.
    pub(crate) fn perform(self, store: &StoreArgs, key: AdminRequest) -> Result<(), Failure> {
        let Self { s3, format, endpoint } = self;
        let reply = request(store, key)?;
        let credentials = match &reply {
            AdminResponse::ApiKeyIssued(issued) if s3 => issued.s3.as_ref(),
            _ => None,
        };
        if let Some((credentials, format)) = credentials.zip(format) {
            return output::result(&format.text(credentials, &endpoint));
        }
        output::reply(&reply, store.format())?;
        if let Some(S3CredentialsView { access_key_id, secret_access_key }) = credentials {
            output::print_note(&format!(
                "S3 credentials\n\
                 endpoint           {endpoint}\n\
                 region             us-east-1\n\
                 access key ID      {access_key_id}\n\
                 secret access key  {secret_access_key}\n\
                 addressing         path-style"
            ));
        }
        Ok(())
    }
}

/// Format of printed S3 credentials.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Environment variables for a shell.
    Env,
    /// Profile `trug` of aws-cli.
    Aws,
    /// Remote `trug` of rclone.
    Rclone,
}

impl Format {
    fn text(self, credentials: &S3CredentialsView, endpoint: &str) -> String {
        let S3CredentialsView { access_key_id: id, secret_access_key: secret } = credentials;
        match self {
            Self::Env => format!(
                "export AWS_ACCESS_KEY_ID={id}\nexport AWS_SECRET_ACCESS_KEY={secret}\n\
                 export AWS_DEFAULT_REGION=us-east-1\nexport AWS_ENDPOINT_URL={}\n",
                quoted(endpoint)
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
