//! Facts: small records of the server, by name, by prefix, after a cursor; from memory, from the index, and both.

use std::collections::BTreeMap;

use bytes::Bytes;
use engine::{Batch, FactName, Store};
use tests::store::{World, commit, fact};

const NAMES: [&str; 9] =
    ["account/1", "account/10", "account/2", "account", "b", "token/a b", "token/ü", "ü", "~"];

fn set(store: &Store, name: &str, value: &'static [u8]) {
    commit(store, Batch::new().put_fact(fact(name), Bytes::from_static(value))).unwrap();
}

fn pages(store: &Store, prefix: &str, page: usize) -> Vec<(FactName, Bytes)> {
    let mut all: Vec<(FactName, Bytes)> = Vec::new();
    loop {
        let after = all.last().map(|(name, _)| name.clone());
        let found = store.facts(prefix, after.as_ref(), page).unwrap();
        assert!(found.len() <= page);
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

#[test]
fn facts_are_listed_by_prefix_and_cursor_from_all_layers() {
    let world = World::new(1);
    let mut store = world.open();
    let mut model: BTreeMap<FactName, Bytes> = BTreeMap::new();
    for (at, name) in NAMES.iter().enumerate() {
        set(&store, name, b"old");
        if at == 4 {
            store.checkpoint().unwrap();
        }
        model.insert(fact(name), Bytes::from_static(b"old"));
    }
    set(&store, "account/2", b"new");
    model.insert(fact("account/2"), Bytes::from_static(b"new"));
    commit(&store, Batch::new().delete_fact(fact("b")).delete_fact(fact("never"))).unwrap();
    model.remove(&fact("b"));
    for stage in ["half in the index", "all in the index", "reopened"] {
        for (name, value) in &model {
            assert_eq!(store.fact(name).unwrap().as_ref(), Some(value), "{stage}");
        }
        assert_eq!(store.fact(&fact("b")).unwrap(), None, "{stage}");
        for prefix in ["", "a", "account", "account/", "account/1", "token/", "ü", "zz", "~~"] {
            let expected: Vec<_> = model
                .iter()
                .filter(|(name, _)| name.as_str().starts_with(prefix))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            for page in 1..5 {
                assert_eq!(pages(&store, prefix, page), expected, "{stage}: {prefix:?} {page}");
            }
            // A cursor may be a name that does not exist, before the prefix or after it.
            for cursor in ["account/15", "a", "zzz"] {
                let after = fact(cursor);
                let expected: Vec<_> =
                    expected.iter().filter(|(name, _)| *name > after).cloned().collect();
                let found = store.facts(prefix, Some(&after), 100).unwrap();
                assert_eq!(found, expected, "{stage}: {prefix:?} after {cursor:?}");
            }
        }
        store.checkpoint().unwrap();
        if stage == "all in the index" {
            drop(store);
            store = world.open();
        }
    }
}

#[test]
fn fact_value_may_be_empty_or_at_its_limit() {
    let mut world = World::new(1);
    world.options.segment_bytes = 1 << 20;
    let store = world.open();
    for (name, length) in [("empty", 0), ("full", 64 * 1_024)] {
        commit(&store, Batch::new().put_fact(fact(name), vec![7; length].into())).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(store.fact(&fact("empty")).unwrap().unwrap().len(), 0);
    assert_eq!(store.fact(&fact("full")).unwrap().unwrap(), vec![7; 64 * 1_024]);
}
