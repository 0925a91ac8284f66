//! `trug history`: earlier versions of objects.
//!
//! Non-goals: reading the log.

use server::management::{AdminRequest, AdminResponse};

use crate::exit::{self, Failure};
use crate::management::{StoreArgs, request};
use crate::names::Objects;
use crate::{output, units};

/// List earlier versions of objects.
///
/// A version can be restored until its space is reclaimed: of a small object by compaction, of a large one (over 1 MiB)
/// after the retention window (undelete_window_seconds, 1 hour by default), or at once if it was moved. The bucket may
/// be deleted.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug history pics/cats/tom.png --data data"))]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    objects: Objects,
    /// Only versions since a time, or a duration ago such as 24h.
    #[arg(long, value_name = "TIME", value_parser = units::since)]
    since: Option<String>,
    /// Maximum number of versions.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = VERSIONS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=engine::limits::VERSIONS_MAX as u64)
    )]
    limit: u64,
}

const VERSIONS_DEFAULT: u64 = 1_000;

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { store, objects, since, limit } = args;
    let (bucket, path) = objects.get();
    let named = (!path.is_empty() && !path.ends_with('/')).then(|| format!("{bucket}/{path}"));
    let reply = request(&store, AdminRequest::History { bucket, path, since, limit })?;
    if let (Some(name), AdminResponse::History(history)) = (named, &reply)
        && history.versions.is_empty()
    {
        return Err(Failure::failed(format!("no version of {name:?} found")));
    }
    output::reply(&reply, store.format())?;
    exit::verdict(&reply)
}
