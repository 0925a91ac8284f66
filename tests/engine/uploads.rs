//! Uploads: bodies of every size near a boundary, in pieces of every size; one memory budget for all; dropped uploads
//! leave nothing behind.

use engine::limits::BLOCK_BYTES;
use engine::upload::UPLOAD_HEAD_BYTES;
use engine::{Batch, Error, PutOptions, Result, StagedBody};
use tests::store::{World, body, commit, name, put, read, roll_over, stage};

#[test]
fn bodies_near_size_boundaries_round_trip() {
    let world = World::wide(1);
    let inline = world.options.inline_bytes_max;
    let store = world.open();
    let edges = [0, 1, BLOCK_BYTES, 2 * BLOCK_BYTES, inline, 512 << 10, 3 << 20];
    let sizes = edges.iter().flat_map(|edge| [edge.saturating_sub(1), *edge, edge + 1]);
    let sizes: Vec<usize> = sizes.collect();
    for size in &sizes {
        put(&store, &name(&format!("size/{size}")), &body(*size as u64, *size)).unwrap();
    }
    for stage in ["growing", "sealed", "reopened"] {
        for size in &sizes {
            let found = read(&store, &name(&format!("size/{size}"))).unwrap().unwrap();
            assert!(found == body(*size as u64, *size), "{stage}: {size} bytes");
        }
        roll_over(&store).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = world.open();
    for size in &sizes {
        let found = read(&store, &name(&format!("size/{size}"))).unwrap().unwrap();
        assert!(found == body(*size as u64, *size), "reopened: {size} bytes");
    }
    let bigs = sizes.iter().filter(|size| **size > inline).count();
    assert_eq!(store.stats().unwrap().big.segments as usize, bigs.min(sizes.len()));
}

#[test]
fn upload_chunking_does_not_change_the_body() {
    let world = World::wide(1);
    let store = world.open();
    let whole = body(9, 300_000);
    let expected = stage(&store, &whole).unwrap();
    for piece in [1_000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 200_000, 300_000] {
        let mut upload = store.upload();
        for (at, bytes) in whole.chunks(piece).enumerate() {
            assert_eq!(upload.bytes(), (at * piece) as u64);
            upload.push(bytes).unwrap();
        }
        assert_eq!(upload.head(), &whole[..UPLOAD_HEAD_BYTES]);
        assert!(upload.is_big());
        let staged = upload.finish().unwrap();
        assert_eq!((staged.hash(), staged.bytes()), (expected.hash(), expected.bytes()));
        assert_eq!(staged.head(), &whole[..UPLOAD_HEAD_BYTES]);
        let key = name(&format!("piece/{piece}"));
        let batch = Batch::new().put(key.clone(), staged, PutOptions::default());
        commit(&store, batch).unwrap();
        assert!(read(&store, &key).unwrap().unwrap() == whole, "pieces of {piece}");
    }
}

#[test]
fn uploads_over_memory_budget_spill_to_disk() {
    let mut world = World::new(1);
    world.options.upload_memory_bytes = 12_000;
    let store = world.open();
    let used = || store.stats().unwrap().upload_memory_bytes;
    let mut first = store.upload();
    first.push(&body(1, 4_000)).unwrap();
    let mut second = store.upload();
    second.push(&body(2, 4_000)).unwrap();
    assert_eq!(used(), 8_000);
    let mut third = store.upload();
    third.push(&body(3, 4_000)).unwrap();
    assert!(third.is_big() && !second.is_big());
    // A body on its way to the disk has a block.
    assert_eq!(used(), 8_000 + BLOCK_BYTES as u64);
    drop(first);
    assert_eq!(used(), 4_000 + BLOCK_BYTES as u64);
    for (key, upload) in [("second", second), ("third", third)] {
        let staged = upload.finish().unwrap();
        commit(&store, Batch::new().put(name(key), staged, PutOptions::default())).unwrap();
    }
    assert_eq!(used(), 0);
    assert_eq!(read(&store, &name("second")).unwrap().unwrap(), body(2, 4_000));
    assert_eq!(read(&store, &name("third")).unwrap().unwrap(), body(3, 4_000));
    assert_eq!(world.files_in("big/").len(), 1);
}

#[test]
fn nonblocking_upload_refuses_bytes_that_need_disk() {
    let mut world = World::new(1);
    world.options.upload_memory_bytes = 8_000;
    let store = world.open();
    let whole = body(1, 5_000);
    let mut first = store.upload();
    assert!(first.push_in_memory(&whole[..4_000]).unwrap());
    assert!(!first.push_in_memory(&whole[4_000..]).unwrap(), "too large for the log");
    assert_eq!((first.bytes(), first.is_big()), (4_000, false), "nothing was taken");
    let mut second = store.upload();
    assert!(!second.push_in_memory(&whole[..2_001]).unwrap(), "beyond the budget");
    assert_eq!((second.bytes(), store.stats().unwrap().upload_memory_bytes), (0, 4_000));
    assert!(second.push_in_memory(&whole[..2_000]).unwrap());
    assert_eq!(world.files_in("big/"), [""; 0], "the disk was not touched");
    first.push(&whole[4_000..]).unwrap();
    assert!(first.is_big() && !first.push_in_memory(b"more").unwrap());
    let staged = first.finish().unwrap();
    commit(&store, Batch::new().put(name("a"), staged, PutOptions::default())).unwrap();
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), whole);
}

#[test]
fn dropped_upload_leaves_no_file() {
    let world = World::new(1);
    let store = world.open();
    let mut upload = store.upload();
    upload.push(&body(1, 9_000)).unwrap();
    assert_eq!(world.files_in("big/").len(), 1);
    drop(upload);
    assert_eq!(world.files_in("big/"), [""; 0]);
    let staged = stage(&store, &body(1, 9_000)).unwrap();
    let clone = staged.clone();
    drop(staged);
    assert_eq!(world.files_in("big/").len(), 1, "a clone keeps the body");
    drop(clone);
    assert_eq!(world.files_in("big/"), [""; 0]);
    drop(Batch::new().put(
        name("a"),
        stage(&store, &body(1, 9_000)).unwrap(),
        PutOptions::default(),
    ));
    assert_eq!(world.files_in("big/"), [""; 0]);
}

/// Reads the whole of a staged body, in the blocks that it is read in.
fn read_staged(staged: &StagedBody) -> Result<Vec<u8>> {
    let mut reader = staged.reader()?;
    let mut bytes = Vec::new();
    while let Some(block) = reader.next_block()? {
        assert!((1..=BLOCK_BYTES).contains(&block.len()));
        bytes.extend_from_slice(&block);
    }
    assert!(reader.next_block()?.is_none(), "the end stays the end");
    Ok(bytes)
}

#[test]
fn staged_body_is_readable_before_commit() {
    let world = World::wide(1);
    let store = world.open();
    let inline = world.options.inline_bytes_max;
    for size in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, inline, inline + 1, 5 * inline + 7] {
        let whole = body(size as u64, size);
        let staged = stage(&store, &whole).unwrap();
        assert_eq!(staged.is_big(), size > inline);
        for _ in 0..2 {
            assert!(read_staged(&staged).unwrap() == whole, "{size} bytes");
        }
        let key = name(&format!("size/{size}"));
        commit(&store, Batch::new().put(key.clone(), staged.clone(), PutOptions::default()))
            .unwrap();
        assert!(read(&store, &key).unwrap().unwrap() == whole, "{size} bytes, committed");
        assert!(read_staged(&staged).unwrap() == whole, "{size} bytes, read once more");
    }
}

#[test]
fn open_reader_keeps_staged_body_alive() {
    let world = World::new(1);
    let store = world.open();
    let whole = body(1, 9_000);
    let staged = stage(&store, &whole).unwrap();
    let mut reader = staged.reader().unwrap();
    drop(staged);
    assert_eq!(world.files_in("big/").len(), 1);
    assert_eq!(reader.next_block().unwrap().unwrap(), whole);
    drop(reader);
    assert_eq!(world.files_in("big/"), [""; 0]);
}

#[test]
fn damaged_staged_body_is_detected_before_commit() {
    let world = World::wide(1);
    let store = world.open();
    let size = 2 * world.options.inline_bytes_max;
    let staged = stage(&store, &body(1, size)).unwrap();
    let path = world.files_in("big/").remove(0);
    let end = world.disk.bytes(&path).len() as u64;
    // The first and the last block, the table, the trailer; of the header there are two copies.
    for at in [4_096, 4_096 + size as u64 - 1, 4_096 + size as u64, end - 60] {
        world.disk.flip(&path, at, 1);
        let read = read_staged(&staged);
        assert!(matches!(read, Err(Error::Corrupt(_))), "at {at}: {}", read.is_ok());
        world.disk.flip(&path, at, 1);
    }
    assert!(read_staged(&staged).unwrap() == body(1, size));
}
