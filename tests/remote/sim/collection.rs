//! Collection: what no restore point needs is removed, and nothing else; fences remain.

use tests::store::{body, compact, delete, name, put, roll_over};

use super::worlds::{RemoteWorld, fill, settle, shown};

const HOUR_MS: u64 = 3_600_000;

#[test]
fn remote_store_does_not_grow_with_what_was_replaced() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    let mut sizes = Vec::new();
    for day in 0..30 {
        for hour in 0..4 {
            fill(&store, 100 * day + hour);
            delete(&store, &name(&format!("big/{}", 100 * day + hour))).unwrap();
            settle(&store).unwrap();
            world.world.clock.advance(6 * HOUR_MS);
        }
        compact(&store).unwrap();
        settle(&store).unwrap();
        let names = world.remote.names();
        let bytes: usize = names.iter().map(|it| world.remote.object(it).unwrap().len()).sum();
        sizes.push(bytes);
    }
    assert_eq!(world.restored(), shown(&store));
    let (early, late) = (sizes[14], sizes[29]);
    assert!(late < early + early / 5, "{early} bytes after 15 days, {late} after 30");
}

#[test]
fn old_chunks_are_removed_and_fences_remain() {
    let world = RemoteWorld::new(1);
    for round in 0..3 {
        let store = world.open();
        fill(&store, round);
        settle(&store).unwrap();
        world.world.clock.advance(2 * HOUR_MS);
        fill(&store, 10 + round);
        settle(&store).unwrap();
        world.world.clock.advance(2 * HOUR_MS);
        settle(&store).unwrap();
        store.close().unwrap();
    }
    let chunks: Vec<_> =
        world.remote.names().into_iter().filter(|name| name.starts_with("log/")).collect();
    let kind = |name: &String| world.remote.object(name).unwrap()[128];
    let fences = chunks.iter().filter(|name| kind(name) == 3).count();
    assert_eq!(fences, 3);
    assert!(chunks.contains(&format!("log/{:020}", 1)), "the first fence");
    let last: u64 = chunks.last().unwrap()[4..].parse().unwrap();
    assert!(chunks.len() as u64 * 2 < last, "{} of {last} chunks remain", chunks.len());
}

#[test]
fn chunk_of_the_newest_manifest_is_never_removed() {
    let world = RemoteWorld::new(1);
    let store = world.open();
    for round in 0..6 {
        fill(&store, round);
        settle(&store).unwrap();
        world.world.clock.advance(2 * HOUR_MS);
        settle(&store).unwrap();
        let newest = world.remote.names();
        let newest = newest.iter().rfind(|name| name.starts_with("manifest/")).unwrap();
        let chunk = newest.replace("manifest/", "log/");
        assert!(world.remote.object(&chunk).is_some(), "{chunk}");
    }
}

#[test]
fn orphaned_uploads_are_removed() {
    let world = RemoteWorld::acknowledging_remotely(1);
    let store = world.open();
    settle(&store).unwrap();
    // A body that is uploaded and never committed.
    drop(tests::store::stage(&store, &body(1, 9_000)).unwrap());
    let names = world.remote.names();
    let uploads: Vec<_> = names.iter().filter(|name| name.starts_with("seg/")).collect();
    let [orphan] = uploads[..] else { panic!("one upload: {names:?}") };
    for at in 0..10 {
        let _ = put(&store, &name(&format!("{at}")), &body(at, 3_900));
        settle(&store).unwrap();
        roll_over(&store).unwrap();
        world.world.clock.advance(48 * HOUR_MS);
    }
    settle(&store).unwrap();
    assert!(!world.remote.names().contains(orphan), "{:?}", world.remote);
    assert_eq!(world.restored(), shown(&store));
}
