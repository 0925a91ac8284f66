//! Durable puts per second over HTTP, as forms, compared with those of the engine alone, and with those of hyper that
//! puts bodies into an engine and does nothing else (`support/hyper_put_baseline.rs`), which limits trug.
//!
//! Expected: a small group costs the engine about 25 us of CPU for each put, and a request costs the server about 15 us
//! more than that for sockets, heads and the form, with the load generator on the same two cores. So about half of the
//! engine's rate, of 4 KiB from 64 clients.
//!
//! The clients are connections of one thread (`support/put_load.rs`). The contestants each have a store of their own on
//! the same disk, and take turns. Every acknowledged put is durable in all.

use std::fs;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::hyper_put_baseline::{self, BareHyperPut};
use benches::put_load::{self, PutRequests, Window};
use benches::rounds::{self, Sample};
use benches::server::Running;
use benches::table::{self, Table};
use benches::trug::{self, BUCKET, Trug};
use benches::{data, folder, get_latency, process, stores};
use engine::Store;

const SEED: u64 = 8;
const CLIENTS: usize = 64;
const BYTES: usize = 4 << 10;
/// Maximum bytes written per round, approximately.
const MEMORY_BYTES: usize = 1 << 30;

fn main() -> ExitCode {
    Arguments::run("put_http", |arguments| {
        if hyper_put_baseline::serve(arguments)? {
            return Ok(());
        }
        run(arguments)
    })
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (round_count, length) = if arguments.quick { (1, 300) } else { (7, 1_000) };
    let length = Duration::from_millis(length);
    let bytes = arguments.number("--size").map_or(BYTES, |size| size as usize);
    let clients = arguments.number("--clients").map_or(CLIENTS, |clients| clients as usize);
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let kind = Trug {
        program,
        files: get_latency::make_files(folder.path()).map_err(text)?,
        names: vec![get_latency::SMALL.to_owned()],
        settings: vec![("TRUG_PLAN_RATES", "false".to_owned())],
    };
    let server = Running::start(&kind, folder.path(), get_latency::SMALL)?;
    let bare = Running::start(&BareHyperPut, folder.path(), get_latency::SMALL)?;
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let engine = stores::open(&folder.path().join("engine")).0;
    process::touch_memory(MEMORY_BYTES);

    let next = AtomicU64::new(0);
    let mut failed = None;
    let samples = rounds::interleaved(round_count, 3, |contestant| {
        let sample = match contestant {
            0 => over_http(&server, &key, (clients, bytes), length, &next),
            1 => over_http(&bare, &key, (clients, bytes), length, &next),
            _ => Ok(alone(&engine, clients, bytes, length, &next)),
        };
        let forgotten = folder::drop_page_cache(folder.path()).map_err(text);
        sample.and_then(|sample| forgotten.map(|()| sample)).unwrap_or_else(|why| {
            failed = Some(why);
            Sample::default()
        })
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let mut table =
        Table::new(&["object", "clients", "contestant", "puts/s", "of the engine", "CPU us"]);
    for (name, sample) in ["trug over HTTP", "bare hyper", "engine"].iter().zip(&samples) {
        let (low, high) = rounds::spread(sample, &samples[2]);
        table.row(vec![
            table::bytes(bytes as u64),
            clients.to_string(),
            (*name).to_owned(),
            table::count(rounds::rate(sample)),
            format!("{:.2} ({low:.2}-{high:.2})", rounds::ratio(sample, &samples[2])),
            table::figure(rounds::cpu_us(sample)),
        ]);
    }
    table.print();
    println!("`peers -- --only objects` compares with other servers.");
    Ok(())
}

/// Measures puts of forms.
fn over_http(
    server: &Running,
    key: &str,
    (clients, bytes): (usize, usize),
    length: Duration,
    next: &AtomicU64,
) -> Result<Sample, String> {
    let requests = PutRequests {
        address: server.address(),
        bytes,
        frame: trug::FORM,
        head: &|number, body_bytes| {
            let path = format!("/{BUCKET}/{}", data::key(SEED, number));
            trug::form_head(server.address(), &path, key, body_bytes)
        },
    };
    let mut number = next.load(Ordering::Relaxed);
    let window = Window { length, puts_max: u64::MAX };
    let sample = put_load::measure(server, &requests, clients, window, &mut number);
    next.store(number, Ordering::Relaxed);
    sample
}

/// Measures the same puts from threads that call the engine.
fn alone(
    store: &Store,
    writers: usize,
    bytes: usize,
    length: Duration,
    next: &AtomicU64,
) -> Sample {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..writers as u64 {
            let (done, stop) = (&done, &stop);
            scope.spawn(move || {
                let mut body = data::bytes(SEED + writer, bytes);
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    body[..8].copy_from_slice(&number.to_le_bytes());
                    stores::put(store, data::name(SEED, number), &body);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(length / 4);
        let before = (done.load(Ordering::Relaxed), Instant::now(), process::own_cpu());
        thread::sleep(length);
        let count = done.load(Ordering::Relaxed) - before.0;
        let sample = rounds::sample(count, before.1.elapsed(), process::own_cpu() - before.2);
        stop.store(true, Ordering::Relaxed);
        sample
    })
}

fn text(error: io::Error) -> String {
    error.to_string()
}
