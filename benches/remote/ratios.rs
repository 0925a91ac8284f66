//! Puts and GETs with replication, over those without.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use benches::rounds::{self, Sample};
use benches::{folder, table};
use engine::remote::RemoteStore;
use engine::{Store, limits};

use super::discarding_store::DiscardingStore;
use super::remote_target::RemoteTarget;
use super::store_load::{self, PutLoad};
use super::{Amounts, Figures, Floor, LARGE, SHORT_INTERVAL_MS, SMALL, WRITERS};

/// Description of the remote store whose ratios have a floor.
const DISCARDING: &str = "discarding";

/// Measures the stores of a name with a remote store that discards what it receives, and with `target`.
pub(crate) fn measure(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
    name: &str,
) -> Result<(), String> {
    let discarding = (DiscardingStore::create(), DISCARDING, amounts.ratio_rounds);
    let other = (target.connect(name)?, target.description(), amounts.rounds);
    for (remote, description, rounds) in [discarding, other] {
        let folder = folder::make(parent).map_err(super::text)?;
        let (what, samples, floor) = match name {
            "gets" => compare_gets(remote, folder.path(), amounts, rounds)?,
            "puts-4" => {
                compare_puts(remote, folder.path(), (rounds, SMALL, 12_000 / amounts.share))?
            }
            _ => compare_puts(remote, folder.path(), (rounds, LARGE, 1_200 / amounts.share))?,
        };
        let label = format!("{what}, remote store: {description}");
        let floor = (description == DISCARDING).then_some(Floor::AtLeast(floor));
        figures.add_ratio(&label, [&samples[0], &samples[1]], floor);
    }
    Ok(())
}

/// Label, samples with and without replication, and the floor of their ratio.
type Compared = (String, Vec<Vec<Sample>>, f64);

fn compare_puts(
    remote: Arc<dyn RemoteStore>,
    folder: &Path,
    (rounds, bytes, puts): (usize, usize, u64),
) -> Result<Compared, String> {
    let stores = open_both(remote, folder, SHORT_INTERVAL_MS)?;
    let next = [AtomicU64::new(0), AtomicU64::new(0)];
    let load = PutLoad { bytes, writers: WRITERS, puts };
    for (store, next) in stores.iter().zip(&next) {
        store_load::put(store, PutLoad { puts: load.puts / 4, ..load }, next);
    }
    let samples = in_turns(rounds, &stores[0], |turn| {
        store_load::put(&stores[turn], load, &next[turn]).sample
    })?;
    super::close(stores)?;
    let label = format!("puts of {} by {WRITERS} writers", table::bytes(bytes as u64));
    Ok((label, samples, 0.93))
}

/// GETs under the same puts.
fn compare_gets(
    remote: Arc<dyn RemoteStore>,
    folder: &Path,
    amounts: &Amounts,
    rounds: usize,
) -> Result<Compared, String> {
    let stores = open_both(remote, folder, limits::SHIP_INTERVAL_MS)?;
    let next = [AtomicU64::new(0), AtomicU64::new(0)];
    let load = PutLoad { bytes: SMALL, writers: WRITERS, puts: 8_000 / amounts.share };
    for (store, next) in stores.iter().zip(&next) {
        store_load::put(store, load, next);
    }
    let samples = in_turns(rounds, &stores[0], |turn| {
        let puts = (SMALL, 1_000);
        store_load::get_under_puts(&stores[turn], 2, amounts.sample, puts, &next[turn])
    })?;
    super::close(stores)?;
    Ok(("GETs of 4 KiB under 1,000 puts/s".to_owned(), samples, 0.97))
}

/// Opens a store that is replicated, and one that is not.
fn open_both(
    remote: Arc<dyn RemoteStore>,
    folder: &Path,
    interval_ms: u64,
) -> Result<[Store; 2], String> {
    Ok([
        super::open_local_ack(remote, folder, interval_ms)?,
        store_load::open(&folder.join("plain"), None, limits::SEGMENT_BYTES_MAX)?,
    ])
}

/// Runs rounds in turns; each starts after everything is shipped.
fn in_turns(
    round_count: usize,
    replicated: &Store,
    mut run: impl FnMut(usize) -> Sample,
) -> Result<Vec<Vec<Sample>>, String> {
    let mut failed = store_load::settle(replicated).err();
    let samples = rounds::interleaved(round_count, 2, |turn| {
        let sample = run(turn);
        failed = failed.take().or_else(|| store_load::settle(replicated).err());
        sample
    });
    failed.map_or(Ok(samples), Err)
}
