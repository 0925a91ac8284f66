//! Segments with unreadable headers: fsck names each and continues with the others, quick and deep.

use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::fsck::{Finding, Severity};
use tests::store::{World, body, commit, compact, delete, fact, idle, name, put, read, roll_over};

/// Creates three log segments and more, a big one, and optionally a compacted one; closed.
fn world(has_compacted: bool) -> World {
    let world = World::new(21);
    let store = world.open();
    for at in 0..50 {
        put(&store, &name(&format!("{at}")), &body(at, 3_500)).unwrap();
        if at % 12 == 0 {
            roll_over(&store).unwrap();
        }
    }
    put(&store, &name("big"), &body(100, 9_000)).unwrap();
    let set = engine::Batch::new().put_fact(fact("token"), body(101, 40).into());
    commit(&store, set).unwrap();
    if has_compacted {
        for at in 0..20 {
            delete(&store, &name(&format!("{at}"))).unwrap();
        }
        idle(&store);
        roll_over(&store).unwrap();
        store.checkpoint().unwrap();
        assert!(compact(&store).unwrap().copied_bytes > 0);
    }
    store.close().unwrap();
    drop(store);
    world
}

#[test]
fn fsck_reports_unreadable_header_and_checks_the_rest() {
    for has_compacted in [false, true] {
        let whole = world(has_compacted);
        assert_eq!(whole.fsck(true).unwrap().findings, []);
        let segments = [whole.files_in("log/"), whole.files_in("compacted/")].concat();
        assert_eq!(segments.iter().any(|path| path.starts_with("compacted/")), has_compacted);
        assert!(segments.len() > 2, "{segments:?}");
        for (path, operation, deep) in cases(&segments) {
            let world = World::on(whole.disk.fork(), 22);
            world.disk.inject(FaultRule::always(
                operation,
                PathPattern::Prefix(path.clone()),
                Fault::Error,
            ));
            let report = world.fsck(deep).unwrap();
            let case = format!("{operation:?} of {path}, deep: {deep}:\n{report}");
            assert!(report.findings.iter().any(|finding| finding.file == *path), "{case}");
            // For the others, the report only says that something is missing between them.
            let is_loss = |finding: &&Finding| finding.severity == Severity::Loss;
            let losses: Vec<_> = report.findings.iter().filter(is_loss).collect();
            assert!(losses.iter().any(|finding| finding.file == *path), "{case}");
            assert!(losses.iter().filter(|it| it.file != *path).count() <= 1, "{case}");
            assert!(report.segments >= segments.len() as u64 - 1, "{case}");
            world.disk.clear_faults();
            assert_eq!(world.fsck(deep).unwrap().findings, [], "nothing was changed");
        }
    }
}

fn cases(segments: &[String]) -> impl Iterator<Item = (&String, Operation, bool)> {
    let operations = [Operation::Open, Operation::Read];
    segments.iter().flat_map(move |path| {
        let all = operations.into_iter().flat_map(|it| [(it, false), (it, true)]);
        all.map(move |(operation, deep)| (path, operation, deep))
    })
}

#[test]
fn fsck_does_not_record_transient_read_errors_as_loss() {
    let whole = world(true);
    let segments = ["log/", "compacted/", "big/"].map(|folder| whole.files_in(folder)).concat();
    let mut unread = 0;
    for path in segments {
        let world = World::on(whole.disk.fork(), 23);
        let fail =
            || FaultRule::always(Operation::Read, PathPattern::Prefix(path.clone()), Fault::Error);
        world.disk.inject(fail());
        let report = world.fsck(true).unwrap();
        let words: Vec<_> = report.findings.iter().map(|it| it.remedy.word()).collect();
        assert!(!words.contains(&"mark-lost"), "{path}:\n{report}");
        unread += words.iter().filter(|word| **word == "copy-to-sound-disk").count();
        // A repair discards nothing either, and everything is present once the disk is readable again.
        drop(world.repair());
        world.disk.clear_faults();
        drop(world.repair().unwrap());
        let store = world.open();
        for at in 20..50 {
            let found = read(&store, &name(&format!("{at}"))).unwrap();
            assert_eq!(found.unwrap(), body(at, 3_500), "{path}: {at}");
        }
        assert_eq!(read(&store, &name("big")).unwrap().unwrap(), body(100, 9_000), "{path}");
        store.close().unwrap();
    }
    assert!(unread > 3, "{unread} segments held objects");
}
