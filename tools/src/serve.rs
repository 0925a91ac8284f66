//! `trug serve`: opens the store, runs the server, and stops both on signals.
//!
//! Non-goals: what is served.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::clock::{Clock, SystemClock};
use engine::limits::BODY_CACHE_BYTES;
use engine::replication::{ReplicationOptions, ReplicationState};
use engine::rng::SystemRng;
use engine::{Create, OpenOptions, Store};
use listener::accept::Shutdown;
use otlp::SpanExport;
use protocol::public_url::PublicUrl;
use server::{ListenError, ServeError, ServeOptions, StartupReport};
use service::Config;
use service::config::OtlpSettings;
use service::state::physical_memory_bytes;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{self, Failure};
use crate::reload::Reload;
use crate::startup::{self, Opened};
use crate::{fd_limit, logging, output, ownership, settings, socket_activation, systemd};

/// Number of tasks that a worker polls before it checks for new events. A task that sends a long body takes a tenth
/// of a millisecond; with the default of 61 a new request would wait for six milliseconds behind such tasks.
const TASKS_PER_EVENT_POLL: u32 = 4;
/// Divisor of the machine's memory for the default size of the body cache.
const BODY_CACHE_DIVISOR: u64 = 128;
/// Maximum of that size: a container may have less memory than the machine.
const BODY_CACHE_BYTES_MAX: usize = 64 << 20;

/// Start the server (creates the data folder if needed).
///
/// Settings come from the command line, environment variables (TRUG_ and the name in capitals), --config and defaults,
/// in this order; `trug config reference` lists them. SIGTERM and SIGINT drain requests in flight and stop; a second
/// signal stops at once. SIGHUP reloads settings and certificates.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug serve --data data --listen 127.0.0.1:8080"))]
pub(crate) struct Args {
    /// Data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    #[command(flatten)]
    settings: settings::Flags,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { data, settings } = args;
    let inherited = socket_activation::take()?;
    let sources = settings.sources()?;
    let config = settings::config(&sources)?;
    logging::start()?;
    fd_limit::allow(config.connections_max);
    // Created before the store is opened, so that an early signal is not lost.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.event_interval(TASKS_PER_EVENT_POLL).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let (stop, stopped) = watch::channel(Shutdown::Running);
    let (reload, changes) = {
        let _entered = runtime.enter();
        let running = sources.running();
        stop_by_signals(stop.clone())
            .and_then(|()| Reload::begin(settings.clone(), running, config.clone(), stop.clone()))
            .map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))?
    };
    for warning in settings::warnings(&config, SystemClock::new().unix_ms()) {
        tracing::warn!("{warning}");
    }
    let span_export = start_span_export(&config, runtime.handle())?;
    let (store, opened) = open(&data, open_options(&config, runtime.handle())?)?;
    let announced = store.clone();
    let service = ServeOptions {
        store,
        data: data.clone(),
        config,
        clock: Arc::new(SystemClock::new()),
        rng: Arc::new(SystemRng),
        changes: Some(changes),
        inherited,
    };
    runtime.spawn(reload.run());
    runtime.spawn(systemd::notify_stopping(stopped.clone()));
    runtime.spawn(systemd::send_watchdog_keepalives(service.store.clone()));
    let fenced = Arc::new(OnceLock::new());
    if service.store.replication_status().is_some() {
        let (store, fenced) = (service.store.clone(), Arc::clone(&fenced));
        runtime.spawn(stop_when_fenced(store, stop.clone(), fenced));
    }
    let started =
        Box::new(move |started: &StartupReport| announce(&data, &announced, &opened, started));
    let served = runtime.block_on(server::serve(service, stopped, started));
    if let Some(export) = span_export {
        runtime.block_on(export.stop());
    }
    served.map_err(with_hint)?;
    tracing::info!("stopped");
    match fenced.get() {
        None => Ok(()),
        Some(why) => Err(Failure::new(exit::Exit::Fenced, format!("fenced: {why}"))),
    }
}

fn open_options(config: &Config, runtime: &Handle) -> Result<OpenOptions, Failure> {
    Ok(OpenOptions {
        replication: replication(config, runtime)?,
        reserve_bytes: config.reserve_bytes,
        retention_window_ms: u64::try_from(config.undelete_window.as_millis()).unwrap_or(u64::MAX),
        compaction: config.compaction,
        scrub: config.scrub.clone(),
        body_cache_bytes: body_cache_bytes(),
        ..OpenOptions::new(Create::IfMissing)
    })
}

/// Returns the size of the engine's body cache for this machine.
fn body_cache_bytes() -> usize {
    let part = physical_memory_bytes() / BODY_CACHE_DIVISOR;
    usize::try_from(part).unwrap_or(usize::MAX).clamp(BODY_CACHE_BYTES, BODY_CACHE_BYTES_MAX)
}

/// Starts the export of spans, if it is configured.
fn start_span_export(config: &Config, runtime: &Handle) -> Result<Option<SpanExport>, Failure> {
    let Some(OtlpSettings { traces, sample_ratio, service_name }) = &config.otlp else {
        return Ok(None);
    };
    let tls = config.webhook_roots.client();
    let tls = tls.map_err(|why| Failure::failed(format!("TLS cannot be set up: {why}")))?;
    let _entered = runtime.enter();
    Ok(Some(SpanExport::start(traces, sample_ratio.as_f64(), service_name, tls)))
}

/// Connects to the remote store of the configuration, if there is one. Sends nothing yet.
#[cfg(feature = "remote")]
fn replication(config: &Config, runtime: &Handle) -> Result<Option<ReplicationOptions>, Failure> {
    let remote = config.remote.as_ref();
    remote.map(|remote| crate::remote::replication(remote, runtime.clone())).transpose()
}

#[cfg(not(feature = "remote"))]
fn replication(_: &Config, _: &Handle) -> Result<Option<ReplicationOptions>, Failure> {
    // The configuration is rejected with a remote store.
    Ok(None)
}

/// Stops the server when another process is the primary of the remote store: it could serve only the past.
async fn stop_when_fenced(
    store: Store,
    stop: watch::Sender<Shutdown>,
    fenced: Arc<OnceLock<Arc<str>>>,
) {
    loop {
        tokio::time::sleep(FENCE_POLL).await;
        let Some(status) = store.replication_status() else { return };
        if let ReplicationState::Fenced(why) = status.state {
            tracing::error!(%why, "FENCED: this server is not the primary of the remote store; stopping");
            let _ = fenced.set(why);
            let _ = stop.send(Shutdown::Drain);
            // Dropping the sender would request draining.
            return std::future::pending().await;
        }
    }
}

/// Interval at which the state of replication is checked.
const FENCE_POLL: Duration = Duration::from_secs(1);

/// Opens the store, or creates it.
fn open(data: &Path, options: OpenOptions) -> Result<(Store, Opened), Failure> {
    let clock = SystemClock::new();
    let began_ms = clock.monotonic_ms();
    let (store, report) = Store::open_folder(data, options).map_err(|error| {
        let hint = ownership::hint(data, &error);
        let failure = Failure::from(error);
        match hint {
            Some(hint) => failure.with_hint(&hint),
            None => failure,
        }
    })?;
    if report.damage.is_empty() {
        tracing::debug!(%report, "store opened");
    } else {
        let places = report.damage_count();
        tracing::error!(places, %report, "DAMAGE: stored data is corrupt; the rest is served");
    }
    let duration = Duration::from_millis(clock.monotonic_ms().saturating_sub(began_ms));
    Ok((store, Opened { report, duration }))
}

/// Prints the start-up output and reports readiness to the service manager.
fn announce(data: &Path, store: &Store, opened: &Opened, started: &StartupReport) {
    let program = env::args_os().next().map(|name| name.to_string_lossy().into_owned());
    let program = program.unwrap_or_else(|| "trug".to_owned());
    // A closed stdout does not stop the server.
    let _ = output::result(&startup::text(&program, data, store, opened, started));
    systemd::ready(PublicUrl::from_listener(started.scheme, started.listen).as_str());
    tracing::info!(listen = %started.listen, public_url = started.public_url.as_str(), "serving");
}

fn with_hint(error: ServeError) -> Failure {
    let is_taken = matches!(
        &error,
        ServeError::Listen(ListenError { error, .. }) if error.kind() == std::io::ErrorKind::AddrInUse
    );
    let failure = Failure::from(error);
    if is_taken { failure.with_hint("choose another address with --listen") } else { failure }
}

/// Stops by the first SIGTERM or SIGINT, at once by the second.
fn stop_by_signals(stop: watch::Sender<Shutdown>) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("graceful shutdown started; a second signal stops immediately");
        let _ = stop.send(Shutdown::Drain);
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!("forced shutdown");
        let _ = stop.send(Shutdown::Immediate);
        // Dropping the sender would request draining.
        std::future::pending::<()>().await;
    });
    Ok(())
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
