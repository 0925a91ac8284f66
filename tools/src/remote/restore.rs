//! `trug remote restore` and `trug remote points`: a store from its remote store.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use engine::replication::{
    ReplicationOptions, RestorePoint, restore_folder, restore_folder_references, restore_points,
};
use engine::{Background, Create, OpenOptions, Store};
use jiff::Timestamp;
use protocol::time_format::iso_time;
use serde::Serialize;

use super::location::LocationArgs;
use crate::exit::{self, Exit, Failure};
use crate::management::UNDELETE_WINDOW_MS;
use crate::output;
use crate::progress::Bar;
use crate::units;

/// Restore a store from its remote store into a new folder.
///
/// Without --at the newest state is restored: everything that the remote store has. Everything fetched is verified;
/// damage is listed, and the exit code is 3. An interrupted restore leaves no store: delete the folder and start again.
#[derive(clap::Args)]
#[command(after_help = exit::help(
    "trug remote restore s3://pics/trug --credentials-file keys.txt --data restored"
))]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,
    /// Folder to restore to: new or empty.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Restore the last state at or before this time: a duration before now such as 2h, a date, or a time such as
    /// 2026-11-25T01:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = units::since)]
    at: Option<String>,
    /// Fetch files when they are read instead of now: only record heads are read. The server needs `remote_url` then.
    #[arg(long, conflicts_with = "at")]
    on_demand: bool,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// List the states to which a store can be restored.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug remote points s3://pics/trug --credentials-file keys.txt"))]
pub(crate) struct PointsArgs {
    #[command(flatten)]
    location: LocationArgs,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// Restore point in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PointView {
    pub(super) time: String,
    pub(super) chunk: u64,
    last_lsn: u64,
}

/// Result of a restore in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoredView {
    time: String,
    last_lsn: u64,
    objects: u64,
    segments: u64,
    chunks: u64,
    bytes: u64,
    damage: Vec<String>,
    damage_count: u64,
}

pub(super) fn points(args: PointsArgs) -> Result<(), Failure> {
    let remote = args.location.connect()?;
    let points = restore_points(remote.store.as_ref())?;
    let views: Vec<PointView> = points.iter().map(PointView::of).collect();
    if args.json {
        return output::result(&output::document(&views)?);
    }
    let mut text = String::new();
    for point in &views {
        text.push_str(&format!("{}  chunk {}\n", point.time, point.chunk));
    }
    if views.is_empty() {
        return Err(Failure::failed(format!("{} has no restore point", remote.location)));
    }
    output::result(&text)
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let at_ms = args.at.as_deref().map(unix_ms).transpose()?;
    let remote = args.location.connect()?;
    let bar = Bar::new();
    let mut watch = |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    };
    let restored = match args.on_demand {
        false => restore_folder(remote.store.as_ref(), &args.data, at_ms, &mut watch),
        true => restore_folder_references(&remote.store, &args.data, &mut watch),
    };
    bar.remove();
    let restored = restored?;
    // The index is rebuilt now, so that the first start is fast and damage is known.
    let options = OpenOptions {
        compaction: None,
        retention_window_ms: UNDELETE_WINDOW_MS,
        // Without its threads nothing is shipped.
        background: Background::Manual,
        replication: args.on_demand.then(|| ReplicationOptions::new(Arc::clone(&remote.store))),
        ..OpenOptions::new(Create::Never)
    };
    let (store, opened) = Store::open_folder(&args.data, options)?;
    let objects = store.stats()?.objects;
    store.close()?;
    let mut damage = restored.damage.clone();
    damage.extend((!opened.damage.is_empty()).then(|| opened.to_string()));
    let view = RestoredView {
        time: iso_time(restored.created_ms),
        last_lsn: restored.last_lsn,
        objects,
        segments: restored.segments,
        chunks: restored.chunks,
        bytes: restored.bytes,
        damage_count: restored.damage_count + opened.damage_count(),
        damage,
    };
    output::result(&if args.json { output::document(&view)? } else { view.text() })?;
    match view.damage_count {
        0 => Ok(()),
        count => Err(Failure::new(Exit::Damage, format!("{count} places are damaged"))),
    }
}

/// Returns a time in RFC 3339 in milliseconds since 1970.
fn unix_ms(time: &str) -> Result<u64, Failure> {
    let parsed = time.parse::<Timestamp>().ok();
    let unix_ms = parsed.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    unix_ms.ok_or_else(|| Failure::wrong_usage(format!("--at: {time} is before 1970")))
}

impl PointView {
    pub(super) fn of(point: &RestorePoint) -> Self {
        let RestorePoint { chunk, created_ms, last_lsn } = *point;
        Self { time: iso_time(created_ms), chunk, last_lsn }
    }
}

impl RestoredView {
    fn text(&self) -> String {
        let size = units::bytes_text(self.bytes);
        let mut text = format!(
            "restored the state of {}: {} files, {size} fetched in {} segments and {} chunks\n",
            self.time, self.objects, self.segments, self.chunks
        );
        for damage in &self.damage {
            text.push_str(&format!("damage: {damage}\n"));
        }
        text
    }
}
