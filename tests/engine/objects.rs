//! Objects: put, get, overwrite, delete, over the simulated disk.

use std::sync::Arc;

use engine::disk::sim::SimDisk;
use engine::{
    Background, Batch, BucketName, Create, ObjectKey, ObjectName, OpenOptions, PutOptions,
    SeededEntropy, SimClock, Store, Surroundings,
};

fn open(disk: &SimDisk, background: Background) -> Store {
    let surroundings = Surroundings {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(SimClock::at(1_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let mut options = OpenOptions::new(Create::IfMissing);
    options.segment_bytes = 1 << 20;
    options.inline_bytes_max = 64 << 10;
    options.background = background;
    let (store, report) = Store::open(surroundings, options).unwrap();
    println!("{report}");
    store
}

fn name(key: &str) -> ObjectName {
    ObjectName::new(BucketName::parse("photos").unwrap(), ObjectKey::parse(key).unwrap())
}

fn put(store: &Store, key: &str, body: &[u8]) {
    let mut upload = store.upload();
    upload.push(body).unwrap();
    let staged = upload.finish().unwrap();
    store.commit(Batch::new().put(name(key), staged, PutOptions::default())).unwrap();
}

fn read(store: &Store, key: &str) -> Option<Vec<u8>> {
    let object = store.get(&name(key)).unwrap()?;
    let body = store.body(&object).unwrap();
    let mut all = Vec::new();
    while (all.len() as u64) < body.bytes() {
        all.extend_from_slice(&body.read(all.len() as u64..body.bytes()).unwrap());
    }
    Some(all)
}

#[test]
fn what_was_put_is_read_back_small_and_big_before_and_after_reopening() {
    for background in [Background::Steps, Background::Threads] {
        let disk = SimDisk::new();
        let big: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        let store = open(&disk, background);
        put(&store, "small", b"hello");
        put(&store, "big", &big);
        for i in 0..100 {
            put(&store, &format!("many/{i}"), &big[..20_000 + i]);
        }
        assert_eq!(read(&store, "small").unwrap(), b"hello");
        assert_eq!(read(&store, "big").unwrap(), big);
        drop(store);
        let store = open(&disk, background);
        assert_eq!(read(&store, "small").unwrap(), b"hello");
        assert_eq!(read(&store, "big").unwrap(), big);
        store.close().unwrap();
        let store = open(&disk, background);
        assert_eq!(read(&store, "big").unwrap(), big);
        for i in 0..100 {
            assert_eq!(read(&store, &format!("many/{i}")).unwrap(), &big[..20_000 + i]);
        }
        println!("{:?}", store.stats().unwrap());
        drop(store);
        use engine::disk::Disk;
        disk.remove("index.redb").unwrap();
        let store = open(&disk, background);
        assert_eq!(read(&store, "big").unwrap(), big);
        assert_eq!(store.list_keys(&BucketName::parse("photos").unwrap(), "", None, 1000).unwrap().objects.len(), 102);
    }
}
