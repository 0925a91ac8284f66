//! redb over the simulated disk.
//!
//! Checked here: with power cut in the middle of every single disk operation, under every loss policy, redb opens again
//! with every acknowledged commit, and with the one in progress whole or not at all. So the index may be stored through
//! the disk interface, which keeps its guarantees to a third-party storage engine. Only a database whose creation was
//! interrupted may be unusable: redb does not open a file whose first bytes never became durable. The engine then
//! rebuilds its index.

use engine::disk::sim::{LossPolicy, SimDisk};
use engine::disk::{Disk, RedbFile};
use redb::{Database, DatabaseError, Durability, ReadableDatabase, TableDefinition};

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("entries");
const COMMITS: u64 = 12;
const KEYS: u64 = 20;

#[test]
fn redb_acknowledged_commits_survive_power_loss() {
    let disk = SimDisk::new();
    disk.create("index.redb").unwrap();
    disk.sync_folder("").unwrap();
    disk.record_cuts();
    let (made, acknowledged) = commit_all(&disk);
    let cuts = disk.take_cuts();
    assert!(cuts.len() > 100, "{} operations", cuts.len());
    assert!(made < acknowledged[0]);
    for cut in &cuts {
        let known = acknowledged.iter().filter(|done| **done <= cut.operations()).count() as u64;
        for (policy, seed) in LossPolicy::ALL.into_iter().flat_map(|it| [(it, 0), (it, 1), (it, 2)])
        {
            let disk = cut.fork();
            disk.power_on(policy, seed);
            let at = cut.operations();
            let database = match opened(&disk) {
                Err(_) if at < made => continue,
                database => database.unwrap(),
            };
            let found = newest_commit(&database);
            assert!(
                found == known || found == known + 1,
                "cut after {at}, {policy:?}, seed {seed}: {known} acknowledged, {found} found"
            );
        }
    }
}

#[test]
fn redb_without_syncs_loses_acknowledged_commits() {
    let disk = SimDisk::new();
    disk.create("index.redb").unwrap();
    disk.sync_folder("").unwrap();
    disk.ignore_syncs(engine::disk::faults::IgnoredSync::DataSync);
    assert_eq!(commit_all(&disk).1.len() as u64, COMMITS);
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(disk.bytes("index.redb"), b"", "the test above would have noticed");
}

/// Creates a database and commits one batch after another; returns the number of disk operations at its creation, and
/// at each acknowledged commit.
fn commit_all(disk: &SimDisk) -> (u64, Vec<u64>) {
    let database = opened(disk).unwrap();
    let made = disk.operations();
    let mut acknowledged = Vec::new();
    for commit in 1..=COMMITS {
        let mut transaction = database.begin_write().unwrap();
        transaction.set_durability(Durability::Immediate).unwrap();
        transaction.set_quick_repair(true);
        let mut table = transaction.open_table(TABLE).unwrap();
        for key in 0..KEYS {
            table.insert(key * 1_000, value(commit, key).as_slice()).unwrap();
        }
        drop(table);
        transaction.commit().unwrap();
        acknowledged.push(disk.operations());
    }
    (made, acknowledged)
}

/// Returns the newest commit in the database, which must be whole.
fn newest_commit(database: &Database) -> u64 {
    let transaction = database.begin_read().unwrap();
    let table = match transaction.open_table(TABLE) {
        Err(redb::TableError::TableDoesNotExist(_)) => return 0,
        table => table.unwrap(),
    };
    let read = |key: u64| table.get(key * 1_000).unwrap().unwrap().value().to_vec();
    let commit = u64::from(read(0)[0]);
    for key in 0..KEYS {
        assert!(read(key) == value(commit, key), "commit {commit} is there in part");
    }
    commit
}

fn value(commit: u64, key: u64) -> Vec<u8> {
    vec![u8::try_from(commit).unwrap(); usize::try_from(100 + 50 * key + commit).unwrap()]
}

fn opened(disk: &SimDisk) -> Result<Database, DatabaseError> {
    let file = disk.open("index.redb").unwrap();
    let mut builder = redb::Builder::new();
    builder.set_cache_size(1 << 20);
    builder.create_with_backend(RedbFile::new(file))
}
