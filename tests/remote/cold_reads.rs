//! Files that are only in a real remote store, read on a real disk by many threads.

use std::sync::Arc;
use std::thread;

use engine::remote::RemoteStore;
use engine::replication::{ReplicationOptions, ReplicationStep};
use engine::{Background, Create, OpenOptions, Store};
use tests::store::{body, idle, name, put, read, roll_over};

const READERS: u64 = 8;
const FILES: u64 = 120;

/// Length of the file of this number: of a few kilobytes, or with a segment of its own of several units.
fn length(number: u64) -> usize {
    if number % 20 == 7 { 3_000_000 + number as usize } else { 20_000 + 13 * number as usize }
}

fn settle(store: &Store) {
    loop {
        roll_over(store).unwrap();
        let steps = [store.step_ship().unwrap(), store.step_replication_upkeep().unwrap()];
        if steps == [ReplicationStep::Idle; 2] {
            return;
        }
    }
}

/// Checks that files of which nothing is on this machine are read whole and in parts, by several threads at once.
pub(crate) fn check(remote: &Arc<dyn RemoteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let mut replication = ReplicationOptions::new(Arc::clone(remote));
    replication.probe = false;
    replication.local_bytes_max = 1;
    let mut options = OpenOptions::new(Create::IfMissing);
    options.background = Background::Manual;
    options.segment_bytes = 16 << 20;
    options.replication = Some(replication);
    let open = || Store::open_folder(folder.path(), options.clone()).unwrap().0;
    let store = open();
    // The first comparison with the limit is at the first idle moment.
    store.step_ship().unwrap();
    for number in 0..FILES {
        put(&store, &name(&number.to_string()), &body(number, length(number))).unwrap();
        roll_over(&store).unwrap();
    }
    idle(&store);
    store.checkpoint().unwrap();
    settle(&store);
    let tier = store.replication_status().unwrap().tier.unwrap();
    assert!(tier.remote_segments > 5, "{tier:?}");
    store.close().unwrap();

    let store = open();
    thread::scope(|scope| {
        for reader in 0..READERS {
            let store = &store;
            scope.spawn(move || {
                for number in (0..FILES).map(|at| (at * 7 + reader * 15) % FILES) {
                    let found = read(store, &name(&number.to_string())).unwrap().unwrap();
                    assert!(found == body(number, length(number)), "{number}");
                    let object = store.get(&name(&number.to_string())).unwrap().unwrap();
                    let part = store.body(&object).unwrap().read(9_000..9_100).unwrap();
                    assert_eq!(part, &found[9_000..9_100], "{number}");
                }
            });
        }
    });
    let stored: u64 = (0..FILES).map(|number| length(number) as u64).sum();
    let fetched = store.replication_status().unwrap().tier.unwrap().fetched_bytes;
    assert!(fetched < 2 * stored, "each unit is fetched once: {fetched} of {stored}");
}
