//! Management requests, performed where the store is open: in this process, or in a running server.
//!
//! 1. The store is opened by this process if it is not in use.
//! 2. Otherwise requests go over the control socket of the data folder. The server stops long requests when this
//!    process ends.
//! 3. If no server listens there, the process that holds the lock is starting, stopping, or another command: opening is
//!    tried again for three seconds.
//!
//! Non-goals: what the requests do, and printing of results.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use catalog::{Actor, Catalog};
use engine::clock::SystemClock;
use engine::recovery::RecoveryReport;
use engine::rng::SystemRng;
use engine::{Create, Environment, Error, OpenOptions, Store};
use server::control::{self, ControlError};
use server::management::{AdminRequest, AdminResponse, execute};
use service::limits;

use crate::cancel_signal::Interrupt;
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Format};
use crate::progress::Bar;
use crate::remote_segments::{RemoteConfigArgs, RemoteSegments};

/// Options of all commands that open a store.
#[derive(clap::Args)]
pub(crate) struct StoreArgs {
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    #[command(flatten)]
    remote: RemoteConfigArgs,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
    /// Show all columns of tables, uncut.
    #[arg(long, conflicts_with = "json")]
    wide: bool,
}

impl StoreArgs {
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) fn format(&self) -> Format {
        Format { json: self.json, wide: self.wide }
    }
}

/// Tries to open a store that is in use and not served.
const TRIES: u32 = 30;
const WAIT_BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// A store that requests are performed on: opened by this process, or by a running server.
pub(crate) struct Connection {
    data: PathBuf,
    remote: RemoteConfigArgs,
    create: Create,
    /// The store in this process; `None` where a server has it open.
    local: Option<LocalStore>,
}

/// An open store in this process.
struct LocalStore {
    store: Store,
    catalog: Catalog,
    _remote: RemoteSegments,
    /// Watched from the first long request on.
    interrupt: Option<Interrupt>,
}

impl Connection {
    /// Opens an existing store.
    pub(crate) fn open(args: &StoreArgs) -> Result<Self, Failure> {
        Self::open_or(&args.data, &args.remote, Create::Never)
    }

    fn open_or(data: &Path, remote: &RemoteConfigArgs, create: Create) -> Result<Self, Failure> {
        let segments = RemoteSegments::of_folder(data, remote)?;
        let mut holder = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                thread::sleep(WAIT_BETWEEN_TRIES);
            }
            let connection = |here| {
                Ok(Self { data: data.to_owned(), remote: remote.clone(), create, local: here })
            };
            match open(data, &segments, create) {
                Ok(store) => return connection(Some(LocalStore::new(store, segments)?)),
                Err(Error::InUse(pid)) => holder = pid,
                Err(error @ Error::NotAStore(_)) => {
                    let hint = "use --data to name the data folder; `trug serve` and `trug \
                        account create` create a store";
                    return Err(Failure::from(error).with_hint(hint));
                }
                Err(error) => return Err(error.into()),
            }
            if control::is_served(data) {
                return connection(None);
            }
        }
        let who =
            holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        Err(Failure::new(
            Exit::InUse,
            format!(
                "the store in {} is in use by {who}, which does not accept commands",
                data.display()
            ),
        ))
    }

    /// Performs a request. Long requests show their progress and can be interrupted.
    pub(crate) fn request(&mut self, request: AdminRequest) -> Result<AdminResponse, Failure> {
        loop {
            if let Some(here) = &mut self.local {
                return here.request(request);
            }
            match send_to_server(&self.data, &request) {
                // The server stopped in the meantime.
                Err(ControlError::NotRunning) => {
                    *self = Self::open_or(&self.data, &self.remote, self.create)?
                }
                reply => return reply.map_err(Failure::from),
            }
        }
    }
}

impl LocalStore {
    fn new(store: Store, remote: RemoteSegments) -> Result<Self, Failure> {
        let (clock, rng) = (Arc::new(SystemClock::new()), Arc::new(SystemRng));
        let catalog = Catalog::open(store.clone(), clock, rng).and_then(|catalog| {
            catalog.buckets().resume_deletions()?;
            Ok(catalog)
        });
        match catalog {
            Ok(catalog) => Ok(Self { store, catalog, _remote: remote, interrupt: None }),
            Err(error) => {
                close(&store);
                Err(error.into())
            }
        }
    }

    fn request(&mut self, request: AdminRequest) -> Result<AdminResponse, Failure> {
        if request.is_long_running() && self.interrupt.is_none() {
            self.interrupt = Some(Interrupt::watched()?);
        }
        let interrupt = self.interrupt.as_ref();
        let bar = Bar::new();
        let mut watch = |progress| {
            bar.show(progress);
            match interrupt.is_some_and(Interrupt::has_come) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let catalog = self.catalog.acting_as(Actor::operator());
        let done = execute(&self.store, &catalog, request, &mut watch);
        bar.remove();
        // Also of a request that failed after a part of its changes.
        let audited = catalog.audit().write_file_changes();
        let done = done?;
        audited?;
        Ok(done)
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        close(&self.store);
    }
}

/// Closes a store. What was done is durable, whether or not the last checkpoint can be written.
fn close(store: &Store) {
    if let Err(error) = store.close() {
        output::print_note(&format!("the store did not close cleanly: {error}"));
    }
}

/// Performs a request and returns the reply.
pub(crate) fn request(args: &StoreArgs, request: AdminRequest) -> Result<AdminResponse, Failure> {
    Connection::open(args)?.request(request)
}

/// Performs a request and prints the reply.
pub(crate) fn perform(args: &StoreArgs, request: AdminRequest) -> Result<(), Failure> {
    let reply = self::request(args, request)?;
    output::reply(&reply, args.format())?;
    exit::verdict(&reply)
}

/// Performs a request like [`perform`], with the reply on stderr, since stdout has the content.
pub(crate) fn perform_to_stderr(args: &StoreArgs, request: AdminRequest) -> Result<(), Failure> {
    let reply = self::request(args, request)?;
    output::reply_to_stderr(&reply, args.format())?;
    exit::verdict(&reply)
}

/// Performs a request like [`perform`], and creates the store if there is none.
pub(crate) fn perform_creating(args: &StoreArgs, request: AdminRequest) -> Result<(), Failure> {
    let reply =
        Connection::open_or(&args.data, &args.remote, Create::IfMissing)?.request(request)?;
    output::reply(&reply, args.format())
}

/// Retention window of deleted large files while a command has the store open: the maximum of the server setting, so
/// that a command releases no file that the server would retain.
pub(crate) const UNDELETE_WINDOW_MS: u64 = limits::UNDELETE_WINDOW_MAX.as_secs() * 1_000;

/// Opens the store; prints a note if it is created, and warnings about damage.
fn open(data: &Path, remote: &RemoteSegments, create: Create) -> Result<Store, Error> {
    // A command does only what was requested, without background work.
    let options = |create| OpenOptions {
        compaction: None,
        retention_window_ms: UNDELETE_WINDOW_MS,
        ..OpenOptions::new(create)
    };
    let open = |create| {
        let remote = remote.store.clone();
        let environment = Environment { remote, ..Environment::of_folder(data, create)? };
        Store::open(environment, options(create))
    };
    let opened = match open(Create::Never) {
        Err(Error::NotAStore(_)) if create == Create::IfMissing => {
            let opened = open(Create::IfMissing);
            if opened.is_ok() {
                output::print_note(&format!("created a new store in {}", data.display()));
            }
            opened
        }
        opened => opened,
    };
    let (store, report) = opened?;
    print_damage(&report);
    Ok(store)
}

fn print_damage(report: &RecoveryReport) {
    if !report.damage.is_empty() {
        output::print_note(&report.to_string());
    }
}

fn send_to_server(data: &Path, request: &AdminRequest) -> Result<AdminResponse, ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ControlError::Disconnected(error.to_string()))?;
    let bar = Bar::new();
    let mut watch = |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    };
    let answer = runtime.block_on(control::call(data, request, &mut watch));
    bar.remove();
    answer
}
