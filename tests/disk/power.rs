//! Power cuts of the simulated disk: lost and remaining data.
//!
//! Checked here: each loss policy, the numbering of operations, handles and locks after a cut, copies, and that a seed
//! determines everything.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use engine::disk::sim::{LossPolicy, SimDisk};
use engine::disk::{Disk, DiskFile};

use crate::all;

const SEEDS: u64 = 200;

#[test]
fn synced_data_survives_every_power_loss_policy() {
    for policy in LossPolicy::ALL {
        for seed in 0..SEEDS {
            let disk = SimDisk::new();
            disk.create_folder("log").unwrap();
            disk.sync_folder("").unwrap();
            let file = made(&disk, "log/file", b"durable");
            disk.sync_folder("log").unwrap();
            file.write_at(100_000, &[b"not durable"]).unwrap();
            disk.power_on(policy, seed);
            assert_eq!(&disk.bytes("log/file")[..7], b"durable");
        }
    }
}

#[test]
fn keep_synced_policy_drops_unsynced_data() {
    let disk = disk_with_a_past();
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(disk.paths(), ["changed", "removed"]);
    assert_eq!(disk.bytes("changed"), b"before");
    assert_eq!(disk.bytes("removed"), b"removed");
}

#[test]
fn keep_all_policy_keeps_everything() {
    let disk = disk_with_a_past();
    disk.power_on(LossPolicy::KeepAll, 0);
    assert_eq!(disk.paths(), ["changed", "new"]);
    assert_eq!(disk.bytes("changed"), b"after and longer");
    assert_eq!(disk.bytes("new"), b"synced unsynced");
}

#[test]
fn lost_dir_entries_drop_new_and_restore_removed_files() {
    let disk = disk_with_a_past();
    disk.power_on(LossPolicy::NamesLost, 0);
    assert_eq!(disk.paths(), ["changed", "removed"]);
    assert_eq!(disk.bytes("changed"), b"after and longer");
    assert_eq!(disk.bytes("removed"), b"removed");
}

#[test]
fn kept_dir_entries_may_name_files_without_bytes() {
    let disk = disk_with_a_past();
    disk.power_on(LossPolicy::NamesKept, 0);
    assert_eq!(disk.paths(), ["changed", "new"]);
    assert_eq!(disk.bytes("changed"), b"before");
    assert_eq!(disk.bytes("new"), b"synced");
}

#[test]
fn unsynced_folder_entry_loses_all_its_contents() {
    let disk = SimDisk::new();
    disk.create_folder("big/00").unwrap();
    made(&disk, "big/00/file", b"durable");
    disk.sync_folder("big/00").unwrap();
    disk.sync_folder("big").unwrap();
    let synced_to_the_root = disk.fork();
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(disk.list("").unwrap(), [""; 0]);
    assert_eq!(disk.paths(), [""; 0]);
    synced_to_the_root.sync_folder("").unwrap();
    synced_to_the_root.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(synced_to_the_root.bytes("big/00/file"), b"durable");
}

#[test]
fn prefix_policy_keeps_no_later_without_earlier_write() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        let file = synced(&disk, "file", b"....");
        for at in 0..4 {
            file.write_at(at, &[b"x"]).unwrap();
        }
        disk.power_on(LossPolicy::Prefix, seed);
        seen.insert(disk.bytes("file"));
    }
    // Single bytes: a torn write of one byte is whole or nothing.
    let prefixes: [&[u8]; 5] = [b"....", b"x...", b"xx..", b"xxx.", b"xxxx"];
    assert_eq!(seen, prefixes.map(<[u8]>::to_vec).into());
}

#[test]
fn unsynced_sectors_survive_individually_and_whole() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        let file = synced(&disk, "file", &[0; 3 * 512]);
        file.write_at(100, &[&[1; 2 * 512]]).unwrap();
        disk.power_on(LossPolicy::Sectors, seed);
        let bytes = disk.bytes("file");
        assert_eq!(bytes.len(), 3 * 512);
        let written = |range: std::ops::Range<usize>| {
            assert!(bytes[range.clone()].iter().all(|byte| *byte == bytes[range.start]));
            bytes[range.start] == 1
        };
        assert!(!written(0..100));
        assert!(!written(1_124..1_536));
        seen.insert([written(100..512), written(512..1_024), written(1_024..1_124)]);
    }
    assert_eq!(seen.len(), 8, "every subset happens");
}

#[test]
fn surviving_sector_includes_its_earlier_writes() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        let file = synced(&disk, "file", b"..");
        file.write_at(0, &[b"a"]).unwrap();
        file.write_at(1, &[b"b"]).unwrap();
        disk.power_on(LossPolicy::Sectors, seed);
        seen.insert(disk.bytes("file"));
    }
    assert_eq!(seen, [b"..", b"a.", b"ab"].map(|bytes| bytes.to_vec()).into());
}

#[test]
fn unsynced_file_length_may_be_any_past_length() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        let file = synced(&disk, "file", &[7; 1_000]);
        file.set_len(10).unwrap();
        file.allocate(5_000).unwrap();
        file.write_at(5_000, &[&[7; 1_000]]).unwrap();
        disk.power_on(LossPolicy::Sectors, seed);
        let bytes = disk.bytes("file");
        if bytes.len() > 1_000 {
            assert!(bytes[10..5_000].iter().all(|byte| *byte == 0), "the cut came before");
        }
        seen.insert(bytes.len());
    }
    assert_eq!(seen, [10, 1_000, 5_000, 6_000].into());
}

#[test]
fn operations_fail_from_the_power_cut_on() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", b"1234");
    assert_eq!(disk.operations(), 4, "create, write, sync, sync of the folder");
    disk.cut_power_after(5);
    file.write_at(0, &[b"a"]).unwrap();
    file.read_at(0, &mut [0]).unwrap();
    file.write_at(1, &[b"b"]).unwrap_err();
    assert!(disk.is_off());
    file.write_at(2, &[b"c"]).unwrap_err();
    file.read_at(0, &mut [0]).unwrap_err();
    file.bytes_len().unwrap_err();
    disk.open("file").map(drop).unwrap_err();
    disk.create("other").map(drop).unwrap_err();
    disk.create_folder("log").unwrap_err();
    disk.remove("file").unwrap_err();
    disk.list("").unwrap_err();
    disk.sync_folder("").unwrap_err();
    disk.free_bytes().unwrap_err();
    assert_ne!(disk.lock().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(disk.operations(), 5);
    disk.power_on(LossPolicy::KeepAll, 0);
    assert_eq!(disk.bytes("file"), b"a234");
    disk.create("other").unwrap();
}

#[test]
fn in_flight_write_may_survive_partially() {
    for policy in LossPolicy::ALL {
        let mut seen = BTreeSet::new();
        for seed in 0..SEEDS {
            let disk = SimDisk::new();
            let file = synced(&disk, "file", &[0; 1_024]);
            disk.cut_power_after(disk.operations());
            file.write_at(0, &[&[1; 1_024]]).unwrap_err();
            disk.power_on(policy, seed);
            let bytes = disk.bytes("file");
            seen.insert((bytes[0], bytes[512]));
        }
        let torn = matches!(policy, LossPolicy::Prefix | LossPolicy::Sectors);
        assert_eq!(seen.len(), if torn { 4 } else { 1 }, "{policy:?}");
    }
}

#[test]
fn cut_file_creation_is_not_mistaken_for_a_later_file() {
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        disk.cut_power_after(0);
        disk.create("cut").map(drop).unwrap_err();
        disk.power_on(LossPolicy::Sectors, seed);
        made(&disk, "later", b"later");
        assert!(disk.paths() == ["later"] || disk.bytes("cut").is_empty());
    }
}

#[test]
fn handles_and_locks_from_before_the_cut_are_invalid() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", b"bytes");
    let lock = disk.lock().unwrap();
    disk.power_on(LossPolicy::KeepAll, 0);
    file.read_at(0, &mut [0]).unwrap_err();
    file.write_at(0, &[b"x"]).unwrap_err();
    file.sync_data().unwrap_err();
    let new_lock = disk.lock().unwrap();
    drop((lock, file));
    assert_eq!(disk.lock().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(new_lock);
    assert_eq!(all(&*disk.open("file").unwrap()), b"bytes");
}

#[test]
fn power_cut_is_deterministic_per_seed() {
    for policy in LossPolicy::ALL {
        let (mut same, mut differ) = (true, false);
        for seed in 0..20 {
            let disk = scripted(None);
            let (one, two, other) = (disk.fork(), disk.fork(), disk.fork());
            one.power_on(policy, seed);
            two.power_on(policy, seed);
            other.power_on(policy, seed + 1_000);
            same &= contents(&one) == contents(&two);
            differ |= contents(&one) != contents(&other);
        }
        assert!(same);
        assert_eq!(differ, matches!(policy, LossPolicy::Prefix | LossPolicy::Sectors));
    }
}

#[test]
fn simulated_disk_fork_is_independent() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", b"shared");
    let _lock = disk.lock().unwrap();
    let fork = disk.fork();
    file.write_at(0, &[b"SHARED"]).unwrap();
    fork.remove("file").unwrap();
    assert_eq!(disk.bytes("file"), b"SHARED");
    assert_eq!(fork.paths(), ["LOCK"]);
    let _its_own = fork.lock().unwrap();
}

#[test]
fn renamed_file_survives_under_one_of_its_names() {
    let mut seen = BTreeSet::new();
    for policy in LossPolicy::ALL {
        for seed in 0..SEEDS {
            for synced_folders in [&[][..], &["log"], &[""]] {
                let disk = disk_with_a_folder("log");
                synced(&disk, "file", b"moved");
                made(&disk, "log/file", b"replaced");
                disk.sync_folder("log").unwrap();
                disk.rename("file", "log/file").unwrap();
                disk.create("file").unwrap();
                for folder in synced_folders {
                    disk.sync_folder(folder).unwrap();
                }
                disk.power_on(policy, seed);
                let at = |path| disk.open(path).map(|file| all(&*file)).unwrap_or_default();
                let found = (at("file"), at("log/file"));
                let is_done = found == (Vec::new(), b"moved".to_vec());
                let is_not = found == (b"moved".to_vec(), b"replaced".to_vec());
                assert!(
                    is_done || is_not,
                    "{policy:?}, seed {seed}, {synced_folders:?}: {found:?}"
                );
                seen.insert((synced_folders.to_vec(), is_done));
            }
        }
    }
    // With its old folder also goes the file that has the old name now, and that takes the rename along.
    let expected: [(&[&str], bool); 5] =
        [(&[], false), (&[], true), (&["log"], false), (&["log"], true), (&[""], true)];
    assert_eq!(seen, expected.map(|(folders, done)| (folders.to_vec(), done)).into());
}

#[test]
fn rename_is_durable_after_both_folders_are_synced() {
    for folders in [["", "log"], ["log", ""]] {
        let disk = disk_with_a_folder("log");
        // Only the rename gives the file its name.
        let file = made(&disk, "file", b"moved");
        disk.rename("file", "log/file").unwrap();
        disk.sync_folder(folders[0]).unwrap();
        disk.sync_folder(folders[0]).unwrap();
        let half_synced = disk.fork();
        half_synced.power_on(LossPolicy::KeepSynced, 0);
        assert!(!half_synced.paths().contains(&"log/file".to_owned()), "{folders:?}");
        disk.sync_folder(folders[1]).unwrap();
        drop(file);
        disk.power_on(LossPolicy::KeepSynced, 0);
        assert_eq!(contents(&disk), [("log/file".to_owned(), b"moved".to_vec())]);
    }
}

#[test]
fn hard_link_is_durable_after_folder_sync() {
    let disk = disk_with_a_folder("log");
    let file = synced(&disk, "file", b"before");
    disk.link("file", "log/file").unwrap();
    file.write_at(0, &[b"after!"]).unwrap();
    let unsynced = disk.fork();
    unsynced.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(contents(&unsynced), [("file".to_owned(), b"before".to_vec())]);
    disk.sync_folder("log").unwrap();
    file.sync_data().unwrap();
    disk.remove("file").unwrap();
    drop(file);
    let both = disk.fork();
    both.power_on(LossPolicy::KeepSynced, 0);
    let whole = b"after!".to_vec();
    assert_eq!(
        contents(&both),
        [("file", &whole), ("log/file", &whole)]
            .map(|(path, bytes)| (path.to_owned(), bytes.clone()))
    );
    disk.sync_folder("").unwrap();
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(contents(&disk), [("log/file".to_owned(), whole)]);
}

#[test]
fn rename_does_not_undo_writes_to_the_new_name() {
    let disk = disk_with_a_folder("log");
    made(&disk, "file", b"moved");
    disk.rename("file", "log/file").unwrap();
    disk.remove("log/file").unwrap();
    disk.sync_folder("log").unwrap();
    disk.sync_folder("").unwrap();
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(disk.paths(), [""; 0]);
}

#[test]
fn punched_hole_reads_as_zeros_only_after_sync() {
    let durable = |policy, seed, is_synced| {
        let disk = SimDisk::new();
        let file = made(&disk, "file", &[1; 5 * 4_096]);
        disk.sync_folder("").unwrap();
        let before = disk.free_bytes().unwrap();
        file.punch(4_000..3 * 4_096).unwrap();
        assert_eq!(disk.free_bytes().unwrap(), before + 2 * 4_096);
        if is_synced {
            file.sync_data().unwrap();
        }
        disk.power_on(policy, seed);
        let bytes = disk.bytes("file");
        assert_eq!(bytes.len(), 5 * 4_096);
        let free_pages = (disk.free_bytes().unwrap() - before) / 4_096;
        (bytes[4_000..3 * 4_096].iter().filter(|byte| **byte == 0).count(), free_pages)
    };
    assert_eq!(durable(LossPolicy::KeepSynced, 0, false), (0, 0));
    for policy in LossPolicy::ALL {
        assert_eq!(durable(policy, 0, true), (8_288, 2), "{policy:?}");
    }
    let any: BTreeSet<_> =
        (0..SEEDS).map(|seed| durable(LossPolicy::Sectors, seed, false)).collect();
    let pages = |count: usize| (4_096 * count, count as u64);
    assert!(any.contains(&pages(0)) && any.contains(&pages(1)), "{any:?}");
}

#[test]
fn recorded_power_cuts_match_separate_runs() {
    let recorded = SimDisk::new();
    recorded.record_cuts();
    script(&recorded);
    let cuts = recorded.take_cuts();
    assert_eq!(cuts.len() as u64, recorded.operations());
    for (count, cut) in (0..).zip(&cuts) {
        assert_eq!((cut.operations(), cut.is_off()), (count, true));
        for policy in LossPolicy::ALL {
            let (cut, rerun) = (cut.fork(), scripted(Some(count)));
            cut.power_on(policy, count);
            rerun.power_on(policy, count);
            assert_eq!(contents(&cut), contents(&rerun), "cut after {count}, {policy:?}");
        }
    }
}

#[test]
fn preallocated_segment_uses_no_memory() {
    let disk = SimDisk::new();
    // A tebibyte of real memory is not available.
    let file = disk.create("file").unwrap();
    file.allocate(1 << 39).unwrap();
    file.sync_data().unwrap();
    disk.sync_folder("").unwrap();
    let fork = disk.fork();
    fork.power_on(LossPolicy::Sectors, 0);
    assert_eq!(fork.open("file").unwrap().bytes_len().unwrap(), 1 << 39);
    assert_eq!(fork.free_bytes().unwrap(), disk.free_bytes().unwrap());
}

fn disk_with_a_folder(folder: &str) -> SimDisk {
    let disk = SimDisk::new();
    disk.create_folder(folder).unwrap();
    disk.sync_folder("").unwrap();
    disk
}

/// Creates a disk with one file changed, one removed, one created, all synced before and not after.
fn disk_with_a_past() -> SimDisk {
    let disk = SimDisk::new();
    let changed = synced(&disk, "changed", b"before");
    synced(&disk, "removed", b"removed");
    changed.write_at(0, &[b"after and longer"]).unwrap();
    disk.remove("removed").unwrap();
    let new = made(&disk, "new", b"synced");
    new.write_at(6, &[b" unsynced"]).unwrap();
    disk
}

fn scripted(cut_after: Option<u64>) -> SimDisk {
    let disk = SimDisk::new();
    if let Some(count) = cut_after {
        disk.cut_power_after(count);
    }
    script(&disk);
    disk
}

/// Runs a mix of operations until power is cut.
fn script(disk: &SimDisk) {
    let _ = (|| {
        disk.create_folder("log/deep")?;
        disk.sync_folder("")?;
        disk.sync_folder("log")?;
        for round in 1..4_u8 {
            let file = disk.create(&format!("log/{round}"))?;
            file.allocate(20_000)?;
            file.write_at(700, &[&[round; 3_000], &[round + 100; 3_000]])?;
            file.sync_data()?;
            file.write_at(0, &[&[round; 10_000]])?;
            file.set_len(u64::from(round) * 3_000)?;
            disk.sync_folder("log")?;
            file.write_at(4_000, &[&[round + 50; 2_000]])?;
        }
        disk.remove("log/2")?;
        disk.open("log/1")?.punch(100..2_900)?;
        disk.rename("log/1", "log/deep/1")?;
        disk.link("log/deep/1", "log/1")?;
        disk.create("log/deep/file")?.write_at(0, &[b"deep"])?;
        disk.sync_folder("log/deep")
    })();
}

fn contents(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.bytes(&path))).collect()
}

/// Creates a file whose bytes are durable.
fn made(disk: &SimDisk, path: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.create(path).unwrap();
    file.write_at(0, &[bytes]).unwrap();
    file.sync_data().unwrap();
    file
}

/// Creates a file in the root whose bytes and name are durable.
pub(crate) fn synced(disk: &SimDisk, path: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = made(disk, path, bytes);
    disk.sync_folder("").unwrap();
    file
}
