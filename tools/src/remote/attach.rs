//! `trug remote attach` and `trug remote detach`: begin and end of replication, while no server runs.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use engine::replication::{ReplicationOptions, ReplicationState, ReplicationStatus, detach_folder};
use engine::{Create, OpenOptions, Store};

use super::location::LocationArgs;
use crate::exit::{self, Failure};
use crate::management::UNDELETE_WINDOW_MS;
use crate::output;

/// Upload a store to a remote store that it will be replicated to.
///
/// A server with remote_url does the same in the background; this command waits until there is a restore point. It
/// needs the data folder for itself. An interrupted upload continues where it stopped.
#[derive(clap::Args)]
#[command(after_help = exit::help(
    "trug remote attach s3://pics/trug --credentials-file keys.txt --data data"
))]
pub(crate) struct Args {
    #[command(flatten)]
    location: LocationArgs,
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
}

/// End the replication of a store.
///
/// A store that was replicated is not compacted without its remote store, so that both have the same segments. After
/// this command it is compacted again. The remote store keeps its state.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug remote detach --data data"))]
pub(crate) struct DetachArgs {
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let remote = args.location.connect()?;
    let options = OpenOptions {
        compaction: None,
        retention_window_ms: UNDELETE_WINDOW_MS,
        replication: Some(ReplicationOptions::new(remote.store)),
        ..OpenOptions::new(Create::Never)
    };
    let (store, report) = Store::open_folder(&args.data, options)?;
    if !report.damage.is_empty() {
        output::print_note(&report.to_string());
    }
    let attached = wait_for(&store, |status| {
        status.last_manifest_ms.is_some() && status.shipped_lsn == status.last_lsn
    });
    store.close()?;
    let status = attached?;
    output::result(&format!(
        "replicated to {}: epoch {}, chunk {}\n",
        remote.location, status.epoch, status.chunk
    ))
}

/// Waits until the status of replication is as required. Prints each new error of the remote store.
pub(super) fn wait_for(
    store: &Store,
    is_done: impl Fn(&ReplicationStatus) -> bool,
) -> Result<ReplicationStatus, Failure> {
    let mut printed = None;
    loop {
        let status = store.replication_status();
        let status = status.ok_or_else(|| Failure::failed("the store is not replicated"))?;
        if let ReplicationState::Fenced(why) = &status.state {
            return Err(Failure::new(exit::Exit::Fenced, why.to_string()));
        }
        if is_done(&status) {
            return Ok(status);
        }
        if status.last_error != printed {
            if let Some(error) = &status.last_error {
                output::print_note(&format!("{error}; retrying"));
            }
            printed.clone_from(&status.last_error);
        }
        thread::sleep(POLL);
    }
}

pub(super) fn detach(args: DetachArgs) -> Result<(), Failure> {
    detach_folder(&args.data)?;
    output::result(&format!("{} is no longer replicated\n", args.data.display()))
}

/// Interval at which the state is checked.
const POLL: Duration = Duration::from_millis(100);
