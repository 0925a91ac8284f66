//! Search latency compared with `fzf --filter` on the same list, memory per name, and delay until a new name is found.
//!
//! Expected: eight bytes a name identify the names that have the letters of the query; of a million names that reads 8
//! MB, a millisecond or two. The rest costs 60 to 100 ns a name, on two cores: 2 to 40 ms, by how common the letters
//! are. fzf reads and matches the list in 200 to 400 ms. A name takes twelve bytes and its length without its folder.
//! Where the names do not fit into memory a search scans the index, some 400 ns a name, and at most four million names.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::name_generator::Names;
use benches::rounds::median;
use benches::table::{self, Table};
use benches::{folder, process, stores};
use engine::{Batch, BucketName, FolderKey, ObjectKey, ObjectName, PutOptions, Store};
use search::{Hit, HitItem, HitPage, NameSearch, SearchOptions, SearchQuery};

const SEED: u64 = 6;
/// Words with many hits and few, letters in order only, a typing error, two words, another script.
const QUERIES: [&str; 11] = [
    "img",
    "2024",
    "invoice",
    "screenshot",
    "chloe",
    "семья",
    "bdg",
    "kitchn",
    "wedding cat",
    "img_20190403",
    "zzqx",
];
/// Filled data: a store, and the list for fzf.
const DATA: &str = "data";
const LIST: &str = "names.txt";
const HITS: usize = 20;
const BATCH: u64 = 1_000;
const NAMES_BYTES_MAX: u64 = 2 << 30;
/// Number of hits whose order is compared.
const FIRST: usize = 10;

fn main() {
    let arguments = Arguments::read();
    if let (Some(folder), Some(count)) = (arguments.value("--fill"), arguments.number("--names")) {
        return fill(Path::new(folder), count);
    }
    let sizes: Vec<u64> = match arguments.number("--names") {
        Some(names) => vec![names],
        None if arguments.quick => vec![10_000],
        None => vec![10_000, 1_000_000],
    };
    for names in sizes {
        // fzf takes seconds for ten million.
        let rounds = if arguments.quick || names > 1_000_000 { 3 } else { 15 };
        let folder = folder::make(&arguments.data_folder()).expect("a data folder");
        fill_by_child(folder.path(), names);
        let (data, list) = (folder.path().join(DATA), folder.path().join(LIST));
        // Ten million names take more than the default.
        let (store, search) = open(&data, NAMES_BYTES_MAX);
        println!("\n{} names\n", table::count(names as f64));
        keep(&search, names);
        compare(&search, &list, rounds);
        compare_order(&search, &list);
        println!(
            "\na put was found after {:.2} ms (median, with the put)",
            until_found(&store, &search)
        );
        store.close().expect("a closed store");
        walk(&data);
    }
}

fn bucket() -> BucketName {
    BucketName::parse("bench").expect("a name")
}

fn object(key: &str) -> ObjectName {
    ObjectName::new(bucket(), ObjectKey::parse(key).expect("a key"))
}

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        bucket: bucket(),
        folder: FolderKey::root(),
        text: text.to_owned(),
        excluded_suffix: String::new(),
        offset: 0,
        limit: HITS,
    }
}

/// Fills the data in a child process, so that its memory is not counted.
fn fill_by_child(folder: &Path, count: u64) {
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--fill", &folder.to_string_lossy(), "--names", &count.to_string()])
        .status();
    assert!(status.expect("a child").success());
}

fn fill(folder: &Path, count: u64) {
    let store = stores::open_to_fill(&folder.join(DATA));
    let staged = stores::stage(&store, b"");
    let mut names = Names::new(SEED);
    let mut file = BufWriter::new(File::create(folder.join(LIST)).expect("a list"));
    let batches = (0..count).step_by(BATCH as usize).map(|first| {
        (first..count.min(first + BATCH)).fold(Batch::new(), |batch, number| {
            let key = names.next(number);
            writeln!(file, "{key}").expect("a line");
            batch.put(object(&key), staged.clone(), PutOptions::default())
        })
    });
    stores::commit_all(&store, batches);
    file.flush().expect("a list");
    store.close().expect("a closed store");
}

fn open(data: &Path, names_bytes_max: u64) -> (Store, NameSearch) {
    let (store, _) = stores::open(data);
    let options = SearchOptions { names_bytes_max, ..SearchOptions::default() };
    let search = NameSearch::start(store.clone(), options).expect("a thread");
    (store, search)
}

/// Waits until the names are in memory, and prints the memory that they use.
fn keep(search: &NameSearch, names: u64) {
    let (started, mut latencies_ms) = (Instant::now(), Vec::new());
    let stats = loop {
        let asked = Instant::now();
        search.search(&query("invoice"), || false).expect("hits");
        latencies_ms.push(asked.elapsed().as_secs_f64() * 1e3);
        let stats = search.stats();
        if stats.names == names {
            break stats;
        }
    };
    let (memory, _) = process::own_memory();
    println!(
        "in memory after {:.2} s, concurrent searches {:.0} ms; {:.1} bytes a name, of which {:.1} are its own; {} of memory in all\n",
        started.elapsed().as_secs_f64(),
        median(latencies_ms),
        stats.bytes as f64 / names as f64,
        own_bytes(names),
        table::bytes(memory),
    );
}

/// Returns the mean length of a name.
fn own_bytes(count: u64) -> f64 {
    let mut names = Names::new(SEED);
    let sample = count.min(100_000);
    (0..sample).map(|number| names.next(number).len()).sum::<usize>() as f64 / sample as f64
}

fn compare(search: &NameSearch, list: &Path, rounds: usize) {
    let mut table = Table::new(&["query", "hits", "ours, ms", "slowest", "fzf, ms", "fzf / ours"]);
    for text in QUERIES {
        let (mut ours, mut theirs, mut ratios, mut hits) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..rounds {
            let started = Instant::now();
            hits = search.search(&query(text), || false).expect("hits").total;
            ours.push(started.elapsed().as_secs_f64() * 1e3);
            theirs.push(fzf(list, text).as_secs_f64() * 1e3);
            ratios.push(theirs[theirs.len() - 1] / ours[ours.len() - 1]);
        }
        let slowest = ours.iter().copied().fold(0.0, f64::max);
        table.row(vec![
            text.to_owned(),
            table::count(hits as f64),
            table::figure(median(ours)),
            table::figure(slowest),
            table::figure(median(theirs)),
            table::figure(median(ratios)),
        ]);
    }
    table.print();
}

/// Measures searches where the names may not be held in memory.
fn walk(data: &Path) {
    let (store, search) = open(data, 0);
    println!("\nwithout names in memory\n");
    let mut table = Table::new(&["query", "hits", "are these all", "ms"]);
    for text in ["img", "chloe", "zzqx"] {
        let mut took = Vec::new();
        let mut hits = HitPage::default();
        // The first one warms the caches.
        for round in 0..4 {
            let started = Instant::now();
            hits = search.search(&query(text), || false).expect("hits");
            if round > 0 {
                took.push(started.elapsed().as_secs_f64() * 1e3);
            }
        }
        table.row(vec![
            text.to_owned(),
            table::count(hits.total as f64),
            if hits.total_is_exact { "yes" } else { "no" }.to_owned(),
            table::figure(median(took)),
        ]);
    }
    table.print();
    store.close().expect("a closed store");
}

/// Compares the order of the first files with that of fzf, which has no concept of folders.
fn compare_order(search: &NameSearch, list: &Path) {
    println!();
    let mut table = Table::new(&["query", "in both first ten", "our first file", "fzf's first"]);
    for text in QUERIES {
        let hits = search.search(&SearchQuery { limit: 10_000, ..query(text) }, || false);
        let file = |hit: Hit| match hit.item {
            HitItem::Folder(_) => None,
            HitItem::File(file) => Some(file.name().key.to_string()),
        };
        let hits = hits.expect("hits").hits.into_iter().filter_map(file);
        let ours: Vec<String> = hits.take(FIRST).collect();
        let mut command = Command::new("fzf");
        command.args(["--scheme=path", "--filter", text]).stdin(File::open(list).expect("a list"));
        let theirs = command.output().expect("fzf runs").stdout;
        let theirs: Vec<&str> =
            std::str::from_utf8(&theirs).expect("text").lines().take(FIRST).collect();
        let both = ours.iter().filter(|key| theirs.contains(&key.as_str())).count();
        table.row(vec![
            text.to_owned(),
            format!("{both} of {}", ours.len().max(theirs.len())),
            ours.first().cloned().unwrap_or_default(),
            theirs.first().copied().unwrap_or_default().to_owned(),
        ]);
    }
    table.print();
}

/// Measures fzf on the list.
fn fzf(list: &Path, text: &str) -> Duration {
    let mut command = Command::new("fzf");
    command.args(["--filter", text]).stdin(File::open(list).expect("the list"));
    let started = Instant::now();
    let run = command.stdout(Stdio::null()).status();
    run.expect("fzf runs: on Debian, `apt-get install fzf`");
    started.elapsed()
}

/// Measures the time to put a name and find it, in milliseconds.
fn until_found(store: &Store, search: &NameSearch) -> f64 {
    let found = (0..50).map(|number| {
        let key = format!("just put {number}.txt");
        let started = Instant::now();
        stores::put(store, object(&key), b"");
        let hits = search.search(&query(&format!("just put {number}")), || false).expect("hits");
        assert!(hits.total > 0, "{key} is not found");
        started.elapsed().as_secs_f64() * 1e3
    });
    median(found)
}
