//! What does a page of a listing cost, and the first search of a bucket, as the bucket grows?
//!
//! Expected: a page is a seek and a walk over as many entries as it shows; of ten thousand times as many objects the
//! index is one or two levels deeper. A page of 1,000 takes about a millisecond, at most 1.2 times what it takes of ten
//! thousand objects. The first search looks at 16,384 names and takes some milliseconds whatever there is.
//!
//! Each size is a store with three buckets of so many objects: in one they lie all in one folder, in one a hundred in
//! each folder, in one in a tree as people make them. Pages begin at eight places all over the bucket, asked for once
//! before: caches are hot. The sizes take turns. Before each first search the store is opened anew.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use benches::arguments::Arguments;
use benches::names::Names;
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{folder, stores};
use engine::{
    Batch, BucketName, FolderCursor, FolderKey, ObjectKey, ObjectName, PutOptions, SearchQuery,
    Store,
};

const SEED: u64 = 7;
const BATCH: u64 = 1_000;
const PAGE: usize = 1_000;
/// Of ten thousand objects, a hundred in each folder, that is all.
const FOLDERS_PAGE: usize = 100;
const PLACES: u64 = 8;
/// Has few hits, so that what is shown costs nothing beside what is looked at.
const QUERY: &str = "zzqx";

/// What is asked for.
const ASKED: [&str; 4] =
    ["1,000 files of one folder", "100 folders first", "1,000 keys of all", "first search"];

fn main() {
    let arguments = Arguments::read();
    let sizes: Vec<u64> = match (arguments.number("--names"), arguments.quick) {
        (Some(names), _) => vec![10_000, names],
        (None, true) => vec![10_000],
        (None, false) => vec![10_000, 1_000_000],
    };
    let rounds = if arguments.quick { 3 } else { 15 };
    let folder = folder::make(&arguments.data_folder()).expect("a data folder");
    let mut filled: Vec<Filled> = sizes
        .iter()
        .map(|&count| Filled::fill(folder.path().join(count.to_string()), count))
        .collect();

    // For each thing that is asked for and each size, the milliseconds of each round.
    let mut seen = vec![vec![Vec::new(); sizes.len()]; ASKED.len()];
    for round in 0..=rounds {
        for turn in 0..filled.len() {
            let at = (turn + round) % filled.len();
            let took = filled[at].round();
            // The first round warms the caches.
            if round > 0 {
                took.iter().zip(&mut seen).for_each(|(&took, seen)| seen[at].push(took));
            }
        }
    }

    let mut table = Table::new(&["asked for", "objects", "ms", "of 10,000"]);
    for (asked, seen) in ASKED.iter().zip(&seen) {
        for (size, own) in sizes.iter().zip(seen) {
            let ratios: Vec<f64> =
                own.iter().zip(&seen[0]).map(|(own, least)| own / least).collect();
            let Range { start: low, end: high } = bounds(&ratios);
            table.row(vec![
                (*asked).to_owned(),
                table::count(*size as f64),
                table::figure(median(own.iter().copied())),
                format!("{:.2} ({low:.2}-{high:.2})", median(ratios)),
            ]);
        }
    }
    table.print();
}

fn bounds(numbers: &[f64]) -> Range<f64> {
    numbers
        .iter()
        .fold(f64::MAX..0.0, |bounds, &number| bounds.start.min(number)..bounds.end.max(number))
}

/// A store of one size.
struct Filled {
    path: PathBuf,
    store: Store,
    flat: Bucket,
    folders: Bucket,
    tree: Bucket,
}

/// A bucket, and keys all over it.
struct Bucket {
    name: BucketName,
    places: Vec<ObjectKey>,
}

impl Filled {
    fn fill(path: PathBuf, count: u64) -> Self {
        let (store, _) = stores::open(&path);
        let mut names = Names::new(SEED);
        let flat = fill(&store, "flat", count, |number| format!("photos/{number:08}.jpg"));
        let in_folder = |number: u64| format!("{:06}/{:02}.jpg", number / 100, number % 100);
        let folders = fill(&store, "folders", count, in_folder);
        let tree = fill(&store, "tree", count, |number| names.next(number));
        store.checkpoint().expect("a checkpoint");
        Self { path, store, flat, folders, tree }
    }

    /// What each takes, in milliseconds: of pages the mean over all places.
    fn round(&mut self) -> [f64; ASKED.len()] {
        let (photos, root) = (FolderKey::parse("photos/").expect("a folder"), FolderKey::root());
        let Self { store, flat, folders, tree, .. } = &*self;
        let files = mean_ms(&flat.places, |place| {
            let after = FolderCursor::AfterFile(place.clone());
            let page = store.list_folder(&flat.name, &photos, Some(&after), PAGE).expect("a page");
            assert_eq!(page.files.len(), PAGE);
        });
        let first = mean_ms(&folders.places, |_| {
            let page = store.list_folder(&folders.name, &root, None, FOLDERS_PAGE);
            assert_eq!(page.expect("a page").folders.len(), FOLDERS_PAGE);
        });
        let keys = mean_ms(&tree.places, |place| {
            let page = store.list_keys(&tree.name, "", Some(place.as_str()), PAGE).expect("a page");
            assert_eq!(page.objects.len(), PAGE);
        });
        [files, first, keys, self.first_search()]
    }

    fn first_search(&mut self) -> f64 {
        self.store.close().expect("a closed store");
        self.store = stores::open(&self.path).0;
        let query = SearchQuery {
            bucket: self.tree.name.clone(),
            folder: FolderKey::root(),
            text: QUERY.to_owned(),
            hidden_ending: String::new(),
            offset: 0,
            limit: 20,
        };
        mean_ms(&[query], |query| {
            self.store.search(query, || false).expect("hits");
        })
    }
}

/// Puts so many objects into a bucket. Places leave room for a page behind them.
fn fill(store: &Store, name: &str, count: u64, mut key: impl FnMut(u64) -> String) -> Bucket {
    let name = BucketName::parse(name).expect("a name");
    let staged = stores::stage(store, b"");
    let mut keys = Vec::new();
    for first in (0..count).step_by(BATCH as usize) {
        let mut batch = Batch::new();
        for number in first..(first + BATCH).min(count) {
            let key = ObjectKey::parse(&key(number)).expect("a key");
            let is_place = number % (count / 100) == 0;
            if is_place {
                keys.push(key.clone());
            }
            let object = ObjectName::new(name.clone(), key);
            batch = batch.put(object, staged.clone(), PutOptions::default());
        }
        store.commit(batch).expect("a durable batch");
    }
    keys.sort();
    let places = (0..PLACES).map(|at| keys[(at * 10) as usize].clone()).collect();
    Bucket { name, places }
}

/// What it takes with each of them, in milliseconds.
fn mean_ms<T>(all: &[T], mut ask: impl FnMut(&T)) -> f64 {
    let began = Instant::now();
    all.iter().for_each(&mut ask);
    began.elapsed().as_secs_f64() * 1e3 / all.len() as f64
}
