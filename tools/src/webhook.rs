//! `trug webhook`: who is told what happens in a bucket.
//!
//! Never here: how it is done; `management` does it.

use clap::{ArgGroup, Args, Subcommand};
use server::management::{Request, WebhookRequest, WebhookSettings};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a webhook. The secret that its messages are signed with goes to stdout, this once.
    #[command(
        after_help = exit::help(
            "trug webhook create --data data --bucket pics --url https://example.com/hook --event s3:ObjectCreated:*"
        )
    )]
    Create(Create),
    /// List the webhooks of a bucket, and how their deliveries go.
    #[command(after_help = exit::help("trug webhook list --data data --bucket pics"))]
    List(List),
    /// Change a webhook, or switch it on or off.
    #[command(
        after_help = exit::help("trug webhook edit --data data --id abcdefghijklmnop --enabled false"),
        group(
            ArgGroup::new("change")
                .args(["url", "events", "prefix", "enabled"])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Delete a webhook, and what waits for it.
    #[command(after_help = exit::help("trug webhook delete --data data --id abcdefghijklmnop"))]
    Delete(One),
    /// Send a test, and show what the destination answers. Takes a running server.
    #[command(after_help = exit::help("trug webhook test --data data --id abcdefghijklmnop"))]
    Test(One),
    /// List events that were given up, the oldest first.
    #[command(after_help = exit::help("trug webhook dead-letters --data data --id abcdefghijklmnop"))]
    DeadLetters(One),
    /// Send events again that were given up: all, or one.
    #[command(after_help = exit::help("trug webhook retry --data data --id abcdefghijklmnop"))]
    Retry(Events),
    /// Forget events that were given up: all, or one.
    #[command(after_help = exit::help("trug webhook forget --data data --id abcdefghijklmnop"))]
    Forget(Events),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// Where messages go, with http or https.
    #[arg(long)]
    url: String,
    /// What it is told, in S3's names, several with commas: s3:ObjectCreated:*, s3:ObjectCreated:Put,
    /// s3:ObjectCreated:Post, s3:ObjectCreated:CompleteMultipartUpload, s3:ObjectRemoved:*, s3:ObjectRemoved:Delete.
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',', required = true)]
    events: Vec<String>,
    /// Only of files whose keys begin so.
    #[arg(long)]
    prefix: Option<String>,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// The bucket.
    #[arg(long, value_name = "NAME")]
    bucket: String,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    /// Id of the webhook, as `trug webhook list` shows it.
    #[arg(long)]
    id: String,
    /// Where messages go, with http or https.
    #[arg(long)]
    url: Option<String>,
    /// What it is told, in S3's names, several with commas.
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',')]
    events: Option<Vec<String>>,
    /// Only of files whose keys begin so; empty for all.
    #[arg(long)]
    prefix: Option<String>,
    /// Whether it is told anything.
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
}

#[derive(Args)]
pub(crate) struct One {
    #[command(flatten)]
    store: StoreArgs,
    /// Id of the webhook, as `trug webhook list` shows it.
    #[arg(long)]
    id: String,
}

#[derive(Args)]
pub(crate) struct Events {
    #[command(flatten)]
    store: StoreArgs,
    /// Id of the webhook, as `trug webhook list` shows it.
    #[arg(long)]
    id: String,
    /// Only this event, as `trug webhook dead-letters` shows it.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let (store, request) = match command {
        Command::Create(Create { store, bucket, url, events, prefix }) => {
            let (url, events) = (Some(url), Some(events));
            let settings = WebhookSettings { url, events, prefix, enabled: None };
            (store, WebhookRequest::Create { bucket, settings })
        }
        Command::List(List { store, bucket }) => (store, WebhookRequest::List { bucket }),
        Command::Edit(Edit { store, id, url, events, prefix, enabled }) => {
            let settings = WebhookSettings { url, events, prefix, enabled };
            (store, WebhookRequest::Edit { id, settings })
        }
        Command::Delete(One { store, id }) => (store, WebhookRequest::Delete { id }),
        Command::Test(One { store, id }) => (store, WebhookRequest::Test { id }),
        Command::DeadLetters(One { store, id }) => (store, WebhookRequest::DeadLetters { id }),
        Command::Retry(Events { store, id, event }) => (store, WebhookRequest::Retry { id, event }),
        Command::Forget(Events { store, id, event }) => {
            (store, WebhookRequest::Forget { id, event })
        }
    };
    perform(&store, Request::Webhook(request))
}
