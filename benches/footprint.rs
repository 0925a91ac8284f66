//! Cost of an upload of 1 GiB in memory and written bytes, and the disk usage of small objects.
//!
//! Expected: a large body goes through one write buffer of 512 KiB and one block of 64 KiB into a file of its own, so a
//! few MiB of memory and 1.00 times its bytes, with 4 bytes of checksum for each 64 KiB. An object of 4 KiB has about
//! 160 bytes of head in the log, half as much in the packed footer of its segment, and about 130 in the index.
//!
//! Memory is the server's anonymous memory, sampled every few milliseconds; written bytes are those that the kernel
//! counts for the process (`write_bytes` of proc(5)). Disk usage is the blocks of all files after the store was closed,
//! including the index.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::rounds::median;
use benches::server::Running;
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};
use benches::{data, folder, get_latency, process, stores};
use engine::{Batch, PutOptions};

const SEED: u64 = 9;
const UPLOAD_BYTES: u64 = 1 << 30;
const OBJECTS: u64 = 100_000;
const OBJECT_BYTES: usize = 4 << 10;
const BOUNDARY: &str = "----bench-7d1f20c3";
const LOOK: Duration = Duration::from_millis(5);
const MIB: f64 = (1 << 20) as f64;

fn main() -> ExitCode {
    Arguments::run("footprint", run)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (rounds, objects) = if arguments.quick { (1, OBJECTS / 10) } else { (3, OBJECTS) };
    let parent = arguments.data_folder();
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&parent).map_err(text)?;
    let kind = Trug {
        program,
        files: get_latency::make_files(folder.path()).map_err(text)?,
        names: vec![get_latency::SMALL.to_owned()],
        settings: vec![("TRUG_BODY_BYTES_MAX", (UPLOAD_BYTES * 2).to_string())],
    };
    let server = Running::start(&kind, folder.path(), get_latency::SMALL)?;
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let mut uploads = Vec::new();
    for _ in 0..rounds {
        // The key is the same each time, so only one object remains.
        uploads.push(upload(&server, &key)?);
    }
    drop(server);
    drop(folder);
    let mut table =
        Table::new(&["upload of", "seconds", "more anonymous memory, MiB", "written / body"]);
    table.row(vec![
        table::bytes(UPLOAD_BYTES),
        table::figure(median(uploads.iter().map(|it| it.took.as_secs_f64()))),
        table::figure(median(uploads.iter().map(|it| it.more_memory as f64 / MIB))),
        format!("{:.4}", median(uploads.iter().map(|it| it.written as f64 / UPLOAD_BYTES as f64))),
    ]);
    table.print();
    println!();

    let folder = folder::make(&parent).map_err(text)?;
    let root = folder.path().join("store");
    let store = stores::open(&root).0;
    let batches = (0..objects).map(|number| {
        let body = data::bytes(SEED + number, OBJECT_BYTES);
        let options = PutOptions { content_type: "image/jpeg".into(), ..PutOptions::default() };
        Batch::new().put(data::name(SEED, number), stores::stage(&store, &body), options)
    });
    stores::commit_all(&store, batches);
    store.close().map_err(|error| error.to_string())?;
    let payload = objects as f64 * OBJECT_BYTES as f64;
    let disk_bytes = |path: &Path| folder::disk_bytes(path).map_err(text);
    let (log, all) = (disk_bytes(&root.join("log"))?, disk_bytes(&root)?);
    let index = disk_bytes(&root.join("index.redb"))?;
    let mut table = Table::new(&["objects", "payload, MiB", "log / payload", "index", "all"]);
    table.row(vec![
        format!("{} of {}", table::count(objects as f64), table::bytes(OBJECT_BYTES as u64)),
        table::figure(payload / MIB),
        format!("{:.3}", log as f64 / payload),
        format!("{:.3}", index as f64 / payload),
        format!("{:.3}", all as f64 / payload),
    ]);
    table.print();
    Ok(())
}

/// Cost of one upload.
struct Uploaded {
    took: Duration,
    more_memory: u64,
    written: u64,
}

/// Uploads one large file in a form, and samples the server's memory during the upload.
fn upload(server: &Running, key: &str) -> Result<Uploaded, String> {
    let before = (process::anonymous_memory(server.id()), process::written(server.id()));
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(process::anonymous_memory(server.id()));
                thread::sleep(LOOK);
            }
            most
        });
        let sent = send(server, key);
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        let most = looking.join().map_err(|_| "looking panicked".to_owned())?;
        sent?;
        Ok(Uploaded {
            took,
            more_memory: most.saturating_sub(before.0),
            written: process::written(server.id()).saturating_sub(before.1),
        })
    })
}

fn send(server: &Running, key: &str) -> Result<(), String> {
    let part = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"large.bin\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    let length = part.len() as u64 + UPLOAD_BYTES + end.len() as u64;
    let address = server.address();
    let head = format!(
        "POST /{BUCKET}/large.bin?overwrite=true HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {key}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{part}"
    );
    let mut stream = TcpStream::connect(address).map_err(text)?;
    stream.write_all(head.as_bytes()).map_err(text)?;
    let piece = data::bytes(SEED, 1 << 20);
    for _ in 0..UPLOAD_BYTES / piece.len() as u64 {
        stream.write_all(&piece).map_err(text)?;
    }
    stream.write_all(end.as_bytes()).map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(answer),
    }
}

fn text(error: io::Error) -> String {
    error.to_string()
}
