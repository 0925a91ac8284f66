//! Power-cut rounds on a real file system: start, load, cut the file system off from its disk, mount it again, compare.
//!
//! Needs Linux, root, `mkfs.ext4` and a free loop device, so it is ignored unless requested. `TRUG_ROUNDS` sets another
//! number of rounds.

use std::time::Duration;

use engine::rng::{Rng, SeededRng};
use tests::DataFolder;

use crate::client::Client;
use crate::ext4::Ext4;
use crate::kill::{CLIENTS, compare, load, totals};

const ROUNDS: u32 = 3;
const RUN_MS_MIN: u64 = 100;
const RUN_MS_MAX: u64 = 1_500;

#[test]
#[ignore = "needs root, mkfs.ext4 and a free loop device"]
fn acknowledged_uploads_survive_file_system_shutdown() {
    let set = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = set("TRUG_SEED").unwrap_or(3);
    let rounds = set("TRUG_ROUNDS").and_then(|it| u32::try_from(it).ok()).unwrap_or(ROUNDS);
    let chance = SeededRng::new(seed);
    let folder = DataFolder::new();
    let disk = Ext4::new(&folder.parent().join("disk.ext4"), &folder.path());
    let mut disk = disk.unwrap_or_else(|why| panic!("no file system can be mounted here: {why}"));
    let key = folder.make_bucket();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client::new(number, seed)).collect();
    for round in 0..rounds {
        let mut server = folder.serve();
        let life_ms = RUN_MS_MIN + chance.next_u64() % (RUN_MS_MAX - RUN_MS_MIN);
        load(server.address(), &key, &mut clients, Duration::from_millis(life_ms), || {
            // In this order, because a sync during the cut may report success. Data in memory is not synced in between.
            server.kill();
            disk.cut().expect("an ext4 that we mounted can be shut down");
        });
        disk.unmount().expect("it is no longer in use");
        disk.mount().expect("the journal is replayed");

        let server = folder.serve();
        compare(&server, &mut clients, round);
        let stats = folder.json(&["stats"]);
        let counted = (&stats["objects"], &stats["objectBytes"]);
        let (objects, bytes) = totals(&clients);
        assert_eq!(counted, (&objects.into(), &bytes.into()), "round {round}");
        server.stop();
    }
    let uploads: u64 = clients.iter().map(|client| client.ledger.uploads).sum();
    println!("seed {seed}: {rounds} rounds, {uploads} uploads acknowledged");
    assert!(uploads > u64::from(rounds), "there was hardly any load");
}
