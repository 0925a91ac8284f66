//! `trug remote status`: state of a remote store, and of a data folder compared with it.
//!
//! Non-goals: the lag of a running server, which its metrics and its dashboard show.

use std::path::{Path, PathBuf};

use engine::clock::{Clock, SystemClock};
use engine::remote::RemoteStore;
use engine::replication::{
    FolderStatus, PrefixSize, RemoteStatus, folder_status, remote_sizes, remote_status,
};
use protocol::time_format::iso_time;
use serde::Serialize;

use super::location::LocationArgs;
use super::restore::PointView;
use crate::exit::{self, Exit, Failure};
use crate::output;
use crate::units;

/// Show the state of a remote store, and whether a data folder continues it.
///
/// Changes nothing, and works while a server uses the folder. The exit code is 5 if the folder contains another store,
/// or another process was the primary after the last one with this folder.
#[derive(clap::Args)]
#[command(after_help = exit::help(
    "trug remote status s3://pics/trug --credentials-file keys.txt --data data"
))]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,
    /// Data folder to compare with the remote store. [default: none]
    #[arg(long, value_name = "DIR", env = "TRUG_DATA")]
    data: Option<PathBuf>,
    /// Count all objects and their bytes, which lists the whole remote store.
    #[arg(long)]
    sizes: bool,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// State of a remote store in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusView {
    url: String,
    store: String,
    last_chunk: Option<ChunkView>,
    restore_point_count: u64,
    newest_restore_point: Option<PointView>,
    sizes: Option<Vec<SizeView>>,
    folder: Option<FolderView>,
}

/// Last chunk in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkView {
    number: u64,
    epoch: u64,
    primary: String,
    time: String,
    age_ms: u64,
    last_lsn: u64,
}

/// Objects with a prefix in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SizeView {
    prefix: &'static str,
    objects: u64,
    bytes: u64,
}

/// Data folder in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FolderView {
    path: String,
    store: String,
    is_same_store: bool,
    epoch: Option<u64>,
    is_newest_epoch: bool,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let Args { location, data, sizes, json } = args;
    let remote = location.connect()?;
    let status = remote_status(remote.store.as_ref())?;
    let folder = match data.as_deref() {
        Some(path) => Some((path, folder_status(path, &status)?)),
        None => None,
    };
    let sizes = sizes.then(|| remote_sizes(remote.store.as_ref())).transpose()?;
    let view = StatusView::new(remote.location.to_string(), &status, sizes, folder);
    output::result(&if json { output::document(&view)? } else { view.text() })?;
    folder.map_or(Ok(()), |(path, folder)| require_newest(path, &folder, &status))
}

/// Fails unless the last primary of the remote store had this data folder.
pub(super) fn require_folder(remote: &dyn RemoteStore, path: &Path) -> Result<(), Failure> {
    let status = remote_status(remote)?;
    let folder = folder_status(path, &status)?;
    if folder.is_same_store && folder.epoch.is_none() {
        let path = path.display();
        return Err(Failure::failed(format!("{path} is not replicated: run `trug remote attach`")));
    }
    require_newest(path, &folder, &status)
}

/// Fails if the folder is replicated and does not continue the remote store.
fn require_newest(
    path: &Path,
    folder: &FolderStatus,
    remote: &RemoteStatus,
) -> Result<(), Failure> {
    let path = path.display();
    let newest = remote.last_chunk.map_or(0, |chunk| chunk.epoch);
    let why = match folder.epoch {
        _ if !folder.is_same_store => format!(
            "the remote store belongs to store {}, {path} contains store {}",
            remote.store, folder.store
        ),
        Some(epoch) if !folder.is_newest_epoch => format!(
            "the last epoch of {path} is {epoch}, but another process was the primary in epoch {newest}"
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Fenced, why))
}

impl StatusView {
    fn new(
        url: String,
        status: &RemoteStatus,
        sizes: Option<Vec<PrefixSize>>,
        folder: Option<(&Path, FolderStatus)>,
    ) -> Self {
        let now_ms = SystemClock::new().unix_ms();
        Self {
            url,
            store: status.store.to_string(),
            last_chunk: status.last_chunk.map(|chunk| ChunkView {
                number: chunk.number,
                epoch: chunk.epoch,
                primary: chunk.primary.to_string(),
                time: iso_time(chunk.sent_ms),
                age_ms: now_ms.saturating_sub(chunk.sent_ms),
                last_lsn: chunk.last_lsn,
            }),
            restore_point_count: status.restore_points,
            newest_restore_point: status.newest_point.as_ref().map(PointView::of),
            sizes: sizes.map(|sizes| sizes.into_iter().map(SizeView::of).collect()),
            folder: folder.map(|(path, folder)| FolderView {
                path: path.display().to_string(),
                store: folder.store.to_string(),
                is_same_store: folder.is_same_store,
                epoch: folder.epoch,
                is_newest_epoch: folder.is_newest_epoch,
            }),
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![("store", self.store.clone())];
        match &self.last_chunk {
            None => lines.push(("last chunk", "none".to_owned())),
            Some(chunk) => {
                let age = units::age_text(chunk.age_ms);
                lines.push(("epoch", format!("{}, of process {}", chunk.epoch, chunk.primary)));
                lines.push((
                    "last chunk",
                    format!("{}, of {}, {age} ago", chunk.number, chunk.time),
                ));
                lines.push(("last LSN", chunk.last_lsn.to_string()));
            }
        }
        let points = match &self.newest_restore_point {
            None => "none: the first upload is not complete".to_owned(),
            Some(newest) => format!(
                "{}, the newest of {}, chunk {}",
                self.restore_point_count, newest.time, newest.chunk
            ),
        };
        lines.push(("restore points", points));
        for size in self.sizes.iter().flatten() {
            let bytes = units::bytes_text(size.bytes);
            lines.push((size.prefix, format!("{} objects, {bytes}", size.objects)));
        }
        let mut text = section(&self.url, &lines);
        if let Some(folder) = &self.folder {
            text.push_str(&folder.text());
        }
        text
    }
}

impl FolderView {
    fn text(&self) -> String {
        let store = match self.is_same_store {
            true => "the same".to_owned(),
            false => format!("{}: not that of the remote store", self.store),
        };
        let epoch = match (self.epoch, self.is_newest_epoch) {
            (None, _) => "none: not replicated".to_owned(),
            (Some(epoch), true) => format!("{epoch}, the newest"),
            (Some(epoch), false) => format!("{epoch}, not the newest"),
        };
        section(&self.path, &[("store", store), ("epoch", epoch)])
    }
}

impl SizeView {
    fn of(size: PrefixSize) -> Self {
        Self { prefix: size.prefix, objects: size.objects, bytes: size.bytes }
    }
}

fn section(title: &str, lines: &[(&str, String)]) -> String {
    let mut text = format!("{title}\n");
    for (name, value) in lines {
        text.push_str(&format!("  {name:<16}{value}\n"));
    }
    text
}
