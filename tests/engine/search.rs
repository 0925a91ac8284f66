//! Search against a model: hits, their order, and pages, wherever the entries are stored.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::rng::{Rng, SeededRng};
use engine::{Batch, Error, FolderKey, PutOptions, Store};
use search::{Hit, HitItem, HitPage, SearchOptions, SearchQuery, limits};
use tests::fixtures::{names_below, put_all};
use tests::searched_store::SearchedStore;
use tests::store::{World, bucket, bucket_named, commit, delete, name, name_in, stage};

const NAMES_BYTES_MAX: u64 = 1 << 30;

fn query(folder: &str, text: &str) -> SearchQuery {
    SearchQuery {
        bucket: bucket(),
        folder: FolderKey::parse(folder).unwrap(),
        text: text.to_owned(),
        excluded_suffix: String::new(),
        offset: 0,
        limit: 1_000,
    }
}

fn open(world: &World) -> SearchedStore {
    SearchedStore::new(world.open(), SearchOptions::default())
}

/// Opens a store in which the names of every searched bucket are cached, within this memory.
fn open_with_cache(world: &World, names_bytes_max: u64) -> SearchedStore {
    SearchedStore::new(world.open(), SearchOptions { names_bytes_max, objects_min: 0 })
}

fn key(hit: &Hit) -> String {
    match &hit.item {
        HitItem::Folder(folder) => folder.to_string(),
        HitItem::File(file) => file.name().key.to_string(),
    }
}

fn keys(store: &SearchedStore, folder: &str, text: &str) -> Vec<String> {
    let hits = store.search(&query(folder, text));
    assert!(hits.total_is_exact && hits.total == hits.hits.len());
    hits.hits.iter().map(key).collect()
}

#[test]
fn search_lists_folders_first_then_better_matches() {
    let store = open(&World::new(1));
    put_all(
        &store,
        &[
            "cat/x.png",
            "old/my cats/1.png",
            "concat/",
            "cat.png",
            "b/cat.png",
            "cats.png",
            "my cat.png",
            "concat.png",
            "c_a_t.png",
            "dog.png",
        ],
    );
    let expected = [
        "cat/",
        "old/my cats/",
        "concat/",
        "b/cat.png",
        "cat.png",
        "cats.png",
        "my cat.png",
        "concat.png",
        "old/my cats/1.png",
        "cat/x.png",
        "c_a_t.png",
    ];
    assert_eq!(keys(&store, "", "Cat"), expected);
}

#[test]
fn search_in_folder_is_limited_to_that_folder() {
    let store = open(&World::new(1));
    put_all(&store, &["a/cat.png", "a/b/cat.png", "a/b/", "ab/cat.png", "cat.png", "a-/cat.png"]);
    assert_eq!(keys(&store, "a/", "cat"), ["a/b/cat.png", "a/cat.png"]);
    assert_eq!(keys(&store, "a/b/", "cat"), ["a/b/cat.png"]);
    assert!(keys(&store, "never/", "cat").is_empty());
    // The folder of the search is neither a hit nor a reason for one.
    assert_eq!(keys(&store, "a/", "b"), ["a/b/", "a/b/cat.png"]);
}

#[test]
fn empty_query_lists_folder_contents() {
    let store = open(&World::new(1));
    put_all(&store, &["a/", "a/z", "a/b/c", "a/b/", "a/a/x", "a/a.png", "b", "a0/x"]);
    assert_eq!(keys(&store, "a/", " "), ["a/a/", "a/b/", "a/a.png", "a/z"]);
    assert_eq!(keys(&store, "", ""), ["a/", "a0/", "b"]);
    let page = store.search(&SearchQuery { offset: 1, limit: 2, ..query("a/", "") });
    assert_eq!(page.hits.iter().map(key).collect::<Vec<_>>(), ["a/b/", "a/a.png"]);
    assert_eq!((page.total, page.total_is_exact), (4, true));
}

#[test]
fn search_skips_files_with_excluded_suffix() {
    let store = open(&World::new(1));
    put_all(&store, &["cat.png", "cat_thumb.webp", "x/dog_thumb.webp"]);
    for text in ["cat", ""] {
        let hidden = SearchQuery { excluded_suffix: "_thumb.webp".into(), ..query("", text) };
        let hits = store.search(&hidden);
        let files: Vec<_> = hits.hits.iter().map(key).filter(|key| !key.ends_with('/')).collect();
        assert_eq!(files, ["cat.png"]);
    }
    assert_eq!(keys(&store, "", "cat"), ["cat.png", "cat_thumb.webp"]);
}

#[test]
fn search_is_limited_to_its_bucket() {
    let store = open(&World::new(1));
    put_all(&store, &["a/cat"]);
    for other in ["photo", "photos-", "photos.a"] {
        let outsider = name_in(&bucket_named(other), "a/cat");
        let staged = stage(&store, b"x").unwrap();
        commit(&store, Batch::new().put(outsider, staged, PutOptions::default())).unwrap();
        let theirs = SearchQuery { bucket: bucket_named(other), ..query("", "cat") };
        assert_eq!(store.search(&theirs).total, 1);
    }
    assert_eq!(keys(&store, "", "cat"), ["a/cat"]);
}

#[test]
fn abandoned_search_is_cancelled() {
    let store = open(&World::wide(1));
    let many: Vec<String> = (0..1_000).map(|at| format!("cat {at}")).collect();
    put_all(&store, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let stops_when_asked_twice = || {
        let asked = AtomicUsize::new(0);
        let is_second = || asked.fetch_add(1, Ordering::Relaxed) == 1;
        let stopped = store.names.search(&query("", "cat"), is_second);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
        assert_eq!(asked.into_inner(), 2);
    };
    stops_when_asked_twice();
    assert_eq!(store.search(&query("", "cat")).total, 1_000);
    store.names.load_requested();
    assert_eq!(store.names.stats().names, 1_000);
    stops_when_asked_twice();
    assert_eq!(store.search(&query("", "cat")).total, 1_000);
}

#[test]
fn search_window_is_bounded() {
    let store = open(&World::new(1));
    let beyond = SearchQuery { offset: limits::WINDOW_MAX, limit: 1, ..query("", "a") };
    assert!(matches!(store.names.search(&beyond, || false), Err(Error::TooLarge(_))));
    let overflow = SearchQuery { offset: usize::MAX, ..query("", "a") };
    assert!(matches!(store.names.search(&overflow, || false), Err(Error::TooLarge(_))));
}

fn own_name(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or_default()
}

/// Whether the letters of every word occur in order. The names of this test have one kind of accent.
fn holds(name: &str, text: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('é', "e");
    let name = plain(name);
    plain(text).split_whitespace().all(|word| {
        let mut letters = name.chars();
        word.chars().all(|wanted| letters.any(|letter| letter == wanted))
    })
}

#[test]
fn search_matches_model_on_random_trees() {
    for seed in 0..8 {
        let world = World::new(seed);
        // By scans of the index, and in memory.
        let open = || match seed % 2 {
            0 => open(&world),
            _ => open_with_cache(&world, NAMES_BYTES_MAX),
        };
        let chance = SeededRng::new(seed);
        let below = |bound: usize| usize::try_from(chance.below(bound as u64)).unwrap();
        let mut store = open();
        let mut keys = BTreeSet::new();
        let parts = ["cat", "Cat-2", "été", "Tree", "a", "e.png", "ca t", "ÉTÉ_1"];
        for step in 0..40 {
            let mut key: Vec<&str> = (0..=below(3)).map(|_| parts[below(8)]).collect();
            if below(6) == 0 {
                key.push("");
            }
            let key = key.join("/");
            if below(4) == 0 {
                delete(&store, &name(&key)).unwrap();
                keys.remove(&key);
            } else {
                put_all(&store, &[&key]);
                keys.insert(key);
            }
            match step {
                // From here on the cached names follow the commits.
                10 => _ = store.search(&query("", "cat")),
                11 => store.names.load_requested(),
                20 => assert!(store.checkpoint().unwrap()),
                _ => {}
            }
        }
        for reopened in [false, true] {
            if reopened {
                drop(store);
                store = open();
            }
            store.search(&query("", "cat"));
            store.names.load_requested();
            let kept = store.names.stats().names;
            assert_eq!(kept, if seed % 2 == 0 { 0 } else { keys.len() as u64 });
            for folder in ["", "cat/", "été/", "cat/cat/", "none/"] {
                let names = names_below(&keys, folder);
                for text in ["cat", "c", "ete", "É", "tr", "cat 2", "png cat", "tce", "treee", "q"]
                {
                    let what = format!("seed {seed}: {text:?} below {folder:?}");
                    let all = store.search(&query(folder, text));
                    let found: Vec<String> = all.hits.iter().map(key).collect();
                    let unique: BTreeSet<String> = found.iter().cloned().collect();
                    assert_eq!(unique.len(), found.len(), "{what}: each once");
                    assert!(unique.is_subset(&names), "{what}: {found:?}");
                    for name in &names {
                        // A folder is found by its own name.
                        let inside = &name[folder.len()..];
                        let wanted = holds(inside.strip_suffix('/').map_or(inside, own_name), text);
                        assert!(!wanted || unique.contains(name), "{what}: {name} is missing");
                    }
                    let is_near = |hit: &&Hit| (498..500).contains(&hit.score);
                    for hit in all.hits.iter().filter(|hit| !is_near(hit)) {
                        assert!(holds(&key(hit)[folder.len()..], text), "{what}: {hit:?}");
                    }
                    let ranks = all
                        .hits
                        .iter()
                        .map(|hit| (matches!(hit.item, HitItem::File(_)), u16::MAX - hit.score));
                    assert!(ranks.is_sorted(), "{what}: {found:?}");
                    assert_eq!((all.total, all.total_is_exact), (found.len(), true), "{what}");
                    for limit in [1, 3] {
                        let mut paged = Vec::new();
                        for offset in (0..=found.len()).step_by(limit) {
                            let page =
                                store.search(&SearchQuery { offset, limit, ..query(folder, text) });
                            assert_eq!(page.total, found.len(), "{what}");
                            paged.extend(page.hits.iter().map(key));
                        }
                        assert_eq!(paged, found, "{what} in pages of {limit}");
                    }
                }
            }
        }
    }
}

/// Creates a store in which the names of every searched bucket are cached, with so many names in it.
fn store_with_cached_names(world: &World, count: usize) -> SearchedStore {
    let store = open_with_cache(world, NAMES_BYTES_MAX);
    put_many(&store, count);
    store
}

fn put_many(store: &Store, count: usize) {
    let many: Vec<String> = (0..count).map(|at| format!("{}/cat {at}", at % 7)).collect();
    for many in many.chunks(500) {
        put_all(store, &many.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Puts so many names into another bucket; returns a query for them.
fn another_bucket(store: &Store, count: usize) -> SearchQuery {
    let staged = stage(store, b"x").unwrap();
    let bucket = bucket_named("other");
    let batch = (0..count).fold(Batch::new(), |batch, at| {
        let key = name_in(&bucket, &format!("cat {at}"));
        batch.put(key, staged.clone(), PutOptions::default())
    });
    commit(store, batch).unwrap();
    SearchQuery { bucket, ..query("", "cat") }
}

#[test]
fn search_sees_commits_and_deletes_with_any_cache_state() {
    let store = store_with_cached_names(&World::wide(1), 900);
    for round in 0..3 {
        assert_eq!(store.search(&query("", "cat")).total, 900);
        let fresh = format!("new/cat {round}");
        put_all(&store, &[&fresh]);
        assert_eq!(store.search(&query("", "cat")).total, 901);
        assert_eq!(keys(&store, "new/", "cat"), std::slice::from_ref(&fresh));
        delete(&store, &name(&fresh)).unwrap();
        assert_eq!(store.search(&query("", "cat")).total, 900);
        assert!(keys(&store, "new/", "cat").is_empty());
        // First by a scan, then in memory, then across a checkpoint.
        match round {
            0 => store.names.load_requested(),
            _ => assert!(store.checkpoint().unwrap()),
        }
    }
    assert_eq!(store.names.stats().names, 900);
}

#[test]
fn name_cache_evicts_least_recently_searched_bucket() {
    let world = World::wide(1);
    let store = store_with_cached_names(&world, 500);
    let (one, other) = (query("", "cat"), another_bucket(&store, 500));
    let look = |store: &SearchedStore, asked: &SearchQuery| {
        assert_eq!(store.search(asked).total, 500);
        store.names.load_requested();
        store.names.stats()
    };
    let (of_one, of_both) = (look(&store, &one), look(&store, &other));
    assert_eq!((of_one.names, of_both.names), (500, 1_000));
    drop(store);
    let store = open_with_cache(&world, of_both.bytes - 1);
    for asked in [&one, &other, &one, &other, &other] {
        assert_eq!(look(&store, asked).names, 500);
    }
    drop(store);
    // Too many for the cache: a scan finds them all the same.
    let store = open_with_cache(&world, 1_000);
    for _ in 0..3 {
        assert_eq!(look(&store, &one).names, 0);
    }
}

#[test]
fn name_cache_does_not_thrash_between_large_buckets() {
    let world = World::wide(1);
    let store = store_with_cached_names(&world, 500);
    let (one, other) = (query("", "cat"), another_bucket(&store, 400));
    let look = |store: &SearchedStore, asked: &SearchQuery, count| {
        let hits = store.search(asked);
        assert_eq!((hits.total, hits.total_is_exact), (count, true));
        store.names.load_requested();
        store.names.stats().names
    };
    look(&store, &one, 500);
    look(&store, &other, 400);
    let bytes = store.names.stats().bytes;
    drop(store);
    let store = open_with_cache(&world, bytes - 1);
    assert_eq!(look(&store, &one, 500), 500);
    // A bucket that is searched for the first time takes the room.
    assert_eq!(look(&store, &other, 400), 400);
    for _ in 0..200 {
        // It keeps the room while it is searched, too.
        assert_eq!(look(&store, &one, 500), 400);
        assert_eq!(look(&store, &other, 400), 400);
    }
    // It does not keep the room for ever.
    let searches = (1..).find(|_| look(&store, &one, 500) == 500).unwrap();
    assert!((10..200).contains(&searches), "{searches}");
    assert_eq!(look(&store, &other, 400), 500);
}

#[test]
fn uncacheable_bucket_is_scanned_and_not_reloaded() {
    // More than a search scans while names are being read.
    let count = 20_000;
    let world = World::wide(1);
    let store = store_with_cached_names(&world, count);
    let asked = query("", "cat 1234");
    let is_hit = |at: &usize| holds(&format!("{}/cat {at}", at % 7), "cat 1234");
    let hit_count = (0..count).filter(is_hit).count();
    store.search(&asked);
    store.names.load_requested();
    let bytes = store.names.stats().bytes;
    drop(store);
    let store = open_with_cache(&world, bytes - 1);
    assert!(!store.search(&asked).total_is_exact);
    store.names.load_requested();
    let hits = store.search(&asked);
    assert_eq!((hits.total, hits.total_is_exact, hits.from_memory), (hit_count, true, false));
    assert_eq!(store.names.stats().names, 0);
}

#[test]
fn hits_are_counted_up_to_the_last_page() {
    let store = store_with_cached_names(&World::wide(1), limits::WINDOW_MAX + 1);
    let last = SearchQuery { offset: limits::WINDOW_MAX - 1, limit: 1, ..query("", "cat") };
    store.search(&last);
    store.names.load_requested();
    let hits = store.search(&last);
    assert_eq!((hits.total, hits.total_is_exact), (limits::WINDOW_MAX, false));
    assert_eq!((hits.hits.len(), hits.from_memory), (1, true));
    delete(&store, &name("0/cat 0")).unwrap();
    let hits = store.search(&last);
    assert_eq!((hits.total, hits.total_is_exact), (limits::WINDOW_MAX, true));
}

#[test]
fn search_concurrent_with_commits_finds_acknowledged_names() {
    let mut world = World::wide(1);
    let options = SearchOptions { objects_min: 0, ..SearchOptions::default() };
    let store = SearchedStore::with_thread(world.open_with_threads(), options);
    put_all(&store, &["cat"]);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for at in 0..200 {
                    let key = format!("{thread}/{at}");
                    put_all(store, &[&key]);
                    assert_eq!(keys(store, &format!("{thread}/"), &format!("{at}"))[0], key);
                }
            });
        }
    });
    while store.names.stats().names == 0 {
        std::thread::yield_now();
    }
    assert_eq!(store.search(&query("", "1")).total, store.search(&query("", "1")).hits.len());
    store.close().unwrap();
}

#[test]
fn two_thread_search_matches_single_thread() {
    let world = World::wide(1);
    let store = open_with_cache(&world, 0);
    put_many(&store, 80_000);
    let one = query("", "cat 77");
    let walked = store.search(&one);
    drop(store);
    let store = open_with_cache(&world, 1 << 30);
    let partial = store.search(&one);
    assert!(!partial.total_is_exact && partial.total < walked.total);
    store.names.load_requested();
    let kept = store.search(&one);
    assert_eq!(store.names.stats().names, 80_000);
    let seen = |hits: &HitPage| -> Vec<(String, u16)> {
        hits.hits.iter().map(|hit| (key(hit), hit.score)).collect()
    };
    assert_eq!((kept.total, seen(&kept)), (walked.total, seen(&walked)));
    assert!(kept.total > 800 && kept.total_is_exact && walked.total_is_exact);
    assert!(kept.from_memory && !walked.from_memory && !partial.from_memory);
}
