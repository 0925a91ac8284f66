//! fsck of stores with compacted segments.

use engine::disk::Disk;
use engine::disk::sim::SimDisk;
use tests::store::{Change, Model, World, batch, body, commit, compact, name, roll_over};

use crate::fsck::{check, check_store, finding, fork, repaired, written};

/// Creates a store with compacted segments.
fn compacted() -> (World, Model) {
    let world = World::new(7);
    let store = world.open();
    let mut model = written(&world, &store);
    for turn in 0..3_u64 {
        for at in 0..12 {
            let change =
                [Change::Put(name(&format!("fill/{at}")), body(turn * 50 + at, 3_000).into())];
            commit(&store, batch(&store, &change).unwrap()).unwrap();
            model.apply(&change);
        }
        roll_over(&store).unwrap();
        store.checkpoint().unwrap();
    }
    let report = compact(&store).unwrap();
    assert!(!world.files_in("compacted/").is_empty(), "{report:?}");
    store.close().unwrap();
    drop(store);
    (world, model)
}

#[test]
fn fsck_passes_on_compacted_store_with_or_without_index() {
    let (world, model) = compacted();
    assert_eq!(check(&world).findings, []);
    world.disk.remove("index.redb").unwrap();
    assert!(check(&world).is_clean());
    check_store(&world, &model, &[]);
    assert_eq!(check(&world).findings, []);
}

#[test]
fn fsck_finds_damage_in_compacted_segment() {
    let (world, model) = compacted();
    let path = world.files_in("compacted/").remove(0);
    let bytes = world.disk.bytes(&path);
    let original = bytes.clone();
    let header = fork(&world);
    header.disk.flip(&path, 50, 1);
    assert_eq!(finding(&check(&header), "rewrite-header").file, path);
    repaired(&header);
    assert!(header.disk.bytes(&path) == original);
    let footer = fork(&world);
    footer.disk.flip(&path, bytes.len() as u64 - 80, 1);
    assert_eq!(finding(&check(&footer), "reseal").file, path);
    repaired(&footer);
    assert!(footer.disk.bytes(&path) == original);
    let damages: [&dyn Fn(&SimDisk); 3] = [
        &|disk| disk.remove(&path).unwrap(),
        &|disk| disk.overwrite(&path, 0, &[7; 4_096]),
        &|disk| disk.overwrite(&path, 4_100, &[7; 3_000]),
    ];
    for damage in damages {
        let world = fork(&world);
        damage(&world.disk);
        let report = check(&world);
        let lost = finding(&report, "mark-lost").objects.clone();
        assert!(!lost.is_empty(), "{report}");
        repaired(&world);
        let lost: Vec<_> = lost.iter().map(|name| name.key.as_str()).collect();
        check_store(&world, &model, &lost);
    }
}
