//! fsck of damage to derived objects, which are regenerated when they are missing: nothing is lost, and a repair
//! removes them.

use engine::fsck::Severity;
use tests::fixtures::find_bytes;
use tests::store::{DERIVED, World, body, bucket_named, idle, name_in, put, read};

use crate::fsck::{check, finding, fork, repaired};

#[test]
fn repair_removes_damaged_derived_objects() {
    let world = World::new(7);
    let store = world.open();
    let bucket = bucket_named(DERIVED);
    let [small, big, sound] = ["small", "big", "sound"].map(|key| name_in(&bucket, key));
    let contents = [(&small, body(1, 300)), (&big, body(2, 9_000)), (&sound, body(3, 300))];
    for (name, content) in &contents {
        put(&store, name, content).unwrap();
    }
    idle(&store);
    store.close().unwrap();
    drop(store);
    let damages: [(&[(usize, i64)], bool); 4] = [
        // The content; the record's head as well; of a big one; both without the index.
        (&[(0, 20)], true),
        (&[(0, -20), (0, 20)], true),
        (&[(1, 20)], true),
        (&[(0, 20), (1, 20)], false),
    ];
    for (flips, has_index) in damages {
        let world = fork(&world);
        for (which, at) in flips {
            let (path, start) = find_bytes(&world.disk, &contents[*which].1);
            world.disk.flip(&path, start.strict_add_signed(*at), 1);
        }
        if !has_index {
            engine::disk::Disk::remove(&world.disk, "index.redb").unwrap();
        }
        let report = check(&world);
        let found = finding(&report, "remove");
        assert_eq!(found.severity, Severity::Repairable, "{report}");
        assert_eq!(report.count(Severity::Loss), 0, "{report}");
        repaired(&world);
        let store = world.open();
        for (which, (name, content)) in contents.iter().enumerate() {
            let is_gone = flips.iter().any(|(flipped, _)| *flipped == which);
            let wanted = (!is_gone).then(|| content.clone());
            assert_eq!(read(&store, name).unwrap(), wanted, "{name} after {flips:?}");
        }
    }
}
