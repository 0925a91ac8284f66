//! One management request, done where the store is: in this process, or in the server that has it open.
//!
//! 1. The store is opened, the request done, the store closed.
//! 2. When somebody else holds its lock, the request goes over the control socket of the data folder.
//!    A server stops long work when this process goes away.
//! 3. When nobody answers there, whoever holds the lock is starting, stopping, or another command: it gets some time.
//!
//! Never here: what the requests do, and printing of results.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::{Create, Error, OpenOptions, RecoveryReport, Store, SystemClock, SystemEntropy};
use server::catalog::{Actor, Catalog};
use server::control::{self, ControlError};
use server::limits;
use server::management::{Reply, Request, execute};

use crate::exit::{self, Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Bar;

/// What every command but `serve` is told.
#[derive(clap::Args)]
pub(crate) struct StoreArgs {
    /// The data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

impl StoreArgs {
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

/// How often a lock whose holder does not answer is tried.
const TRIES: u32 = 30;
const WAIT_BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Performs a request and returns the reply.
pub(crate) fn request(args: &StoreArgs, request: Request) -> Result<Reply, Failure> {
    ask(&args.data, Create::Never, request)
}

/// Performs a request and prints the reply.
pub(crate) fn perform(args: &StoreArgs, request: Request) -> Result<(), Failure> {
    let reply = self::request(args, request)?;
    output::reply(&reply, args.json)?;
    exit::verdict(&reply)
}

/// The same, where stdout belongs to something else: the reply goes to stderr.
pub(crate) fn perform_beside_stdout(args: &StoreArgs, request: Request) -> Result<(), Failure> {
    let reply = ask(&args.data, Create::Never, request)?;
    output::reply_beside_stdout(&reply, args.json)?;
    exit::verdict(&reply)
}

/// As [`perform`]; where there is no store, one is made.
pub(crate) fn perform_creating(args: &StoreArgs, request: Request) -> Result<(), Failure> {
    let reply = ask(&args.data, Create::IfMissing, request)?;
    output::reply(&reply, args.json)
}

fn ask(data: &Path, create: Create, request: Request) -> Result<Reply, Failure> {
    let mut holder = None;
    for attempt in 0..TRIES {
        if attempt > 0 {
            thread::sleep(WAIT_BETWEEN_TRIES);
        }
        match open(data, create) {
            Ok(store) => return do_here(store, request),
            Err(Error::InUse(pid)) => holder = pid,
            Err(error @ Error::NotAStore(_)) => {
                let hint = "--data names the data folder; `trug serve` and `trug account create` make a store";
                return Err(Failure::from(error).with_hint(hint));
            }
            Err(error) => return Err(error.into()),
        }
        match ask_server(data, &request) {
            Err(ControlError::NotRunning) => {}
            answer => return answer.map_err(Failure::from),
        }
    }
    let who = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    Err(Failure::new(
        Exit::InUse,
        format!("the store in {} is in use by {who}, which takes no commands", data.display()),
    ))
}

/// For so long large files stay that can come back, while a command has the store: the most that a server may be told.
/// How long they do stay is for the server.
pub(crate) const UNDELETE_WINDOW_MS: u64 = limits::UNDELETE_WINDOW_MAX.as_secs() * 1_000;

/// Opens the store; tells when that makes one, and what is wrong with it.
fn open(data: &Path, create: Create) -> Result<Store, Error> {
    // A command does what it is asked, and nothing beside it.
    let options = |create| OpenOptions {
        compaction: None,
        undelete_window_ms: UNDELETE_WINDOW_MS,
        ..OpenOptions::new(create)
    };
    let opened = match Store::open_folder(data, options(Create::Never)) {
        Err(Error::NotAStore(_)) if create == Create::IfMissing => {
            let opened = Store::open_folder(data, options(Create::IfMissing));
            if opened.is_ok() {
                output::note(&format!("made a new store in {}", data.display()));
            }
            opened
        }
        opened => opened,
    };
    let (store, report) = opened?;
    tell_damage(&report);
    Ok(store)
}

fn tell_damage(report: &RecoveryReport) {
    if !report.damage.is_empty() {
        output::note(&report.to_string());
    }
}

fn do_here(store: Store, request: Request) -> Result<Reply, Failure> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let catalog = Catalog::open(store.clone(), clock, entropy);
    let interrupt = request.is_long().then(Interrupt::watched).transpose()?;
    let bar = Bar::new();
    let mut watch = |progress| {
        bar.show(progress);
        match interrupt.as_ref().is_some_and(Interrupt::has_come) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let done = catalog.and_then(|catalog| {
        catalog.finish_removals()?;
        execute(&store, &catalog.by(Actor::operator()), request, &mut watch)
    });
    bar.remove();
    // What was done is durable, whether or not this last checkpoint can be written.
    if let Err(error) = store.close() {
        output::note(&format!("the store did not close cleanly: {error}"));
    }
    Ok(done?)
}

fn ask_server(data: &Path, request: &Request) -> Result<Reply, ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ControlError::Broken(error.to_string()))?;
    let bar = Bar::new();
    let mut watch = |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    };
    let answer = runtime.block_on(control::call(data, request, &mut watch));
    bar.remove();
    answer
}
