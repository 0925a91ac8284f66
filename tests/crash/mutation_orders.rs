//! Orders of operations that only matter when something else happens in between: here the disk makes it happen.

use std::io;
use std::sync::{Arc, Mutex};

use engine::Store;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::disk::{Disk, DiskFile, Lock};
use tests::store::{World, body, name, put, stage};

/// A disk that runs a function once, right after a folder of big segments was synced.
struct DuringCheckpoint {
    disk: SimDisk,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Disk for DuringCheckpoint {
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_folder(folder)?;
        let then = self.then.lock().unwrap().take_if(|_| folder.starts_with("big/"));
        if let Some(then) = then {
            then();
        }
        Ok(())
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.disk.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    fn capacity_bytes(&self) -> io::Result<u64> {
        self.disk.capacity_bytes()
    }
}

#[test]
fn upload_dropped_during_checkpoint_leaves_no_orphan() {
    let world = World::new(1);
    let disk = Arc::new(DuringCheckpoint { disk: world.disk.clone(), then: Mutex::default() });
    let surroundings = engine::Environment { disk: disk.clone(), ..world.environment() };
    let (store, _) = Store::open(surroundings, world.options.clone()).unwrap();
    for seed in 0..2 {
        put(&store, &name("big"), &body(seed, 9_000)).unwrap();
    }
    let dropped = stage(&store, &body(2, 9_000)).unwrap();
    *disk.then.lock().unwrap() = Some(Box::new(move || drop(dropped)));
    store.checkpoint().unwrap();
    assert!(disk.then.lock().unwrap().is_none(), "the folder was synced");
    assert_eq!(world.files_in("big/").len(), 1);

    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(world.files_in("big/").len(), 2, "the name comes back");
    drop(world.open());
    assert_eq!(world.files_in("big/").len(), 1);
}
