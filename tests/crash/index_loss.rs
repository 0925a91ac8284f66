//! The index is a view: deleting it, truncating it, filling it with garbage or flipping bits in it at rest costs time
//! and nothing else. Bits that flip under an open store are detected by the check of the value that they hit.

use std::collections::BTreeSet;

use engine::disk::Disk;
use engine::disk::faults::IgnoredSync;
use engine::disk::sim::SimDisk;
use engine::{Batch, Error, PutOptions, Store};
use memchr::memmem;
use tests::store::{World, body, commit, name, read, stage};

use crate::bit_rot::{Noticed, Past, Specimen};
use crate::power_loss::{Survey, survey};
use crate::scenario::Act;

const INDEX: &str = "index.redb";

/// Damages the index of a closed store, and requires that nothing is lost by it.
fn check_nothing_lost(past: Past, what: &str, damage: impl FnOnce(&SimDisk)) -> Noticed {
    match Specimen::new(past).examine(&BTreeSet::new(), damage) {
        Ok(noticed) => noticed,
        Err(fault) => panic!("{past:?}, {what}: {fault}"),
    }
}

#[test]
fn missing_or_corrupt_index_is_rebuilt() {
    for past in [Past::Closed, Past::Killed] {
        check_nothing_lost(past, "deleted", |disk| disk.remove(INDEX).unwrap());
        for length in [0, 1, 100, 4_096, 5_000, 100_000] {
            check_nothing_lost(past, &format!("cut to {length}"), |disk| {
                disk.open(INDEX).unwrap().set_len(length).unwrap();
            });
        }
        check_nothing_lost(past, "rubbish", |disk| {
            let rubbish = body(3, disk.bytes(INDEX).len());
            disk.overwrite(INDEX, 0, &rubbish);
        });
        check_nothing_lost(past, "rubbish behind the first page", |disk| {
            let rubbish = body(3, disk.bytes(INDEX).len());
            disk.overwrite(INDEX, 4_096, &rubbish);
        });
    }
}

#[test]
fn index_of_another_store_is_rebuilt() {
    let other = World::new(99);
    let store = other.open();
    tests::store::put(&store, &name("outsider"), b"of another store").unwrap();
    store.close().unwrap();
    let index = other.disk.bytes(INDEX);
    check_nothing_lost(Past::Closed, "another store's", |disk| {
        disk.open(INDEX).unwrap().set_len(index.len() as u64).unwrap();
        disk.overwrite(INDEX, 0, &index);
    });
}

#[test]
fn bit_flip_in_index_at_rest_loses_nothing() {
    let (mut tried, mut noticed) = (0, 0);
    for past in [Past::Closed, Past::Killed] {
        let specimen = Specimen::new(past);
        let index = specimen.bytes(INDEX);
        let pages = index.chunks(4_096);
        let is_used: Vec<_> = pages.map(|page| page.iter().any(|byte| *byte != 0)).collect();
        // Non-empty pages at every 23rd byte, the others now and then.
        let wanted = |offset: &usize| match is_used[offset / 4_096] {
            true => offset.is_multiple_of(23) || *offset < 512,
            false => offset.is_multiple_of(8_191),
        };
        for offset in (0..index.len()).filter(wanted) {
            let examined =
                specimen.examine(&BTreeSet::new(), |disk| crate::layout::flip(disk, INDEX, offset));
            match examined {
                Ok(found) => noticed += u64::from(found != Noticed::No),
                Err(fault) => panic!("{past:?}, offset {offset}: {fault}"),
            }
            tried += 1;
        }
    }
    println!("{tried} flips, {noticed} noticed");
    assert!(noticed > 100, "{noticed} of {tried} flips were noticed");
}

/// Flips a bit in a value of the index under an open store that caches next to nothing of it in memory.
pub(crate) fn flip_in_open_store() -> Result<u64, String> {
    let world = World::new(4);
    fill(&world.open()).map_err(|error| error.to_string())?;
    let index = world.disk.bytes(INDEX);
    let mut noticed = 0;
    for key in (100..200).step_by(9) {
        let value = format!("text/number-{key}");
        for at in memmem::find_iter(&index, &value) {
            // The content type follows the fixed part of the value; all of it is in reach.
            for offset in (at - 60..at + value.len()).step_by(5) {
                let mut world = World::on(world.disk.fork(), 5);
                world.options.index_cache_bytes = 0;
                let store = world.open();
                crate::layout::flip(&world.disk, INDEX, offset);
                noticed += u64::from(check_reads(&store, key, &value)?);
            }
        }
    }
    Ok(noticed)
}

/// Fills so many objects that most leaves of the index are not its root, which redb keeps in memory.
fn fill(store: &Store) -> engine::Result<()> {
    for key in 0..200 {
        let staged = stage(store, &body(key, 100))?;
        let content_type = format!("text/number-{key}");
        let options = PutOptions { content_type, ..PutOptions::default() };
        commit(store, Batch::new().put(name(&format!("key/{key}")), staged, options))?;
    }
    store.close()
}

/// Returns whether the store detected the damage; a wrong result is an error.
fn check_reads(store: &Store, key: u64, content_type: &str) -> Result<bool, String> {
    let object = name(&format!("key/{key}"));
    match store.get(&object) {
        Ok(Some(found)) if found.content_type() != content_type => {
            Err(format!("{object} has the type {}", found.content_type()))
        }
        Ok(Some(_)) => match read(store, &object) {
            Ok(Some(bytes)) if bytes == body(key, 100) => Ok(false),
            Err(Error::Corrupt(_)) => Ok(true),
            other => Err(format!("{object} reads {other:?}")),
        },
        Ok(None) => Err(format!("{object} is gone")),
        Err(Error::Corrupt(_)) => Ok(true),
        Err(error) => Err(format!("{object} answers {error}")),
    }
}

#[test]
fn bit_flip_in_open_index_is_detected() {
    let noticed = flip_in_open_store().unwrap();
    println!("{noticed} noticed");
    assert!(noticed > 100, "{noticed}");
}

#[test]
fn index_without_syncs_loses_nothing() {
    let ignored = [IgnoredSync::SyncOf(INDEX.to_owned())];
    let mut total = Survey::default();
    for act in [Act::Put, Act::OverwriteBig, Act::Checkpoint, Act::Close] {
        for first in [Act::Checkpoint, Act::Batch, Act::Reopen] {
            survey(&[first, act], &ignored, 2, &mut total).unwrap();
        }
    }
    println!("{total:?}");
}
