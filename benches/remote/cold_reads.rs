//! Reads of files that are only in the remote store, against bare requests to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use benches::{data, folder, stores, table};
use engine::Store;
use engine::limits;
use engine::name::ObjectName;
use engine::remote::{Part, RemoteStore};

use super::remote_target::RemoteTarget;
use super::store_load::{self, percentile};
use super::{Amounts, Figures, Floor, text};

/// Small segments, so that few are on this machine.
const SEGMENT_BYTES: u64 = 16 << 20;
const SMALL: usize = 4 << 10;
/// Length of the file after each small one: the next is in another unit.
const FILLER: usize = 400 << 10;
const WHOLE: usize = 1 << 20;
/// Seeds of the names of small files, of those after them, and of whole ones.
const SEEDS: [u64; 3] = [21, 22, 23];

/// Compares cold reads with bare ones, and counts what is fetched for whole files.
pub(crate) fn measure(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    let folder = folder::make(parent).map_err(text)?;
    let remote = target.connect("cold")?;
    let (small, whole) = (400 / amounts.share, 100 / amounts.share);
    let store = store_load::open_tiered(folder.path(), &remote, SEGMENT_BYTES, 1)?;
    let put = |kind: usize, number: u64, bytes: usize| {
        stores::put(&store, data::name(SEEDS[kind], number), &data::bytes(number, bytes));
    };
    for number in 0..small {
        put(0, number, SMALL);
        put(1, number, FILLER);
    }
    (0..whole).for_each(|number| put(2, number, WHOLE));
    store_load::step_all(&store)?;
    store.close().map_err(|error| error.to_string())?;

    // Segments after the last checkpoint were not evicted.
    let store = store_load::open_tiered(folder.path(), &remote, SEGMENT_BYTES, 1)?;
    store_load::step_all(&store)?;
    compare_latency(&store, &remote, small, figures)?;
    count_bytes(&store, whole, figures)?;
    store.close().map_err(|error| error.to_string())
}

/// Opens and reads a file. Returns its length and the time in milliseconds; `None` if it is on this machine.
fn read(store: &Store, name: &ObjectName) -> Result<Option<(u64, f64)>, String> {
    let read = || {
        let started = Instant::now();
        let object = store.get(name)?.ok_or(engine::Error::Closed)?;
        let body = store.body(&object)?;
        let mut done = 0;
        while done < body.bytes() {
            done += body.read(done..body.bytes())?.len() as u64;
        }
        let ms = started.elapsed().as_secs_f64() * 1e3;
        Ok::<_, engine::Error>(body.is_remote().then_some((done, ms)))
    };
    read().map_err(|error| error.to_string())
}

fn compare_latency(
    store: &Store,
    remote: &Arc<dyn RemoteStore>,
    count: u64,
    figures: &mut Figures,
) -> Result<(), String> {
    let objects = remote.list("seg/", None, 1_000).map_err(text)?;
    let units = objects.iter().flat_map(|object| {
        let units = 0..object.bytes / limits::TIER_UNIT_BYTES;
        units.map(|unit| (object.name.clone(), unit * limits::TIER_UNIT_BYTES))
    });
    let fetches = || Ok::<_, String>(store_load::status(store)?.tier.map_or(0, |it| it.fetches));
    let (mut cold, mut bare) = (Vec::new(), Vec::new());
    for (number, (object, at)) in (0..count).zip(units) {
        let before = fetches()?;
        // In no order: a sequence of reads would fetch ahead.
        let read = read(store, &data::name(SEEDS[0], number * 37 % count))?;
        if fetches()? > before {
            cold.extend(read.map(|(_, ms)| ms));
        }
        let started = Instant::now();
        remote.read(&object, Part::Range(at..at + SMALL as u64)).map_err(text)?;
        bare.push(started.elapsed().as_secs_f64() * 1e3);
    }
    if cold.len() < 10 {
        return Err(format!("only {} files are in the remote store", cold.len()));
    }
    cold.sort_by(f64::total_cmp);
    bare.sort_by(f64::total_cmp);
    let [with, without] = [&cold, &bare].map(|all| percentile(all, 0.5));
    let ratio = with / without;
    let shown = [with, without].map(|ms| format!("{} ms", table::figure(ms)));
    let label = "cold read of 4 KiB over a bare request, p50";
    figures.add(label, shown, (ratio, table::figure(ratio)), Some(Floor::AtMost(1.5)));
    Ok(())
}

fn count_bytes(store: &Store, count: u64, figures: &mut Figures) -> Result<(), String> {
    let fetched =
        || Ok::<_, String>(store_load::status(store)?.tier.map_or(0, |it| it.fetched_bytes));
    let before = fetched()?;
    let mut wanted = 0;
    for number in 0..count {
        // In no order.
        let read = read(store, &data::name(SEEDS[2], number * 37 % count))?;
        wanted += read.map_or(0, |(bytes, _)| bytes);
    }
    let ratio = (fetched()? - before) as f64 / wanted as f64;
    let label = "bytes fetched over bytes wanted, files of 1 MiB";
    let shown = [format!("{} MB", table::figure(wanted as f64 / 1e6)), String::new()];
    figures.add(label, shown, (ratio, table::figure(ratio)), Some(Floor::AtMost(1.3)));
    Ok(())
}
