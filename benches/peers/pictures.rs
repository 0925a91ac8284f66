//! Cold variants of large photographs, requested by several clients at once.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use benches::arguments::Arguments;
use benches::folder;
use benches::get_latency::run_on_threads;
use benches::http_connection::Wire;
use benches::rounds::{self, Sample};
use benches::server::{Running, ServerKind};
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};
use tests::pictures::{PHOTOGRAPHS, fetched, vips};

use super::ipx::{self, Ipx};
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
/// Minimum ratio to the better peer.
const FLOOR: f64 = 1.4;

pub(crate) fn measure(arguments: &Arguments) -> Result<(), String> {
    let (round_count, copies) = if arguments.quick { (1, 1) } else { (5, COPIES) };
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = folder.path().join(BUCKET);
    fs::create_dir(&files).map_err(text)?;
    let names = make_files(&files, round_count * copies)?;
    let contestants = contestants(arguments, &files, &names)?;
    let mut servers = Vec::new();
    for (kind, _) in &contestants {
        servers.push(Running::start(kind.as_ref(), folder.path(), &names[0])?);
    }
    let mut unseen = [names.as_slice(); 3];
    let mut failed = None;
    let samples = rounds::interleaved(round_count, contestants.len(), |turn| {
        let (kind, webp) = &contestants[turn];
        let (round, rest) = unseen[turn].split_at(copies * PHOTOS.len());
        unseen[turn] = rest;
        let paths: Vec<String> = round.iter().map(|name| webp(name)).collect();
        request_all(&servers[turn], &paths).unwrap_or_else(|why| {
            failed.get_or_insert(format!("{}: {why}", kind.label()));
            Sample::default()
        })
    });
    failed.map_or(Ok(()), Err)?;
    let ratios: Vec<f64> = samples.iter().map(|it| rounds::ratio(&samples[0], it)).collect();
    let mut table = Table::new(&["12 MP JPEG to WebP 400", "pictures/s", "CPU ms", "trug's ratio"]);
    for (at, (kind, _)) in contestants.iter().enumerate() {
        let (least, most) = rounds::spread(&samples[0], &samples[at]);
        table.row(vec![
            kind.label().to_owned(),
            table::figure(rounds::rate(&samples[at])),
            table::figure(rounds::cpu_us(&samples[at]) / 1e3),
            format!("{:.2} ({least:.2}-{most:.2})", ratios[at]),
        ]);
    }
    table.print();
    let least = ratios[1].min(ratios[2]);
    if arguments.quick || least >= FLOOR {
        return Ok(());
    }
    Err(format!("{least:.2} times the better peer's pictures, floor {FLOOR}"))
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

/// A server, and the path of the variant of a file.
type Contestant = (Box<dyn ServerKind>, fn(&str) -> String);

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
            ("TRUG_IMAGE_MS_PER_SECOND_PER_ADDRESS", "0".to_owned()),
            ("TRUG_IMAGE_MS_PER_SECOND_PER_BUCKET", "0".to_owned()),
        ],
    };
    let webp = |name: &str| format!("/{BUCKET}/{name}?width=400&format=webp&quality=80");
    Ok([
        (Box::new(trug), webp),
        (Box::new(Thumbor::of(files.to_owned())), thumbor::webp),
        (Box::new(Ipx::of(files.to_owned())?), ipx::webp),
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
