//! Restore of references: time until a machine without a copy serves, against the number of objects.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use benches::{data, folder, stores, table};
use engine::{Store, limits, replication};

use super::remote_target::RemoteTarget;
use super::store_load::{open_tiered, step_all};
use super::{Amounts, Figures, Floor, text};

const SEED: u64 = 31;
const BYTES: usize = 4 << 10;
/// Number of objects without `--quick`: four segments.
const OBJECTS: u64 = 200_000;
/// Enough for everything.
const LOCAL_BYTES_MAX: u64 = 1 << 30;
/// The target is for five million objects.
const TARGET_OBJECTS: f64 = 5e6;
const TARGET_SECONDS: f64 = 60.0;

/// Restores a store of small objects on demand, and opens it.
pub(crate) fn measure(
    target: &RemoteTarget,
    parent: &Path,
    amounts: &Amounts,
    figures: &mut Figures,
) -> Result<(), String> {
    let folder = folder::make(parent).map_err(text)?;
    let remote = target.connect("on-demand")?;
    let open = |name: &str| {
        let segment_bytes = limits::SEGMENT_BYTES_MAX;
        open_tiered(&folder.path().join(name), &remote, segment_bytes, LOCAL_BYTES_MAX)
    };
    let objects = OBJECTS / amounts.share;
    let store = open("first")?;
    fill(&store, objects)?;
    // The second opening has a restore point with all segments.
    store.close().map_err(|error| error.to_string())?;
    let store = open("first")?;
    step_all(&store)?;
    store.close().map_err(|error| error.to_string())?;

    let started = Instant::now();
    let to = folder.path().join("second");
    let mut watch = |_| ControlFlow::Continue(());
    let report = replication::restore_folder_references(&remote, &to, &mut watch);
    let report = report.map_err(|error| error.to_string())?;
    if report.damage_count > 0 {
        return Err(format!("the restore found damage: {:?}", report.damage));
    }
    let store = open("second")?;
    let object = store.get(&data::name(SEED, objects / 2)).map_err(|error| error.to_string())?;
    let object = object.ok_or("an object is lost")?;
    let body = store.body(&object).and_then(|body| body.read(0..BYTES as u64));
    if body.map_err(|error| error.to_string())?.len() != BYTES {
        return Err("an object is cut".to_owned());
    }
    let seconds = started.elapsed().as_secs_f64();
    let of_target = seconds * TARGET_OBJECTS / objects as f64;
    let label = "restore on demand until the first GET, s for 5 million objects";
    let shown = format!("{} s for {}", table::figure(seconds), table::count(objects as f64));
    let floor = Some(Floor::AtMost(TARGET_SECONDS));
    figures.add(label, [shown, String::new()], (of_target, table::figure(of_target)), floor);
    store.close().map_err(|error| error.to_string())
}

/// Puts objects and uploads them.
fn fill(store: &Store, objects: u64) -> Result<(), String> {
    let object = |number| (data::name(SEED, number), data::bytes(number, BYTES));
    for batch in stores::batches(store, objects, object) {
        store.commit(batch).map_err(|error| error.to_string())?;
    }
    step_all(store)
}
