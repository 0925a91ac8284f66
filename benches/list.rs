//! Cost of a listing page, and of the first search of a bucket, as the bucket grows.
//!
//! Expected: a page is a seek and a scan of as many entries as it returns; with ten thousand times as many objects the
//! index is one or two levels deeper. A page of 1,000 takes about a millisecond, at most 1.2 times as long as with ten
//! thousand objects. The first search scans 8,192 names and takes some milliseconds at any size. Memory does not grow
//! with the objects: each store caches 64 MiB of its index.
//!
//! Buckets of three shapes: all objects in one folder, a hundred in each folder, a tree as users create it. One shape
//! at a time is on the disk, in a store for each size, filled by a child process, so that memory of filling is not
//! counted. Pages start at eight keys distributed over the bucket, requested once before: caches are hot. The sizes
//! take turns. Before each first search the store is opened again; it is closed afterwards, so that no names are read
//! concurrently with pages.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use benches::arguments::Arguments;
use benches::name_generator::Names;
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{folder, process, stores};
use engine::listing::FolderCursor;
use engine::{Batch, BucketName, FolderKey, ObjectKey, ObjectName, PutOptions, Store};
use search::{NameSearch, SearchOptions, SearchQuery};

const SEED: u64 = 7;
const BATCH: u64 = 1_000;
const LEAST: u64 = 10_000;
const PAGE: usize = 1_000;
/// Page size for folders: with ten thousand objects, a hundred in each folder, this is all of them.
const FOLDERS_PAGE: usize = 100;
/// Number of start keys of pages.
const PLACES: usize = 8;
/// Number of keys from which the start keys are taken in order, so that a full page follows the last one.
const PLACES_OF: u64 = 100;
/// Query with few hits, so that the cost of results is negligible against the cost of the scan.
const QUERY: &str = "zzqx";

fn main() {
    let arguments = Arguments::read();
    let names = arguments.number("--names");
    let least = if arguments.quick { LEAST } else { 1_000_000 };
    let count = names.unwrap_or(least).max(LEAST);
    match (arguments.value("--fill"), arguments.value("--shape").and_then(Shape::of)) {
        (Some(folder), Some(shape)) => fill(Path::new(folder), shape, count),
        _ => measure(&arguments, count),
    }
}

/// Distribution of a bucket's objects over folders.
#[derive(Clone, Copy)]
enum Shape {
    Flat,
    Folders,
    Tree,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Flat, Self::Folders, Self::Tree];

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Folders => "folders",
            Self::Tree => "tree",
        }
    }

    /// Describes the request.
    fn description(self) -> &'static str {
        match self {
            Self::Flat => "1,000 files of one folder",
            Self::Folders => "100 folders first",
            Self::Tree => "1,000 keys of all",
        }
    }

    /// Returns so many keys, in no order.
    fn keys(self, count: u64) -> impl Iterator<Item = ObjectKey> {
        let mut names = Names::new(SEED);
        (0..count).map(move |number| {
            let key = match self {
                Self::Flat => format!("photos/{number:08}.jpg"),
                Self::Folders => format!("{:06}/{:02}.jpg", number / 100, number % 100),
                Self::Tree => names.next(number),
            };
            ObjectKey::parse(&key).expect("a key")
        })
    }

    /// Requests the page after a key.
    fn request(self, store: &Store, place: &str) {
        let bucket = bucket();
        match self {
            Self::Flat => {
                let photos = FolderKey::parse("photos/").expect("a folder");
                let after = FolderCursor::AfterFile(ObjectKey::parse(place).expect("a key"));
                let page = store.list_folder(&bucket, &photos, Some(&after), PAGE);
                assert_eq!(page.expect("a page").files.len(), PAGE);
            }
            Self::Folders => {
                let page = store.list_folder(&bucket, &FolderKey::root(), None, FOLDERS_PAGE);
                assert_eq!(page.expect("a page").folders.len(), FOLDERS_PAGE);
            }
            Self::Tree => {
                let page = store.list_keys(&bucket, "", Some(place), PAGE);
                assert_eq!(page.expect("a page").objects.len(), PAGE);
            }
        }
    }
}

fn bucket() -> BucketName {
    BucketName::parse("bench").expect("a name")
}

fn measure(arguments: &Arguments, count: u64) {
    let mut sizes: Vec<u64> = vec![LEAST, 1_000_000];
    sizes.retain(|size| *size < count);
    sizes.push(count);
    let rounds = if arguments.quick { 3 } else { 15 };
    let mut table = Table::new(&["asked for", "objects", "ms", "of 10,000"]);
    for shape in Shape::ALL {
        let folder = folder::make(&arguments.data_folder()).expect("a data folder");
        let made = |&count: &u64| Made::new(folder.path(), shape, count);
        let made: Vec<Made> = sizes.iter().map(made).collect();
        let mut opened: Vec<Opened<'_>> = made.iter().map(Opened::new).collect();
        let pages = in_turns(rounds, &mut opened, |opened| {
            mean_ms(&opened.made.places, |place| shape.request(&opened.store, place))
        });
        let (memory, _) = process::own_memory();
        println!("{}: all open and listed, {} of memory", shape.name(), table::bytes(memory));
        drop(opened);
        add_rows(&mut table, shape.description(), &sizes, &pages);
        if matches!(shape, Shape::Tree) {
            let mut made = made;
            let searches = in_turns(rounds, &mut made, first_search);
            add_rows(&mut table, "first search", &sizes, &searches);
        }
    }
    let (_, memory) = process::own_memory_at_most();
    println!(
        "at most {} of memory, with names that are read after a first search\n",
        table::bytes(memory)
    );
    table.print();
}

/// Runs all of them in each round, starting with another one each time. Returns the results by contestant, by round;
/// the first round warms caches and does not count.
fn in_turns<T>(rounds: usize, all: &mut [T], mut ask: impl FnMut(&mut T) -> f64) -> Vec<Vec<f64>> {
    let mut answers = vec![Vec::new(); all.len()];
    for round in 0..=rounds {
        for turn in 0..all.len() {
            let at = (turn + round) % all.len();
            let answer = ask(&mut all[at]);
            if round > 0 {
                answers[at].push(answer);
            }
        }
    }
    answers
}

fn add_rows(table: &mut Table, asked: &str, sizes: &[u64], seen: &[Vec<f64>]) {
    for (size, own) in sizes.iter().zip(seen) {
        let ratios: Vec<f64> = own.iter().zip(&seen[0]).map(|(own, least)| own / least).collect();
        let Range { start: low, end: high } = bounds(&ratios);
        table.row(vec![
            asked.to_owned(),
            table::count(*size as f64),
            table::figure(median(own.iter().copied())),
            format!("{:.2} ({low:.2}-{high:.2})", median(ratios)),
        ]);
    }
}

fn bounds(numbers: &[f64]) -> Range<f64> {
    numbers
        .iter()
        .fold(f64::MAX..0.0, |bounds, &number| bounds.start.min(number)..bounds.end.max(number))
}

/// A closed store with one bucket in it.
struct Made {
    path: PathBuf,
    /// Start keys distributed over the bucket.
    places: Vec<String>,
}

impl Made {
    /// Fills a store in a child process, and prints the duration.
    fn new(parent: &Path, shape: Shape, count: u64) -> Self {
        let path = parent.join(count.to_string());
        let started = Instant::now();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--fill", &path.to_string_lossy()])
            .args(["--shape", shape.name(), "--names", &count.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let places: Vec<String> = lines.map_while(Result::ok).collect();
        assert!(child.wait().expect("an ended child").success() && places.len() == PLACES);
        let disk = fs::read_dir(&path).expect("a store").map(|entry| {
            entry.and_then(|entry| entry.metadata()).expect("a file of the store").len()
        });
        let (seconds, disk) = (started.elapsed().as_secs_f64(), table::bytes(disk.sum()));
        let (name, count) = (shape.name(), table::count(count as f64));
        println!("{name}: {count} filled in {seconds:.1} s, {disk} of disk");
        Self { path, places }
    }
}

/// The store, open.
struct Opened<'a> {
    store: Store,
    made: &'a Made,
}

impl<'a> Opened<'a> {
    fn new(made: &'a Made) -> Self {
        let (store, _) = stores::open(&made.path);
        Self { store, made }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.store.close().expect("a closed store");
    }
}

/// Opens the store, searches it for the first time, and closes it.
fn first_search(made: &mut Made) -> f64 {
    let opened = Opened::new(made);
    let query = SearchQuery {
        bucket: bucket(),
        folder: FolderKey::root(),
        text: QUERY.to_owned(),
        excluded_suffix: String::new(),
        offset: 0,
        limit: 20,
    };
    let search = NameSearch::without_thread(opened.store.clone(), SearchOptions::default());
    mean_ms(&[query], |query| drop(search.search(query, || false).expect("hits")))
}

/// Puts so many objects into a new store, and prints the start keys of the pages.
fn fill(folder: &Path, shape: Shape, count: u64) {
    let store = stores::open_to_fill(folder);
    let staged = stores::stage(&store, b"");
    let (mut keys, mut places) = (shape.keys(count), Vec::new());
    let batches = (0..count).step_by(BATCH as usize).map(|first| {
        let batch = keys.by_ref().take(BATCH as usize).zip(first..);
        batch.fold(Batch::new(), |batch, (key, number)| {
            if number % (count / PLACES_OF) == 0 {
                places.push(key.clone());
            }
            let object = ObjectName::new(bucket(), key);
            batch.put(object, staged.clone(), PutOptions::default())
        })
    });
    stores::commit_all(&store, batches);
    store.checkpoint().expect("a checkpoint");
    store.close().expect("a closed store");
    places.sort();
    places.iter().step_by(10).take(PLACES).for_each(|place| println!("{place}"));
}

/// Returns the mean duration over all of them in milliseconds.
fn mean_ms<T>(all: &[T], mut ask: impl FnMut(&T)) -> f64 {
    let began = Instant::now();
    all.iter().for_each(&mut ask);
    began.elapsed().as_secs_f64() * 1e3 / all.len() as f64
}
