//! `trug remote gc`: removal of what no restore point of a remote store needs.
//!
//! Non-goals: what is needed, which the engine decides.

use std::path::PathBuf;
use std::sync::Arc;

use engine::remote::{RemoteObject, RemoteStore};
use engine::replication::{CollectionReport, ReplicationOptions};
use engine::{Background, Create, OpenOptions, Store};
use serde::Serialize;

use super::attach::wait_for;
use super::location::LocationArgs;
use super::status::require_folder;
use crate::exit::{self, Failure};
use crate::management::UNDELETE_WINDOW_MS;
use crate::output;
use crate::units;

/// Remove what no restore point needs from a remote store.
///
/// A server does this every hour; this command does it for a folder whose server is stopped. A segment that nothing
/// refers to is listed by a new restore point, and removed when no older one is retained. With --dry-run the command
/// shows what it would remove, and which segments wait for older restore points, and changes nothing in the remote
/// store; a removal may include some chunks more, because it begins with a new restore point.
#[derive(clap::Args)]
#[command(after_help = exit::help(
    "trug remote gc s3://pics/trug --credentials-file keys.txt --data data --dry-run"
))]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    /// Days for which restore points are retained, as in the configuration of the server.
    #[arg(
        long,
        value_name = "DAYS",
        env = "TRUG_REMOTE_RETENTION_DAYS",
        default_value_t = 7,
        value_parser = clap::value_parser!(u16).range(1..=3_650)
    )]
    retention_days: u16,
    /// Show what would be removed without removing it.
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// Result of a removal in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovedView {
    objects: u64,
    bytes: u64,
}

/// Result of a dry run in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DryRunView {
    removable: ObjectsView,
    waiting: ObjectsView,
}

/// Objects in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectsView {
    objects: usize,
    bytes: u64,
    names: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let remote = args.location.connect()?;
    require_folder(remote.store.as_ref(), &args.data)?;
    let background = match args.dry_run {
        // Without threads nothing is shipped.
        true => Background::Manual,
        false => Background::Threads,
    };
    let options = OpenOptions {
        compaction: None,
        retention_window_ms: UNDELETE_WINDOW_MS,
        background,
        replication: Some(replication(remote.store, args.retention_days)),
        ..OpenOptions::new(Create::Never)
    };
    let (store, report) = Store::open_folder(&args.data, options)?;
    if !report.damage.is_empty() {
        output::print_note(&report.to_string());
    }
    let result = match args.dry_run {
        true => dry_run(&store, args.json),
        false => collect(&store, args.json),
    };
    store.close()?;
    output::result(&result?)
}

fn replication(remote: Arc<dyn RemoteStore>, retention_days: u16) -> ReplicationOptions {
    let retention_ms = u64::from(retention_days) * 24 * 60 * 60 * 1_000;
    ReplicationOptions { retention_ms, probe: false, ..ReplicationOptions::new(remote) }
}

/// Waits for a collection. Returns the output.
fn collect(store: &Store, json: bool) -> Result<String, Failure> {
    let status = wait_for(store, |status| status.collection.is_some())?;
    let CollectionReport { objects, bytes } = status.collection.unwrap_or_default();
    if json {
        return output::document(&RemovedView { objects, bytes });
    }
    Ok(format!("removed {objects} objects, {}\n", units::bytes_text(bytes)))
}

/// Returns the output of a dry run.
fn dry_run(store: &Store, json: bool) -> Result<String, Failure> {
    let garbage = store.remote_garbage()?.unwrap_or_default();
    let view = DryRunView {
        removable: ObjectsView::of(&garbage.removable),
        waiting: ObjectsView::of(&garbage.waiting),
    };
    if json {
        return output::document(&view);
    }
    let removable = view.removable.text("would be removed");
    Ok(removable + &view.waiting.text("wait for older restore points"))
}

impl ObjectsView {
    fn of(objects: &[RemoteObject]) -> Self {
        Self {
            objects: objects.len(),
            bytes: objects.iter().map(|object| object.bytes).sum(),
            names: objects.iter().map(|object| object.name.clone()).collect(),
        }
    }

    fn text(&self, what: &str) -> String {
        let bytes = units::bytes_text(self.bytes);
        let mut text = format!("{} objects, {bytes} {what}\n", self.objects);
        for name in &self.names {
            text.push_str(&format!("  {name}\n"));
        }
        text
    }
}
