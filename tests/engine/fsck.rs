//! fsck: its reports on intact stores and on each kind of damage, and the state after a repair. A check never changes a
//! byte.

use engine::disk::Disk;
use engine::disk::sim::{LossPolicy, SimDisk};
use engine::format::SEGMENT_HEADER_BYTES;
use engine::fsck::{CheckOptions, Finding, Remedy, Report, Severity};
use engine::{Batch, Error, Store};
use memchr::memmem;
use tests::store::{
    World, batch, body, bucket, commit, delete, fact, idle, name, put, read, roll_over,
};

use tests::store::{Change, Model};

/// Fills two log segments and more, big segments, overwritten and deleted objects, and facts.
pub(crate) fn written(world: &World, store: &Store) -> Model {
    let mut model = Model::default();
    let bytes = |seed, length| bytes::Bytes::from(body(seed, length));
    let put = |key: &str, seed, length| Change::Put(name(key), bytes(seed, length));
    let story: Vec<Vec<Change>> = vec![
        vec![put("kept", 1, 300), put("overwritten", 2, 200), put("deleted", 3, 100)],
        vec![put("big", 4, 9_000)],
        vec![put("overwritten", 5, 250), Change::PutFact(fact("first"), bytes(6, 60))],
        (0..12).map(|at| put(&format!("fill/{at}"), 20 + at, 3_500)).collect(),
        (0..12).map(|at| put(&format!("roll/{at}"), 30 + at, 3_500)).collect(),
        vec![Change::Delete(name("deleted")), put("empty", 0, 0)],
        vec![put("late-big", 8, 5_000), Change::PutFact(fact("second"), bytes(9, 60))],
        vec![put("last", 10, 50)],
    ];
    for (turn, changes) in story.into_iter().enumerate() {
        for some in changes.chunks(6) {
            commit(store, batch(store, some).unwrap()).unwrap();
            model.apply(some);
        }
        if turn == 4 {
            roll_over(store).unwrap();
            store.checkpoint().unwrap();
        }
    }
    idle(store);
    assert!(world.files_in("log/").len() > 1);
    model
}

pub(crate) fn closed() -> (World, Model) {
    let world = World::new(7);
    let store = world.open();
    let model = written(&world, &store);
    store.close().unwrap();
    drop(store);
    (world, model)
}

pub(crate) fn fork(world: &World) -> World {
    World::on(world.disk.fork(), 8)
}

fn contents(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let paths = disk.paths().into_iter().filter(|path| path != "LOCK");
    paths.map(|path| (path.clone(), disk.bytes(&path))).collect()
}

/// Checks, quick and deep; nothing may have changed.
pub(crate) fn check(world: &World) -> Report {
    let before = contents(&world.disk);
    world.fsck(false).unwrap();
    let report = world.fsck(true).unwrap();
    let check_with = |workers, names_max| {
        let options = CheckOptions { workers, names_max, ..World::check_options(true) };
        let watch = &mut |_| std::ops::ControlFlow::Continue(());
        engine::fsck::check(&world.environment(), options, watch).unwrap()
    };
    assert_eq!(check_with(4, 1_000), report, "however many workers there are");
    for workers in [1, 4] {
        let in_passes = check_with(workers, 7);
        assert_eq!(summary(&in_passes), summary(&report), "{workers} workers, 7 names in memory");
    }
    assert!(contents(&world.disk) == before, "a check changes nothing");
    report
}

/// Returns a report without the order of objects, and thus without which of them are listed.
fn summary(report: &Report) -> impl PartialEq + std::fmt::Debug {
    let Report { segments, objects, known_losses, facts, bytes, .. } = *report;
    let findings = report.findings.iter().map(|finding| {
        let objects = finding.objects.len() as u64 + finding.objects_unlisted;
        let Finding { severity, file, what, remedy, .. } = finding;
        (*severity, file.clone(), what.clone(), objects, remedy.word())
    });
    (findings.collect::<Vec<_>>(), segments, objects, known_losses, facts, bytes)
}

/// Returns the finding with this remedy.
pub(crate) fn finding<'a>(report: &'a Report, remedy: &str) -> &'a Finding {
    let found = report.findings.iter().find(|finding| finding.remedy.word() == remedy);
    found.unwrap_or_else(|| panic!("no {remedy} in\n{report}"))
}

/// Repairs; afterwards no finding remains, and a second repair has nothing to do.
pub(crate) fn repaired(world: &World) -> Report {
    let (repaired, said) = world.repair().unwrap();
    assert!(repaired.after.is_clean(), "{said:?}\n{}", repaired.after);
    let (again, said) = world.repair().unwrap();
    assert_eq!(said, [""; 0], "{}", again.before);
    assert!(!again.has_lost());
    repaired.before
}

pub(crate) fn check_store(world: &World, model: &Model, lost: &[&str]) {
    let store = world.open();
    for (name, (bytes, _)) in &model.objects {
        match read(&store, name) {
            Ok(Some(found)) => assert!(found == *bytes, "{name}"),
            Err(Error::Corrupt(corruption)) => {
                assert_eq!(corruption.object.as_ref(), Some(name));
                assert!(lost.contains(&name.key.as_str()), "{name} is damaged");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    for (name, value) in &model.facts {
        assert_eq!(store.fact(name).unwrap().as_ref(), Some(value));
    }
    let listed = store.list_keys(&bucket(), "", None, 1_000).unwrap();
    assert_eq!(listed.objects.len(), model.objects.len());
    store.close().unwrap();
}

#[test]
fn fsck_passes_on_closed_store_byte_for_byte() {
    let (world, model) = closed();
    let report = check(&world);
    assert_eq!(report.findings, []);
    assert_eq!(report.objects, model.objects.len() as u64);
    assert_eq!(report.facts, model.facts.len() as u64);
    let all: u64 = contents(&world.disk).iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(report.bytes >= all, "{} of {all} bytes", report.bytes);
    assert!(report.to_string().ends_with("no problems found"), "{report}");
}

#[test]
fn fsck_passes_on_empty_and_new_store() {
    let world = World::new(1);
    drop(world.open());
    assert!(check(&world).is_clean());
    world.open().close().unwrap();
    assert_eq!(check(&world).findings, []);
}

#[test]
fn fsck_passes_after_crash_at_any_point() {
    let world = World::new(7);
    let store = world.open();
    world.disk.record_cuts();
    written(&world, &store);
    store.close().unwrap();
    drop(store);
    for (at, cut) in world.disk.take_cuts().into_iter().enumerate() {
        for policy in LossPolicy::ALL {
            let disk = cut.fork();
            disk.power_on(policy, at as u64);
            let report = check(&World::on(disk, 9));
            assert!(report.is_clean(), "cut {at}, {policy:?}:\n{report}");
        }
        cut.restart_process();
        let report = check(&World::on(cut, 9));
        assert!(report.is_clean(), "killed at {at}:\n{report}");
    }
}

#[test]
fn fsck_rejects_store_in_use_and_foreign_folder() {
    let world = World::new(1);
    assert!(matches!(world.fsck(true), Err(Error::NotAStore(_))));
    world.disk.create("holiday.jpg").unwrap();
    assert!(matches!(world.fsck(true), Err(Error::NotAStore(_))));
    world.disk.remove("holiday.jpg").unwrap();
    let store = world.open();
    assert!(matches!(world.fsck(true), Err(Error::InUse(_))));
    assert!(matches!(world.repair(), Err(Error::InUse(_))));
    drop(store);
    world.fsck(true).unwrap();
}

#[test]
fn fsck_can_be_cancelled_by_callback() {
    let (world, _) = closed();
    let mut calls = 0;
    let stopped = engine::fsck::check(
        &world.environment(),
        CheckOptions { deep: true, workers: 1, ..CheckOptions::default() },
        &mut |progress| {
            calls += 1;
            assert!(progress.done_bytes <= progress.total_bytes);
            match calls {
                20 => std::ops::ControlFlow::Break(()),
                _ => std::ops::ControlFlow::Continue(()),
            }
        },
    );
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(calls, 20);
}

#[test]
fn fsck_with_workers_can_be_cancelled_by_callback() {
    let (world, _) = closed();
    let mut is_stopped = false;
    let stopped = engine::fsck::check(
        &world.environment(),
        CheckOptions { deep: true, workers: 4, ..CheckOptions::default() },
        &mut |progress| {
            assert!(!is_stopped, "the callback is called after it stopped");
            assert!(progress.done_bytes <= progress.total_bytes);
            is_stopped = progress.done_items > 0;
            match is_stopped {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            }
        },
    );
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(is_stopped);
}

#[test]
fn repair_rebuilds_store_file_from_segments() {
    for damage in [Some(20), Some(300), None] {
        let (world, model) = closed();
        match damage {
            Some(offset) => world.disk.flip("STORE", offset, 1),
            None => world.disk.remove("STORE").unwrap(),
        }
        let report = check(&world);
        assert_eq!(finding(&report, "rewrite-store-file").severity, Severity::Repairable);
        assert_eq!(report.count(Severity::Loss), 0);
        repaired(&world);
        check_store(&world, &model, &[]);
    }
}

#[test]
fn repair_rewrites_one_damaged_header_copy() {
    for path in ["log/0000000001.seg", "big/00/0000000002.seg"] {
        for offset in [40, 2_100, 4_000] {
            let (world, model) = closed();
            let original = world.disk.bytes(path);
            world.disk.flip(path, offset, 1);
            let report = check(&world);
            let found = finding(&report, "rewrite-header");
            assert_eq!((found.file.as_str(), found.severity), (path, Severity::Repairable));
            repaired(&world);
            assert!(world.disk.bytes(path) == original);
            check_store(&world, &model, &[]);
        }
    }
}

#[test]
fn repair_rewrites_damaged_footer() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    let original = world.disk.bytes(path);
    for from_end in [1, 30, 70, 500] {
        let world = fork(&world);
        world.disk.flip(path, (original.len() - from_end) as u64, 4);
        assert_eq!(finding(&check(&world), "reseal").file, path);
        repaired(&world);
        assert!(world.disk.bytes(path) == original);
        check_store(&world, &model, &[]);
    }
}

#[test]
fn damaged_body_loses_only_its_object_and_names_it() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    world.disk.flip(path, offset_of_first_body(&world) + 7, 1);
    let report = check(&world);
    assert!(world.fsck(false).unwrap().is_clean(), "only --deep reads bodies");
    let [found] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((found.severity, &found.remedy), (Severity::Loss, &Remedy::None));
    assert_eq!(found.objects, [name("kept")]);
    let (after, said) = world.repair().unwrap();
    assert!(after.has_lost() && said.is_empty(), "{said:?}");
    check_store(&world, &model, &["kept"]);
    let store = world.open();
    put(&store, &name("kept"), b"again").unwrap();
    store.close().unwrap();
    drop(store);
    let report = check(&world);
    assert!(report.is_clean() && report.findings.len() == 1, "the old body is dead:\n{report}");
}

/// Returns the offset of the first object's body in the first segment.
fn offset_of_first_body(world: &World) -> u64 {
    let bytes = world.disk.bytes("log/0000000001.seg");
    memmem::find(&bytes, &body(1, 300)).unwrap() as u64
}

#[test]
fn repair_rewrites_object_with_damaged_head_from_footer() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    world.disk.flip(path, offset_of_first_body(&world) - 20, 1);
    let store = world.open();
    let created = store.get(&name("kept")).unwrap().unwrap().created_ms();
    assert!(read(&store, &name("kept")).is_err());
    store.close().unwrap();
    drop(store);
    let report = check(&world);
    let found = finding(&report, "put-again");
    assert_eq!((found.severity, found.file.as_str()), (Severity::Repairable, path));
    assert_eq!(found.objects, [name("kept")]);
    repaired(&world);
    check_store(&world, &model, &[]);
    let store = world.open();
    assert_eq!(store.get(&name("kept")).unwrap().unwrap().created_ms(), created);
    store.close().unwrap();
    drop(store);
    world.disk.remove("index.redb").unwrap();
    check_store(&world, &model, &[]);
}

#[test]
fn repair_records_fully_damaged_object_as_lost() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    let at = offset_of_first_body(&world);
    world.disk.flip(path, at - 20, 1);
    world.disk.flip(path, at + 20, 1);
    let report = check(&world);
    let found = finding(&report, "mark-lost");
    assert_eq!((found.severity, found.file.as_str()), (Severity::Loss, path));
    assert_eq!(found.objects, [name("kept")]);
    assert_eq!(report.count(Severity::Loss), 1, "{report}");
    repaired(&world);
    check_store(&world, &model, &["kept"]);

    let store = world.open();
    let object = store.get(&name("kept")).unwrap().unwrap();
    assert_eq!(object.bytes(), 300, "what is known of it is kept");
    assert!(matches!(store.body(&object), Err(Error::Corrupt(_))));
    put(&store, &name("kept"), b"again").unwrap();
    assert_eq!(read(&store, &name("kept")).unwrap().unwrap(), b"again");
    delete(&store, &name("kept")).unwrap();
    assert_eq!(read(&store, &name("kept")).unwrap(), None);
    store.close().unwrap();
    drop(store);
    assert!(check(&world).is_clean());
}

#[test]
fn recorded_loss_survives_index_rebuild() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    let at = offset_of_first_body(&world);
    world.disk.flip(path, at - 20, 1);
    world.disk.flip(path, at + 20, 1);
    repaired(&world);
    assert_eq!(check(&world).known_losses, 1);
    world.disk.remove("index.redb").unwrap();
    check_store(&world, &model, &["kept"]);
    let report = check(&world);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn repair_records_unreadable_big_object_as_lost_not_partial() {
    let (world, model) = closed();
    let path = "big/00/0000000002.seg";
    let bytes = world.disk.bytes(path).len() as u64;
    let damages: [&dyn Fn(&SimDisk); 5] = [
        &|disk| disk.remove(path).unwrap(),
        &|disk| disk.flip(path, bytes - 1, 1),
        &|disk| disk.flip(path, bytes - 66, 1),
        &|disk| disk.open(path).unwrap().set_len(5_000).unwrap(),
        &|disk| {
            disk.flip(path, 50, 1);
            disk.flip(path, 2_098, 1);
        },
    ];
    for damage in damages {
        let world = fork(&world);
        damage(&world.disk);
        let report = check(&world);
        let found = finding(&report, "mark-lost");
        assert_eq!((found.file.as_str(), found.severity), (path, Severity::Loss));
        assert_eq!(found.objects, [name("big")]);
        assert!(repaired(&world).count(Severity::Loss) == 1, "{report}");
        check_store(&world, &model, &["big"]);
    }
    world.disk.flip(path, SEGMENT_HEADER_BYTES as u64 + 9, 1);
    let report = check(&world);
    let [found] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((found.severity, &found.remedy), (Severity::Loss, &Remedy::None));
    assert_eq!(found.objects, [name("big")]);
}

#[test]
fn missing_log_segment_loses_only_its_records() {
    let (world, model) = closed();
    let first = "log/0000000001.seg";
    let damages: [&dyn Fn(&SimDisk); 3] = [
        &|disk| disk.remove(first).unwrap(),
        &|disk| disk.overwrite(first, 0, &[7; 4_096]),
        &|disk| disk.open(first).unwrap().set_len(6_000).unwrap(),
    ];
    for damage in damages {
        let world = fork(&world);
        damage(&world.disk);
        let report = check(&world);
        assert!(report.count(Severity::Loss) > 0, "{report}");
        let lost: Vec<_> = report.findings.iter().flat_map(|found| &found.objects).collect();
        assert!(lost.contains(&&name("kept")) || lost.contains(&&name("fill/1")), "{report}");
        repaired(&world);
        let lost: Vec<_> = lost.iter().map(|name| name.key.as_str()).collect();
        check_store(&world, &model, &lost);
    }
}

#[test]
fn damage_known_only_to_the_log_is_loss_without_names() {
    let world = World::new(7);
    let store = world.open();
    for (key, bytes) in [("a", 40), ("b", 50), ("c", 60), ("d", 70)] {
        put(&store, &name(key), &body(bytes, 200)).unwrap();
    }
    idle(&store);
    drop(store);
    world.disk.restart_process();
    let path = "log/0000000001.seg";
    let bytes = world.disk.bytes(path);
    let at = memmem::find(&bytes, &body(50, 200)).unwrap();
    world.disk.flip(path, at as u64 - 20, 1);
    let report = check(&world);
    let found = finding(&report, "go-on");
    assert_eq!((found.severity, found.file.as_str()), (Severity::Loss, path));
    let before = repaired(&world);
    assert_eq!(before.worst(), Some(Severity::Loss));
    let store = world.open();
    assert_eq!(read(&store, &name("b")).unwrap(), None);
    for (key, bytes) in [("a", 40), ("c", 60), ("d", 70)] {
        assert_eq!(read(&store, &name(key)).unwrap().unwrap(), body(bytes, 200));
    }
}

#[test]
fn repair_rewrites_big_object_with_damaged_record() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    let bytes = world.disk.bytes(path);
    let at = memmem::find(&bytes, b"photosbig").unwrap();
    world.disk.flip(path, at as u64, 1);
    let report = check(&world);
    let found = finding(&report, "put-again");
    assert_eq!(
        (found.severity, found.objects.as_slice()),
        (Severity::Repairable, [name("big")].as_slice())
    );
    repaired(&world);
    world.disk.remove("index.redb").unwrap();
    check_store(&world, &model, &[]);
}

#[test]
fn repair_rewrites_damaged_fact_from_index() {
    let (world, model) = closed();
    let path = "log/0000000001.seg";
    let bytes = world.disk.bytes(path);
    let at = memmem::find(&bytes, &body(6, 60)).unwrap();
    world.disk.flip(path, at as u64 + 3, 1);
    let found = world.fsck(false).unwrap();
    assert_eq!(finding(&found, "rewrite-facts").severity, Severity::Repairable, "quick too");
    assert!(!check(&world).is_clean());
    repaired(&world);
    world.disk.remove("index.redb").unwrap();
    check_store(&world, &model, &[]);
}

#[test]
fn repair_removes_unreferenced_files() {
    let (world, model) = closed();
    let big = world.disk.bytes("big/00/0000000002.seg");
    world.disk.create_folder("big/00").unwrap();
    let orphan = world.disk.create("big/00/0000000900.seg").unwrap();
    orphan.write_at(0, &[&big]).unwrap();
    world.disk.create("log/readme").unwrap();
    let report = check(&world);
    let found = finding(&report, "remove-orphan");
    assert_eq!((found.file.as_str(), found.severity), ("big/00/0000000900.seg", Severity::Note));
    assert!(report.findings.iter().any(|found| found.file == "log/readme"));
    repaired(&world);
    assert_eq!(world.files_in("big/").len(), 2);
    check_store(&world, &model, &[]);
}

#[test]
fn repair_handles_more_losses_than_are_listed() {
    let world = World::new(7);
    let store = world.open();
    for group in 0..60_u32 {
        let mut batch = Batch::new();
        for at in 0..10 {
            let staged = tests::store::stage(&store, b"small").unwrap();
            batch = batch.put(name(&format!("{group}/{at}")), staged, Default::default());
        }
        commit(&store, batch).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let paths = world.files_in("log/");
    world.disk.overwrite(&paths[0], 0, &[1; 4_096]);
    let report = check(&world);
    let found = finding(&report, "mark-lost");
    assert!(found.objects_unlisted > 0, "{report}");
    repaired(&world);
    assert!(check(&world).known_losses > 256);
}
