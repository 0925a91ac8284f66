//! The corruption matrix: one bit of a small store's files is flipped, or a file is truncated, zeroed, swapped or
//! removed, and everything is read. Each time the damage is reported, or harmless: no wrong bytes, no object silently
//! missing, no panic, and no loss beyond the damaged bytes.

use std::collections::BTreeSet;

use bytes::Bytes;
use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use engine::format::{RecordKind, SEGMENT_HEADER_BYTES};
use engine::recovery::RecoveryReport;
use engine::{Error, ObjectName, Store};
use tests::store::{Change, Model, World, batch, body, commit, fact, idle, name, read, roll_over};

use crate::layout::{Group, flip, groups};

/// State of a store before its files are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// Closed.
    Closed,
    /// Closed, and its index deleted.
    ClosedWithoutIndex,
    /// Process killed while idle.
    Killed,
    /// Process killed while idle, and its index deleted.
    KilledWithoutIndex,
}

impl Past {
    pub(crate) const ALL: [Self; 4] =
        [Self::Closed, Self::ClosedWithoutIndex, Self::Killed, Self::KilledWithoutIndex];

    fn has_index(self) -> bool {
        matches!(self, Self::Closed | Self::Killed)
    }
}

/// A store to be damaged.
pub(crate) struct Specimen {
    past: Past,
    disk: SimDisk,
    /// The disk in the middle of the story.
    earlier: SimDisk,
    model: Model,
    last_lsn: u64,
}

impl Specimen {
    /// Creates two log segments, two big ones, an overwritten and a deleted object, facts, a checkpoint in between.
    pub(crate) fn new(past: Past) -> Self {
        let world = World::new(5);
        let store = world.open();
        let mut model = Model::default();
        let mut earlier = world.disk.fork();
        let bytes = |seed, length| Bytes::from(body(seed, length));
        let put = |key: &str, seed, length| Change::Put(name(key), bytes(seed, length));
        let story: Vec<Vec<Change>> = vec![
            vec![put("kept", 1, 300), put("overwritten", 2, 200), put("deleted", 3, 100)],
            vec![put("big", 4, 9_000)],
            vec![put("overwritten", 5, 250), Change::PutFact(fact("first"), bytes(6, 60))],
            (0..7).map(|at| put(&format!("fill/{at}"), 20 + at, 3_500)).collect(),
            (0..7).map(|at| put(&format!("roll/{at}"), 30 + at, 3_500)).collect(),
            vec![Change::Delete(name("deleted")), put("empty", 0, 0)],
            vec![put("late", 7, 700), put("late-big", 8, 5_000)],
            vec![Change::PutFact(fact("second"), bytes(9, 60)), Change::DeleteFact(fact("first"))],
            vec![put("last", 10, 50)],
        ];
        for (turn, changes) in (0..).zip(story) {
            let committed = batch(&store, &changes).and_then(|batch| commit(&store, batch));
            committed.unwrap_or_else(|error| panic!("turn {turn}: {error}"));
            model.apply(&changes);
            if turn == 5 {
                roll_over(&store).unwrap_or_else(|error| panic!("{error}"));
                store.checkpoint().unwrap_or_else(|error| panic!("{error}"));
                earlier = world.disk.fork();
            }
        }
        idle(&store);
        let last_lsn = store.stats().map_or(0, |stats| stats.last_lsn);
        if matches!(past, Past::Closed | Past::ClosedWithoutIndex) {
            store.close().unwrap_or_else(|error| panic!("{error}"));
        }
        let disk = world.disk.fork();
        drop(store);
        if !past.has_index() {
            disk.remove("index.redb").unwrap_or_else(|error| panic!("{error}"));
        }
        Self { past, disk, earlier, model, last_lsn }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let paths = self.disk.paths().into_iter();
        paths.filter(|path| path.ends_with(".seg") || path == "STORE").collect()
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        self.disk.bytes(path)
    }

    /// Returns the content of the file in the middle of the story; nothing when it did not exist.
    pub(crate) fn earlier(&self, path: &str) -> Vec<u8> {
        let was_there = self.earlier.paths().iter().any(|known| known == path);
        if was_there { self.earlier.bytes(path) } else { Vec::new() }
    }

    /// Returns a disk with the store on it, to be damaged.
    pub(crate) fn fork(&self) -> SimDisk {
        self.disk.fork()
    }

    /// Returns the content of the store.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    fn groups(&self, path: &str) -> Vec<Group> {
        if path.starts_with("log/") { groups(&self.disk, path) } else { Vec::new() }
    }

    /// Damages a copy, opens it and reads everything. Objects that are not in `hit` must be intact.
    pub(crate) fn examine(
        &self,
        hit: &BTreeSet<ObjectName>,
        damage: impl FnOnce(&SimDisk),
    ) -> Result<Noticed, String> {
        let world = World::on(self.disk.fork(), 6);
        damage(&world.disk);
        let (store, report) = match world.try_open() {
            Ok(opened) => opened,
            Err(Error::Corrupt(_) | Error::NotAStore(_)) => return Ok(Noticed::AtOpening),
            Err(error) => return Err(format!("opening fails with {error}")),
        };
        let mut noticed = match reports_damage(&report) {
            true => Noticed::AtOpening,
            false => Noticed::No,
        };
        for (name, (bytes, _)) in &self.model.objects {
            match read(&store, name) {
                Ok(Some(found)) if found == *bytes => continue,
                Err(Error::Corrupt(corruption)) if corruption.object.as_ref() == Some(name) => {
                    noticed = noticed.max(Noticed::WhenRead);
                }
                // An object reported as lost at opening may be absent, or have its earlier version.
                Ok(None) if !report.damage.is_empty() => {}
                Ok(Some(found)) if !report.damage.is_empty() && is_older(name, &found) => {}
                Ok(Some(_)) => return Err(format!("{name} has wrong bytes; {report}")),
                Ok(None) => return Err(format!("{name} is gone without a word; {report}")),
                Err(error) => return Err(format!("{name} answers {error}")),
            }
            if !hit.contains(name) {
                return Err(format!("{name} is lost, and was not hit; {report}"));
            }
        }
        self.check_only_reported_loss(&store, &report)?;
        Ok(noticed)
    }

    fn check_only_reported_loss(
        &self,
        store: &Store,
        report: &RecoveryReport,
    ) -> Result<(), String> {
        let is_damaged = !report.damage.is_empty();
        let describe = |error: Error| error.to_string();
        let listed = store.list_keys(&tests::store::bucket(), "", None, 1_000).map_err(describe)?;
        for object in &listed.objects {
            let is_known = self.model.objects.contains_key(object.name());
            let may_be_back = is_damaged && *object.name() == name("deleted");
            if !is_known && !may_be_back {
                return Err(format!("{} appears from nowhere; {report}", object.name()));
            }
        }
        let facts = store.facts("", None, 1_000).map_err(describe)?;
        let expected: Vec<_> = self.model.facts.clone().into_iter().collect();
        if !is_damaged && facts != expected {
            return Err(format!("facts are {facts:?}; {report}"));
        }
        if !is_damaged && report.last_lsn != self.last_lsn {
            return Err(format!("the last record is {}; {report}", report.last_lsn));
        }
        Ok(())
    }

    /// Returns the objects that flipping a byte may cost, and whether it must be detected.
    fn aim(&self, path: &str, groups: &[Group], offset: usize) -> (BTreeSet<ObjectName>, bool) {
        if path.starts_with("big/") {
            let is_header = offset < SEGMENT_HEADER_BYTES;
            let hit = if is_header { BTreeSet::new() } else { self.bigs() };
            return (hit, !is_header);
        }
        let Some(group) = groups.iter().find(|group| group.bytes.contains(&offset)) else {
            // A header with two copies, a footer that can be rebuilt.
            return (BTreeSet::new(), path == "STORE");
        };
        let hit = group.records.iter().filter_map(|record| record.object.clone()).collect();
        let is_read = group.records.iter().any(|record| {
            let is_inside = record.head.contains(&offset) || record.body.contains(&offset);
            is_inside
                && record.kind == RecordKind::Object
                && self.is_live(record.object.as_ref(), groups, record.lsn)
        });
        let is_replayed = !self.past.has_index()
            && matches!(self.past, Past::KilledWithoutIndex)
            && path.ends_with(&self.last_log());
        (hit, is_read || is_replayed)
    }

    /// Whether nothing later in the file replaces the record; a big object's content is elsewhere, its head is not
    /// read.
    fn is_live(&self, object: Option<&ObjectName>, groups: &[Group], lsn: u64) -> bool {
        let is_last = groups
            .iter()
            .flat_map(|group| &group.records)
            .filter(|record| record.object.as_ref() == object)
            .all(|record| record.lsn <= lsn);
        let small = object.and_then(|name| self.model.objects.get(name));
        is_last && small.is_some_and(|(bytes, _)| bytes.len() <= 4_096)
    }

    /// Returns the last non-empty log segment.
    fn last_log(&self) -> String {
        let is_used = |path: &String| !self.groups(path).is_empty();
        self.paths().into_iter().rfind(is_used).unwrap_or_default()
    }

    fn bigs(&self) -> BTreeSet<ObjectName> {
        let objects = self.model.objects.iter();
        objects
            .filter(|(_, (bytes, _))| bytes.len() > 4_096)
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// When damage was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Noticed {
    /// Never, and it did no harm.
    No,
    /// When the object was read.
    WhenRead,
    /// During recovery.
    AtOpening,
}

fn reports_damage(report: &RecoveryReport) -> bool {
    !report.damage.is_empty() || report.torn_tail.is_some() || report.index_fault.is_some()
}

fn is_older(object: &ObjectName, found: &[u8]) -> bool {
    *object == name("overwritten") && found == body(2, 200)
}

/// Numbers of flips, tried and detected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flips {
    tried: u64,
    noticed: u64,
}

/// Flips one bit in every `stride`-th byte of headers, heads, groups, footers, trailers, and in fewer of the bodies.
pub(crate) fn flip_every_bit(past: Past, stride: usize) -> Result<Flips, String> {
    let specimen = Specimen::new(past);
    let mut flips = Flips::default();
    for path in specimen.paths() {
        let found = specimen.groups(&path);
        for offset in offsets(&path, &found, specimen.disk.bytes(&path).len(), stride) {
            let (hit, must_notice) = specimen.aim(&path, &found, offset);
            let at = |what| format!("{past:?}, {path} at {offset}: {what}");
            let noticed = specimen.examine(&hit, |disk| flip(disk, &path, offset)).map_err(at)?;
            if must_notice && noticed == Noticed::No {
                return Err(at("nobody noticed".to_owned()));
            }
            flips.tried += 1;
            flips.noticed += u64::from(noticed != Noticed::No);
        }
    }
    Ok(flips)
}

fn offsets(path: &str, groups: &[Group], length: usize, stride: usize) -> Vec<usize> {
    let is_body = |offset: &usize| {
        let records = groups.iter().flat_map(|group| &group.records);
        let is_big_body = path.starts_with("big/") && (4_096..length - 100).contains(offset);
        is_big_body || records.clone().any(|record| record.body.contains(offset))
    };
    let is_padding = |offset: &usize| *offset < SEGMENT_HEADER_BYTES && offset % 2_048 > 110;
    // After the last group of a killed store there is unwritten space.
    let written = match groups.last() {
        Some(last) if length == 64 << 10 => last.bytes.end,
        _ => length,
    };
    (0..length)
        .filter(|offset| match path {
            "STORE" => true,
            _ if *offset > written + 64 => offset % 509 == 0,
            _ if is_padding(offset) => offset % 509 == 0,
            _ if is_body(offset) => offset % (61 * stride) == 0,
            _ => offset % stride == 0,
        })
        .collect()
}

fn flip_all(past: Past) {
    match flip_every_bit(past, 3) {
        Ok(flips) => println!("{past:?}: {flips:?}"),
        Err(what) => panic!("{what}"),
    }
}

#[test]
fn bit_flip_in_closed_store_is_reported_or_harmless() {
    flip_all(Past::Closed);
}

#[test]
fn bit_flip_in_closed_store_without_index_is_reported() {
    flip_all(Past::ClosedWithoutIndex);
}

#[test]
fn bit_flip_in_killed_store_is_reported_or_harmless() {
    flip_all(Past::Killed);
}

#[test]
fn bit_flip_in_killed_store_without_index_is_reported() {
    flip_all(Past::KilledWithoutIndex);
}

#[test]
fn truncated_zeroed_or_missing_file_loses_only_its_objects() {
    for past in Past::ALL {
        let specimen = Specimen::new(past);
        for path in specimen.paths().into_iter().filter(|path| path != "STORE") {
            let bytes = specimen.disk.bytes(&path);
            let mut hit = if path.starts_with("big/") { specimen.bigs() } else { BTreeSet::new() };
            let groups = specimen.groups(&path);
            let records = groups.iter().flat_map(|group| &group.records);
            hit.extend(records.filter_map(|record| record.object.clone()));
            let check = |what: &str, damage: &dyn Fn(&SimDisk)| {
                // Without an index, damage to the last log segment hides the segment itself.
                let nobody_knows = !past.has_index() && path == specimen.last_log();
                match specimen.examine(&hit, damage) {
                    Err(_) if nobody_knows => {}
                    Err(fault) => panic!("{past:?}, {path} {what}: {fault}"),
                    Ok(_) => {}
                }
            };
            for length in [0, 1, 100, 4_095, 4_096, 4_200, bytes.len() / 2, bytes.len() - 1] {
                check(&format!("cut to {length}"), &|disk| {
                    let file = disk.open(&path).unwrap();
                    file.set_len(length as u64).unwrap();
                });
            }
            check("taken away", &|disk| disk.remove(&path).unwrap());
            for start in (0..bytes.len()).step_by(4_096) {
                let length = (bytes.len() - start).min(8_192);
                // With the end of the log its watermark is lost: as if all of it had never been written.
                let end = groups.last().map_or(0, |last| last.bytes.end);
                let is_end = path == specimen.last_log() && start + length >= end;
                if is_end && matches!(past, Past::Killed | Past::KilledWithoutIndex) {
                    continue;
                }
                check(&format!("blank from {start}"), &|disk| {
                    disk.overwrite(&path, start as u64, &vec![0; length]);
                });
            }
            check("longer", &|disk| {
                let file = disk.open(&path).unwrap();
                file.write_at(bytes.len() as u64, &[&[7; 300]]).unwrap();
            });
        }
    }
}

#[test]
fn swapped_blocks_are_detected() {
    for past in Past::ALL {
        let specimen = Specimen::new(past);
        let everything: BTreeSet<_> = specimen.model.objects.keys().cloned().collect();
        let paths = specimen.paths();
        let (logs, bigs): (Vec<_>, Vec<_>) =
            paths.iter().filter(|path| *path != "STORE").partition(|path| path.starts_with("log/"));
        for files in [logs, bigs] {
            for (from, to, at) in
                [(0, 0, 4_096), (0, 1, 4_096), (1, 0, 4_096), (0, 1, 0), (1, 0, 0)]
            {
                let block = specimen.disk.bytes(files[from]);
                let block = &block[at..(at + 4_096).min(block.len())];
                let place = if from == to { at as u64 + 512 } else { at as u64 };
                let examined =
                    specimen.examine(&everything, |disk| disk.overwrite(files[to], place, block));
                if let Err(what) = examined {
                    panic!("{past:?}, from {} to {}, {at}: {what}", files[from], files[to]);
                }
            }
        }
    }
}
