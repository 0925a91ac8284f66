//! Throughput of GETs and CPU per request, compared with nginx with sendfile and open_file_cache: of hot files, and
//! with `--files N` of sets of up to N files (12,000, 100,000, 1,000,000), of which each request is for another one.
//!
//! Expected, on two cores shared with the load generator: nginx spends about 11 us a request at 4 KiB, most of it in
//! the kernel's TCP. trug does the same system calls, saves the open and the stat (a slice of a map), and pays for a
//! lookup and for Rust's HTTP/1: 1.2-1.5 times the requests. At 1 MiB the kernel's copies and the socket's buffer
//! decide: half the CPU of sendfile, and about twice the requests.
//!
//! The bare loop (`support/epoll_baseline.rs`) writes as many prepared bytes, after heads of the same length, over the
//! same sockets, and does nothing else: its own cost is a lower bound for any server. Bare hyper
//! (`support/hyper_baseline.rs`) does the same with the HTTP library that trug uses: its own cost is a lower bound for
//! servers with this library, and the difference between it and trug is trug's own cost.
//!
//! All have two workers, no log, keep-alive, and the same files; `wrk` has one thread and 64 connections. CPU is that
//! of the server's processes, and the figure to trust on a noisy machine.

mod working_sets;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::arguments::Arguments;
use benches::epoll_baseline::{self, Bare};
use benches::folder;
use benches::hot_gets::{self, FILES, ROWS};
use benches::http_connection::Wire;
use benches::hyper_baseline::{self, BareHyper};
use benches::nginx::{self, Nginx};
use benches::rounds;
use benches::server::{Running, ServerKind, require_program};
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};

fn main() -> ExitCode {
    Arguments::run("http", |arguments| {
        if epoll_baseline::serve(arguments)? || hyper_baseline::serve(arguments)? {
            return Ok(());
        }
        run(arguments)
    })
}

fn run(arguments: &Arguments) -> Result<(), String> {
    require_program("wrk", "on Debian, apt-get install wrk")?;
    require_program(nginx::PROGRAM, "on Debian, apt-get install nginx-light")?;
    let lengths = if arguments.quick { (1, 1) } else { (5, 3) };
    if let Some(files_max) = arguments.number("--files") {
        return working_sets::measure(arguments, files_max, lengths);
    }
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let root = folder.path().join("files");
    let files = root.join(BUCKET);
    hot_gets::make_files(&files).map_err(text)?;
    let mut kinds: Vec<Box<dyn ServerKind>> =
        vec![Box::new(Nginx { root: root.clone(), open_files: 1_000, takes_puts: false })];
    let program = arguments.value("--trug").map_or_else(Trug::program, PathBuf::from);
    if program.exists() {
        let names = hot_gets::names();
        kinds.insert(0, Box::new(Trug { program, files, names, settings: Vec::new() }));
    } else {
        eprintln!("{} is missing (cargo build --release): nginx alone", program.display());
    }
    let mut servers = Vec::new();
    for kind in &kinds {
        let own = folder.path().join(kind.label());
        fs::create_dir_all(&own).map_err(text)?;
        servers.push(Running::start(kind.as_ref(), &own, FILES[0].0)?);
    }
    let ours = Wire::open(servers[0].address()).map_err(text)?;
    let head_bytes = ours.head_bytes(&kinds[0].path(FILES[0].0)).map_err(text)?;
    let mut table =
        Table::new(&["request", "server", "requests/s", "CPU us", "ratio", "CPU ratio"]);
    for (label, name, range) in ROWS {
        let file_bytes = FILES.iter().find(|file| file.0 == name).map_or(0, |file| file.1);
        let body_bytes = range.map_or(file_bytes, |(length, _)| length as usize);
        let bare: [Box<dyn ServerKind>; 2] = [
            Box::new(Bare { head_bytes, body_bytes, file_bytes }),
            Box::new(BareHyper { head_bytes, body_bytes }),
        ];
        let of_row = servers.len() - 1..servers.len() - 1 + bare.len();
        for bare in bare {
            servers.insert(servers.len() - 1, Running::start(bare.as_ref(), folder.path(), name)?);
            kinds.insert(kinds.len() - 1, bare);
        }
        let contestants: Vec<_> = kinds.iter().map(AsRef::as_ref).zip(&servers).collect();
        let samples =
            hot_gets::in_turns((label, name, range), &contestants, lengths, folder.path())?;
        // nginx comes last; its own ratio is 1.
        let nginx = &samples[samples.len() - 1];
        for (kind, own) in kinds.iter().zip(&samples) {
            table.row(vec![
                label.to_owned(),
                kind.label().to_owned(),
                table::count(rounds::rate(own)),
                table::figure(rounds::cpu_us(own)),
                table::figure(rounds::ratio(own, nginx)),
                table::figure(rounds::cpu_us(own) / rounds::cpu_us(nginx).max(f64::MIN_POSITIVE)),
            ]);
        }
        servers.drain(of_row.clone());
        kinds.drain(of_row);
    }
    table.print();
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
