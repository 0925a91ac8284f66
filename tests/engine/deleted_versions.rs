//! Deleted versions that can be restored: listed from memory and from the log, selected within a span of the log,
//! staged again.

use std::ops::ControlFlow;

use engine::history::{
    DeletedFilter, LogScanCursor, LsnRange, NoncurrentFilter, NoncurrentReason, NoncurrentVersion,
    RestoreError,
};
use engine::{Batch, Error, FolderKey, Object, ObjectKey, PutOptions, Store};
use tests::fixtures::always_continue;
use tests::store::{
    START_MS, World, body, bucket, bucket_named, commit, compact, delete, name, name_in, put,
    roll_over,
};

fn filter(prefix: &str) -> NoncurrentFilter {
    NoncurrentFilter {
        bucket: bucket(),
        prefix: prefix.into(),
        span: LsnRange::ALL,
        put_since_ms: 0,
    }
}

/// Key, number, end and time of each version.
type VersionSummary = Vec<(String, u64, NoncurrentReason, Option<u64>)>;

fn summaries(versions: &[NoncurrentVersion]) -> VersionSummary {
    let one = |it: &NoncurrentVersion| {
        (it.object.name().key.to_string(), it.object.lsn(), it.reason, it.noncurrent_since_ms)
    };
    versions.iter().map(one).collect()
}

/// Returns all versions from the log, page by page.
fn list_from_log(store: &Store, asked: &NoncurrentFilter, limit: usize) -> VersionSummary {
    let (mut all, mut after) = (Vec::new(), None::<(ObjectKey, u64)>);
    loop {
        let page =
            store.list_noncurrent(asked, after.as_ref(), limit, &mut always_continue).unwrap();
        assert!(page.versions.len() <= limit);
        all.extend(summaries(&page.versions));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn list_recent(store: &Store, asked: &NoncurrentFilter, limit: usize) -> VersionSummary {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let (versions, next) = store.recent_noncurrent(asked, before, limit).unwrap();
        all.extend(summaries(&versions));
        match next {
            Some(next) => before = Some(next),
            None => return all,
        }
    }
}

/// Fills a store in which `a` was put three times and deleted once, `b/c` deleted, and `d` exists unchanged.
fn filled(world: &World, store: &Store) {
    for (key, seed) in [("a", 1), ("b/c", 2), ("d", 3), ("a", 4)] {
        put(store, &name(key), &body(seed, 1_000)).unwrap();
        world.clock.advance(10);
    }
    delete(store, &name("a")).unwrap();
    world.clock.advance(10);
    put(store, &name("a"), &body(5, 1_000)).unwrap();
    world.clock.advance(10);
    delete(store, &name("b/c")).unwrap();
    put(store, &name_in(&bucket_named("other"), "a"), b"1").unwrap();
    delete(store, &name_in(&bucket_named("other"), "a")).unwrap();
}

/// Returns all versions along the log, in calls of so many versions and records, and the number of calls.
fn along(
    store: &Store,
    asked: &NoncurrentFilter,
    limit: usize,
    records: usize,
) -> (VersionSummary, usize) {
    let (mut all, mut from, mut calls) = (Vec::new(), LogScanCursor::default(), 0);
    loop {
        let stretch = store
            .list_noncurrent_in_log_order(asked, from, limit, records, &mut always_continue)
            .unwrap();
        assert!(stretch.versions.len() <= limit);
        all.extend(summaries(&stretch.versions));
        calls += 1;
        match stretch.next {
            Some(next) => from = next,
            None => return (all, calls),
        }
    }
}

fn keys_of(versions: &VersionSummary) -> Vec<(String, u64)> {
    let mut keys: Vec<_> = versions.iter().map(|it| (it.0.clone(), it.1)).collect();
    keys.sort();
    keys
}

#[test]
fn noncurrent_listing_is_paged_and_complete() {
    let world = World::new(1);
    let store = world.open();
    filled(&world, &store);
    for at in 0..60 {
        put(&store, &name(&format!("many/{at}")), &body(at, 3_000)).unwrap();
    }
    for at in 0..60 {
        delete(&store, &name(&format!("many/{at}"))).unwrap();
    }
    roll_over(&store).unwrap();
    let all = list_from_log(&store, &filter(""), 1_000);
    assert_eq!(all.len(), 63);
    for (limit, records) in [(1_000, usize::MAX), (7, usize::MAX), (1_000, 1), (3, 10)] {
        let (listed, calls) = along(&store, &filter(""), limit, records);
        assert_eq!(keys_of(&listed), keys_of(&all), "{limit} {records}");
        assert!(calls * records.min(1_000) >= 63 && calls * limit >= 63, "{calls}");
    }
    // A single call knows all ends.
    let (mut listed, _) = along(&store, &filter(""), 1_000, usize::MAX);
    listed.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    assert_eq!(listed, all);
    assert_eq!(keys_of(&along(&store, &filter("b/"), 5, 5).0).len(), 1);
    // The callback stops one call, and nothing else.
    let mut is_first = true;
    let stopped = store.list_noncurrent_in_log_order(
        &filter(""),
        LogScanCursor::default(),
        1_000,
        usize::MAX,
        &mut |_| match std::mem::replace(&mut is_first, false) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        },
    );
    let stopped = stopped.unwrap();
    assert!(stopped.next.is_some() && stopped.versions.len() < 63);
}

#[test]
fn noncurrent_listing_survives_compaction_between_pages() {
    let world = World::new(1);
    let store = world.open();
    for at in 0..40 {
        put(&store, &name(&format!("{at:02}")), &body(at, 3_000)).unwrap();
    }
    put(&store, &name("00"), &body(100, 3_000)).unwrap();
    delete(&store, &name("39")).unwrap();
    roll_over(&store).unwrap();
    let first = store
        .list_noncurrent_in_log_order(
            &filter(""),
            LogScanCursor::default(),
            1,
            3,
            &mut always_continue,
        )
        .unwrap();
    let mut listed: Vec<String> =
        first.versions.iter().map(|it| it.object.name().key.to_string()).collect();
    compact(&store).unwrap();
    let mut from = first.next;
    while let Some(place) = from {
        let stretch = store
            .list_noncurrent_in_log_order(&filter(""), place, 1, 3, &mut always_continue)
            .unwrap();
        listed.extend(stretch.versions.iter().map(|it| it.object.name().key.to_string()));
        from = stretch.next;
    }
    let left: Vec<String> =
        list_from_log(&store, &filter(""), 10).into_iter().map(|it| it.0).collect();
    assert!(left.iter().all(|key| listed.contains(key)), "{left:?} of {listed:?}");
}

#[test]
fn noncurrent_version_is_found_by_name_in_segments() {
    let world = World::new(1);
    let store = world.open();
    let mut lsns = Vec::new();
    for at in 0..80 {
        let key = format!("{at:02}");
        let put = put(&store, &name(&key), &body(at, 3_000)).unwrap();
        lsns.push((key, put.objects[0].lsn()));
    }
    for (key, _) in &lsns[10..] {
        delete(&store, &name(key)).unwrap();
    }
    roll_over(&store).unwrap();
    let count = |lsn: Option<u64>, key: &str| {
        let mut segments = 0;
        let found = store.noncurrent_version(&name(key), lsn, LsnRange::ALL, &mut |progress| {
            segments = progress.done_items.max(segments);
            ControlFlow::Continue(())
        });
        (found.unwrap().map(|it| it.lsn()), segments)
    };
    let (_, all) = count(None, "79");
    assert!(all >= 3, "{all} segments");
    for (key, lsn) in &lsns[10..] {
        assert_eq!(count(Some(*lsn), key), (Ok(*lsn), 0), "{key}");
    }
    assert_eq!(count(Some(lsns[20].1), "30").0, Err(RestoreError::NotFound));
    compact(&store).unwrap();
    for (key, lsn) in &lsns[10..] {
        let (found, _) = count(Some(*lsn), key);
        let is_there = list_from_log(&store, &filter(key), 10).len() == 1;
        assert_eq!(found.is_ok(), is_there, "{key}");
    }
}

#[test]
fn noncurrent_listing_from_memory_matches_log() {
    let world = World::new(1);
    let store = world.open();
    filled(&world, &store);
    let by_memory = list_recent(&store, &filter(""), 100);
    let keys = |list: &VersionSummary| list.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&by_memory), ["b/c", "a", "a"]);
    let ends: Vec<_> = by_memory.iter().map(|it| (it.2, it.3.map(|ms| ms - START_MS))).collect();
    assert_eq!(
        ends,
        [
            (NoncurrentReason::Deleted, Some(60)),
            (NoncurrentReason::Deleted, Some(40)),
            (NoncurrentReason::Replaced, Some(30)),
        ]
    );
    let mut sorted = by_memory.clone();
    sorted.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    for limit in [1, 2, 100] {
        assert_eq!(list_recent(&store, &filter(""), limit), by_memory, "{limit}");
        assert_eq!(list_from_log(&store, &filter(""), limit), sorted, "{limit}");
    }
    assert_eq!(keys(&list_recent(&store, &filter("b/"), 100)), ["b/c"]);
    roll_over(&store).unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(list_recent(&store, &filter(""), 100), []);
    assert_eq!(list_from_log(&store, &filter(""), 2), sorted);
}

#[test]
fn noncurrent_listing_skips_recreated_names() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"one").unwrap();
    put(&store, &name("a"), b"two").unwrap();
    put(&store, &name("b"), b"one").unwrap();
    delete(&store, &name("a")).unwrap();
    delete(&store, &name("b")).unwrap();
    let everywhere = |store: &Store| {
        let keys =
            |list: VersionSummary| keys_of(&list).into_iter().map(|it| it.0).collect::<Vec<_>>();
        let (log, along) =
            (list_from_log(store, &filter(""), 1), along(store, &filter(""), 1, 1).0);
        assert_eq!(keys(log.clone()), keys(along));
        let lately = keys(list_recent(store, &filter(""), 1));
        assert!(lately.is_empty() || lately == keys(log.clone()));
        keys(log)
    };
    assert_eq!(everywhere(&store), ["a", "a", "b"]);
    put(&store, &name("a"), b"one").unwrap();
    assert_eq!(everywhere(&store), ["a", "b"], "the older version of a is there again");
    let options = PutOptions { content_type: "text/css".into(), ..PutOptions::default() };
    let staged = tests::store::stage(&store, b"one").unwrap();
    commit(&store, Batch::new().put(name("b"), staged, options)).unwrap();
    assert_eq!(everywhere(&store), ["a", "b"], "another type is another file");
    put(&store, &name("a"), b"two").unwrap();
    assert_eq!(everywhere(&store), ["a", "a", "b"], "it was one twice");
    roll_over(&store).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(everywhere(&world.open()), ["a", "a", "b"]);
}

#[test]
fn noncurrent_listing_respects_lsn_range() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"theirs").unwrap();
    delete(&store, &name("a")).unwrap();
    let span = LsnRange::after(store.last_lsn().unwrap());
    let ours = NoncurrentFilter { span, ..filter("") };
    assert_eq!(list_recent(&store, &ours, 100), []);
    assert_eq!(list_from_log(&store, &ours, 100), []);
    assert!(store.recent_noncurrent_version(&name("a"), None, span).unwrap().is_none());
    let none = store.noncurrent_version(&name("a"), None, span, &mut always_continue).unwrap();
    assert_eq!(none.unwrap_err(), RestoreError::Compacted);
    let below = |span| {
        let asked =
            DeletedFilter { bucket: bucket(), folder: FolderKey::root(), since_ms: 0, span };
        store.newest_deleted_versions(&asked, &mut always_continue).unwrap()
    };
    assert!(below(span).is_empty());

    put(&store, &name("a"), b"ours").unwrap();
    put(&store, &name("b"), b"ours too").unwrap();
    delete(&store, &name("a")).unwrap();
    let through_lsn = store.last_lsn().unwrap();
    delete(&store, &name("b")).unwrap();
    let found =
        store.noncurrent_version(&name("a"), None, span, &mut always_continue).unwrap().unwrap();
    assert_eq!(found.bytes(), 4);
    let keys = |span| -> Vec<String> {
        let found = below(span);
        found.into_iter().map(|it| it.unwrap().name().key.to_string()).collect()
    };
    assert_eq!(keys(span), ["a", "b"]);
    // Deletions after the end of the span, repeated or first, are not included.
    assert_eq!(keys(LsnRange { through_lsn, ..span }), ["a"]);
    put(&store, &name("a"), b"again").unwrap();
    delete(&store, &name("a")).unwrap();
    assert!(keys(LsnRange { through_lsn, ..span }).is_empty());
}

#[test]
fn noncurrent_version_is_staged_while_bytes_exist() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions { content_type: "image/png".into(), ..PutOptions::default() };
    let staged = tests::store::stage(&store, &body(1, 3_000)).unwrap();
    commit(&store, Batch::new().put(name("a"), staged, options)).unwrap();
    delete(&store, &name("a")).unwrap();
    let gone = store.recent_noncurrent_version(&name("a"), None, LsnRange::ALL).unwrap().unwrap();
    let staged = store.stage_noncurrent(&gone).unwrap().unwrap();
    assert_eq!((staged.bytes(), gone.content_type()), (3_000, "image/png"));
    let batch = Batch::new().put(name("b"), staged, PutOptions::default());
    commit(&store, batch).unwrap();
    assert_eq!(tests::store::read(&store, &name("b")).unwrap().unwrap(), body(1, 3_000));
    for turn in 0..10 {
        put(&store, &name("again"), &body(turn, 3_000)).unwrap();
    }
    assert!(compact(&store).unwrap().segments_removed > 0);
    assert_eq!(list_recent(&store, &filter(""), 100), []);
    assert!(store.recent_noncurrent_version(&name("a"), None, LsnRange::ALL).unwrap().is_none());
    let why = store.stage_noncurrent(&gone).unwrap().err().unwrap();
    assert_eq!(why, RestoreError::SpaceReclaimed);
}

#[test]
fn staged_copy_is_complete_and_can_be_cancelled() {
    let world = World::new(1);
    let store = world.open();
    for (key, bytes) in [("small", 10), ("medium", 3_000), ("big", 3_000_001)] {
        put(&store, &name(key), &body(7, bytes)).unwrap();
        let object: Object = store.get(&name(key)).unwrap().unwrap();
        let staged = store.stage_copy(&object, &mut always_continue).unwrap();
        assert_eq!(engine::Etag::of_hash(staged.hash()), object.etag());
        let to = name(&format!("{key}-2"));
        let batch = Batch::new()
            .put(to.clone(), staged, PutOptions::default())
            .and(Batch::new().delete(name(key)));
        assert_eq!(commit(&store, batch).unwrap().deleted_count, 1);
        assert_eq!(tests::store::read(&store, &to).unwrap().unwrap(), body(7, bytes));
        assert!(store.get(&name(key)).unwrap().is_none());
    }
    let object = store.get(&name("big-2")).unwrap().unwrap();
    let stopped = store.stage_copy(&object, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(world.files_in("big/").len(), 1);
}
