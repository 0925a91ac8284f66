//! `trug serve`: the configuration, the store, the server, and the signals that stop it.
//!
//! The command line stands over the environment, that over the configuration file, that over the defaults.
//! Never here: what is served.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Create, OpenOptions, SearchOptions, Store, SystemClock, SystemEntropy};
use images::AVIF_ENCODER;
use server::config::{Layer, PublicUrl, Texts, VARIABLE_PREFIX};
use server::roots::ExtraRoots;
use server::{Config, ServeError, Service, Started, Stop};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{self, Failure};
use crate::{first_run, logging, open_files, output};

/// Serve a data folder, which is made when there is none.
///
/// Every setting of the configuration file can also be given as an environment variable: TRUG_ and the setting in
/// capitals. SIGTERM and SIGINT let requests in flight end; a second one stops at once.
#[derive(clap::Args)]
#[command(after_help = exit::help("trug serve --data data --listen 127.0.0.1:8080"))]
pub(crate) struct Args {
    /// The data folder.
    #[arg(long, value_name = "DIR", env = "TRUG_DATA", default_value = "data")]
    data: PathBuf,
    /// A configuration file, TOML.
    #[arg(long, value_name = "FILE", env = "TRUG_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one. [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where the premium endpoint listens, which takes larger bodies from accounts on the plan Pro or Business.
    /// [default: there is none]
    #[arg(long, value_name = "ADDR")]
    upload_listen: Option<String>,
    /// What stands before the addresses that are given out, with http or https. [default: where it listens]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Origins of private networks that webhooks may be sent to, as http://127.0.0.1:9000, with commas. [default: none]
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    webhook_allow: Option<Vec<String>>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { data, config, listen, upload_listen, public_url, webhook_allow } = args;
    let webhook_allow = webhook_allow.map(Texts::List);
    let flags = Layer { listen, upload_listen, public_url, webhook_allow, ..Layer::default() };
    let file = config.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let mut config = Config::new(flags.over(environment()?).over(file))?;
    if let Some(path) = &config.webhook_ca_file {
        config.webhook_roots = read_roots(path)?;
    }
    logging::start()?;
    open_files::allow(config.connections_max);
    // Before the store is opened, so that a signal that comes meanwhile is not lost.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let stop = {
        let _entered = runtime.enter();
        stop_by_signals().map_err(|error| Failure::failed(format!("no signals: {error}")))?
    };
    let options = OpenOptions {
        reserve_bytes: config.reserve_bytes,
        undelete_window_ms: u64::try_from(config.undelete_window.as_millis()).unwrap_or(u64::MAX),
        compaction: config.compaction,
        scrub: config.scrub.clone(),
        search: SearchOptions {
            names_bytes_max: config.search_memory_bytes,
            ..SearchOptions::default()
        },
        ..OpenOptions::new(Create::IfMissing)
    };
    let store = open(&data, options)?;
    let service = Service {
        store,
        data: data.clone(),
        config,
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy),
    };
    let served = runtime.block_on(server::serve(service, stop, |started| announce(&data, started)));
    served.map_err(with_hint)?;
    tracing::info!("stopped");
    Ok(())
}

/// Opens the store, or makes it, and says in one line what was found.
fn open(data: &Path, options: OpenOptions) -> Result<Store, Failure> {
    let (store, report) = Store::open_folder(data, options)?;
    let version = env!("CARGO_PKG_VERSION");
    output::result(&format!("trug {version}: {}: {report}\n", output::plain(&shown(data))))?;
    if !report.damage.is_empty() {
        tracing::error!(
            places = report.damage_count(),
            "DAMAGE: stored data is not what was written; the rest is served: {report}"
        );
    }
    Ok(store)
}

/// Says where the server listens, and what to do first where nothing was done yet.
fn announce(data: &Path, started: &Started) {
    let url = PublicUrl::of_listener(started.listen);
    let mut text = format!("{AVIF_ENCODER}\nlistening on {}\n", url.as_str());
    if let Some(listen) = started.upload_listen {
        let url = PublicUrl::of_listener(listen);
        text.push_str(&format!("premium endpoint on {}\n", url.as_str()));
    }
    if started.public_url != url {
        text.push_str(&format!("addresses begin with {}\n", started.public_url.as_str()));
    }
    if let Some(link) = &started.set_up_link {
        let program = env::args_os().next().map(|name| name.to_string_lossy().into_owned());
        let program = program.unwrap_or_else(|| "trug".to_owned());
        text.push_str(&first_run::lines(&program, data, url.as_str(), link));
    }
    // Serving goes on, whoever reads this or not.
    let _ = output::result(&text);
    tracing::info!(listen = %started.listen, public_url = started.public_url.as_str(), "serving");
}

fn with_hint(error: ServeError) -> Failure {
    let is_taken = matches!(
        &error,
        ServeError::Listen(_, error) if error.kind() == std::io::ErrorKind::AddrInUse
    );
    let failure = Failure::from(error);
    if is_taken { failure.with_hint("--listen takes another address") } else { failure }
}

/// What the environment says; it says nothing in letters that are not UTF-8.
fn environment() -> Result<Layer, Failure> {
    let mut variables = Vec::new();
    for (name, value) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else {
            continue;
        };
        let not_text = || Failure::wrong_usage(format!("{name} is not UTF-8"));
        variables.push((name.to_owned(), value.into_string().map_err(|_| not_text())?));
    }
    Ok(Layer::from_variables(variables.into_iter())?)
}

#[allow(clippy::disallowed_methods, reason = "the configuration is no file of the store")]
fn read_file(path: &Path) -> Result<Layer, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::wrong_usage(format!("cannot read {name}: {error}")))?;
    Ok(Layer::from_toml(&text, &name)?)
}

#[allow(clippy::disallowed_methods, reason = "the certificates are no file of the store")]
fn read_roots(path: &Path) -> Result<ExtraRoots, Failure> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failure::wrong_usage(format!("webhook_ca_file: {}: {why}", path.display()))
    };
    let pem = std::fs::read(path).map_err(|error| refuse(&error))?;
    ExtraRoots::parse(&pem).map_err(|why| refuse(&why))
}

/// Stops by the first SIGTERM or SIGINT, at once by the second.
fn stop_by_signals() -> std::io::Result<watch::Receiver<Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopped) = watch::channel(Stop::Running);
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping: requests in flight may end, a second signal stops at once");
        let _ = stop.send(Stop::Drain);
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!("stopping at once");
        let _ = stop.send(Stop::Now);
        // Dropping the sender would say "drain".
        std::future::pending::<()>().await;
    });
    Ok(stopped)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn shown(data: &Path) -> String {
    data.display().to_string()
}
