//! Resumable uploads: resumed after a restart of the process, complete in the end, and never with bytes other than
//! those received.

use std::io::ErrorKind;

use engine::disk::Disk;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::disk::sim::LossPolicy;
use engine::fsck::Severity;
use engine::upload::{ResumableUpload, ResumePoint};
use engine::{Batch, Error, PutOptions, Store};
use tests::store::{World, body, commit, name, put, read, stage};
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(7);

fn path() -> String {
    format!("uploads/{ID}")
}

fn keep(store: &Store, key: &str, upload: ResumableUpload) {
    let staged = upload.finish().unwrap();
    commit(store, Batch::new().put(name(key), staged, PutOptions::default())).unwrap();
}

#[test]
fn resumable_upload_across_reopens_equals_single_upload() {
    for bytes in [0, 1, 3_000, 65_536, 65_537, 200_000, 1 << 20, (3 << 20) + 5] {
        let world = World::new(1);
        let whole = body(bytes as u64, bytes);
        let store = world.open();
        let expected = {
            let staged = stage(&store, &whole).unwrap();
            (staged.bytes(), *staged.hash(), staged.head().to_vec())
        };
        let mut upload = store.begin_upload(ID).unwrap();
        let mut received = upload.sync().unwrap();
        assert_eq!(received.bytes, 0);
        drop((upload, store));
        for piece in whole.chunks(bytes / 3 + 1) {
            let store = world.open();
            let mut upload = store.resume_upload(ID, received).unwrap();
            for bytes in piece.chunks(40_000) {
                upload.push(bytes).unwrap();
            }
            received = upload.sync().unwrap();
            // Bytes that were not synced are not counted, and are sent again.
            upload.push(b"bytes that are not synced").unwrap();
        }
        let store = world.open();
        let staged = store.resume_upload(ID, received).unwrap().finish().unwrap();
        assert!((staged.bytes(), *staged.hash(), staged.head().to_vec()) == expected);
        commit(&store, Batch::new().put(name("it"), staged, PutOptions::default())).unwrap();
        store.remove_upload(ID).unwrap();
        assert!(read(&store, &name("it")).unwrap().unwrap() == whole, "{bytes} bytes");
        assert!(store.resumable_uploads().unwrap().is_empty());
        store.close().unwrap();
        drop(store);
        assert_eq!(world.fsck(true).unwrap().findings, []);
        assert!(read(&world.open(), &name("it")).unwrap().unwrap() == whole, "{bytes} bytes");
    }
}

#[test]
fn large_resumable_body_is_not_written_twice() {
    let world = World::new(1);
    let store = world.open();
    let whole = body(3, 2 << 20);
    let mut upload = store.begin_upload(ID).unwrap();
    for piece in whole.chunks(300_000) {
        upload.push(piece).unwrap();
        upload.sync().unwrap();
    }
    let before = world.disk.bytes(&path());
    assert_eq!(before.len(), 4_096 + whole.len());
    keep(&store, "it", upload);
    let big = world.files_in("big/");
    assert_eq!(big.len(), 1);
    let after = world.disk.bytes(&big[0]);
    assert!(after[4_096..before.len()] == before[4_096..], "the body lies where it lay");
    assert!(world.disk.bytes(&path()) == after, "the upload's name is one more of the same file");
    store.remove_upload(ID).unwrap();
    assert_eq!(world.files_in("uploads/"), [""; 0]);
    assert!(world.disk.bytes(&big[0]) == after);
}

/// Uploads a large body, completely received and synced.
fn whole_upload(store: &Store) -> (Vec<u8>, ResumePoint) {
    let whole = body(5, 300_000);
    let mut upload = store.begin_upload(ID).unwrap();
    upload.push(&whole).unwrap();
    (whole, upload.sync().unwrap())
}

#[test]
fn uncommitted_large_body_can_be_resumed() {
    let world = World::new(1);
    let store = world.open();
    let (whole, received) = whole_upload(&store);
    for _ in 0..3 {
        let staged = store.resume_upload(ID, received).unwrap().finish().unwrap();
        assert_eq!(world.files_in("big/").len(), 1);
        drop(staged);
        assert_eq!(world.files_in("big/"), [""; 0]);
    }
    // It is not lost either with the process that was about to commit it.
    let staged = store.resume_upload(ID, received).unwrap().finish().unwrap();
    world.disk.restart_process();
    drop((staged, store));
    let store = world.open();
    assert_eq!(world.files_in("big/"), [""; 0]);
    keep(&store, "it", store.resume_upload(ID, received).unwrap());
    store.remove_upload(ID).unwrap();
    assert!(read(&store, &name("it")).unwrap().unwrap() == whole);
    store.close().unwrap();
    drop(store);
    assert_eq!(world.fsck(true).unwrap().findings, []);
}

#[test]
fn large_body_that_may_be_referenced_is_not_touched() {
    let world = World::new(1);
    let store = world.open();
    let (whole, received) = whole_upload(&store);
    let staged = store.resume_upload(ID, received).unwrap().finish().unwrap();
    let must_refuse = |store: &Store| {
        let before = world.disk.bytes(&path());
        match store.resume_upload(ID, received).map(|_| ()) {
            Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::ResourceBusy),
            other => panic!("{other:?}"),
        }
        assert!(world.disk.bytes(&path()) == before);
    };
    must_refuse(&store);
    commit(&store, Batch::new().put(name("it"), staged, PutOptions::default())).unwrap();
    must_refuse(&store);
    drop(store);
    let store = world.open();
    must_refuse(&store);
    assert!(read(&store, &name("it")).unwrap().unwrap() == whole);
}

#[test]
fn large_body_with_unknown_commit_is_stored_or_resumed() {
    let mut seen = [false; 2];
    for (seed, policy) in (0..60).zip(LossPolicy::ALL.into_iter().cycle()) {
        let world = World::new(1);
        let store = world.open();
        let (whole, received) = whole_upload(&store);
        // The segment of the commit exists already.
        put(&store, &name("before"), b"1").unwrap();
        let staged = store.resume_upload(ID, received).unwrap().finish().unwrap();
        let log = PathPattern::Prefix("log/".to_owned());
        world.disk.inject(FaultRule::once(Operation::SyncData, log, Fault::Error));
        let batch = Batch::new().put(name("it"), staged, PutOptions::default());
        commit(&store, batch).unwrap_err();
        let refused = store.resume_upload(ID, received).map(|_| ());
        assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        world.disk.cut_power();
        drop(store);
        world.disk.power_on(policy, seed);
        let store = world.open();
        let is_stored = read(&store, &name("it")).unwrap().is_some();
        if !is_stored {
            keep(&store, "it", store.resume_upload(ID, received).unwrap());
        }
        assert!(read(&store, &name("it")).unwrap().unwrap() == whole, "{policy:?} {seed}");
        seen[usize::from(is_stored)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn large_body_is_renamed_without_hard_link_support() {
    let world = World::new(1);
    let uploads = PathPattern::Prefix("uploads/".to_owned());
    world.disk.inject(FaultRule::always(Operation::Link, uploads, Fault::Unsupported));
    let store = world.open();
    let (whole, received) = whole_upload(&store);
    keep(&store, "it", store.resume_upload(ID, received).unwrap());
    assert_eq!(world.files_in("uploads/"), [""; 0]);
    world.disk.cut_power();
    drop(store);
    world.disk.power_on(LossPolicy::KeepSynced, 0);
    assert!(read(&world.open(), &name("it")).unwrap().unwrap() == whole);
}

#[test]
fn changed_or_missing_bytes_are_not_resumed() {
    let world = World::new(1);
    let store = world.open();
    let mut upload = store.begin_upload(ID).unwrap();
    upload.push(&body(1, 100_000)).unwrap();
    let received = upload.sync().unwrap();
    drop(upload);
    let file = world.disk.open(&path()).unwrap();
    let mut byte = [0];
    file.read_at(70_000, &mut byte).unwrap();
    file.write_at(70_000, &[&[byte[0] ^ 1]]).unwrap();
    let refused = store.resume_upload(ID, received).map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    file.write_at(70_000, &[&byte]).unwrap();
    store.resume_upload(ID, received).unwrap();
    let more = ResumePoint { bytes: received.bytes + 1, ..received };
    let refused = store.resume_upload(ID, more).map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    let unknown = store.resume_upload(Uuid::from_u128(8), received).map(|_| ());
    assert!(matches!(unknown, Err(Error::Io { .. })), "{unknown:?}");
    assert!(store.begin_upload(ID).is_err(), "there is one of this id");
}

#[test]
fn unfinished_resumable_uploads_are_not_listed() {
    let world = World::new(1);
    let store = world.open();
    let mut upload = store.begin_upload(ID).unwrap();
    upload.push(&body(1, 100_000)).unwrap();
    upload.sync().unwrap();
    assert_eq!(store.stats().unwrap().big.segments, 0);
    store.close().unwrap();
    drop((upload, store));
    let report = world.fsck(true).unwrap();
    assert!(report.findings.iter().all(|it| it.severity == Severity::Note), "{report}");
    let store = world.open();
    assert_eq!(store.resumable_uploads().unwrap(), [ID]);
    store.remove_upload(ID).unwrap();
    store.remove_upload(ID).unwrap();
    assert_eq!(world.files_in("uploads/"), [""; 0]);
}

#[test]
fn full_disk_pauses_resumable_upload_until_space_is_free() {
    let mut world = World::new(1);
    world.options.reserve_bytes = Some(1 << 20);
    let store = world.open();
    let whole = body(5, 3 << 20);
    let mut upload = store.begin_upload(ID).unwrap();
    upload.push(&whole[..1_000_000]).unwrap();
    let received = upload.sync().unwrap();
    world.disk.set_free_bytes(500_000);
    world.clock.advance(2_000);
    let refused = upload.push(&whole[1_000_000..]).and_then(|()| upload.sync().map(|_| ()));
    assert!(matches!(refused, Err(Error::NoSpace)), "{refused:?}");
    drop(upload);
    world.disk.set_free_bytes(100 << 20);
    world.clock.advance(2_000);
    let mut upload = store.resume_upload(ID, received).unwrap();
    upload.push(&whole[1_000_000..]).unwrap();
    keep(&store, "it", upload);
    assert!(read(&store, &name("it")).unwrap().unwrap() == whole);
}
