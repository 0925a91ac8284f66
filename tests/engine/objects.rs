//! Objects: put, get, overwrite, delete; their metadata and counters. Small ones and big ones, from memory, from the
//! index, and after reopening.

use engine::{Batch, Error, PutOptions};
use tests::store::Change;
use tests::store::{
    Contents, Model, START_MS, World, batch, body, bucket, bucket_named, commit, delete, name,
    name_in, put, read, roll_over, stage,
};

#[test]
fn put_is_readable_after_checkpoint_rollover_and_reopen() {
    let world = World::new(1);
    let mut store = world.open();
    let mut model = Model::default();
    for at in 0..60_u64 {
        let length = [0, 1, 100, 4_095, 4_096, 4_097, 70_000][at as usize % 7];
        let changes = [Change::Put(name(&format!("many/{}", at % 23)), body(at, length).into())];
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
        model.apply(&changes);
        match at % 10 {
            3 => drop(store.checkpoint().unwrap()),
            5 => roll_over(&store).unwrap(),
            7 => {
                drop(store);
                store = world.open();
            }
            9 => {
                store.close().unwrap();
                drop(store);
                store = world.open();
            }
            _ => {}
        }
        Contents::of(&store).unwrap().check_against(&model).unwrap();
    }
    let stats = store.stats().unwrap();
    assert!(stats.log.segments > 3, "{stats:?}");
    assert_eq!(stats.big.segments as usize, world.files_in("big/").len());
}

#[test]
fn object_keeps_type_attributes_etag_and_times() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions {
        content_type: "image/webp".to_owned(),
        attributes: vec![1, 2, 3],
        ..PutOptions::default()
    };
    let put = |bytes: &[u8]| {
        let staged = stage(&store, bytes).unwrap();
        let batch = Batch::new().put(name("a"), staged, options.clone());
        commit(&store, batch).unwrap().objects.remove(0)
    };
    let first = put(b"one");
    assert_eq!((first.bytes(), first.content_type()), (3, "image/webp"));
    assert_eq!(first.attributes(), [1, 2, 3]);
    assert_eq!((first.created_ms(), first.modified_ms()), (START_MS, START_MS));
    world.clock.advance(50);
    let second = put(b"two");
    assert_eq!((second.created_ms(), second.modified_ms()), (START_MS, START_MS + 50));
    assert!(second.lsn() > first.lsn());
    assert_ne!(second.etag(), first.etag());
    assert_eq!(put(b"one").etag(), first.etag(), "the etag is the content's");
    assert_eq!(first.etag().to_string().len(), 32);
    let found = store.get(&name("a")).unwrap().unwrap();
    assert_eq!((found.content_type(), found.attributes()), ("image/webp", [1, 2, 3].as_slice()));
}

#[test]
fn put_after_delete_creates_a_new_object() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"old").unwrap();
    put(&store, &name("b"), b"old").unwrap();
    world.clock.advance(10);
    assert_eq!(delete(&store, &name("a")).unwrap().deleted_count, 1);
    assert_eq!(put(&store, &name("a"), b"new").unwrap().objects[0].created_ms(), START_MS + 10);
    // Two puts within one batch.
    let staged = stage(&store, b"new").unwrap();
    let again = Batch::new().delete(name("b")).put(name("b"), staged, PutOptions::default());
    assert_eq!(commit(&store, again).unwrap().objects[0].created_ms(), START_MS + 10);
}

#[test]
fn delete_of_missing_object_is_a_reported_no_op() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"1").unwrap();
    let lsn = store.stats().unwrap().last_lsn;
    assert_eq!(delete(&store, &name("b")).unwrap().deleted_count, 0);
    assert_eq!(store.stats().unwrap().last_lsn, lsn, "nothing was written");
    assert_eq!(delete(&store, &name("a")).unwrap().deleted_count, 1);
    assert_eq!(delete(&store, &name("a")).unwrap().deleted_count, 0);
    assert_eq!(read(&store, &name("a")).unwrap(), None);
}

#[test]
fn same_key_in_two_buckets_is_two_objects() {
    let world = World::new(1);
    let store = world.open();
    let other = bucket_named("other");
    put(&store, &name("a"), &body(1, 10)).unwrap();
    put(&store, &name_in(&other, "a"), &body(2, 20)).unwrap();
    let derived = PutOptions { derived: true, ..PutOptions::default() };
    let staged = stage(&store, &body(3, 5_000)).unwrap();
    commit(&store, Batch::new().put(name("a.thumb"), staged, derived)).unwrap();
    let usage = store.bucket_usage(&bucket()).unwrap();
    assert_eq!((usage.objects, usage.bytes), (1, 10));
    assert_eq!((usage.derived_objects, usage.derived_bytes), (1, 5_000));
    // An object that is no longer derived moves from one counter to the other.
    put(&store, &name("a.thumb"), &body(4, 7)).unwrap();
    let usage = store.bucket_usage(&bucket()).unwrap();
    assert_eq!((usage.objects, usage.bytes), (2, 17));
    assert_eq!((usage.derived_objects, usage.derived_bytes), (0, 0));
    assert_eq!(store.bucket_usage(&other).unwrap().bytes, 20);
    delete(&store, &name_in(&other, "a")).unwrap();
    assert_eq!(store.bucket_usage(&other).unwrap(), Default::default());
    assert_eq!(store.bucket_usage(&bucket_named("never")).unwrap(), Default::default());
    let stats = store.stats().unwrap();
    assert_eq!((stats.objects, stats.object_bytes), (2, 17));
}

#[test]
fn big_object_overwrite_or_delete_reclaims_file_at_once() {
    let world = World::new(1);
    let store = world.open();
    for key in ["a", "b"] {
        put(&store, &name(key), &body(1, 9_000)).unwrap();
    }
    assert_eq!(world.files_in("big/").len(), 2);
    put(&store, &name("a"), b"small").unwrap();
    delete(&store, &name("b")).unwrap();
    assert_eq!(world.files_in("big/"), [""; 0]);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"small");
}

#[test]
fn oversized_fields_are_rejected_by_their_limit() {
    let world = World::new(1);
    let store = world.open();
    let with = |options: PutOptions| {
        let staged = stage(&store, b"x").unwrap();
        commit(&store, Batch::new().put(name("a"), staged, options))
    };
    let options = PutOptions::default;
    let long_type = PutOptions { content_type: "t".repeat(256), ..options() };
    let long_attributes = PutOptions { attributes: vec![0; 6_145], ..options() };
    for refused in [long_type, long_attributes] {
        assert!(matches!(with(refused), Err(Error::TooLarge(_))));
    }
    let longest = PutOptions {
        content_type: "t".repeat(255),
        attributes: vec![9; 6_144],
        ..PutOptions::default()
    };
    assert_eq!(with(longest).unwrap().objects[0].attributes().len(), 6_144);
    assert_eq!(store.get(&name("a")).unwrap().unwrap().content_type().len(), 255);
    let longest_key = name(&"k".repeat(1_024));
    put(&store, &longest_key, b"found").unwrap();
    store.checkpoint().unwrap();
    assert_eq!(read(&store, &longest_key).unwrap().unwrap(), b"found");
}
