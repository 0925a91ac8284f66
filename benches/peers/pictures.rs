//! Variants of large photographs, requested by several clients at once: for the first time, then from the caches.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use benches::arguments::Arguments;
use benches::folder;
use benches::get_latency::run_on_threads;
use benches::http_connection::Wire;
use benches::rounds::{self, Sample};
use benches::server::{Load, Running, ServerKind, require_program};
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};
use tests::pictures::{PHOTOGRAPHS, fetched, vips};

use super::ipx::{self, Ipx};
use super::object_api;
use super::thumbor::{self, Thumbor};

/// Photographs, and the widths at which they have 12 megapixels.
const PHOTOS: [(&str, u32); 3] = [
    ("Dragonfly_by_Bolly.jpg", 4_000),
    ("sunset_by_Aitzol_Berasategi.jpg", 4_243),
    ("seeding_by_Clements_Engelhardt.jpg", 4_619),
];
const CLIENTS: usize = 4;
/// Copies of each photograph that are requested in one round.
const COPIES: usize = 16;
/// Duration of a round of cached variants.
const CACHED_SECONDS: u64 = 2;
/// Minimum ratio to the better peer, of first requests.
const FLOOR: f64 = 1.4;

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    require_program("wrk", "on Debian, apt-get install wrk")?;
    let (round_count, copies) = if arguments.quick { (1, 1) } else { (5, COPIES) };
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = folder.path().join(BUCKET);
    fs::create_dir(&files).map_err(text)?;
    let names = make_files(&files, round_count * copies)?;
    let contestants = contestants(arguments, &files, &names)?;
    let mut servers = Vec::new();
    for contestant in &contestants {
        servers.push(Running::start(contestant.kind.as_ref(), folder.path(), &names[0])?);
    }
    let mut unseen = [names.as_slice(); 3];
    let cold = rounds::try_interleaved(round_count, contestants.len(), |turn| {
        let (round, rest) = unseen[turn].split_at(copies * PHOTOS.len());
        unseen[turn] = rest;
        let paths = contestants[turn].paths(round);
        request_all(&servers[turn], &paths)
            .map_err(|why| format!("{}: {why}", contestants[turn].kind.label()))
    })?;
    let seconds = if arguments.quick { 1 } else { CACHED_SECONDS };
    let cached = rounds::try_interleaved(round_count, contestants.len(), |turn| {
        let (contestant, server) = (&contestants[turn], &servers[turn]);
        if !contestant.is_caching {
            return Ok(Sample::default());
        }
        let paths = contestant.paths(&names);
        let requests: Vec<_> =
            paths.iter().map(|path| object_api::get(server.address(), path, "")).collect();
        let load = Load {
            path: "/",
            script: Some(object_api::script(&requests)),
            connections: CLIENTS as u32,
            seconds,
        };
        server
            .load(folder.path(), &load)
            .map_err(|why| format!("{}: {why}", contestant.kind.label()))
    })?;
    print(&contestants, &cold, &cached);
    let least =
        cold[1..].iter().map(|it| rounds::ratio(&cold[0], it)).fold(f64::INFINITY, f64::min);
    if arguments.quick || least >= FLOOR {
        return Ok(());
    }
    Err(format!("{least:.2} times the better peer's pictures, floor {FLOOR}"))
}

fn print(contestants: &[Contestant; 3], cold: &[Vec<Sample>], cached: &[Vec<Sample>]) {
    let head = ["12 MP JPEG to WebP 400", "server", "pictures/s", "CPU ms", "trug's ratio"];
    let mut table = Table::new(&head);
    for (label, samples) in [("first request", cold), ("cached", cached)] {
        for (contestant, own) in contestants.iter().zip(samples) {
            let mut row = vec![label.to_owned(), contestant.kind.label().to_owned()];
            if rounds::rate(own) > 0.0 {
                let (least, most) = rounds::spread(&samples[0], own);
                row.push(table::figure(rounds::rate(own)));
                row.push(table::figure(rounds::cpu_us(own) / 1e3));
                let ratio = rounds::ratio(&samples[0], own);
                row.push(format!("{ratio:.2} ({least:.2}-{most:.2})"));
            } else {
                row.extend(["no cache", "", ""].map(str::to_owned));
            }
            table.row(row);
        }
    }
    table.print();
}

/// Makes so many copies of each photograph, and returns their names.
fn make_files(files: &Path, copies: usize) -> Result<Vec<String>, String> {
    for (photograph, width) in PHOTOS {
        let from = fetched(&format!("{PHOTOGRAPHS}/{photograph}")).display().to_string();
        let to = format!("{}[Q=92]", files.join(photograph).display());
        vips(&["thumbnail", &from, &to, &width.to_string()]);
    }
    let mut names = Vec::new();
    for copy in 0..copies {
        for (photograph, _) in PHOTOS {
            let name = format!("{copy}-{photograph}");
            fs::hard_link(files.join(photograph), files.join(&name)).map_err(text)?;
            names.push(name);
        }
    }
    Ok(names)
}

/// A server of variants.
struct Contestant {
    kind: Box<dyn ServerKind>,
    /// Returns the path of the variant of a file.
    webp: fn(&str) -> String,
    /// Whether it stores variants.
    is_caching: bool,
}

impl Contestant {
    fn paths(&self, names: &[String]) -> Vec<String> {
        names.iter().map(|name| (self.webp)(name)).collect()
    }
}

fn contestants(
    arguments: &Arguments,
    files: &Path,
    names: &[String],
) -> Result<[Contestant; 3], String> {
    let trug = Trug {
        program: Trug::chosen(arguments)?,
        files: files.to_owned(),
        names: names.to_vec(),
        settings: vec![
            ("TRUG_PLAN_RATES", "false".to_owned()),
            ("TRUG_IMAGE_MS_PER_SECOND_PER_ADDRESS", "0".to_owned()),
            ("TRUG_IMAGE_MS_PER_SECOND_PER_BUCKET", "0".to_owned()),
        ],
    };
    let webp = |name: &str| format!("/{BUCKET}/{name}?width=400&format=webp&quality=80");
    let thumbor = Thumbor::of(files.to_owned());
    let ipx = Ipx::of(files.to_owned())?;
    Ok([
        Contestant { kind: Box::new(trug), webp, is_caching: true },
        Contestant { kind: Box::new(thumbor), webp: thumbor::webp, is_caching: true },
        Contestant { kind: Box::new(ipx), webp: ipx::webp, is_caching: false },
    ])
}

/// Requests all of these over several connections.
fn request_all(server: &Running, paths: &[String]) -> Result<Sample, String> {
    let next = AtomicUsize::new(0);
    let (started, cpu) = (Instant::now(), server.cpu());
    run_on_threads(CLIENTS, || {
        let mut wire = Wire::open(server.address()).map_err(text)?;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (status, bytes) = wire.get(path).map_err(|error| format!("{path}: {error}"))?;
            if status != 200 || bytes.get(8..12) != Some(b"WEBP") {
                return Err(format!("{path}: {status}, {} bytes", bytes.len()));
            }
        }
        Ok(())
    })?;
    Ok(rounds::sample(paths.len() as u64, started.elapsed(), server.cpu() - cpu))
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
