//! Damaged or unreadable footer entries under an intact trailer: readers of the segment walk its groups instead,
//! nothing is missing, and the damage is reported.

use engine::damage::Malformed;
use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::{Error, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, commit, compact, fact, idle, name, roll_over,
};

/// Returns the offset of the entries of a footer, from its trailer.
fn entries_at(world: &World, path: &str) -> u64 {
    let bytes = world.disk.bytes(path);
    let trailer = &bytes[bytes.len() - 64..];
    u64::from_le_bytes(trailer[8..16].try_into().unwrap())
}

/// Creates log segments with footers, and optionally a compacted one; closed.
fn sealed(has_compacted: bool) -> (World, Model) {
    let world = World::new(31);
    let store = world.open();
    let mut model = Model::default();
    let mut apply = |changes: &[Change]| {
        commit(&store, batch(&store, changes).unwrap()).unwrap();
        model.apply(changes);
    };
    for at in 0..40 {
        apply(&[Change::Put(name(&format!("{at}")), body(at, 3_000).into())]);
    }
    apply(&[Change::PutFact(fact("token"), body(100, 30).into())]);
    for at in 0..12 {
        apply(&[Change::Delete(name(&format!("{at}")))]);
    }
    idle(&store);
    roll_over(&store).unwrap();
    store.checkpoint().unwrap();
    if has_compacted {
        assert!(compact(&store).unwrap().copied_bytes > 0);
    }
    store.close().unwrap();
    drop(store);
    (world, model)
}

fn check_reported(store: &Store, path: &str, at: u64) {
    let known = store.damage().unwrap().places;
    let found: Vec<_> = known.iter().map(|it| (it.file(), it.offset)).collect();
    assert_eq!(found, [(path.to_owned(), at)]);
    // A block with a damaged length is not at its stated place, or has another length.
    assert!(matches!(known[0].reason, Malformed::Checksum | Malformed::Length), "{known:?}");
}

fn footers() -> Vec<(World, Model, String)> {
    let mut all = Vec::new();
    for has_compacted in [false, true] {
        let (world, model) = sealed(has_compacted);
        let folder = if has_compacted { "compacted/" } else { "log/" };
        for path in world.files_in(folder) {
            all.push((World::on(world.disk.fork(), 32), model.clone(), path));
        }
    }
    assert!(all.len() > 2, "{} footers", all.len());
    all
}

#[test]
fn index_rebuild_falls_back_to_groups_on_damaged_footer() {
    for (world, model, path) in footers() {
        let at = entries_at(&world, &path);
        let bytes = world.disk.bytes(&path).len() as u64;
        for offset in [at, at + 30, bytes - 65] {
            let world = World::on(world.disk.fork(), 33);
            world.disk.flip(&path, offset, 1);
            world.disk.remove("index.redb").unwrap();
            let (store, report) = world.open_with_report();
            assert!(report.index_rebuilt && report.damage.is_empty(), "{report}");
            Contents::of(&store).unwrap().check_against(&model).unwrap();
            check_reported(&store, &path, at);
            store.close().unwrap();
            drop(store);
            // fsck reports the same and repairs it; the next scrub removes it from the record.
            let (repaired, said) = world.repair().unwrap();
            assert!(said.iter().any(|what| what.starts_with(&path)), "{said:?}");
            assert_eq!(repaired.after.findings, []);
            let store = world.open();
            store.scrub(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
            assert_eq!(store.damage().unwrap().count(), 0);
            Contents::of(&store).unwrap().check_against(&model).unwrap();
        }
    }
}

#[test]
fn compaction_falls_back_to_groups_on_damaged_footer() {
    let (world, model) = sealed(false);
    let path = world.files_in("log/").remove(0);
    let at = entries_at(&world, &path);
    world.disk.flip(&path, at + 30, 1);
    let store = world.open();
    assert_eq!(store.damage().unwrap().count(), 0, "nobody has read it");
    // A segment held by a reader stays, and its recorded damage too.
    compact(&store).unwrap();
    let reported = store.damage().unwrap().places;
    let is_it = |it: &engine::damage::Damage| (it.file(), it.offset) == (path.clone(), at);
    let is_gone = !world.disk.paths().contains(&path);
    assert!(is_gone || reported.iter().any(is_it), "{reported:?}");
    Contents::of(&store).unwrap().check_against(&model).unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    Contents::of(&world.open()).unwrap().check_against(&model).unwrap();
}

#[test]
fn unreadable_footer_is_not_required() {
    for (world, model, path) in footers() {
        let at = entries_at(&world, &path);
        world.disk.remove("index.redb").unwrap();
        // The header page and the trailer are read first, in either order; then entries or groups.
        let mut reported = 0;
        for skipped in 0..8 {
            let world = World::on(world.disk.fork(), 34);
            let rule =
                FaultRule::once(Operation::Read, PathPattern::Prefix(path.clone()), Fault::Error);
            world.disk.inject(rule.after(skipped));
            match world.try_open() {
                Ok((store, _)) => {
                    world.disk.clear_faults();
                    Contents::of(&store).unwrap().check_against(&model).unwrap();
                    let known = store.damage().unwrap().places;
                    let is_it = |it: &&engine::damage::Damage| it.offset == at && it.file() == path;
                    reported += known.iter().filter(is_it).count();
                }
                Err(Error::Io { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert!(reported > 0, "{path}");
    }
}
