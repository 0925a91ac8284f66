//! Other faults of the simulated disk.
//!
//! Checked here: each fault has its documented effect, on the operation it names; syncs can be ignored; space runs out
//! and is freed.

use std::io::ErrorKind;

use engine::disk::faults::{Fault, FaultRate, FaultRule, IgnoredSync, Operation, PathPattern};
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::disk::{Access, Disk};

use crate::all;
use crate::power::synced;

#[test]
fn failed_sync_loses_bytes_and_the_next_one_succeeds() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", b"before");
    file.write_at(0, &[b"after!"]).unwrap();
    disk.inject(FaultRule::once(Operation::SyncData, PathPattern::Any, Fault::SyncLost));
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(all(&*file), b"after!", "the page cache still shows them");
    for policy in LossPolicy::ALL {
        let disk = disk.fork();
        disk.power_on(policy, 0);
        assert_eq!(disk.bytes("file"), b"before");
    }
}

#[test]
fn failed_folder_sync_loses_names() {
    let disk = SimDisk::new();
    disk.create("file").unwrap();
    disk.inject(FaultRule::once(Operation::SyncFolder, PathPattern::Any, Fault::SyncLost));
    disk.sync_folder("").unwrap_err();
    disk.sync_folder("").unwrap();
    assert_eq!(disk.list("").unwrap(), ["file"]);
    disk.power_on(LossPolicy::KeepAll, 0);
    assert_eq!(disk.list("").unwrap(), [""; 0]);
}

#[test]
fn injected_error_has_no_other_effect() {
    let disk = SimDisk::new();
    disk.create_folder("log").unwrap();
    let file = synced(&disk, "log/file", b"before");
    let kinds = [
        (Operation::Open, 0),
        (Operation::Create, 1),
        (Operation::Remove, 1),
        (Operation::Rename, 1),
        (Operation::Link, 1),
        (Operation::CreateFolder, 1),
        (Operation::SyncFolder, 1),
        (Operation::Read, 0),
        (Operation::Write, 1),
        (Operation::SetLen, 1),
        (Operation::Allocate, 1),
        (Operation::Punch, 1),
        (Operation::SyncData, 1),
        (Operation::Map, 0),
    ];
    for (operation, counted) in kinds {
        let before = disk.operations();
        disk.inject(FaultRule::once(
            operation,
            PathPattern::Prefix("log".to_owned()),
            Fault::Error,
        ));
        match operation {
            Operation::Open => disk.open("log/file").map(drop),
            Operation::Create => disk.create("log/other").map(drop),
            Operation::Remove => disk.remove("log/file"),
            Operation::Rename => disk.rename("log/file", "log/other"),
            Operation::Link => disk.link("log/file", "log/other"),
            Operation::CreateFolder => disk.create_folder("log/folder"),
            Operation::SyncFolder => disk.sync_folder("log"),
            Operation::Read => file.read_at(0, &mut [0]),
            Operation::Write => file.write_at(0, &[b"x"]),
            Operation::SetLen => file.set_len(0),
            Operation::Allocate => file.allocate(10),
            Operation::Punch => file.punch(0..4),
            Operation::SyncData => file.sync_data(),
            Operation::Map => file.map(Access::Random).map(drop),
            Operation::Populate => unreachable!("see the cold maps below"),
        }
        .unwrap_err();
        assert_eq!(disk.operations() - before, counted, "{operation:?}");
    }
    assert_eq!(disk.fault_count(), kinds.len() as u64);
    assert_eq!(disk.list("log").unwrap(), ["file"]);
    assert_eq!(all(&*file), b"before");
}

#[test]
fn torn_write_keeps_a_prefix() {
    let disk = SimDisk::with_seed(3);
    let file = synced(&disk, "file", &[0; 1_000]);
    disk.inject(FaultRule::once(
        Operation::Write,
        PathPattern::Suffix("file".to_owned()),
        Fault::Torn,
    ));
    file.write_at(0, &[&[1; 1_000]]).unwrap_err();
    let bytes = all(&*file);
    let written = bytes.iter().take_while(|byte| **byte == 1).count();
    assert!(written > 0 && written < 1_000);
    assert!(bytes[written..].iter().all(|byte| *byte == 0));
}

#[test]
fn lost_and_misdirected_writes_report_success() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", &[0; 4_096]);
    disk.inject(FaultRule::once(Operation::Write, PathPattern::Any, Fault::WriteLost));
    file.write_at(0, &[b"lost"]).unwrap();
    assert_eq!(all(&*file), [0; 4_096]);
    for _ in 0..100 {
        file.set_len(0).unwrap();
        file.set_len(4_096).unwrap();
        disk.inject(FaultRule::once(Operation::Write, PathPattern::Any, Fault::Misdirected));
        file.write_at(1_024, &[b"astray"]).unwrap();
        let bytes = all(&*file);
        assert_ne!(&bytes[1_024..1_030], b"astray");
        assert!(bytes.windows(6).any(|bytes| bytes == b"astray"));
    }
}

#[test]
fn bit_flip_changes_exactly_one_bit() {
    let flipped = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let disk = SimDisk::new();
    let file = synced(&disk, "file", &[0; 1_000]);
    disk.inject(FaultRule::once(Operation::Read, PathPattern::Any, Fault::BitFlip));
    assert_eq!(flipped(&all(&*file)), 1);
    assert_eq!(flipped(&all(&*file)), 0, "only the answer was wrong");
    disk.inject(FaultRule::once(Operation::Map, PathPattern::Any, Fault::BitFlip));
    assert_eq!(flipped(&file.map(Access::Random).unwrap().slice(0..usize::MAX)), 1);
    disk.inject(FaultRule::once(Operation::Write, PathPattern::Any, Fault::BitFlip));
    file.write_at(0, &[&[0; 1_000]]).unwrap();
    assert_eq!(flipped(&all(&*file)), 1);
    assert_eq!(flipped(&all(&*file)), 1, "what is stored is wrong");
}

#[test]
fn injected_corruption_is_durable_and_not_counted() {
    let disk = SimDisk::new();
    synced(&disk, "file", b"abcdef");
    let before = disk.operations();
    disk.flip("file", 1, 0x20);
    disk.overwrite("file", 4, b"XYZ");
    assert_eq!(disk.bytes("file"), b"aBcdXY");
    assert_eq!(disk.operations(), before);
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(disk.bytes("file"), b"aBcdXY");
}

#[test]
fn ignored_sync_makes_nothing_durable() {
    let survives = |ignore: Option<IgnoredSync>| {
        let disk = SimDisk::new();
        disk.create_folder("log").unwrap();
        disk.sync_folder("").unwrap();
        ignore.into_iter().for_each(|ignore| disk.ignore_syncs(ignore));
        let file = disk.create("log/file").unwrap();
        file.write_at(0, &[b"x"]).unwrap();
        file.sync_data().unwrap();
        disk.sync_folder("log").unwrap();
        assert_eq!(disk.operations(), 6);
        disk.power_on(LossPolicy::KeepSynced, 0);
        disk.open("log/file").ok().map(|file| all(&*file))
    };
    assert_eq!(survives(None), Some(b"x".to_vec()));
    assert_eq!(survives(Some(IgnoredSync::DataSync)), Some(Vec::new()));
    assert_eq!(survives(Some(IgnoredSync::FolderSync)), None);
    assert_eq!(survives(Some(IgnoredSync::SyncOf("log/".to_owned()))), Some(Vec::new()));
    assert_eq!(survives(Some(IgnoredSync::SyncOf("log".to_owned()))), None);
    assert_eq!(survives(Some(IgnoredSync::SyncOf("big".to_owned()))), Some(b"x".to_vec()));
}

#[test]
fn started_write_back_makes_nothing_durable() {
    let disk = SimDisk::new();
    let file = disk.create("file").unwrap();
    disk.sync_folder("").unwrap();
    file.write_at(0, &[b"x"]).unwrap();
    file.start_write_back(0..1);
    disk.power_on(LossPolicy::KeepSynced, 0);
    assert_eq!(all(&*disk.open("file").unwrap()), b"");
}

#[test]
fn disk_space_is_freed_with_the_last_reader() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", &[1; 40_960]);
    disk.set_free_bytes(8_192);
    assert_eq!(disk.free_bytes().unwrap(), 8_192);
    let full = |answer: std::io::Result<()>| {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::StorageFull);
    };
    file.write_at(0, &[&[2; 40_960]]).unwrap();
    full(file.allocate(53_248));
    full(file.write_at(40_960, &[&[2; 8_193]]));
    assert_eq!(disk.capacity_bytes().unwrap(), 49_152);
    let other = disk.create("other").unwrap();
    other.allocate(8_192).unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 0);
    other.write_at(0, &[&[3; 8_192]]).unwrap();
    full(other.write_at(8_192, &[b"x"]));
    disk.remove("file").unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 0, "it is still open");
    drop(file);
    assert_eq!(disk.free_bytes().unwrap(), 40_960);
    other.set_len(4_096).unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 45_056);
    other.punch(0..4_096).unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 49_152);
    other.write_at(0, &[b"x"]).unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 45_056);
    let no_space = FaultRule::always(Operation::Create, PathPattern::Any, Fault::NoSpace);
    disk.inject(no_space);
    full(disk.create("third").map(drop));
}

#[test]
fn cold_map_becomes_resident_when_populated() {
    let disk = SimDisk::new();
    let file = synced(&disk, "file", &[1; 20_000]);
    disk.set_cold(true);
    let map = file.map(Access::Random).unwrap();
    assert!(!map.is_resident(0..1));
    assert!(!file.read_at_if_resident(0, &mut [0]).unwrap());
    let reads = disk.reads();
    map.populate(5_000..9_000).unwrap();
    assert_eq!(disk.reads(), reads + 1);
    assert!(map.is_resident(4_096..12_288));
    assert!(!map.is_resident(4_095..12_288));
    disk.inject(FaultRule::once(Operation::Populate, PathPattern::Any, Fault::Error));
    map.populate(0..20_000).unwrap_err();
    assert!(!map.is_resident(0..1));
    disk.set_cold(false);
    assert!(map.is_resident(0..20_000));
    assert!(file.read_at_if_resident(0, &mut [0]).unwrap());
}

#[test]
fn fault_injection_is_deterministic_per_seed() {
    let run = |seed| {
        let disk = SimDisk::with_seed(seed);
        let file = synced(&disk, "file", &[0; 100]);
        let faults = vec![Fault::Error, Fault::Torn, Fault::WriteLost, Fault::BitFlip];
        disk.inject_randomly(FaultRate { one_in: 5, faults, path_pattern: PathPattern::Any });
        let answers: Vec<bool> =
            (1..100).map(|at| file.write_at(at, &[&[7; 50]]).is_ok()).collect();
        disk.clear_faults();
        file.sync_data().unwrap();
        (answers, disk.bytes("file"), disk.fault_count())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!(run(1).2 > 5);
}
