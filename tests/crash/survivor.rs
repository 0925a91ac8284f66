//! Invariants of a store after a crash.
//!
//! Acknowledged changes are present byte for byte, changes in progress are whole or absent; counters and listings
//! agree; no file remains that no record names and that cannot be restored; recovering again changes nothing; the index
//! rebuilt from the segments is the same; and the store accepts writes. Before anything is opened, fsck finds no
//! damage.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::fsck::{Finding, Remedy, Severity};
use engine::history::{Version, VersionEvent, VersionFilter, VersionScope, VersionState};
use engine::recovery::RecoveryReport;
use engine::{Error, FolderKey, ObjectName, Store};
use tests::store::{
    Contents, Model, ObservedObject, SMALL_INLINE_BYTES, World, body, bucket, bucket_named, name,
    put,
};

/// Opens the store after a crash, and checks all invariants. The disk is powered on, and is consumed.
pub(crate) fn check(disk: &SimDisk, acceptable: &[&Model]) -> Result<(), String> {
    check_after(disk, acceptable, Syncs::Held)
}

/// Checks all invariants with a retention window of so long for large deleted objects.
pub(crate) fn check_with_window(
    disk: &SimDisk,
    acceptable: &[&Model],
    undelete_window_ms: u64,
) -> Result<(), String> {
    check_all(disk, acceptable, Syncs::Held, undelete_window_ms)
}

/// Reliability of completed syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    /// Every successful sync was durable, and failures were reported.
    Held,
    /// A sync failed and lost its data. A footer affected by this exists until the power cut, and is then written
    /// again; its remains look like an unfinished write. A punched hole of dead bytes is filled again after the power
    /// cut.
    Failed,
}

/// Checks all invariants after something happened to the disk.
pub(crate) fn check_after(
    disk: &SimDisk,
    acceptable: &[&Model],
    syncs: Syncs,
) -> Result<(), String> {
    check_all(disk, acceptable, syncs, 0)
}

fn check_all(
    disk: &SimDisk,
    acceptable: &[&Model],
    syncs: Syncs,
    undelete_window_ms: u64,
) -> Result<(), String> {
    must_be_in_order(disk)?;
    let world = world_on(disk.clone(), 8, undelete_window_ms);
    let (store, report) = open(&world, "the first recovery")?;
    let contents = Contents::of(&store)?;
    must_be_one_of(&contents, acceptable)?;
    must_have_no_orphans(&world, &store, &contents)?;

    // Power is cut again at once: recovery must have been durable, or be repeated with the same result.
    let again = world_on(disk.fork(), 9, undelete_window_ms);
    let retained = store.stats().map_err(|error| error.to_string())?.retained;
    goes_on(&world, store, &contents)?;
    let files = segment_files(&again.disk);
    again.disk.power_on(LossPolicy::KeepSynced, 0);
    let (store, report_again) = open(&again, "the second recovery")?;
    check_nothing_to_do(&report_again, syncs)
        .map_err(|what| format!("{what}; the first: {report}"))?;
    if report_again.last_lsn != report.last_lsn {
        return Err(format!("recovered to {report}, then to {report_again}"));
    }
    if Contents::of(&store)? != contents {
        return Err("the second recovery shows something else".to_owned());
    }
    drop(store);
    let files_again = segment_files(&again.disk);
    let is_another = |path: &&String| match (files.get(*path), files_again.get(*path)) {
        (Some(before), Some(after)) if syncs == Syncs::Failed => !is_less_punched(before, after),
        (before, after) => before != after,
    };
    if let Some(path) = files.keys().chain(files_again.keys()).find(is_another) {
        let lengths = [&files, &files_again].map(|files| files.get(path).map(Vec::len));
        return Err(format!("the second recovery changed {path}: {lengths:?}; {report}"));
    }

    again.disk.remove("index.redb").map_err(|error| error.to_string())?;
    let (store, _) = open(&again, "the rebuild")?;
    let rebuilt = Contents::of(&store)?;
    if rebuilt != contents {
        return Err(format!("the rebuilt index differs: {}", difference(&rebuilt, &contents)));
    }
    must_have_no_orphans(&again, &store, &rebuilt)?;
    let retained_again = store.stats().map_err(|error| error.to_string())?.retained;
    match retained_again == retained {
        true => Ok(()),
        false => Err(format!("{retained:?} was retained, and {retained_again:?} after a rebuild")),
    }
}

fn world_on(disk: SimDisk, seed: u64, undelete_window_ms: u64) -> World {
    let mut world = World::on(disk, seed);
    world.options.retention_window_ms = undelete_window_ms;
    world
}

/// Checks a killed process on a running machine: the next process's visible and acknowledged state survives a power
/// cut.
pub(crate) fn check_after_kill(disk: &SimDisk, acceptable: &[&Model]) -> Result<(), String> {
    check_after_kill_with_window(disk, acceptable, 0)
}

/// Checks a killed process with a retention window of so long for large deleted objects.
pub(crate) fn check_after_kill_with_window(
    disk: &SimDisk,
    acceptable: &[&Model],
    undelete_window_ms: u64,
) -> Result<(), String> {
    disk.restart_process();
    must_be_in_order(disk)?;
    let world = world_on(disk.clone(), 8, undelete_window_ms);
    let (store, _) = open(&world, "the recovery after a kill")?;
    let contents = Contents::of(&store)?;
    must_be_one_of(&contents, acceptable)?;
    must_have_no_orphans(&world, &store, &contents)?;
    goes_on(&world, store, &contents)
}

/// Checks that a crash is no damage: fsck has notes at most. Where the syncs of the index were ignored, the index may
/// have to be rebuilt.
fn must_be_in_order(disk: &SimDisk) -> Result<(), String> {
    let is_fine = |finding: &Finding| {
        finding.severity == Severity::Note || finding.remedy == Remedy::RebuildIndex
    };
    match World::on(disk.fork(), 10).fsck(true) {
        Ok(report) if report.findings.iter().all(is_fine) => Ok(()),
        // The creation of the store was cut off.
        Err(Error::NotAStore(_)) => Ok(()),
        Ok(report) => Err(format!("fsck finds damage after a crash:\n{report}")),
        Err(error) => Err(format!("fsck fails: {error}")),
    }
}

/// Returns a fingerprint of everything on the disk, so that equal survivors are checked once. The hash functions of
/// `std` are compiled with this crate, which is not optimised, and took four fifths of the time of these tests.
pub(crate) fn fingerprint(disk: &SimDisk) -> [u8; blake3::OUT_LEN] {
    let mut hasher = blake3::Hasher::new();
    for path in disk.paths() {
        let bytes = disk.bytes(&path);
        hasher.update(format!("{path:?} {}", bytes.len()).as_bytes()).update(&bytes);
    }
    for folder in ["", "big", "compacted"] {
        hasher.update(format!("{:?}", disk.list(folder)).as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Puts one more object, cuts the power, and checks that everything is present.
fn goes_on(world: &World, store: Store, before: &Contents) -> Result<(), String> {
    let after = name("after-the-crash");
    let bytes = body(77, 1_000);
    put(&store, &after, &bytes).map_err(|error| format!("the store does not go on: {error}"))?;
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    let (store, _) = open(world, "the recovery after going on")?;
    let mut contents = Contents::of(&store)?;
    match contents.objects.remove(&after) {
        Some(seen) if seen.body == bytes => {}
        _ => return Err("what was put after the crash is not there".to_owned()),
    }
    if contents.objects != before.objects || contents.facts != before.facts {
        return Err("something else is there after going on".to_owned());
    }
    Ok(())
}

fn open(world: &World, which: &str) -> Result<(Store, RecoveryReport), String> {
    let (store, report) = world.try_open().map_err(|error| format!("{which} failed: {error}"))?;
    match report.damage.is_empty() {
        true => Ok((store, report)),
        false => Err(format!("{which} reports damage: {report}")),
    }
}

fn must_be_one_of(contents: &Contents, acceptable: &[&Model]) -> Result<(), String> {
    let faults: Vec<String> =
        acceptable.iter().filter_map(|model| contents.check_against(model).err()).collect();
    match faults.len() < acceptable.len() {
        true => Ok(()),
        false => Err(faults.join("; or: ")),
    }
}

fn check_nothing_to_do(report: &RecoveryReport, syncs: Syncs) -> Result<(), String> {
    let mut idle = RecoveryReport {
        last_lsn: report.last_lsn,
        replayed_records: report.replayed_records,
        ..RecoveryReport::default()
    };
    if syncs == Syncs::Failed && report.segments_sealed > 0 {
        idle.segments_sealed = report.segments_sealed;
        idle.torn_tail = report.torn_tail;
    }
    match *report == idle {
        true => Ok(()),
        false => Err(format!("the second recovery found something to do: {report}")),
    }
}

/// Checks that every big segment belongs to an object, and that no spare remains.
fn must_have_no_orphans(world: &World, store: &Store, contents: &Contents) -> Result<(), String> {
    let big = world.files_in("big/");
    let stats = store.stats().map_err(|error| error.to_string())?;
    let (named, retained) = (contents.big.segments, stats.retained.segments);
    if big.len() as u64 != named + retained {
        return Err(format!("big segments {big:?}, {named} named and {retained} retained"));
    }
    // Without a retention window, segments are larger, and so are bodies in the log.
    if world.options.retention_window_ms > 0 {
        let recoverable = recoverable_large(store)?;
        if recoverable != retained {
            return Err(format!("{retained} are retained, and {recoverable} can come back"));
        }
    }
    let compacted = world.files_in("compacted/");
    if compacted.len() as u64 != contents.compacted.segments {
        let known = contents.compacted.segments;
        return Err(format!("compacted segments {compacted:?}, but {known} are known"));
    }
    let log = world.files_in("log/");
    if (log.len() as u64) < stats.log.segments {
        return Err(format!("log segments {log:?}, but {} are named", stats.log.segments));
    }
    Ok(())
}

/// Returns the number of versions of large deleted objects that can be restored.
fn recoverable_large(store: &Store) -> Result<u64, String> {
    let mut count = 0;
    for bucket in [bucket(), bucket_named("other")] {
        let scope = VersionScope::Folder(FolderKey::root());
        let filter = VersionFilter { bucket, scope, since_ms: 0 };
        let history = store.version_history(&filter, 100_000, &mut |_| ControlFlow::Continue(()));
        let is_one = |version: &&Version| match &version.event {
            VersionEvent::Put(put) => {
                put.bytes > SMALL_INLINE_BYTES as u64
                    && put.state != VersionState::Current
                    && put.recoverable.is_ok()
            }
            VersionEvent::Deleted => false,
        };
        let history = history.map_err(|error| error.to_string())?;
        count += history.versions.iter().filter(is_one).count() as u64;
    }
    Ok(count)
}

/// Returns the difference, without the bytes.
fn difference(one: &Contents, other: &Contents) -> String {
    let only_in = |contents: &Contents, than: &Contents| -> Vec<String> {
        let differs =
            |name: &ObjectName, seen: &ObservedObject| than.objects.get(name) != Some(seen);
        let objects = contents.objects.iter().filter(|(name, seen)| differs(name, seen));
        objects.map(|(name, seen)| format!("{name} {} {:?}", seen.lsn, seen.described)).collect()
    };
    let describe = |contents: &Contents, than: &Contents| {
        let Contents { usages, log, compacted, big, last_lsn, .. } = contents;
        format!("{:?} {usages:?} {log:?} {compacted:?} {big:?} {last_lsn}", only_in(contents, than))
    };
    format!("{}\nis not {}", describe(one, other), describe(other, one))
}

/// Whether a file is unchanged, except for holes that are filled again.
fn is_less_punched(before: &[u8], after: &[u8]) -> bool {
    let mut pages = before.chunks(PAGE_BYTES).zip(after.chunks(PAGE_BYTES));
    before.len() == after.len()
        && pages.all(|(before, after)| before == after || before == [0; PAGE_BYTES])
}

/// Smallest unit that a file system reclaims.
const PAGE_BYTES: usize = 4_096;

fn segment_files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let paths = disk.paths().into_iter();
    paths
        .filter(|path| path.ends_with(".seg"))
        .map(|path| (path.clone(), disk.bytes(&path)))
        .collect()
}
