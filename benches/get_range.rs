//! Cost of a verified range read compared with a plain one, when everything is in memory.
//!
//! Expected: copying out takes about 0.1 us for 4 KiB, 5 us for 64 KiB and 80 us for 1 MiB on every side; a `pread`
//! adds a system call and a second copy. The engine asks the kernel whether the pages are resident (`mincore`, below 1
//! us) and looks its block up in a bit set; a block that was verified before is not verified again. So from mapped
//! segments it should be near the bare map and well ahead of `pread`. The first read of each block adds CRC-32 at 10-30
//! GB/s: 2-6 us for 64 KiB. The active segment is not mapped and does not record verified blocks: there a 4 KiB range
//! reads and verifies 64 KiB each time, and the ratio shows what that costs.
//!
//! Every side copies the range into one reused buffer, as a socket would. `GET` is the complete operation: look the
//! name up, open the body, read. The files that the peers read hold as many bytes; positions are random, from one seed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::data::{self, SeededRng};
use benches::rounds::{self, Sample};
use benches::table::{self, Table};
use benches::{folder, process, stores};
use engine::disk::{Access, Disk, Mapping};
use engine::{Body, Object, RealDisk, Store};

const SEED: u64 = 2;
const LENGTHS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];
const SMALL_COUNT: u64 = 64;
const SMALL_BYTES: u64 = 1 << 20;
const BIG_BYTES: u64 = 256 << 20;
const PEER_FILE: &str = "peer";

/// Location of the bytes of a row.
struct Place {
    label: &'static str,
    objects: Vec<Object>,
    bodies: Vec<Body>,
    object_bytes: u64,
}

struct Bench {
    store: Store,
    places: Vec<Place>,
    file: File,
    map: Box<dyn Mapping>,
    length: Duration,
}

fn main() {
    let arguments = Arguments::read();
    let (round_count, length) = if arguments.quick { (1, 50) } else { (7, 200) };
    let folder = folder::make(&arguments.data_folder()).expect("a data folder");
    let mut bench = Bench::make(folder.path(), Duration::from_millis(length));
    let mut hot = Table::new(&[
        "from",
        "range",
        "engine, us",
        "GET, us",
        "pread, us",
        "map, us",
        "pread / engine",
        "map / engine",
    ]);
    for place in 0..bench.places.len() {
        for bytes in LENGTHS {
            let samples = rounds::interleaved(round_count, 4, |reader| match reader {
                0 => bench.engine(place, bytes),
                1 => bench.get(place, bytes),
                2 => bench.pread(place, bytes),
                _ => bench.map(place, bytes),
            });
            let mut row = vec![bench.places[place].label.to_owned(), table::bytes(bytes)];
            row.extend(samples.iter().map(|s| table::figure(1e6 / rounds::rate(s))));
            row.extend(
                [2, 3].map(|peer| table::figure(rounds::ratio(&samples[0], &samples[peer]))),
            );
            hot.row(row);
        }
    }
    hot.print();
    println!();
    first_reads(&mut bench, folder.path(), round_count).print();
}

/// Measures the cost of verification: each block for the first time since the store was opened, against the bare map.
fn first_reads(bench: &mut Bench, folder: &Path, round_count: usize) -> Table {
    let mut table = Table::new(&["first read of", "engine, MiB/s", "again", "map", "engine / map"]);
    let mut samples: Vec<[Vec<Sample>; 3]> = vec![Default::default(); 2];
    for _ in 0..round_count {
        bench.reopen(folder);
        for (place, samples) in samples.iter_mut().enumerate() {
            let bodies = &bench.places[place].bodies;
            samples[0].push(sequential(bodies));
            samples[1].push(sequential(bodies));
            samples[2].push(bench.map_sequential(place));
        }
    }
    for (place, samples) in bench.places.iter().zip(&samples) {
        let mut row = vec![place.label.to_owned()];
        row.extend(samples.iter().map(|s| table::count(rounds::rate(s))));
        row.push(table::figure(rounds::ratio(&samples[0], &samples[2])));
        table.row(row);
    }
    table
}

/// Reads all bodies sequentially; an operation is 1 MiB.
fn sequential(bodies: &[Body]) -> Sample {
    let pieces = bodies
        .iter()
        .flat_map(|body| (0..body.bytes()).step_by(1 << 20).map(move |start| (body, start)));
    timed(pieces, |(body, start), out| read(body, start, 1 << 20, out))
}

fn timed<T>(pieces: impl Iterator<Item = T>, mut read: impl FnMut(T, &mut [u8])) -> Sample {
    let mut out = vec![0; 1 << 20];
    let (started, cpu) = (Instant::now(), process::own_cpu());
    let mut done = 0;
    for piece in pieces {
        read(piece, &mut out);
        done += 1;
    }
    rounds::sample(done, started.elapsed(), process::own_cpu() - cpu)
}

/// Copies a range out, in pieces as large as the engine gives.
fn read(body: &Body, start: u64, bytes: u64, out: &mut [u8]) {
    let mut at = start;
    while at < start + bytes {
        let piece = body.read_if_resident(at..start + bytes).expect("a sound body");
        let piece = piece.unwrap_or_else(|| body.read(at..start + bytes).expect("a sound body"));
        let from = (at - start) as usize;
        out[from..from + piece.len()].copy_from_slice(&piece);
        at += piece.len() as u64;
    }
    std::hint::black_box(out);
}

impl Bench {
    fn make(folder: &Path, length: Duration) -> Self {
        let store = stores::open(&folder.join("store")).0;
        fill(&store, 0, SMALL_COUNT, SMALL_BYTES);
        fill(&store, SMALL_COUNT, 1, BIG_BYTES);
        let peer = data::bytes(SEED, BIG_BYTES as usize);
        std::fs::write(folder.join(PEER_FILE), peer).expect("a file to compare with");
        let disk = RealDisk::open(folder).expect("the folder");
        let map = disk.open(PEER_FILE).and_then(|file| file.map(Access::Random)).expect("a map");
        let file = File::open(folder.join(PEER_FILE)).expect("the file");
        let mut bench = Self { store, places: Vec::new(), file, map, length };
        bench.reopen(folder);
        bench
    }

    /// Reopens the store: no block counts as verified, and earlier objects are in sealed segments.
    fn reopen(&mut self, folder: &Path) {
        self.places.clear();
        self.store.close().expect("a closed store");
        self.store = stores::open(&folder.join("store")).0;
        fill(&self.store, SMALL_COUNT + 1, SMALL_COUNT, SMALL_BYTES);
        self.places = vec![
            self.place("mapped log", 0, SMALL_COUNT, SMALL_BYTES),
            self.place("big segment", SMALL_COUNT, 1, BIG_BYTES),
            self.place("growing log", SMALL_COUNT + 1, SMALL_COUNT, SMALL_BYTES),
        ];
    }

    fn place(&self, label: &'static str, first: u64, count: u64, object_bytes: u64) -> Place {
        let objects: Vec<Object> = (first..first + count)
            .map(|number| self.store.get(&data::name(SEED, number)).expect("an index"))
            .map(|object| object.expect("an object that was put"))
            .collect();
        let bodies = objects.iter().map(|object| self.store.body(object).expect("a body"));
        Place { label, bodies: bodies.collect(), objects, object_bytes }
    }

    fn engine(&self, place: usize, bytes: u64) -> Sample {
        let bodies = &self.places[place].bodies;
        self.repeat(place, bytes, |object, start, out| read(&bodies[object], start, bytes, out))
    }

    fn get(&self, place: usize, bytes: u64) -> Sample {
        let objects = &self.places[place].objects;
        self.repeat(place, bytes, |object, start, out| {
            let found = self.store.get(objects[object].name()).expect("an index");
            let found = found.expect("an object that was put");
            let body = self.store.body_if_open(&found).expect("a sound body");
            let body = body.unwrap_or_else(|| self.store.body(&found).expect("a sound body"));
            read(&body, start, bytes, out);
        })
    }

    fn pread(&self, place: usize, bytes: u64) -> Sample {
        let object_bytes = self.places[place].object_bytes;
        let mut buffer = vec![0; bytes as usize];
        self.repeat(place, bytes, |object, start, out| {
            let at = object as u64 * object_bytes + start;
            self.file.read_exact_at(&mut buffer, at).expect("bytes of the file");
            out[..buffer.len()].copy_from_slice(&buffer);
            std::hint::black_box(out);
        })
    }

    fn map(&self, place: usize, bytes: u64) -> Sample {
        let object_bytes = self.places[place].object_bytes;
        let map = self.map.slice(0..usize::MAX);
        self.repeat(place, bytes, |object, start, out| {
            let at = (object as u64 * object_bytes + start) as usize;
            out[..bytes as usize].copy_from_slice(&map[at..at + bytes as usize]);
            std::hint::black_box(out);
        })
    }

    fn map_sequential(&self, place: usize) -> Sample {
        let bytes = self.places[place].object_bytes * self.places[place].bodies.len() as u64;
        let map = self.map.slice(0..usize::MAX);
        timed(map[..bytes as usize].chunks(1 << 20), |piece, out| {
            out[..piece.len()].copy_from_slice(piece);
            std::hint::black_box(out);
        })
    }

    /// Repeats a read at random objects and offsets, the same ones for every reader.
    fn repeat(
        &self,
        place: usize,
        bytes: u64,
        mut read: impl FnMut(usize, u64, &mut [u8]),
    ) -> Sample {
        let place = &self.places[place];
        let mut seeded = SeededRng::new(SEED);
        let mut out = vec![0; bytes as usize];
        rounds::repeat(self.length, || {
            let object = seeded.below(place.objects.len() as u64) as usize;
            let start = seeded.below(place.object_bytes - bytes + 1);
            read(object, start, &mut out);
        })
    }
}

fn fill(store: &Store, first: u64, count: u64, bytes: u64) {
    for number in first..first + count {
        let body = data::bytes(SEED + number, bytes as usize);
        stores::put(store, data::name(SEED, number), &body);
    }
}
