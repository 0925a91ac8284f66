//! Stability of the server after half an hour of mixed load.
//!
//! Expected: ten thousand connections that each send a request every five seconds make about two thousand requests a
//! second, of which the server answers 99 in a hundred within some tens of milliseconds, on processors that it shares
//! with the clients; anonymous memory rises for the first minutes, as caches and the names of the searched bucket fill,
//! and is flat from then on; compaction reclaims what was deleted.
//!
//! Pictures are counted separately: most of them are rendered, on threads of low priority.
//!
//! Each connection downloads, uploads, replaces, deletes, lists, searches, and requests pictures, in a folder of its
//! own, so the expected response is known: bytes, keys and lengths are compared for every response. In the end the
//! counters of the bucket are compared with the sum over all connections, and `trug fsck --deep` reads the store.
//! Compaction and scrub run all the time, at their usual rates.
//!
//! `cargo build --release && cargo bench -p benches --bench soak -- --minutes 30 --connections 10_000 --plot FILE.svg`

mod client;
mod plot;
mod time_series;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use benches::arguments::Arguments;
use benches::server::Running;
use benches::table::{self, Table};
use benches::trug::Trug;
use benches::{data, folder};
use fuzz::synthetic_photo::{Encoding, SyntheticPhoto};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tests::Connection;
use tests::commands::without_settings;
use tokio::task::JoinSet;

use self::client::{Client, ClientStats, Shared};
use self::time_series::TimeSeries;

/// Shared picture, which all request at various sizes.
const PICTURE: &str = "picture.jpg";
/// File requested before the load starts.
const SMALL: &str = "small.bin";
/// Number of connections opened concurrently.
const CONCURRENT_CONNECTIONS: u64 = 100;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let held = runtime.map_err(text).and_then(|runtime| runtime.block_on(run(&arguments)));
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the load; returns whether all checks passed.
async fn run(arguments: &Arguments) -> Result<bool, String> {
    let (minutes, connections) = if arguments.quick { (1, 500) } else { (30, 10_000) };
    let length = Duration::from_secs(60 * arguments.number("--minutes").unwrap_or(minutes));
    let connections = arguments.number("--connections").unwrap_or(connections);
    allow_open_files(connections + 1_000)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let server = start(arguments, folder.path(), connections)?;
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let before = counters(&server, &key)?;

    let shared = Arc::new(Shared::new(server.address(), key.clone()));
    let mut clients = JoinSet::new();
    let started = Instant::now();
    for number in 0..connections {
        clients.spawn(Client::new(number, shared.clone()).run());
        if number % CONCURRENT_CONNECTIONS == CONCURRENT_CONNECTIONS - 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let mut course = TimeSeries::new(started);
    while started.elapsed() < length {
        tokio::time::sleep(time_series::STEP).await;
        let point =
            course.step(&shared, server.id(), &folder.path().join("store")).map_err(text)?;
        eprintln!("{point}");
        if let Some(why) = shared.fault() {
            return Err(why);
        }
    }
    shared.stop();
    let mut live = ClientStats::default();
    while let Some(left) = clients.join_next().await {
        live += left.map_err(|error| error.to_string())?;
    }
    if let Some(why) = shared.fault() {
        return Err(why);
    }
    let after = counters(&server, &key)?;
    drop(server);
    let fsck = fsck(&Trug::chosen(arguments)?, &folder.path().join("store"))?;

    if let Some(file) = arguments.value("--plot") {
        plot::draw(Path::new(file), &course.points).map_err(|error| error.to_string())?;
    }
    Ok(report(&course, &shared, live, (before, after), &fsck))
}

/// Starts the release build with limits for so many connections from this machine, and uploads the initial files.
fn start(arguments: &Arguments, folder: &Path, connections: u64) -> Result<Running, String> {
    let files = folder.join("files");
    fs::create_dir(&files).map_err(text)?;
    fs::write(files.join(SMALL), data::bytes(1, 4 << 10)).map_err(text)?;
    let photograph = SyntheticPhoto::new(5, 1_024, 768).jpeg(&Encoding::PLAIN);
    fs::write(files.join(PICTURE), photograph).map_err(text)?;
    let room = (connections + 1_000).to_string();
    let kind = Trug {
        program: Trug::chosen(arguments)?,
        files,
        names: vec![SMALL.to_owned(), PICTURE.to_owned()],
        settings: vec![
            ("TRUG_CONNECTIONS_MAX", room.clone()),
            ("TRUG_CONNECTIONS_PER_ADDRESS_MAX", room),
            ("TRUG_PLAN_RATES", "false".to_owned()),
            // Scrub runs without a pause.
            ("TRUG_SCRUB_DAYS", "1".to_owned()),
        ],
    };
    Running::start(&kind, folder, SMALL)
}

/// Returns the files and bytes that the server counts.
fn counters(server: &Running, key: &str) -> Result<ClientStats, String> {
    let connection = Connection::connect(server.address()).map_err(text)?;
    let answer = connection.with_key(key).get("/api/usage").map_err(text)?;
    let usage: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let number = |name: &str| usage["total"][name].as_u64();
    match (number("objectCount"), number("totalBytes")) {
        (Some(files), Some(bytes)) => Ok(ClientStats { files, bytes }),
        _ => Err(format!("{}: {usage}", answer.status)),
    }
}

/// Returns the final report of `trug fsck --deep`.
fn fsck(program: &Path, store: &Path) -> Result<String, String> {
    let output = without_settings(program).args(["fsck", "--deep", "--data"]).arg(store).output();
    let output = output.map_err(text)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("fsck: {}: {said}", output.status)),
    }
}

/// Prints the results; returns whether all checks passed.
fn report(
    course: &TimeSeries,
    shared: &Shared,
    live: ClientStats,
    (before, after): (ClientStats, ClientStats),
    fsck: &str,
) -> bool {
    let mut requests = Table::new(&["request", "answers", "p50, ms", "p99, ms", "refused"]);
    for row in shared.rows() {
        requests.row(row);
    }
    requests.print();
    println!();
    let flat = course.flatness();
    let mut table = Table::new(&["", "early", "late", "late / early", "at most"]);
    for (name, early, late, max) in &flat {
        table.row(vec![
            (*name).to_owned(),
            table::figure(*early),
            table::figure(*late),
            table::figure(late / early),
            table::figure(*max),
        ]);
    }
    table.print();
    let counted = (after.files - before.files, after.bytes - before.bytes);
    println!("\nthe connections have {} files of {} bytes", live.files, live.bytes);
    println!("the server counts    {} files of {} bytes", counted.0, counted.1);
    println!("fsck: {}", fsck.lines().last().unwrap_or_default());
    let exact = counted == (live.files, live.bytes);
    exact && flat.iter().all(|(_, early, late, max)| late / early <= *max)
}

fn allow_open_files(count: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < count) {
        return Err(format!("{count} open files are needed: raise the limit (ulimit -Hn)"));
    }
    let raised = Rlimit { current: Some(count), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| error.to_string())
}

fn text(error: io::Error) -> String {
    error.to_string()
}
