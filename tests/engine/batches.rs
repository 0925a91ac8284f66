//! Batches: atomic, decided against everything before them; preconditions of each kind, alone, within one group, and
//! under concurrent threads.

use std::sync::mpsc;

use bytes::Bytes;
use engine::disk::faults::{Fault, FaultRule, Operation, PathPattern};
use engine::{Batch, CommitInfo, Conflict, Error, Precondition, PutOptions, Result, Store};
use tests::store::{
    Change, Contents, Model, World, batch, body, bucket, commit, fact, name, put, read, stage,
};

fn put_in(batch: Batch, store: &Store, key: &str, bytes: &[u8]) -> Batch {
    batch.put(name(key), stage(store, bytes).unwrap(), PutOptions::default())
}

/// Commits batches as one group.
fn commit_together(store: &Store, batches: Vec<Batch>) -> Vec<Result<CommitInfo>> {
    let (answer, outcomes) = mpsc::channel();
    for (at, batch) in batches.into_iter().enumerate() {
        let answer = answer.clone();
        store.submit(batch, move |outcome| answer.send((at, outcome)).unwrap());
    }
    store.step_committer();
    drop(answer);
    let mut outcomes: Vec<_> = outcomes.try_iter().collect();
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[test]
fn each_precondition_is_checked_and_reported() {
    use Precondition as P;
    let world = World::new(1);
    let store = world.open();
    let put_there = put(&store, &name("there"), b"1").unwrap();
    let (etag, lsn) = (put_there.objects[0].etag(), put_there.objects[0].lsn());
    let other = put(&store, &name("other"), b"2").unwrap().objects[0].etag();
    commit(&store, Batch::new().put_fact(fact("there"), Bytes::new())).unwrap();
    let (there, missing) = (name("there"), name("missing"));
    let cases = [
        (P::KeyAbsent(missing.clone()), None),
        (P::KeyAbsent(there.clone()), Some(Conflict::KeyPresent(there.clone()))),
        (P::KeyPresent(there.clone()), None),
        (P::KeyPresent(missing.clone()), Some(Conflict::KeyMissing(missing.clone()))),
        (P::KeyHasEtag(there.clone(), etag), None),
        (P::KeyHasEtag(there.clone(), other), Some(Conflict::KeyChanged(there.clone()))),
        (P::KeyHasEtag(missing.clone(), etag), Some(Conflict::KeyMissing(missing.clone()))),
        (P::KeyHasLsn(there.clone(), lsn), None),
        (P::KeyHasLsn(there.clone(), lsn + 1), Some(Conflict::KeyChanged(there.clone()))),
        (P::KeyHasLsn(missing.clone(), lsn), Some(Conflict::KeyMissing(missing.clone()))),
        (P::KeyAbsentOrDerived(missing.clone(), Vec::new()), None),
        (
            P::KeyAbsentOrDerived(there.clone(), Vec::new()),
            Some(Conflict::KeyPresent(there.clone())),
        ),
        (P::FactAbsent(fact("missing")), None),
        (P::FactAbsent(fact("there")), Some(Conflict::FactPresent(fact("there")))),
        (P::FactPresent(fact("there")), None),
        (P::FactPresent(fact("missing")), Some(Conflict::FactMissing(fact("missing")))),
    ];
    for is_checkpointed in [false, true] {
        if is_checkpointed {
            store.checkpoint().unwrap();
        }
        for (precondition, conflict) in &cases {
            let batch = Batch::new().require(precondition.clone());
            let batch = put_in(batch, &store, "written", b"x").delete(name("written"));
            match (commit(&store, batch), conflict) {
                (Ok(_), None) => {}
                (Err(Error::Conflict(found)), Some(expected)) => assert_eq!(found, *expected),
                (outcome, _) => panic!("{precondition:?}: {outcome:?}"),
            }
        }
    }
    assert_eq!(read(&store, &name("written")).unwrap(), None);
}

fn derived(store: &Store, batch: Batch, key: &str, attributes: &[u8]) -> Batch {
    let options =
        PutOptions { attributes: attributes.to_vec(), derived: true, ..PutOptions::default() };
    batch.put(name(key), stage(store, b"made").unwrap(), options)
}

#[test]
fn derived_objects_are_deleted_with_their_source() {
    let world = World::new(1);
    let store = world.open();
    let all = |batch: Batch| {
        ["of a", "of b", "own", "missing"]
            .into_iter()
            .fold(batch, |batch, key| batch.delete_derived(name(key), b"a".to_vec()))
    };
    for is_checkpointed in [false, true] {
        let batch = put_in(put_in(Batch::new(), &store, "a", b"1"), &store, "own", b"2");
        let batch = derived(&store, derived(&store, batch, "of a", b"a"), "of b", b"b");
        commit(&store, batch).unwrap();
        if is_checkpointed {
            store.checkpoint().unwrap();
        }
        let committed = commit(&store, all(Batch::new().delete(name("a")))).unwrap();
        assert_eq!(committed.deleted_count, 1, "what goes along does not count");
        let left = |key| store.get(&name(key)).unwrap().is_some();
        assert_eq!(
            [left("a"), left("of a"), left("of b"), left("own")],
            [false, false, true, true]
        );
        let before = store.stats().unwrap().last_lsn;
        assert_eq!(commit(&store, all(Batch::new())).unwrap().deleted_count, 0);
        assert_eq!(store.stats().unwrap().last_lsn, before, "there is nothing to write");
    }
    let usage = store.bucket_usage(&bucket()).unwrap();
    assert_eq!((usage.objects, usage.derived_objects), (1, 1));
}

#[test]
fn objects_created_in_a_batch_survive_cascading_delete() {
    let world = World::new(1);
    let store = world.open();
    let replacing = |bytes: &[u8]| {
        let made = derived(&store, put_in(Batch::new(), &store, "a", bytes), "of a", b"a");
        made.require(Precondition::KeyAbsentOrDerived(name("of a"), b"a".to_vec()))
    };
    let plain = put_in(Batch::new(), &store, "a", b"3").delete_derived(name("of a"), b"a".to_vec());
    let both = replacing(b"2").delete_derived(name("of a"), b"a".to_vec());
    // One group: none of them is in the index when the next is decided.
    let outcomes = commit_together(&store, vec![replacing(b"1"), both, plain, replacing(b"4")]);
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_ok_and(|it| it.deleted_count == 0)));
    assert!(store.get(&name("of a")).unwrap().unwrap().is_derived());

    let refused = |store: &Store, batch: Batch| {
        let conflict = Conflict::KeyPresent(name("of a"));
        assert!(matches!(commit(store, batch), Err(Error::Conflict(found)) if found == conflict));
    };
    let of_b = Precondition::KeyAbsentOrDerived(name("of a"), b"b".to_vec());
    refused(&store, Batch::new().require(of_b));
    put(&store, &name("of a"), b"somebody's own").unwrap();
    refused(&store, replacing(b"5"));
    commit(&store, Batch::new().delete_derived(name("of a"), Vec::new())).unwrap();
    assert_eq!(read(&store, &name("of a")).unwrap().unwrap(), b"somebody's own");
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"4");
}

#[test]
fn rejected_batch_changes_nothing() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("kept"), b"kept").unwrap();
    let before = Contents::of(&store).unwrap();
    let big = body(1, 9_000);
    let refused = put_in(Batch::new(), &store, "new", &big)
        .delete(name("kept"))
        .put_fact(fact("f"), Bytes::from_static(b"1"))
        .require(Precondition::KeyPresent(name("missing")));
    assert!(matches!(commit(&store, refused), Err(Error::Conflict(_))));
    assert_eq!(Contents::of(&store).unwrap(), before);
    assert_eq!(world.files_in("big/"), [""; 0], "the staged body is gone with its batch");
}

#[test]
fn batches_in_a_group_see_each_other_in_order() {
    let world = World::new(1);
    let store = world.open();
    let absent = |key| Batch::new().require(Precondition::KeyAbsent(name(key)));
    let outcomes = commit_together(
        &store,
        vec![
            put_in(absent("a"), &store, "a", b"first"),
            put_in(absent("a"), &store, "a", b"second"),
            Batch::new().require(Precondition::KeyPresent(name("a"))).delete(name("a")),
            put_in(absent("a"), &store, "a", b"third"),
            Batch::new().put_fact(fact("token"), Bytes::new()),
            Batch::new()
                .require(Precondition::FactPresent(fact("token")))
                .delete_fact(fact("token")),
            Batch::new()
                .require(Precondition::FactPresent(fact("token")))
                .delete_fact(fact("token")),
        ],
    );
    let done: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, false, true, true, true, true, false]);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"third");
    assert_eq!(store.fact(&fact("token")).unwrap(), None);
    assert_eq!(store.bucket_usage(&bucket()).unwrap().objects, 1);
    drop(store);
    assert_eq!(read(&world.open(), &name("a")).unwrap().unwrap(), b"third");
}

#[test]
fn concurrent_put_if_absent_has_exactly_one_winner() {
    let mut world = World::new(1);
    let store = world.open_with_threads();
    for round in 0..30 {
        let key = format!("raced/{round}");
        let wins = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..6_u64)
                .map(|racer| {
                    let (store, key) = (store.clone(), key.clone());
                    scope.spawn(move || {
                        let absent = Precondition::KeyAbsent(name(&key));
                        let bytes = body(racer, if racer % 2 == 0 { 10 } else { 9_000 });
                        let batch = put_in(Batch::new().require(absent), &store, &key, &bytes);
                        match store.commit(batch) {
                            Ok(_) => Some(bytes),
                            Err(Error::Conflict(Conflict::KeyPresent(_))) => None,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            racers.into_iter().filter_map(|racer| racer.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(wins.len(), 1, "round {round}");
        assert_eq!(read(&store, &name(&key)).unwrap().unwrap(), wins[0]);
    }
    let bigs = store.stats().unwrap().big.segments;
    store.close().unwrap();
    assert_eq!(world.files_in("big/").len() as u64, bigs, "losers leave no file");
    assert_eq!(world.open().bucket_usage(&bucket()).unwrap().objects, 30);
}

#[test]
fn batch_operations_are_applied_in_order() {
    let world = World::new(1);
    let store = world.open();
    let batch = put_in(Batch::new(), &store, "a", b"1").delete(name("a"));
    let batch = put_in(put_in(batch, &store, "a", b"2"), &store, "b", b"3").delete(name("b"));
    let done = commit(&store, batch.delete(name("never"))).unwrap();
    assert_eq!((done.objects.len(), done.deleted_count), (3, 2));
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), b"2");
    assert_eq!(read(&store, &name("b")).unwrap(), None);
    assert_eq!(store.bucket_usage(&bucket()).unwrap().objects, 1);
}

#[test]
fn staged_body_is_retried_under_other_name_commits_once() {
    let world = World::new(1);
    let store = world.open();
    put(&store, &name("taken"), b"1").unwrap();
    let staged = stage(&store, &body(1, 9_000)).unwrap();
    let with = |key: &str| {
        let absent = Precondition::KeyAbsent(name(key));
        Batch::new().require(absent).put(name(key), staged.clone(), PutOptions::default())
    };
    assert!(matches!(commit(&store, with("taken")), Err(Error::Conflict(_))));
    commit(&store, with("free")).unwrap();
    assert!(matches!(commit(&store, with("another")), Err(Error::TooLarge(_))));
    drop(staged);
    assert_eq!(read(&store, &name("free")).unwrap().unwrap(), body(1, 9_000));
}

/// Regression test: with two names for one file, deleting one would have removed the other's bytes.
#[test]
fn big_body_is_committed_under_one_name_only() {
    let world = World::new(1);
    let store = world.open();
    let options = PutOptions::default;
    let staged = stage(&store, &body(1, 9_000)).unwrap();
    let with = |key: &str| Batch::new().put(name(key), staged.clone(), options());
    let outcomes = commit_together(&store, vec![with("a"), with("b")]);
    assert!(outcomes[0].is_ok() && outcomes[1].is_err());
    let twice = stage(&store, &body(2, 9_000)).unwrap();
    let batch = Batch::new().put(name("c"), twice.clone(), options());
    assert!(commit(&store, batch.put(name("d"), twice, options())).is_err());
    // The name stays in use even when the first name was overwritten in between.
    let staged = stage(&store, &body(3, 9_000)).unwrap();
    let with = |key: &str| Batch::new().put(name(key), staged.clone(), options());
    let overwrite = put_in(Batch::new(), &store, "e", b"small");
    let outcomes = commit_together(&store, vec![with("e"), overwrite, with("f")]);
    assert!(outcomes[0].is_ok() && outcomes[1].is_ok() && outcomes[2].is_err());
    drop(staged);
    assert_eq!(read(&store, &name("a")).unwrap().unwrap(), body(1, 9_000));
    assert_eq!(read(&store, &name("e")).unwrap().unwrap(), b"small");
    assert_eq!(world.files_in("big/").len(), 1);
}

#[test]
fn small_staged_body_can_have_many_names() {
    let world = World::new(1);
    let store = world.open();
    let staged = stage(&store, b"shared").unwrap();
    let batch = ["a", "b", "c"].iter().fold(Batch::new(), |batch, key| {
        batch.put(name(key), staged.clone(), PutOptions::default())
    });
    commit(&store, batch).unwrap();
    commit(&store, Batch::new().delete(name("b"))).unwrap();
    assert_eq!(read(&store, &name("c")).unwrap().unwrap(), b"shared");
}

#[test]
fn oversized_batch_is_rejected_before_queueing() {
    let world = World::new(1);
    let store = world.open();
    let puts = (0..9).fold(Batch::new(), |batch, at| {
        put_in(batch, &store, &format!("large/{at}"), &body(at, 4_000))
    });
    assert!(matches!(commit(&store, puts), Err(Error::TooLarge(_))));
    let many = (0..1_025).fold(Batch::new(), |batch, at| batch.delete(name(&format!("{at}"))));
    assert!(matches!(commit(&store, many), Err(Error::TooLarge(_))));
    let value = Bytes::from(vec![0; 64 * 1_024 + 1]);
    assert!(matches!(
        commit(&store, Batch::new().put_fact(fact("f"), value)),
        Err(Error::TooLarge(_))
    ));
    // Bodies in segments of their own do not count.
    let bigs = (0..20).fold(Batch::new(), |batch, at| {
        put_in(batch, &store, &format!("big/{at}"), &body(at, 5_000))
    });
    assert_eq!(commit(&store, bigs).unwrap().objects.len(), 20);
    assert!(Batch::new().is_empty() && commit(&store, Batch::new()).unwrap().objects.is_empty());
}

#[test]
fn largest_batches_are_committed_and_replayed() {
    let world = World::new(1);
    let store = world.open();
    let mut model = Model::default();
    for round in 0..5_u64 {
        let changes: Vec<Change> = (0..150_u64)
            .map(|at| {
                let key = name(&format!("{}/{at}", "long".repeat(10)));
                Change::Put(key, body(round * 1_000 + at, 5).into())
            })
            .collect();
        commit(&store, batch(&store, &changes).unwrap()).unwrap();
        model.apply(&changes);
    }
    drop(store);
    Contents::of(&world.open()).unwrap().check_against(&model).unwrap();
}

/// Creates a store whose groups hold some twenty bodies of [`LONG_BYTES`].
fn store_of_long_groups() -> (World, Store) {
    let mut world = World::wide(1);
    world.options.segment_bytes = 8 << 20;
    let store = world.open();
    (world, store)
}

const LONG_BYTES: usize = 190 << 10;

/// Submits so many bodies and commits the first group of them; returns the outcomes by number, and the size of the
/// group.
fn submit_long(
    store: &Store,
    count: usize,
) -> (mpsc::Receiver<(usize, Result<CommitInfo>)>, usize) {
    let (answer, results) = mpsc::channel();
    for at in 0..count {
        let batch = put_in(Batch::new(), store, &format!("{at}"), &body(at as u64, LONG_BYTES));
        let answer = answer.clone();
        store.submit(batch, move |outcome| answer.send((at, outcome)).unwrap());
    }
    store.step_committer();
    let shows = |at: &usize| read(store, &name(&format!("{at}"))).unwrap().is_some();
    (results, (0..count).take_while(shows).count())
}

fn results_so_far(results: &mpsc::Receiver<(usize, Result<CommitInfo>)>) -> Vec<(usize, bool)> {
    results.try_iter().map(|(at, outcome)| (at, outcome.is_ok())).collect()
}

#[test]
fn callbacks_of_long_group_wait_for_the_next_group_only() {
    for more in [0, 1, 4] {
        let (_world, store) = store_of_long_groups();
        let (results, in_first) = submit_long(&store, 21 + more);
        assert_eq!(in_first, 21, "as many as fit");
        let expected: Vec<_> = (0..in_first).map(|at| (at, true)).collect();
        if more == 0 {
            assert_eq!(results_so_far(&results), expected, "there is no next one");
        } else {
            assert_eq!(results_so_far(&results), []);
            store.step_committer();
            let expected: Vec<_> = (0..in_first + more).map(|at| (at, true)).collect();
            assert_eq!(results_so_far(&results), expected);
        }
    }
}

#[test]
fn failed_group_does_not_change_earlier_results() {
    for (more, operation) in [
        (1, Operation::Write),
        (4, Operation::Write),
        (1, Operation::SyncData),
        (4, Operation::SyncData),
    ] {
        let (world, store) = store_of_long_groups();
        let (results, in_first) = submit_long(&store, 21 + more);
        let log = PathPattern::Prefix("log/".to_owned());
        world.disk.inject(FaultRule::once(operation, log, Fault::Error));
        store.step_committer();
        let expected: Vec<_> = (0..in_first + more).map(|at| (at, at < in_first)).collect();
        assert_eq!(results_so_far(&results), expected, "{operation:?}");
    }
}
