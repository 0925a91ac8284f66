//! `trug webhook`: events of a bucket, sent to a URL.
//!
//! Non-goals: the operations, which `management` performs.

use clap::{ArgGroup, Args, Subcommand};
use server::management::{AdminRequest, WebhookRequest, WebhookSettings};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, perform};
use crate::names::{Bucket, Id, Url};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a webhook and print its signing secret.
    #[command(
        visible_alias = "mk",
        after_help = exit::help(
            "trug webhook create pics https://example.com/hook --event s3:ObjectCreated:* --data data"
        )
    )]
    Create(Create),
    /// List webhooks and their delivery status.
    #[command(visible_alias = "ls", after_help = exit::help("trug webhook list pics --data data"))]
    List(List),
    /// Change, enable or disable a webhook.
    #[command(
        after_help = exit::help("trug webhook edit abcdefghijklmnop --enabled false --data data"),
        group(
            ArgGroup::new("change")
                .args(["new_url", "events", "prefix", "enabled"])
                .required(true)
                .multiple(true)
        )
    )]
    Edit(Edit),
    /// Delete a webhook and its pending events.
    #[command(
        visible_alias = "rm",
        after_help = exit::help("trug webhook delete abcdefghijklmnop --data data")
    )]
    Delete(One),
    /// Send a test event and show the response. Needs a running server.
    #[command(after_help = exit::help("trug webhook test abcdefghijklmnop --data data"))]
    Test(One),
    /// List events that could not be delivered, the oldest first.
    #[command(
        alias = "dead-letters",
        after_help = exit::help("trug webhook failed abcdefghijklmnop --data data")
    )]
    Failed(One),
    /// Deliver failed events again.
    #[command(after_help = exit::help("trug webhook retry abcdefghijklmnop --data data"))]
    Retry(Events),
    /// Discard failed events.
    #[command(
        alias = "forget",
        after_help = exit::help("trug webhook discard abcdefghijklmnop --data data")
    )]
    Discard(Events),
}

#[derive(Args)]
pub(crate) struct Create {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    bucket: Bucket,
    #[command(flatten)]
    url: Url,
    /// Events by their S3 names, comma-separated: s3:ObjectCreated:*, s3:ObjectCreated:Put, s3:ObjectCreated:Post,
    /// s3:ObjectCreated:CompleteMultipartUpload, s3:ObjectRemoved:*, s3:ObjectRemoved:Delete,
    /// s3:LifecycleExpiration:*, s3:LifecycleExpiration:Delete.
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',', required = true)]
    events: Vec<String>,
    /// Only events of keys with this prefix.
    #[arg(long)]
    prefix: Option<String>,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    bucket: Bucket,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
    /// URL that receives the events, http or https.
    #[arg(id = "new_url", long = "url", value_name = "URL")]
    url: Option<String>,
    /// Events by their S3 names, comma-separated.
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',')]
    events: Option<Vec<String>>,
    /// Only events of keys with this prefix; empty for all.
    #[arg(long)]
    prefix: Option<String>,
    /// Whether events are sent.
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
}

#[derive(Args)]
pub(crate) struct One {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
}

#[derive(Args)]
pub(crate) struct Events {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    id: Id,
    /// Only this event, as shown by `trug webhook failed`.
    #[arg(id = "EVENT")]
    event: Option<String>,
    /// Alias of the positional event.
    #[arg(long = "event", value_name = "EVENT", hide = true, conflicts_with = "EVENT")]
    event_option: Option<String>,
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let (store, request) = match command {
        Command::Create(Create { store, bucket, url, events, prefix }) => {
            let (url, events) = (Some(url.get()), Some(events));
            let settings = WebhookSettings { url, events, prefix, enabled: None };
            (store, WebhookRequest::Create { bucket: bucket.get(), settings })
        }
        Command::List(List { store, bucket }) => {
            (store, WebhookRequest::List { bucket: bucket.get() })
        }
        Command::Edit(Edit { store, id, url, events, prefix, enabled }) => {
            let settings = WebhookSettings { url, events, prefix, enabled };
            (store, WebhookRequest::Edit { id: id.get(), settings })
        }
        Command::Delete(One { store, id }) => (store, WebhookRequest::Delete { id: id.get() }),
        Command::Test(One { store, id }) => (store, WebhookRequest::Test { id: id.get() }),
        Command::Failed(One { store, id }) => (store, WebhookRequest::DeadLetters { id: id.get() }),
        Command::Retry(Events { store, id, event, event_option }) => {
            (store, WebhookRequest::Retry { id: id.get(), event: event.or(event_option) })
        }
        Command::Discard(Events { store, id, event, event_option }) => {
            (store, WebhookRequest::Forget { id: id.get(), event: event.or(event_option) })
        }
    };
    perform(&store, AdminRequest::Webhook(request))
}
