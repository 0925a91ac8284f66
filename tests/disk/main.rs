//! The disk interface, checked on both disks.
//!
//! Checked here: every guarantee of `Disk` and `DiskFile` that is observable without losing power, by one suite on the
//! real disk and on the simulated one; and that the two agree after any series of operations. Features of the simulated
//! disk alone are in `power`, `faults` and `index`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod faults;
mod index;
mod power;

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

use engine::disk::sim::SimDisk;
use engine::disk::{Access, Disk, DiskFile, RealDisk};
use engine::rng::{Rng, SeededRng};

macro_rules! on_both_disks {
    ($($behaviour:ident),* $(,)?) => {
        mod real {
            $(
                #[test]
                fn $behaviour() {
                    let folder = tempfile::tempdir().unwrap();
                    super::$behaviour(&engine::disk::RealDisk::open(folder.path()).unwrap());
                }
            )*
        }
        mod simulated {
            $(
                #[test]
                fn $behaviour() {
                    super::$behaviour(&engine::disk::sim::SimDisk::new());
                }
            )*
        }
    };
}

on_both_disks!(
    written_bytes_are_read_by_every_handle,
    pieces_are_written_one_after_another,
    initial_disk_contents_are_read,
    names_are_created_once_and_found_only_if_created,
    read_past_end_is_an_error,
    hole_reads_as_zeros,
    truncated_file_regrows_with_zeros,
    seek_data_skips_only_zeros,
    nonblocking_read_is_correct_or_refused,
    preallocation_grows_the_file_and_never_truncates,
    removed_file_is_readable_by_open_handles,
    rename_replaces_the_target,
    rename_requires_existing_file_and_folder,
    hard_linked_file_lives_until_its_last_name,
    hard_link_requires_existing_file_and_free_name,
    punched_hole_reads_as_zeros_and_the_rest_stays,
    folder_listing_is_sorted,
    disk_lock_has_one_holder,
    mmap_shows_the_whole_file,
    mmap_slices_outlive_map_and_file,
    empty_file_has_an_empty_mmap,
    populated_pages_are_resident,
    path_traversal_is_rejected,
    free_space_is_reported,
    punched_or_removed_space_is_reusable,
);

fn written_bytes_are_read_by_every_handle(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[b"hello ", b"world"]).unwrap();
    file.write_at(6, &[b"disk!"]).unwrap();
    file.sync_data().unwrap();
    disk.sync_folder("").unwrap();
    assert_eq!(all(&*file), b"hello disk!");
    drop(file);
    assert_eq!(all(&*disk.open("file").unwrap()), b"hello disk!");
}

fn pieces_are_written_one_after_another(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    let bytes: Vec<u8> = (0..50_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    // More pieces than one call to the kernel takes, some of them empty.
    let mut pieces: Vec<&[u8]> = bytes.chunks(17).collect();
    pieces.insert(0, &[]);
    pieces.insert(1_500, &[]);
    assert!(pieces.len() > 2_048);
    file.write_at(3, &pieces).unwrap();
    assert_eq!(all(&*file)[3..], bytes);
    file.write_at(9, &[]).unwrap();
    file.write_at(1 << 30, &[&[], &[]]).unwrap();
    assert_eq!(file.bytes_len().unwrap(), 50_003);
}

fn initial_disk_contents_are_read(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[&[1; 10_000]]).unwrap();
    for range in [0..10_000, 5_000..5_001, 7..7, 9_000..90_000, 0..u64::MAX, u64::MAX - 1..u64::MAX]
    {
        file.prefetch(range.clone());
        file.start_write_back(range);
    }
    // In the middle of a page under write-back.
    file.write_at(10_000, &[&[2; 10_000]]).unwrap();
    file.start_write_back(10_000..20_000);
    file.sync_data().unwrap();
    assert_eq!(all(&*file), [[1; 10_000], [2; 10_000]].concat());
}

fn names_are_created_once_and_found_only_if_created(disk: &dyn Disk) {
    let kind = |answer: std::io::Result<_>| answer.map(drop).unwrap_err().kind();
    assert_eq!(kind(disk.open("a")), ErrorKind::NotFound);
    assert_eq!(kind(disk.create("folder/a")), ErrorKind::NotFound);
    assert_eq!(disk.remove("a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.sync_folder("folder").unwrap_err().kind(), ErrorKind::NotFound);
    disk.create_folder("folder").unwrap();
    disk.create("folder/a").unwrap();
    assert_eq!(kind(disk.create("folder/a")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.create("folder")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.open("folder")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.open("folder/a/b")), ErrorKind::NotADirectory);
    assert_eq!(disk.remove("folder").unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(disk.sync_folder("folder/a").unwrap_err().kind(), ErrorKind::NotADirectory);
    disk.remove("folder/a").unwrap();
    assert_eq!(kind(disk.open("folder/a")), ErrorKind::NotFound);
    disk.create("folder/a").unwrap();
}

fn read_past_end_is_an_error(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[&[1; 100]]).unwrap();
    for (offset, bytes_len) in [(99, 2), (100, 1), (5_000, 1), (0, 101)] {
        let answer = file.read_at(offset, &mut vec![0; bytes_len]);
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
    file.read_at(100, &mut []).unwrap();
    file.read_at(5_000, &mut []).unwrap();
    file.read_at(99, &mut [0]).unwrap();
}

fn hole_reads_as_zeros(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(10_000, &[b"x"]).unwrap();
    let bytes = all(&*file);
    assert_eq!(bytes.len(), 10_001);
    assert!(bytes[..10_000].iter().all(|byte| *byte == 0));
}

fn seek_data_skips_only_zeros(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    assert_eq!(file.next_data(0).unwrap(), None);
    file.allocate(8 << 20).unwrap();
    let written = [5_000, 1 << 20, (8 << 20) - 1];
    for offset in written {
        file.write_at(offset, &[b"x"]).unwrap();
    }
    file.sync_data().unwrap();
    let mut from = 0;
    for offset in written {
        let found = file.next_data(from).unwrap().unwrap().start;
        assert!((from..=offset).contains(&found), "from {from}: {found}, {offset} was written");
        let data = file.next_data(offset).unwrap().unwrap();
        assert!(data.start == offset && data.end <= 8 << 20, "{data:?}");
        from = offset + 1;
    }
    assert_eq!(file.next_data(8 << 20).unwrap(), None);
    assert_eq!(file.next_data(1 << 40).unwrap(), None);
}

fn nonblocking_read_is_correct_or_refused(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    file.write_at(0, &[&bytes]).unwrap();
    let mut buffer = vec![0; 90_000];
    if file.read_at_if_resident(10_000, &mut buffer).unwrap() {
        assert_eq!(buffer, bytes[10_000..]);
    }
    // Whether it waited or not, no bytes are returned beyond the end.
    match file.read_at_if_resident(10_001, &mut buffer) {
        Ok(read) => assert!(!read),
        Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
    }
    file.read_at_if_resident(100_000, &mut []).unwrap();
}

fn truncated_file_regrows_with_zeros(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[&[9; 10_000]]).unwrap();
    file.set_len(5_001).unwrap();
    assert_eq!(file.bytes_len().unwrap(), 5_001);
    file.set_len(9_000).unwrap();
    let bytes = all(&*file);
    assert!(bytes[..5_001].iter().all(|byte| *byte == 9));
    assert!(bytes[5_001..].iter().all(|byte| *byte == 0));
}

fn preallocation_grows_the_file_and_never_truncates(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[b"first"]).unwrap();
    file.allocate(1 << 20).unwrap();
    assert_eq!(file.bytes_len().unwrap(), 1 << 20);
    file.allocate(10).unwrap();
    file.allocate(0).unwrap();
    let bytes = all(&*file);
    assert_eq!(bytes.len(), 1 << 20);
    assert_eq!(&bytes[..5], b"first");
    assert!(bytes[5..].iter().all(|byte| *byte == 0));
}

fn removed_file_is_readable_by_open_handles(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[b"still here"]).unwrap();
    disk.remove("file").unwrap();
    disk.sync_folder("").unwrap();
    disk.create("file").unwrap().write_at(0, &[b"another"]).unwrap();
    assert_eq!(all(&*file), b"still here");
    file.write_at(0, &[b"STILL"]).unwrap();
    file.sync_data().unwrap();
    assert_eq!(all(&*file), b"STILL here");
    assert_eq!(all(&*disk.open("file").unwrap()), b"another");
}

fn rename_replaces_the_target(disk: &dyn Disk) {
    disk.create_folder("log").unwrap();
    let file = disk.create("file").unwrap();
    file.write_at(0, &[b"moved"]).unwrap();
    let replaced = disk.create("log/file").unwrap();
    replaced.write_at(0, &[b"replaced"]).unwrap();
    disk.rename("file", "file").unwrap();
    disk.rename("file", "other").unwrap();
    disk.rename("other", "log/file").unwrap();
    disk.sync_folder("").unwrap();
    disk.sync_folder("log").unwrap();
    assert_eq!(disk.list("").unwrap(), ["log"]);
    assert_eq!(disk.list("log").unwrap(), ["file"]);
    assert_eq!(all(&*disk.open("log/file").unwrap()), b"moved");
    assert_eq!(all(&*replaced), b"replaced", "an open file stays readable");
    file.write_at(0, &[b"MOVED"]).unwrap();
    assert_eq!(all(&*disk.open("log/file").unwrap()), b"MOVED");
}

fn rename_requires_existing_file_and_folder(disk: &dyn Disk) {
    disk.create_folder("folder").unwrap();
    disk.create("file").unwrap();
    let kind = |from, to| disk.rename(from, to).unwrap_err().kind();
    assert_eq!(kind("none", "other"), ErrorKind::NotFound);
    assert_eq!(kind("file", "none/other"), ErrorKind::NotFound);
    assert_eq!(kind("file", "folder"), ErrorKind::IsADirectory);
    assert_eq!(kind("folder", "other"), ErrorKind::IsADirectory);
    assert_eq!(kind("file", "file/other"), ErrorKind::NotADirectory);
    assert_eq!(kind("file", "../other"), ErrorKind::InvalidInput);
    assert_eq!(kind("/file", "other"), ErrorKind::InvalidInput);
    assert_eq!(disk.list("").unwrap(), ["file", "folder"]);
}

fn hard_linked_file_lives_until_its_last_name(disk: &dyn Disk) {
    disk.create_folder("log").unwrap();
    let file = disk.create("file").unwrap();
    file.write_at(0, &[b"one"]).unwrap();
    disk.link("file", "log/file").unwrap();
    disk.sync_folder("log").unwrap();
    file.write_at(0, &[b"ONE"]).unwrap();
    assert_eq!(all(&*disk.open("log/file").unwrap()), b"ONE");
    disk.rename("file", "log/file").unwrap();
    assert_eq!(disk.list("").unwrap(), ["file", "log"], "both name it already");
    drop(file);
    disk.remove("file").unwrap();
    assert_eq!(all(&*disk.open("log/file").unwrap()), b"ONE");
    disk.link("log/file", "file").unwrap();
    disk.remove("log/file").unwrap();
    assert_eq!(all(&*disk.open("file").unwrap()), b"ONE");
    assert_eq!(disk.list("log").unwrap(), [""; 0]);
}

fn hard_link_requires_existing_file_and_free_name(disk: &dyn Disk) {
    disk.create_folder("folder").unwrap();
    disk.create("file").unwrap();
    disk.create("taken").unwrap();
    let kind = |from, to| disk.link(from, to).unwrap_err().kind();
    assert_eq!(kind("none", "other"), ErrorKind::NotFound);
    assert_eq!(kind("file", "none/other"), ErrorKind::NotFound);
    assert_eq!(kind("file", "file"), ErrorKind::AlreadyExists);
    assert_eq!(kind("file", "taken"), ErrorKind::AlreadyExists);
    assert_eq!(kind("file", "folder"), ErrorKind::AlreadyExists);
    assert_eq!(kind("folder", "other"), ErrorKind::IsADirectory);
    assert_eq!(kind("file", "file/other"), ErrorKind::NotADirectory);
    assert_eq!(kind("file", "../other"), ErrorKind::InvalidInput);
    assert_eq!(disk.list("").unwrap(), ["file", "folder", "taken"]);
}

fn punched_hole_reads_as_zeros_and_the_rest_stays(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[&[9; 50_000]]).unwrap();
    file.sync_data().unwrap();
    for range in [5_000..30_000, 30_001..30_002, 40_960..45_056, 49_000..90_000, 7..7] {
        file.punch(range).unwrap();
    }
    file.sync_data().unwrap();
    let bytes = all(&*file);
    assert_eq!(bytes.len(), 50_000, "the length stays");
    for (at, byte) in bytes.iter().enumerate() {
        let is_gone = matches!(at, 5_000..=29_999 | 30_001 | 40_960..=45_055 | 49_000..);
        assert_eq!(*byte, if is_gone { 0 } else { 9 }, "at {at}");
    }
    file.write_at(10_000, &[b"again"]).unwrap();
    assert_eq!(all(&*file)[9_999..10_006], *b"\0again\0");
}

fn folder_listing_is_sorted(disk: &dyn Disk) {
    assert_eq!(disk.list("").unwrap(), [""; 0]);
    assert_eq!(disk.list("no/such/folder").unwrap(), [""; 0]);
    disk.create_folder("big/01").unwrap();
    disk.create_folder("big/00").unwrap();
    disk.create_folder("big/01").unwrap();
    disk.create_folder("").unwrap();
    for path in ["big/01/b", "big/01/a", "big/z", "z", "a"] {
        disk.create(path).unwrap();
    }
    for folder in ["big/01", "big/00", "big", ""] {
        disk.sync_folder(folder).unwrap();
    }
    assert_eq!(disk.list("").unwrap(), ["a", "big", "z"]);
    assert_eq!(disk.list("big").unwrap(), ["00", "01", "z"]);
    assert_eq!(disk.list("big/01").unwrap(), ["a", "b"]);
    assert_eq!(disk.list("big/00").unwrap(), [""; 0]);
    assert_eq!(disk.list("a").unwrap_err().kind(), ErrorKind::NotADirectory);
}

fn disk_lock_has_one_holder(disk: &dyn Disk) {
    assert_eq!(disk.lock_holder(), None);
    let lock = disk.lock().unwrap();
    let refused = disk.lock().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(disk.lock_holder().is_some());
    drop(lock);
    assert_eq!(disk.lock_holder(), None);
    drop(disk.lock().unwrap());
    assert_eq!(disk.list("").unwrap(), ["LOCK"]);
}

fn mmap_shows_the_whole_file(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    let bytes: Vec<u8> = (0..300_001_u32).map(|at| at.to_le_bytes()[1]).collect();
    file.write_at(0, &[&bytes]).unwrap();
    for access in [Access::Random, Access::Sequential] {
        let map = file.map(access).unwrap();
        assert_eq!(map.bytes_len(), bytes.len());
        assert_eq!(map.slice(0..usize::MAX), bytes);
        assert!(map.is_resident(0..bytes.len()), "just written");
    }
}

fn mmap_slices_outlive_map_and_file(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.write_at(0, &[&[5; 100_000]]).unwrap();
    let map = file.map(Access::Random).unwrap();
    let slice = map.slice(70_000..70_010);
    drop(map);
    drop(file);
    disk.remove("file").unwrap();
    assert_eq!(slice, [5; 10][..]);
}

fn empty_file_has_an_empty_mmap(disk: &dyn Disk) {
    let map = disk.create("file").unwrap().map(Access::Random).unwrap();
    assert!(map.slice(0..10).is_empty());
    assert!(map.is_resident(0..0));
    map.populate(0..0).unwrap();
    map.populate(0..10).unwrap();
}

fn populated_pages_are_resident(disk: &dyn Disk) {
    let file = disk.create("file").unwrap();
    file.allocate(3 << 20).unwrap();
    file.write_at(1 << 20, &[&[8; 100]]).unwrap();
    let map = file.map(Access::Random).unwrap();
    for range in [0..1, 4_095..4_097, 1_000_000..3_000_000, (3 << 20) - 1..3 << 20] {
        map.populate(range.clone()).unwrap();
        assert!(map.is_resident(range));
    }
    map.populate(0..usize::MAX).unwrap();
    assert!(map.is_resident(0..usize::MAX));
    assert!(map.is_resident(usize::MAX - 1..usize::MAX), "there is nothing there");
}

fn path_traversal_is_rejected(disk: &dyn Disk) {
    for path in ["/etc/passwd", "..", "a/../../b", ".", "a//b", "a/", "/", "nul\0"] {
        let answers = [
            disk.open(path).map(drop),
            disk.create(path).map(drop),
            disk.remove(path),
            disk.rename(path, "other"),
            disk.link(path, "other"),
            disk.list(path).map(drop),
            disk.create_folder(path),
            disk.sync_folder(path),
        ];
        for answer in answers {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::InvalidInput, "{path:?}");
        }
    }
    assert_eq!(disk.open("").map(drop).unwrap_err().kind(), ErrorKind::InvalidInput);
}

fn free_space_is_reported(disk: &dyn Disk) {
    assert!(disk.free_bytes().unwrap() > 1 << 20);
    assert!(disk.free_bytes().unwrap() <= disk.capacity_bytes().unwrap());
}

fn punched_or_removed_space_is_reusable(disk: &dyn Disk) {
    // Other processes write to the real disk too: a gibibyte stands out.
    let bytes = (1 << 30).min(disk.free_bytes().unwrap() / 4);
    let has_grown_since = |before: u64| disk.free_bytes().unwrap() > before + bytes / 4;
    let file = disk.create("file").unwrap();
    file.allocate(bytes).unwrap();
    file.sync_data().unwrap();
    let before = disk.free_bytes().unwrap();
    file.punch(0..bytes / 2).unwrap();
    file.sync_data().unwrap();
    assert!(has_grown_since(before), "half of it was punched");
    let before = disk.free_bytes().unwrap();
    disk.remove("file").unwrap();
    drop(file);
    disk.sync_folder("").unwrap();
    assert!(has_grown_since(before), "the rest was removed");
}

#[test]
fn data_folder_is_accessible_only_by_its_owner() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("some/data");
    let disk = RealDisk::open(&root).unwrap();
    disk.create_folder("log").unwrap();
    disk.create("log/file").unwrap();
    let _lock = disk.lock().unwrap();
    let mode = |path: &str| root.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(""), mode("log")], [0o700; 2]);
    assert_eq!([mode("log/file"), mode("LOCK")], [0o600; 2]);
}

#[test]
fn data_folder_is_created_only_when_requested() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("data");
    let kind = |answer: std::io::Result<RealDisk>| answer.unwrap_err().kind();
    assert_eq!(kind(RealDisk::open_existing(&root)), ErrorKind::NotFound);
    RealDisk::open(&root).unwrap().create("file").unwrap();
    assert_eq!(RealDisk::open_existing(&root).unwrap().list("").unwrap(), ["file"]);
    assert_eq!(RealDisk::open(&root).unwrap().root(), root);
    assert_eq!(kind(RealDisk::open(&root.join("file"))), ErrorKind::NotADirectory);
}

/// A map of the simulated disk is a copy.
#[test]
fn growing_file_is_mapped_on_the_real_disk_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = RealDisk::open(folder.path()).unwrap().create("file").unwrap();
    file.allocate(100_000).unwrap();
    file.write_at(0, &[&[1; 5_000]]).unwrap();
    let map = file.map(Access::Growing).unwrap();
    assert_eq!(map.bytes_len(), 100_000);
    let first = map.slice(0..5_000);
    file.write_at(5_000, &[&[2; 5_000]]).unwrap();
    let second = map.slice(5_000..10_000);
    file.set_len(10_000).unwrap();
    drop(map);
    assert!(first == [1; 5_000][..] && second == [2; 5_000][..]);

    let simulated = SimDisk::new().create("file").unwrap().map(Access::Growing);
    assert_eq!(simulated.map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn disk_lock_reports_the_holding_process() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (RealDisk::open(folder.path()).unwrap(), RealDisk::open(folder.path()));
    let other = other.unwrap();
    let _lock = one.lock().unwrap();
    assert_eq!(other.lock().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(other.lock_holder(), Some(std::process::id()));
}

#[test]
fn simulated_and_real_disk_agree_on_random_operations() {
    for seed in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let real = run_random_operations(&RealDisk::open(folder.path()).unwrap(), seed);
        assert_eq!(run_random_operations(&SimDisk::new(), seed), real, "seed {seed}");
    }
}

/// Runs random operations on a disk and returns all results.
fn run_random_operations(disk: &dyn Disk, seed: u64) -> Vec<String> {
    let chance = SeededRng::new(seed);
    let mut results = Vec::new();
    for folder in ["log", "big/00"] {
        disk.create_folder(folder).unwrap();
    }
    for step in 0..300 {
        let path = ["a", "log/a", "log/b", "big/00/a", "big/01/a", "log"];
        let other = path[usize::try_from(chance.below(6)).unwrap()];
        let path = path[usize::try_from(chance.below(6)).unwrap()];
        let offset = chance.below(20_000);
        let bytes = vec![u8::try_from(step % 251).unwrap(); usize::try_from(offset / 3).unwrap()];
        let file = disk.open(path);
        let answer = match (chance.below(11), file) {
            (0, _) => disk.remove(path).map(|()| 0),
            (1, _) => disk.create(path).map(|_| 0),
            (6, _) => disk.rename(path, other).map(|()| 0),
            (10, _) => disk.link(path, other).map(|()| 0),
            (7, Ok(file)) => file.punch(offset / 2..offset).map(|()| 0),
            (2, Ok(file)) => file.set_len(offset).map(|()| 0),
            (3, Ok(file)) => file.allocate(offset).map(|()| 0),
            (4, Ok(file)) => file.sync_data().map(|()| 0),
            (5, Ok(file)) => file.bytes_len(),
            (_, Ok(file)) => file.write_at(offset, &[&bytes, b"end"]).map(|()| 0),
            (_, Err(error)) => Err(error),
        };
        results.push(format!("{step} {path} {:?}", answer.map_err(|error| error.kind())));
    }
    for folder in ["", "log", "big", "big/00", "big/01"] {
        for name in disk.list(folder).unwrap() {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let file = disk.open(&path).map(|file| all(&*file));
            results.push(format!("{path}: {:?}", file.map_err(|error| error.kind())));
        }
    }
    results
}

fn all(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.bytes_len().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}
