//! GETs over many files, compared with nginx on the same files: each request is for another one, uniformly or by Zipf's
//! law with exponent 1.

use std::fs;
use std::path::{Path, PathBuf};

use benches::arguments::Arguments;
use benches::hot_gets::CONNECTIONS;
use benches::nginx::Nginx;
use benches::rounds::{self, Sample};
use benches::server::{Load, Running, ServerKind};
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};
use benches::{data, folder, stores};
use engine::{BucketName, ObjectKey, ObjectName};

use super::text;

/// Numbers of files and their length in bytes.
const SETS: [(u64, usize); 5] = [
    (12_000, 4 << 10),
    (12_000, 64 << 10),
    (100_000, 4 << 10),
    (100_000, 64 << 10),
    (1_000_000, 4 << 10),
];
const SEED: u64 = 41;
/// Bytes of a file on the disk in addition to its content: its inode, or its record and index entry.
const OVERHEAD_BYTES: u64 = 1 << 10;

/// Distribution of the requests.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    Zipf,
}

/// Measures the sets of at most this many files.
pub(crate) fn measure(
    arguments: &Arguments,
    files_max: u64,
    lengths: (usize, u64),
) -> Result<(), String> {
    let mut table = Table::new(&[
        "files",
        "length",
        "requests",
        "trug/s",
        "nginx/s",
        "ratio",
        "CPU us: trug",
        "nginx",
        "CPU ratio",
    ]);
    for (files, bytes) in SETS.into_iter().filter(|(files, _)| *files <= files_max) {
        // One kind of set at a time is on the disk.
        let parent = arguments.data_folder();
        folder::require_free_space(&parent, 2 * files * (bytes as u64 + OVERHEAD_BYTES))?;
        let folder = folder::make(&parent).map_err(text)?;
        let program = Trug::chosen(arguments)?;
        measure_set((files, bytes), program, folder.path(), lengths, &mut table)?;
    }
    table.print();
    Ok(())
}

fn measure_set(
    (files, bytes): (u64, usize),
    program: PathBuf,
    folder: &Path,
    lengths: (usize, u64),
    table: &mut Table,
) -> Result<(), String> {
    let root = folder.join("files");
    make_files(&root.join(BUCKET), files, bytes).map_err(text)?;
    let trug = Trug { program, files: root.clone(), names: Vec::new(), settings: Vec::new() };
    let own = folder.join("trug");
    fs::create_dir_all(&own).map_err(text)?;
    fill(&trug.store(&own)?, files, bytes)?;
    let nginx = Nginx { root, open_files: files, takes_puts: false };
    let first = name(0);
    let (ours, theirs) =
        (Running::start(&trug, &own, &first)?, Running::start(&nginx, folder, &first)?);
    let contestants: [(&dyn ServerKind, &Running); 2] = [(&trug, &ours), (&nginx, &theirs)];
    for distribution in [Distribution::Uniform, Distribution::Zipf] {
        let script = script(files, distribution);
        let samples = in_turns(&contestants, &script, lengths, folder)?;
        let [ours, theirs] = [&samples[0], &samples[1]];
        let (low, high) = rounds::spread(ours, theirs);
        let ratio = rounds::ratio(ours, theirs);
        let [our_cpu, their_cpu] = [ours, theirs].map(|it| rounds::cpu_us(it));
        table.row(vec![
            table::count(files as f64),
            table::bytes(bytes as u64),
            distribution.label().to_owned(),
            table::count(rounds::rate(ours)),
            table::count(rounds::rate(theirs)),
            format!("{ratio:.2} ({low:.2}-{high:.2})"),
            table::figure(our_cpu),
            table::figure(their_cpu),
            table::figure(our_cpu / their_cpu.max(f64::MIN_POSITIVE)),
        ]);
    }
    Ok(())
}

/// Loads both servers, after a round that reads most files into the page cache.
fn in_turns(
    contestants: &[(&dyn ServerKind, &Running); 2],
    script: &str,
    (round_count, seconds): (usize, u64),
    folder: &Path,
) -> Result<Vec<Vec<Sample>>, String> {
    let mut failed = None;
    let mut samples = rounds::interleaved(round_count + 1, contestants.len(), |server| {
        let (kind, running) = contestants[server];
        let path = kind.path(&name(0));
        let script = Some(script.to_owned());
        let load = Load { path: &path, script, connections: CONNECTIONS, seconds };
        running.load(folder, &load).unwrap_or_else(|why| {
            failed = Some(format!("{}: {why}", kind.label()));
            Sample::default()
        })
    });
    for samples in &mut samples {
        samples.remove(0);
    }
    failed.map_or(Ok(samples), Err)
}

/// Returns the name of a file: those of a folder are not neighbours in time.
fn name(number: u64) -> String {
    format!("{:02x}/{number:07}.bin", number % 256)
}

fn make_files(folder: &Path, files: u64, bytes: usize) -> std::io::Result<()> {
    (0..256).try_for_each(|part| fs::create_dir_all(folder.join(format!("{part:02x}"))))?;
    (0..files)
        .try_for_each(|number| fs::write(folder.join(name(number)), data::bytes(number, bytes)))
}

/// Puts the same files into a store.
fn fill(store: &Path, files: u64, bytes: usize) -> Result<(), String> {
    let store = stores::open_to_fill(store);
    let bucket = BucketName::parse(BUCKET).map_err(|error| error.to_string())?;
    let object = |number| {
        let key = ObjectKey::parse(&name(number)).expect("a valid key");
        (ObjectName::new(bucket.clone(), key), data::bytes(number, bytes))
    };
    stores::commit_all(&store, stores::batches(&store, files, object));
    store.close().map_err(|error| error.to_string())
}

/// Returns a script that requests a random file each time. The more frequent ones are not neighbours.
fn script(files: u64, distribution: Distribution) -> String {
    let number = match distribution {
        Distribution::Uniform => format!("math.random(0, {})", files - 1),
        // The inverse of the harmonic numbers, which are about the logarithm.
        Distribution::Zipf => format!(
            "(math.floor(math.exp(math.random() * {})) - 1) * 7919 % {files}",
            (files as f64).ln()
        ),
    };
    format!(
        "math.randomseed({SEED})\n\
         request = function()\n\
         \x20 local number = {number}\n\
         \x20 return string.format('GET /{BUCKET}/%02x/%07d.bin HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n',\n\
         \x20   number % 256, number)\n\
         end\n"
    )
}

impl Distribution {
    fn label(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf 1.0",
        }
    }
}
