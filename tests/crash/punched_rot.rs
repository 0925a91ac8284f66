//! Punched-out bodies with a lost index: the rebuild finds them in groups, where a footer cannot be used, and as values
//! of facts. They are no damage, and damage next to them is reported.

use engine::Error;
use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::SimDisk;
use memchr::memmem;
use tests::store::{
    Change, Contents, Model, World, batch, body, commit, compact, fact, name, read, roll_over,
};

use crate::survivor::check;

/// Number of batches committed at once, and so in one group.
const BATCHES: u64 = 4;
const BODY_BYTES: usize = 20_000;

/// A closed store, a segment of which holds live records and punched-out dead ones, side by side.
struct Punched {
    disk: SimDisk,
    model: Model,
    path: String,
}

impl Punched {
    /// Creates the store; the segment is the first of this folder.
    fn in_folder(folder: &str) -> Self {
        let world = World::wide(41);
        let store = world.open();
        let mut model = Model::default();
        let mut apply = |changes: &[Change]| {
            commit(&store, batch(&store, changes).unwrap()).unwrap();
            model.apply(changes);
        };
        let value = |seed: u64| body(seed, BODY_BYTES).into();
        for at in 0..BATCHES {
            let (object, token) =
                (|what| key(what, at), |what: &str| fact(&format!("{what}/{at}")));
            apply(&[
                Change::Put(object("replaced"), value(100 + at)),
                Change::Put(object("live"), value(200 + at)),
                Change::PutFact(token("replaced"), value(300 + at)),
                Change::PutFact(token("live"), value(400 + at)),
                Change::PutFact(token("gone"), value(500 + at)),
                Change::Put(object("gone"), value(600 + at)),
            ]);
        }
        if folder == "compacted/" {
            apply(&[Change::Put(key("copied", 0), value(1)), Change::Delete(key("copied", 0))]);
            roll_over(&store).unwrap();
            store.checkpoint().unwrap();
            assert!(compact(&store).unwrap().copied_bytes > 0);
        }
        for at in 0..BATCHES {
            let (object, token) =
                (|what| key(what, at), |what: &str| fact(&format!("{what}/{at}")));
            apply(&[
                Change::Put(object("replaced"), value(700 + at)),
                Change::PutFact(token("replaced"), value(800 + at)),
                Change::DeleteFact(token("gone")),
                Change::Delete(object("gone")),
            ]);
        }
        roll_over(&store).unwrap();
        store.checkpoint().unwrap();
        let no_room = PathPattern::Prefix("compacted/".to_owned());
        world.disk.inject(FaultRule::always(Operation::Create, no_room, Fault::NoSpace));
        let report = compact(&store).unwrap();
        assert!(report.punched_bytes > 200_000, "{report:?}");
        world.disk.clear_faults();
        store.close().unwrap();
        drop(store);
        let path = world.files_in(folder).remove(0);
        let holes =
            world.disk.bytes(&path).chunks(4_096).filter(|page| *page == [0; 4_096]).count();
        assert!(holes > 30, "{path} has {holes} holes");
        Self { disk: world.disk.fork(), model, path }
    }

    /// Returns the machine without its index.
    fn without_index(&self) -> World {
        let world = World::on(self.disk.fork(), 42);
        world.disk.remove("index.redb").unwrap();
        world
    }

    /// Returns the offset of the entries of the segment's footer.
    fn entries_at(&self) -> u64 {
        let bytes = self.disk.bytes(&self.path);
        let trailer = &bytes[bytes.len() - 64..];
        u64::from_le_bytes(trailer[8..16].try_into().unwrap())
    }

    /// Returns the offset of these bytes in the segment.
    fn offset_of(&self, bytes: &[u8]) -> u64 {
        let all = self.disk.bytes(&self.path);
        memmem::find(&all, bytes).unwrap() as u64
    }
}

fn key(what: &str, at: u64) -> engine::ObjectName {
    name(&format!("{what}/{at}"))
}

#[test]
fn punched_holes_are_not_damage_in_index_rebuild() {
    for folder in ["log/", "compacted/"] {
        let punched = Punched::in_folder(folder);
        let world = punched.without_index();
        let (store, report) = world.open_with_report();
        assert!(report.index_rebuilt && report.damage_count() == 0, "{folder}: {report}");
        Contents::of(&store).unwrap().check_against(&punched.model).unwrap();
        drop(store);
        check(&world.disk, &[&punched.model]).unwrap();
    }
}

#[test]
fn punched_holes_are_not_damage_without_footer() {
    for folder in ["log/", "compacted/"] {
        let punched = Punched::in_folder(folder);
        let at = punched.entries_at();
        let open = |world: &World| match world.try_open() {
            Ok((store, report)) => {
                world.disk.clear_faults();
                assert_eq!(report.damage_count(), 0, "{folder}: {report}");
                Contents::of(&store).unwrap().check_against(&punched.model).unwrap();
                let known = store.damage().unwrap().places;
                known.iter().any(|it| it.offset == at && it.file() == punched.path)
            }
            Err(Error::Io { .. }) => false,
            Err(other) => panic!("{other}"),
        };
        // Read errors occur once; the segment's header, its trailer, the entries and the groups are read.
        let unread = (0..8).filter(|skipped| {
            let world = punched.without_index();
            let place = PathPattern::Prefix(punched.path.clone());
            world
                .disk
                .inject(FaultRule::once(Operation::Read, place, Fault::Error).after(*skipped));
            open(&world)
        });
        assert!(unread.count() > 0, "{folder}: the groups are read instead");
        let world = punched.without_index();
        world.disk.flip(&punched.path, at + 30, 1);
        assert!(open(&world), "{folder}: the footer has rotted");
    }
}

#[test]
fn punched_holes_are_not_damage_in_unsealed_segment() {
    let punched = Punched::in_folder("log/");
    let world = punched.without_index();
    world.disk.open(&punched.path).unwrap().set_len(punched.entries_at()).unwrap();
    check(&world.disk, &[&punched.model]).unwrap();
}

#[test]
fn damaged_live_body_next_to_punched_bodies_is_reported() {
    let punched = Punched::in_folder("log/");
    for seed in [201, 402] {
        let world = punched.without_index();
        let offset = punched.offset_of(&body(seed, BODY_BYTES));
        world.disk.flip(&punched.path, offset + 9_000, 1);
        world.disk.flip(&punched.path, punched.entries_at() + 30, 1);
        let (store, report) = world.open_with_report();
        let reported: Vec<_> = report.damage.iter().map(|it| (it.offset, it.reason)).collect();
        assert_eq!(reported, [(offset, engine::damage::Malformed::Checksum)], "{seed}: {report}");
        for at in 0..BATCHES {
            let found = read(&store, &key("live", at));
            match (seed, at) {
                (201, 1) => assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}"),
                _ => assert_eq!(found.unwrap().unwrap(), body(200 + at, BODY_BYTES)),
            }
            let found = store.fact(&fact(&format!("live/{at}"))).unwrap();
            assert_eq!(found.is_some(), (seed, at) != (402, 2), "a fact without its value is lost");
        }
    }
}

#[test]
fn damaged_live_fact_next_to_punched_facts_is_reported() {
    for folder in ["log/", "compacted/"] {
        let punched = Punched::in_folder(folder);
        let world = punched.without_index();
        let offset = punched.offset_of(&body(402, BODY_BYTES));
        world.disk.flip(&punched.path, offset + 9_000, 1);
        let (_, report) = world.open_with_report();
        assert_eq!(report.damage_count(), 1, "{folder}: {report}");
        let reported = report.damage[0].offset;
        assert!((offset - 100..=offset).contains(&reported), "{folder}: {report}");
    }
}
