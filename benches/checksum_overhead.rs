//! Cost of block verification for a hot GET.
//!
//! Expected: next to nothing. A block is verified when it is first read since its segment was opened; after that a GET
//! tests one bit for each 64 KiB, and checks once whether the file was modified by another process (`fstat`, below half
//! a microsecond of the ten and more that a request takes). 0.97 to 1.00 of the requests of a server that verifies
//! nothing.
//!
//! Both contestants are this program, started again as the server on a store of its own, with `Verification` of the
//! engine at its default and as `Never`, which `trug` does not offer. They take turns; `wrk` has 64 connections.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use benches::arguments::Arguments;
use benches::folder;
use benches::hot_gets::{self, FILES, ROWS};
use benches::rounds;
use benches::server::{Running, ServerKind, require_program};
use benches::table::{self, Table};
use benches::trug::Trug;
use engine::clock::SystemClock;
use engine::rng::SystemRng;
use engine::{Create, OpenOptions, Store, Verification};
use listener::accept::Shutdown;
use server::{InheritedSockets, ServeOptions};
use service::Config;
use service::config::Layer;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Option that runs this program as the server; its arguments are the address, the store, and [`NEVER`] or nothing.
const SERVE: &str = "--serve";
const NEVER: &str = "--never";

fn main() -> ExitCode {
    Arguments::run("checksum_overhead", |arguments| match arguments.value(SERVE) {
        Some(address) => serve(address, arguments),
        None => run(arguments),
    })
}

/// A contestant: this program as the server.
struct Contestant {
    trug: Trug,
    verification: Verification,
}

impl ServerKind for Contestant {
    fn label(&self) -> &'static str {
        match self.verification {
            Verification::FirstRead => "verified",
            Verification::Never => "never",
        }
    }

    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let store = self.trug.store(folder)?;
        let mut command = Command::new(std::env::current_exe().map_err(text)?);
        command.args([SERVE, &address.to_string(), STORE]).arg(store);
        if self.verification == Verification::Never {
            command.arg(NEVER);
        }
        Ok(command)
    }

    fn restarts_when_full(&self) -> bool {
        self.trug.restarts_when_full()
    }

    fn fill(&self, folder: &Path, address: SocketAddr) -> Result<(), String> {
        self.trug.fill(folder, address)
    }

    fn path(&self, name: &str) -> String {
        self.trug.path(name)
    }
}

const STORE: &str = "--store";

/// Serves until a signal ends the process.
fn serve(address: &str, arguments: &Arguments) -> Result<(), String> {
    let data = arguments.value(STORE).ok_or("no store")?;
    let verification = match arguments.has(NEVER) {
        true => Verification::Never,
        false => Verification::FirstRead,
    };
    let options = OpenOptions { verification, ..OpenOptions::new(Create::Never) };
    let (store, _) = Store::open_folder(Path::new(data), options).map_err(text)?;
    let layer = Layer {
        listen: Some(address.to_owned()),
        // The form around the largest file does not fit in the default.
        body_bytes_max: Some(1 << 30),
        ..Layer::default()
    };
    let service = ServeOptions {
        store,
        data: data.into(),
        config: Config::new(layer).map_err(text)?,
        clock: Arc::new(SystemClock::new()),
        rng: Arc::new(SystemRng),
        changes: None,
        inherited: InheritedSockets::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(text)?;
    let (stop, stopped) = watch::channel(Shutdown::Running);
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(text)?;
        tokio::spawn(async move {
            terminate.recv().await;
            let _ = stop.send(Shutdown::Drain);
            std::future::pending::<()>().await;
        });
        server::serve(service, stopped, Box::new(|_| ())).await.map_err(text)
    })
}

fn run(arguments: &Arguments) -> Result<(), String> {
    require_program("wrk", "on Debian, apt-get install wrk")?;
    let lengths = if arguments.quick { (1, 1) } else { (9, 2) };
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let files = folder.path().join("files");
    hot_gets::make_files(&files).map_err(text)?;
    let program = Trug::chosen(arguments)?;
    let kinds = [Verification::FirstRead, Verification::Never].map(|verification| {
        let (program, files, settings) = (program.clone(), files.clone(), Vec::new());
        let trug = Trug { program, files, names: hot_gets::names(), settings };
        Contestant { trug, verification }
    });
    let mut servers = Vec::new();
    for kind in &kinds {
        let own = folder.path().join(kind.label());
        fs::create_dir(&own).map_err(text)?;
        servers.push(Running::start(kind, &own, FILES[0].0)?);
    }
    let mut table = Table::new(&[
        "request",
        "verified, requests/s",
        "never",
        "verified / never",
        "CPU us: verified",
        "never",
    ]);
    let contestants: Vec<(&dyn ServerKind, &Running)> =
        kinds.iter().map(|kind| kind as &dyn ServerKind).zip(&servers).collect();
    for row in ROWS {
        let samples = hot_gets::in_turns(row, &contestants, lengths, folder.path())?;
        let [verified, never] = [&samples[0], &samples[1]];
        let (low, high) = rounds::spread(verified, never);
        table.row(vec![
            row.0.to_owned(),
            table::count(rounds::rate(verified)),
            table::count(rounds::rate(never)),
            format!("{:.2} ({low:.2}-{high:.2})", rounds::ratio(verified, never)),
            table::figure(rounds::cpu_us(verified)),
            table::figure(rounds::cpu_us(never)),
        ]);
    }
    table.print();
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
