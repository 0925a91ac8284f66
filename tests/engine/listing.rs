//! Listing against a model: pages of a folder and pages of whole keys, with adversarial names, from every cursor, with
//! every prefix and page size, wherever the entries are stored.

use std::collections::BTreeSet;

use engine::listing::{FolderCursor, KeyGrouping};
use engine::rng::{Rng, SeededRng};
use engine::{Batch, FolderKey, ObjectKey, PutOptions, Store};
use tests::store::{World, bucket, commit, delete, keys, name, stage};

const NASTY: [&str; 26] = [
    "a",
    "a-b",
    "a/b",
    "a.b",
    "a b",
    "a/",
    "a/a",
    "a-/b",
    "a0",
    "a0/x",
    "a!/y",
    "a/b/c",
    "a/b-c",
    "a/b/",
    "ab/c",
    "b/",
    "b/c/d/e",
    "ä",
    "ä/ö",
    "日本/語",
    "~",
    "~/x",
    "a\u{1f600}",
    "-",
    "-/-",
    "a-b/c",
];

struct Tree {
    store: Store,
    keys: BTreeSet<String>,
}

impl Tree {
    fn new(world: &World) -> Self {
        Self { store: world.open(), keys: BTreeSet::new() }
    }

    fn put(&mut self, keys: &[&str]) {
        let staged = stage(&self.store, b"x").unwrap();
        let batch = keys.iter().fold(Batch::new(), |batch, key| {
            batch.put(name(key), staged.clone(), PutOptions::default())
        });
        commit(&self.store, batch).unwrap();
        self.keys.extend(keys.iter().map(|key| (*key).to_owned()));
    }

    fn delete(&mut self, key: &str) {
        delete(&self.store, &name(key)).unwrap();
        self.keys.remove(key);
    }

    /// Returns every prefix of every key, and some that match nothing.
    fn prefixes(&self) -> BTreeSet<String> {
        let of = |key: &String| -> Vec<String> {
            let ends = key.char_indices().map(|(at, _)| at).chain([key.len()]);
            ends.map(|end| key[..end].to_owned()).collect()
        };
        self.keys.iter().flat_map(of).chain(["zz".to_owned(), "a/b/c/".to_owned()]).collect()
    }

    fn keys_are_right(&self) {
        for prefix in self.prefixes() {
            let begins = |key: &&String| key.starts_with(&prefix);
            let expected: Vec<&String> = self.keys.iter().filter(begins).collect();
            for page in [1, 2, 3, 1_000] {
                let found = keys(&self.store, &bucket(), &prefix, page).unwrap();
                let found: Vec<&str> = found.iter().map(ObjectKey::as_str).collect();
                assert_eq!(found, expected, "prefix {prefix:?} in pages of {page}");
            }
            let hostile = self.keys.iter().map(|key| format!("{key}\0\u{1}"));
            for after in self.prefixes().into_iter().chain(hostile) {
                let page = self.store.list_keys(&bucket(), &prefix, Some(&after), 4).unwrap();
                let found: Vec<&str> =
                    page.objects.iter().map(|object| object.name().key.as_str()).collect();
                let mut expected = expected.iter().filter(|key| ***key > after);
                let wanted: Vec<&str> = expected.by_ref().take(4).map(|key| key.as_str()).collect();
                assert_eq!(found, wanted, "prefix {prefix:?} after {after:?}");
                assert_eq!(page.more, expected.next().is_some(), "{prefix:?} after {after:?}");
            }
        }
    }

    fn folders(&self) -> BTreeSet<String> {
        let of = |key: &String| -> Vec<String> {
            key.match_indices('/').map(|(at, _)| key[..=at].to_owned()).collect()
        };
        self.keys.iter().flat_map(of).chain([String::new(), "never/".to_owned()]).collect()
    }

    fn folders_are_right(&self) {
        for folder in self.folders() {
            let below = |key: &String| key.strip_prefix(folder.as_str()).map(str::to_owned);
            let inside: BTreeSet<String> =
                self.keys.iter().filter_map(below).filter(|rest| !rest.is_empty()).collect();
            let subfolders: BTreeSet<String> = inside
                .iter()
                .filter_map(|rest| Some(format!("{folder}{}/", rest.split_once('/')?.0)))
                .collect();
            let files: Vec<String> = inside
                .iter()
                .filter(|rest| !rest.contains('/'))
                .map(|rest| format!("{folder}{rest}"))
                .collect();
            let by_name = |path: &String| path.trim_end_matches('/').to_owned();
            let mut subfolders: Vec<String> = subfolders.into_iter().collect();
            subfolders.sort_by_key(by_name);
            for page in [1, 2, 3, 1_000] {
                let found = self.pages(&FolderKey::parse(&folder).unwrap(), page);
                assert_eq!(found.0, subfolders, "folders of {folder:?} in pages of {page}");
                assert_eq!(found.1, files, "files of {folder:?} in pages of {page}");
            }
        }
    }

    fn pages(&self, folder: &FolderKey, limit: usize) -> (Vec<String>, Vec<String>) {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut after: Option<FolderCursor> = None;
        loop {
            let page = self.store.list_folder(&bucket(), folder, after.as_ref(), limit).unwrap();
            assert!(page.folders.len() + page.files.len() <= limit);
            assert!(files.is_empty() || page.folders.is_empty(), "folders come first");
            folders.extend(page.folders.iter().map(|folder| folder.as_str().to_owned()));
            files.extend(page.files.iter().map(|file| file.name().key.as_str().to_owned()));
            after = page.next;
            if after.is_none() {
                return (folders, files);
            }
        }
    }

    /// Returns groups and single keys, in one order, by a plain second implementation.
    fn grouped(&self, prefix: &str, delimiter: &str) -> BTreeSet<String> {
        let begins = self.keys.iter().filter(|key| key.starts_with(prefix));
        let item = |key: &String| match key[prefix.len()..].find(delimiter) {
            Some(at) => key[..prefix.len() + at + delimiter.len()].to_owned(),
            None => key.clone(),
        };
        begins.map(item).collect()
    }

    fn groups_are_right(&self) {
        for delimiter in ["/", "-", "b", "é", "/b", "a/b/c", "ä/"] {
            for prefix in self.prefixes() {
                let expected = self.grouped(&prefix, delimiter);
                let grouping = KeyGrouping { prefix: &prefix, delimiter };
                for limit in [1, 2, 1_000] {
                    let (mut found, mut after) = (Vec::new(), None::<String>);
                    loop {
                        let page = self
                            .store
                            .list_key_groups(&bucket(), grouping, after.as_deref(), limit)
                            .unwrap();
                        let keys = page.objects.iter().map(|object| object.name().key.to_string());
                        let mut items: Vec<String> = page.groups.into_iter().chain(keys).collect();
                        items.sort();
                        assert!(items.len() <= limit);
                        found.extend(items);
                        after = page.next;
                        if after.is_none() {
                            break;
                        }
                    }
                    let expected: Vec<String> = expected.iter().cloned().collect();
                    assert_eq!(found, expected, "{prefix:?} by {delimiter:?} in pages of {limit}");
                }
                for after in self.prefixes() {
                    let page =
                        self.store.list_key_groups(&bucket(), grouping, Some(&after), 1).unwrap();
                    let key = page.objects.first().map(|object| object.name().key.to_string());
                    let found = page.groups.into_iter().next().or(key);
                    // A cursor inside a group is after the group.
                    let is_behind = |item: &&String| {
                        let is_group = item[prefix.len().min(item.len())..].contains(delimiter);
                        **item > after && !(is_group && after.starts_with(item.as_str()))
                    };
                    let expected = expected.iter().find(is_behind);
                    assert_eq!(found.as_ref(), expected, "{prefix:?} {delimiter:?} {after:?}");
                }
            }
        }
    }

    fn is_right(&self) {
        self.keys_are_right();
        self.folders_are_right();
        self.groups_are_right();
    }
}

#[test]
fn listing_orders_unusual_names_from_every_cursor() {
    let world = World::new(1);
    let mut tree = Tree::new(&world);
    tree.put(&NASTY);
    tree.is_right();
    tree.store.checkpoint().unwrap();
    tree.is_right();
}

#[test]
fn listing_merges_index_with_overlay_changes() {
    let world = World::new(1);
    let mut tree = Tree::new(&world);
    let (first, second) = NASTY.split_at(13);
    tree.put(first);
    tree.store.checkpoint().unwrap();
    tree.put(second);
    for key in ["a/b", "a/", "a0/x", "~/x"] {
        tree.delete(key);
    }
    tree.put(&["a/b/0", "a0"]);
    tree.is_right();
    tree.store.checkpoint().unwrap();
    tree.is_right();
    tree.delete("a/b/c");
    tree.delete("a");
    drop(std::mem::replace(&mut tree.store, World::new(2).open()));
    tree.store = world.open();
    tree.is_right();
}

#[test]
fn listing_matches_model_on_random_trees() {
    for seed in 0..12 {
        let world = World::new(seed);
        let chance = SeededRng::new(seed);
        let mut tree = Tree::new(&world);
        for step in 0..30 {
            let parts = ["a", "a-", "a.", "b", "ab", "é"];
            let depth = 1 + chance.below(3);
            let part = || parts[usize::try_from(chance.below(6)).unwrap()];
            let mut key: Vec<&str> = (0..depth).map(|_| part()).collect();
            if chance.below(6) == 0 {
                key.push("");
            }
            let key = key.join("/");
            match chance.below(4) {
                0 => tree.delete(&key),
                _ => tree.put(&[&key]),
            }
            if step == chance.below(30) {
                tree.store.checkpoint().unwrap();
            }
        }
        println!("seed {seed}: {} keys", tree.keys.len());
        tree.is_right();
    }
}

#[test]
fn listing_is_limited_to_its_bucket() {
    let world = World::new(1);
    let mut tree = Tree::new(&world);
    tree.put(&["a", "b/c"]);
    for other in ["photo", "photos-", "photos.a", "phot"] {
        let other = tests::store::bucket_named(other);
        assert_eq!(keys(&tree.store, &other, "", 10).unwrap(), []);
        let staged = stage(&tree.store, b"x").unwrap();
        let outsider = tests::store::name_in(&other, "a/outsider");
        commit(&tree.store, Batch::new().put(outsider, staged, PutOptions::default())).unwrap();
    }
    tree.is_right();
}

#[test]
fn key_group_listing_seeks_are_bounded() {
    let reads_of_groups = |files_per_folder: usize| {
        let mut world = World::wide(1);
        world.options.index_cache_bytes = 0;
        let mut tree = Tree::new(&world);
        for folder in ["f0", "f1"] {
            let many: Vec<String> =
                (0..files_per_folder).map(|at| format!("{folder}/e{at:05}")).collect();
            let many: Vec<&str> = many.iter().map(String::as_str).collect();
            many.chunks(1_000).for_each(|some| tree.put(some));
        }
        tree.store.checkpoint().unwrap();
        let groups_of = |delimiter, groups: [&str; 2]| {
            let before = world.disk.reads();
            let grouping = KeyGrouping { prefix: "", delimiter };
            let page = tree.store.list_key_groups(&bucket(), grouping, None, 1_000).unwrap();
            assert_eq!(page.groups, groups);
            world.disk.reads() - before
        };
        (groups_of("/", ["f0/", "f1/"]), groups_of("/e", ["f0/e", "f1/e"]))
    };
    let (few, many) = (reads_of_groups(1_000), reads_of_groups(8_000));
    println!("{few:?} reads for groups of 1,000, {many:?} for groups of 8,000");
    assert!(many.0 <= 2 * few.0 && many.1 <= 2 * few.1, "{few:?} {many:?}");
}

#[test]
fn listing_page_respects_its_limit() {
    let world = World::wide(1);
    let mut tree = Tree::new(&world);
    let many: Vec<String> = (0..1_024).map(|at| format!("k{at:05}")).collect();
    tree.put(&many.iter().map(String::as_str).collect::<Vec<_>>());
    tree.put(&["zzz"]);
    let page = tree.store.list_keys(&bucket(), "", None, usize::MAX).unwrap();
    assert_eq!((page.objects.len(), page.more), (engine::limits::LIST_PAGE_MAX, true));
    let page = tree.store.list_folder(&bucket(), &FolderKey::root(), None, 5_000).unwrap();
    assert_eq!(page.files.len(), engine::limits::LIST_PAGE_MAX);
    assert!(page.next.is_some());
}
