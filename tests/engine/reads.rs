//! Reads: ranges with every kind of boundary, of active, mapped and big segments; non-blocking reads return only
//! resident bytes; bodies stay readable whatever happens to their objects.

use std::os::unix::fs::FileExt;

use engine::limits::{BLOCK_BYTES, READ_BYTES_MAX};
use engine::{Body, Conflict, Create, Error, OpenOptions, Store};
use tests::store::{World, body, delete, name, put, read, roll_over};

const SIZES: [usize; 7] =
    [0, 1, 1_000, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 5, 6 * BLOCK_BYTES + 17];

fn open_body(store: &Store, key: &str) -> Body {
    store.body(&store.get(&name(key)).unwrap().unwrap()).unwrap()
}

/// Checks every pair of interesting positions.
fn ranges_are_right(body: &Body, whole: &[u8]) {
    let size = whole.len();
    let edges = (0..=size / BLOCK_BYTES).map(|block| block * BLOCK_BYTES);
    let mut places: Vec<usize> = edges
        .flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1])
        .chain([size / 2, size.saturating_sub(1), size, size + 1, size + BLOCK_BYTES])
        .collect();
    places.sort_unstable();
    places.dedup();
    for start in &places {
        for end in &places {
            let found = body.read(*start as u64..*end as u64).unwrap();
            let from = (*start).min(size);
            let to = (*end).min(size).min(from + READ_BYTES_MAX).max(from);
            assert!(found == whole[from..to], "{start}..{end} of {size}");
        }
    }
    assert_eq!(body.bytes(), size as u64);
}

#[test]
fn ranges_are_correct_in_unsealed_sealed_and_big_segments() {
    let world = World::wide(1);
    let store = world.open();
    for size in SIZES {
        put(&store, &name(&format!("{size}")), &body(size as u64, size)).unwrap();
    }
    let check = |store: &Store| {
        for size in SIZES {
            ranges_are_right(&open_body(store, &format!("{size}")), &body(size as u64, size));
        }
    };
    check(&store);
    store.close().unwrap();
    drop(store);
    let store = world.open();
    check(&store);
    assert!(store.stats().unwrap().mapped_segments >= 2);
}

#[test]
fn nonblocking_read_returns_only_resident_pages() {
    let world = World::wide(1);
    let store = world.open();
    put(&store, &name("small"), &body(1, 100_000)).unwrap();
    put(&store, &name("big"), &body(2, 500_000)).unwrap();
    let growing = open_body(&store, "small");
    assert_eq!(growing.read_if_resident(0..10).unwrap().unwrap(), body(1, 10));
    world.disk.set_cold(true);
    assert_eq!(growing.read_if_resident(0..10).unwrap(), None);
    assert_eq!(growing.read(0..10).unwrap(), body(1, 10));
    store.close().unwrap();
    drop((growing, store));
    world.disk.set_cold(false);
    let store = world.open();
    world.disk.set_cold(true);
    for (key, seed) in [("small", 1), ("big", 2)] {
        let object = store.get(&name(key)).unwrap().unwrap();
        assert!(store.body_if_open(&object).unwrap().is_none(), "{key} is not open yet");
        let opened = store.body(&object).unwrap();
        assert_eq!(opened.read_if_resident(70_000..70_010).unwrap(), None, "{key}");
        let block = body(seed, 70_010);
        assert_eq!(opened.read(70_000..70_010).unwrap(), block[70_000..], "{key}");
        // The block that was read is resident now, the others are not.
        assert_eq!(
            opened.read_if_resident(65_536..65_540).unwrap().unwrap(),
            block[65_536..65_540]
        );
        assert_eq!(opened.read_if_resident(0..10).unwrap(), None, "{key}");
        assert!(store.body_if_open(&object).unwrap().is_some(), "{key} is open");
    }
}

#[test]
fn open_body_stays_readable_after_overwrite_or_delete() {
    let world = World::wide(1);
    let store = world.open();
    for (key, size) in [("small", 1_000), ("big", 400_000)] {
        put(&store, &name(key), &body(1, size)).unwrap();
        let first = open_body(&store, key);
        put(&store, &name(key), &body(2, size)).unwrap();
        let second = open_body(&store, key);
        delete(&store, &name(key)).unwrap();
        roll_over(&store).unwrap();
        store.checkpoint().unwrap();
        for (opened, seed) in [(&first, 1), (&second, 2)] {
            assert_eq!(opened.read(0..1_000).unwrap(), body(seed, 1_000), "{key}");
        }
        assert_eq!(read(&store, &name(key)).unwrap(), None);
    }
    put(&store, &name("big"), &body(3, 400_000)).unwrap();
    let opened = open_body(&store, "big");
    store.close().unwrap();
    assert_eq!(opened.read(0..1_000).unwrap(), body(3, 1_000), "closing disturbs nobody");
}

#[test]
fn big_object_changed_before_read_is_conflict_not_damage() {
    let world = World::wide(1);
    let store = world.open();
    put(&store, &name("big"), &body(1, 400_000)).unwrap();
    let seen = store.get(&name("big")).unwrap().unwrap();
    put(&store, &name("big"), &body(2, 400_000)).unwrap();
    let result = store.body(&seen).map(|body| body.bytes());
    assert!(matches!(result, Err(Error::Conflict(Conflict::KeyChanged(_)))), "{result:?}");
}

#[test]
fn damage_error_names_object_file_and_offset() {
    let world = World::wide(1);
    let store = world.open();
    put(&store, &name("small"), &body(1, 150_000)).unwrap();
    put(&store, &name("big"), &body(2, 400_000)).unwrap();
    put(&store, &name("other"), &body(3, 1_000)).unwrap();
    store.close().unwrap();
    drop(store);
    for (path, key) in [("log/0000000001.seg", "small"), ("big/00/0000000002.seg", "big")] {
        let place = 4_096 + 2 * BLOCK_BYTES + 1_000;
        let byte = world.disk.bytes(path)[place];
        world.disk.overwrite(path, place as u64, &[!byte]);
        let store = world.open();
        let opened = open_body(&store, key);
        let whole = body(if key == "small" { 1 } else { 2 }, 100);
        assert_eq!(opened.read(0..100).unwrap(), whole, "the first block is whole");
        let Err(Error::Corrupt(error)) = opened.read(2 * BLOCK_BYTES as u64..opened.bytes()) else {
            panic!("{key} is damaged");
        };
        assert_eq!((error.file.as_str(), error.object), (path, Some(name(key))));
        assert!(error.offset.abs_diff(place as u64) <= BLOCK_BYTES as u64);
        assert_eq!(read(&store, &name("other")).unwrap().unwrap(), body(3, 1_000));
        world.disk.overwrite(path, place as u64, &[byte]);
    }
}

/// A verified block stays verified as long as no other process writes to the file.
#[test]
fn file_changed_externally_is_verified_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) =
        Store::open_folder(folder.path(), OpenOptions::new(Create::IfMissing)).unwrap();
    let bytes = body(1, 3 << 20);
    put(&store, &name("big"), &bytes).unwrap();
    let object = store.get(&name("big")).unwrap().unwrap();
    assert_eq!(store.body(&object).unwrap().read(0..10).unwrap(), bytes[..10]);

    let shelf = folder.path().join("big/00");
    let segment = std::fs::read_dir(shelf).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    // The clock of file times may stand still for some milliseconds.
    while file.metadata().unwrap().modified().unwrap() == before {
        file.write_all_at(b"not what was there", 4_096).unwrap();
    }
    let read = store.body(&object).unwrap().read(0..10);
    assert!(matches!(read, Err(Error::Corrupt(_))), "{read:?}");
    assert_eq!(
        store.body(&object).unwrap().read(1 << 20..(1 << 20) + 9).unwrap()[..],
        bytes[1 << 20..(1 << 20) + 9]
    );
}

/// A real file is mapped while it grows. Slices of it are taken before and between later groups, and read after the
/// file was sealed, which truncates it.
#[test]
fn slices_of_growing_segment_survive_appends_and_sealing() {
    let folder = tempfile::tempdir().unwrap();
    let options = || OpenOptions::new(Create::IfMissing);
    let (store, _) = Store::open_folder(folder.path(), options()).unwrap();
    let key = |number: u64| name(&format!("{number}"));
    let size = |number: u64| 20_000 + number as usize * 9_973;
    let mut slices = Vec::new();
    for number in 0..20 {
        put(&store, &key(number), &body(number, size(number))).unwrap();
        // Of all objects so far, so that blocks are verified again after the file has grown.
        for earlier in 0..=number {
            let opened = open_body(&store, &format!("{earlier}"));
            slices.push((earlier, opened.read(0..opened.bytes()).unwrap()));
            let resident = opened.read_if_resident(0..10).unwrap();
            assert_eq!(resident.expect("it was just read"), body(earlier, 10));
        }
    }
    roll_over(&store).unwrap();
    store.close().unwrap();
    for (number, slice) in slices {
        assert!(slice == body(number, size(number)), "{number}");
    }
    drop(store);
    let (store, _) = Store::open_folder(folder.path(), options()).unwrap();
    for number in 0..20 {
        assert!(read(&store, &key(number)).unwrap().unwrap() == body(number, size(number)));
    }
}
