//! What is gone and can come back: told from memory and from the log, chosen within a stretch of the log, staged again.

use std::ops::ControlFlow;

use engine::{
    Batch, Error, FolderKey, GoneAsked, GoneVersion, LogSpan, Object, ObjectKey, PutOptions, Store,
    Unrecoverable, VersionEnd, WorkProgress,
};
use tests::store::{
    START_MS, World, body, bucket, bucket_named, commit, compact, delete, name, name_in, put,
    roll_over,
};

fn go_on(_: WorkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn asked(prefix: &str) -> GoneAsked {
    GoneAsked { bucket: bucket(), prefix: prefix.into(), span: LogSpan::ALL, put_since_ms: 0 }
}

/// Key, number, end and time of each.
type Told = Vec<(String, u64, VersionEnd, Option<u64>)>;

fn told(versions: &[GoneVersion]) -> Told {
    let one =
        |it: &GoneVersion| (it.object.name().key.to_string(), it.object.lsn(), it.end, it.ended_ms);
    versions.iter().map(one).collect()
}

/// All that the log tells, page by page.
fn in_the_log(store: &Store, asked: &GoneAsked, limit: usize) -> Told {
    let (mut all, mut after) = (Vec::new(), None::<(ObjectKey, u64)>);
    loop {
        let page = store.gone(asked, after.as_ref(), limit, &mut go_on).unwrap();
        assert!(page.versions.len() <= limit);
        all.extend(told(&page.versions));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn lately(store: &Store, asked: &GoneAsked, limit: usize) -> Told {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let (versions, next) = store.gone_lately(asked, before, limit).unwrap();
        all.extend(told(&versions));
        match next {
            Some(next) => before = Some(next),
            None => return all,
        }
    }
}

/// A store in which `a` was put three times and deleted once, `b/c` deleted, `d` is there and always was.
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

#[test]
fn memory_and_log_tell_the_same_each_in_its_order() {
    let world = World::new(1);
    let store = world.open();
    filled(&world, &store);
    let by_memory = lately(&store, &asked(""), 100);
    let keys = |told: &Told| told.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&by_memory), ["b/c", "a", "a"]);
    let ends: Vec<_> = by_memory.iter().map(|it| (it.2, it.3.map(|ms| ms - START_MS))).collect();
    assert_eq!(
        ends,
        [
            (VersionEnd::Deleted, Some(60)),
            (VersionEnd::Deleted, Some(40)),
            (VersionEnd::Replaced, Some(30)),
        ]
    );
    let mut sorted = by_memory.clone();
    sorted.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    for limit in [1, 2, 100] {
        assert_eq!(lately(&store, &asked(""), limit), by_memory, "{limit}");
        assert_eq!(in_the_log(&store, &asked(""), limit), sorted, "{limit}");
    }
    assert_eq!(keys(&lately(&store, &asked("b/"), 100)), ["b/c"]);
    roll_over(&store).unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(lately(&store, &asked(""), 100), []);
    assert_eq!(in_the_log(&store, &asked(""), 2), sorted);
}

#[test]
fn only_the_stretch_that_is_asked_for_is_told_and_chosen_from() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("a"), b"theirs").unwrap();
    delete(&store, &name("a")).unwrap();
    let span = LogSpan::after(store.last_lsn().unwrap());
    let ours = GoneAsked { span, ..asked("") };
    assert_eq!(lately(&store, &ours, 100), []);
    assert_eq!(in_the_log(&store, &ours, 100), []);
    assert!(store.gone_lately_of(&name("a"), None, span).unwrap().is_none());
    let none = store.gone_version(&name("a"), None, span, &mut go_on).unwrap();
    assert_eq!(none.unwrap_err(), Unrecoverable::Compacted);
    let all = FolderKey::root();
    assert!(store.deleted_in(&bucket(), &all, 0, span, &mut go_on).unwrap().is_empty());

    put(&store, &name("a"), b"ours").unwrap();
    put(&store, &name("b"), b"ours too").unwrap();
    delete(&store, &name("a")).unwrap();
    let until_lsn = store.last_lsn().unwrap();
    delete(&store, &name("b")).unwrap();
    let found = store.gone_version(&name("a"), None, span, &mut go_on).unwrap().unwrap();
    assert_eq!(found.bytes(), 4);
    let keys = |span| -> Vec<String> {
        let found = store.deleted_in(&bucket(), &all, 0, span, &mut go_on).unwrap();
        found.into_iter().map(|it| it.unwrap().name().key.to_string()).collect()
    };
    assert_eq!(keys(span), ["a", "b"]);
    // What was deleted once more, or for the first time, behind its end is not meant.
    assert_eq!(keys(LogSpan { until_lsn, ..span }), ["a"]);
    put(&store, &name("a"), b"again").unwrap();
    delete(&store, &name("a")).unwrap();
    assert!(keys(LogSpan { until_lsn, ..span }).is_empty());
}

#[test]
fn a_version_is_staged_again_while_its_bytes_are_there() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions { content_type: "image/png".into(), ..PutOptions::default() };
    let staged = tests::store::stage(&store, &body(1, 3_000)).unwrap();
    commit(&store, Batch::new().put(name("a"), staged, options)).unwrap();
    delete(&store, &name("a")).unwrap();
    let gone = store.gone_lately_of(&name("a"), None, LogSpan::ALL).unwrap().unwrap();
    let staged = store.stage_gone(&gone).unwrap().unwrap();
    assert_eq!((staged.bytes(), gone.content_type()), (3_000, "image/png"));
    let batch = Batch::new().put(name("b"), staged, PutOptions::default());
    commit(&store, batch).unwrap();
    assert_eq!(tests::store::read(&store, &name("b")).unwrap().unwrap(), body(1, 3_000));
    for turn in 0..10 {
        put(&store, &name("again"), &body(turn, 3_000)).unwrap();
    }
    assert!(compact(&store).unwrap().segments_removed > 0);
    assert_eq!(lately(&store, &asked(""), 100), []);
    assert!(store.gone_lately_of(&name("a"), None, LogSpan::ALL).unwrap().is_none());
    let why = store.stage_gone(&gone).unwrap().err().unwrap();
    assert_eq!(why, Unrecoverable::SpaceGivenBack);
}

#[test]
fn a_copy_is_the_object_whole_and_can_be_stopped() {
    let world = World::new(1);
    let store = world.open();
    for (key, bytes) in [("small", 10), ("medium", 3_000), ("big", 3_000_001)] {
        put(&store, &name(key), &body(7, bytes)).unwrap();
        let object: Object = store.get(&name(key)).unwrap().unwrap();
        let staged = store.stage_copy(&object, &mut go_on).unwrap();
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
