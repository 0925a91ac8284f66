//! A server and its remote store in two network namespaces: what happens while the cable between them is cut, and while
//! the remote store rejects requests.
//!
//! Needs Linux, root and `ip`, so the tests are ignored unless requested. `TRUG_OUTAGE_SECONDS` makes the first outage
//! longer.

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;
use tests::commands::{done, trug};
use tests::memory_s3::{error, memory_s3_on};
use tests::network::{End, Network};
use tests::{
    Connection, DataFolder, File, FileHost, OpenMetrics, RequestedFile, Response, ServerProcess,
};

/// Longest time for what happens by itself.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longest time until a write is answered that the remote store has to confirm.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Length of the first outage in seconds.
const OUTAGE_SECONDS: u64 = 4;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that replicates to an S3 service, each in a namespace of its own.
struct Site {
    network: Network,
    folder: DataFolder,
    key: String,
    service: FileHost,
    /// Response to every request instead of the service's own.
    rejection: Rejection,
}

type Rejection = Arc<Mutex<Option<(u16, &'static str)>>>;

impl Site {
    fn new() -> Self {
        Self::with_clock_ahead(Duration::ZERO)
    }

    /// Creates a site whose remote store has a clock that is ahead.
    fn with_clock_ahead(ahead: Duration) -> Self {
        let network = Network::create();
        let rejection = Rejection::default();
        let rejects = Arc::clone(&rejection);
        let service = network.at(End::RemoteStore, || {
            let listener = TcpListener::bind((End::RemoteStore.address(), 0));
            memory_s3_on(listener.expect("a port is free"), move |request| {
                let rejection = *rejects.lock().unwrap_or_else(PoisonError::into_inner);
                let rejected = rejection.map(|(status, code)| error(status, code));
                rejected.or_else(|| skewed(request, ahead))
            })
        });
        let (folder, key) = DataFolder::with_bucket();
        folder.done(&["account", "edit", "--account", "ann", "--role", "operator"]);
        Self { network, folder, key, service, rejection }
    }

    fn serve(&self, ack: &str) -> ServerProcess {
        self.serve_at(End::Server, &self.folder, &[&format!("remote_ack={ack}")])
    }

    /// Starts a server on a folder, with further settings.
    fn serve_at(&self, end: End, folder: &DataFolder, others: &[&str]) -> ServerProcess {
        let keys = self.folder.write_file("keys.txt", "key-id-1\nsecret-1\n");
        let token = self.folder.write_file("token.txt", TOKEN);
        let settings = [
            "remote_url=s3://pics/a".to_owned(),
            format!("remote_endpoint={}", self.service.origin()),
            format!("remote_credentials_file={keys}"),
            "remote_ship_ms=100".to_owned(),
            format!("metrics_token_file={token}"),
        ];
        let mut words = vec!["--listen", "127.0.0.1:0"];
        let settings = settings.iter().map(String::as_str).chain(others.iter().copied());
        words.extend(settings.flat_map(|setting| ["--set", setting]));
        self.network.at(end, || folder.serve_with(&words))
    }

    fn connect(&self, end: End, server: &ServerProcess, key: &str) -> Connection {
        let address = server.address();
        let connection = self.network.at(end, || Connection::connect(address));
        connection.expect("it accepts connections").with_key(key)
    }

    /// Uploads a file with its name as its content.
    fn upload(&self, server: &ServerProcess, name: &str) -> Response {
        let mut connection = self.connect(End::Server, server, &self.key);
        connection.upload_file("/photos/", name, name.as_bytes()).expect("it answers")
    }

    /// Uploads files one after the other for a time, and returns their names.
    fn upload_for(&self, server: &ServerProcess, time: Duration, prefix: &str) -> Vec<String> {
        let end = Instant::now() + time;
        let mut names = Vec::new();
        while names.is_empty() || Instant::now() < end {
            let name = format!("{prefix}-{}.txt", names.len());
            assert_eq!(self.upload(server, &name).status, 200);
            names.push(name);
            thread::sleep(Duration::from_millis(200).max(time / 100));
        }
        names
    }

    /// Returns the state of replication, as the operator sees it.
    fn state(&self, server: &ServerProcess) -> Value {
        let mut connection = self.connect(End::Server, server, &self.key);
        let response = connection.get("/api/storage").expect("it answers");
        assert_eq!(response.status, 200, "{response:?}");
        response.json()["remote"].clone()
    }

    fn metric(&self, server: &ServerProcess, name: &str) -> f64 {
        let mut connection = self.connect(End::Server, server, TOKEN);
        let response = connection.get("/-/metrics").expect("it answers");
        OpenMetrics::read(&response.text()).value(name)
    }

    fn wait_for(&self, server: &ServerProcess, what: &str, is_so: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = self.state(server);
            if is_so(&state) {
                return;
            }
            assert!(Instant::now() < deadline, "not {what}: {state} {}", server.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the remote store has everything.
    fn wait_until_shipped(&self, server: &ServerProcess) {
        self.wait_for(server, "shipped", |state| {
            let is_up = state["state"] == "primary" && state["error"].is_null();
            is_up && state["unshippedBytes"] == 0 && !state["lastManifestAt"].is_null()
        });
    }

    fn reject(&self, rejection: Option<(u16, &'static str)>) {
        *self.rejection.lock().unwrap_or_else(PoisonError::into_inner) = rejection;
    }

    /// Restores the newest state.
    fn restore(&self) -> DataFolder {
        let restored = DataFolder::new();
        let keys = self.folder.parent().join("keys.txt");
        self.network.at(End::Server, || {
            let mut command = trug();
            command.args([
                "remote",
                "restore",
                "s3://pics/a",
                "--endpoint",
                &self.service.origin(),
            ]);
            command.arg("--credentials-file").arg(keys).arg("--data").arg(restored.path());
            done(&mut command);
        });
        restored
    }

    /// Ends the cut; then everything is shipped, uploads are accepted, and these files can be restored.
    fn check_recovery(&self, server: ServerProcess, stored: &[&str]) {
        self.network.mend();
        self.wait_until_shipped(&server);
        assert_eq!(self.upload(&server, "after.txt").status, 200);
        server.stop();
        self.check_restored(stored);
    }

    /// Restores the store, and compares it with the files that were acknowledged.
    fn check_restored(&self, names: &[&str]) {
        let restored = self.restore();
        for name in names {
            assert_eq!(restored.done(&["cat", &format!("photos/{name}")]).stdout, *name);
        }
        assert_eq!(restored.json(&["ls", "photos/"]), self.folder.json(&["ls", "photos/"]));
        restored.done(&["fsck", "--deep"]);
    }
}

/// Rejects a request like S3 if its time is 15 minutes off the clock of the service.
fn skewed(request: &RequestedFile, ahead: Duration) -> Option<File> {
    let sent = DateTime::strptime("%Y%m%dT%H%M%SZ", request.header("x-amz-date"));
    let sent = sent.and_then(|sent| sent.to_zoned(TimeZone::UTC)).expect("it is signed");
    let off = (SystemTime::now() + ahead).duration_since(sent.timestamp().into());
    let is_skewed = off.is_ok_and(|off| off > Duration::from_secs(15 * 60));
    is_skewed.then(|| error(403, "RequestTimeTooSkewed"))
}

fn check_unavailable(response: &Response) {
    assert_eq!(response.status, 503, "{response:?}");
    assert_eq!(response.json()["code"], "remote_unavailable", "{response:?}");
    assert_eq!(response.header("retry-after"), "5");
}

#[test]
#[ignore = "needs root and ip"]
fn outage_delays_shipping_with_local_acknowledgements() {
    let set = std::env::var("TRUG_OUTAGE_SECONDS").ok().and_then(|value| value.parse().ok());
    let half = Duration::from_secs(set.unwrap_or(OUTAGE_SECONDS) / 2);
    let site = Site::new();
    let server = site.serve("local");
    assert_eq!(site.upload(&server, "before.txt").status, 200);
    site.wait_until_shipped(&server);
    assert_eq!(site.metric(&server, "trug_remote_lag_seconds"), 0.0);

    site.network.cut();
    let cut = site.upload_for(&server, half, "cut");
    let early = site.metric(&server, "trug_remote_lag_seconds");
    assert!(early >= half.as_secs_f64() - 1.0, "{early}");
    assert!(site.metric(&server, "trug_remote_unshipped_bytes") > 0.0);
    // The network is whole again, but the remote store is not.
    site.reject(Some((503, "SlowDown")));
    site.network.mend();
    let rejected = site.upload_for(&server, half, "rejected");
    let late = site.metric(&server, "trug_remote_lag_seconds");
    assert!(late >= early + half.as_secs_f64() - 1.0, "{early} {late}");

    site.reject(None);
    site.wait_until_shipped(&server);
    assert_eq!(site.metric(&server, "trug_remote_lag_seconds"), 0.0);
    server.stop();
    let names = cut.iter().chain(&rejected).map(String::as_str);
    site.check_restored(&names.chain(["before.txt"]).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs root and ip"]
fn network_cut_rejects_writes_with_remote_acknowledgements() {
    let site = Site::new();
    let server = site.serve("remote");
    site.wait_until_shipped(&server);
    assert_eq!(site.upload(&server, "before.txt").status, 200);

    site.network.cut();
    let begun = Instant::now();
    check_unavailable(&site.upload(&server, "during-1.txt"));
    assert!(begun.elapsed() < ANSWER_MAX, "the first write waited for {:?}", begun.elapsed());
    let begun = Instant::now();
    check_unavailable(&site.upload(&server, "during-2.txt"));
    assert!(begun.elapsed() < Duration::from_secs(2), "later writes do not wait");
    assert!(site.state(&server)["error"].is_string());
    let mut connection = site.connect(End::Server, &server, &site.key);
    let read = connection.get("/photos/before.txt").expect("it answers");
    assert_eq!((read.status, &*read.body), (200, &b"before.txt"[..]), "reads continue");

    site.check_recovery(server, &["before.txt", "after.txt"]);
}

#[test]
#[ignore = "needs root and ip"]
fn network_cut_ends_the_lease() {
    let site = Site::new();
    let settings = ["remote_lease_seconds=15"];
    let server = site.serve_at(End::Server, &site.folder, &settings);
    site.wait_until_shipped(&server);
    site.network.cut();
    let begun = Instant::now();
    let mut count = 0;
    let rejected = loop {
        let response = site.upload(&server, &format!("{count}.txt"));
        if response.status != 200 {
            break response;
        }
        count += 1;
        assert!(begun.elapsed() < ANSWER_MAX, "it stops writes");
        thread::sleep(Duration::from_millis(200));
    };
    check_unavailable(&rejected);
    assert!(count > 0, "until then it accepts writes");
    site.check_recovery(server, &["0.txt", "after.txt"]);
}

#[test]
#[ignore = "needs root and ip"]
fn network_cut_primary_is_fenced_by_its_successor() {
    let site = Site::new();
    let mut first = site.serve("remote");
    site.wait_until_shipped(&first);
    assert_eq!(site.upload(&first, "before.txt").status, 200);
    site.network.cut();
    let copy = DataFolder::new();
    done(Command::new("cp").arg("-r").arg(site.folder.path()).arg(copy.path()));
    let second = site.serve_at(End::RemoteStore, &copy, &["remote_ack=remote"]);
    let mut connection = site.connect(End::RemoteStore, &second, &site.key);
    let deadline = Instant::now() + PATIENCE;
    let uploaded = loop {
        let uploaded = connection.upload_file("/photos/", "second.txt", b"second.txt");
        let uploaded = uploaded.expect("it answers");
        if uploaded.status == 200 || Instant::now() > deadline {
            break uploaded;
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(uploaded.status, 200, "{uploaded:?}");
    check_unavailable(&site.upload(&first, "first.txt"));
    site.network.mend();
    assert_eq!(first.wait().code(), Some(5), "{}", first.log());
    second.stop();
    let restored = site.restore();
    assert_eq!(restored.done(&["cat", "photos/second.txt"]).stdout, "second.txt");
    restored.run(&["cat", "photos/first.txt"]).check_failure(1, "first.txt");
}

#[test]
#[ignore = "needs root and ip"]
fn rejections_of_the_remote_store_are_its_last_error() {
    let site = Site::new();
    let server = site.serve("local");
    site.wait_until_shipped(&server);
    for (at, (status, code)) in
        [(403, "AccessDenied"), (507, "InsufficientCapacity"), (503, "SlowDown")]
            .into_iter()
            .enumerate()
    {
        site.reject(Some((status, code)));
        assert_eq!(site.upload(&server, &format!("{at}.txt")).status, 200);
        site.wait_for(&server, code, |state| {
            let error = state["error"].as_str().unwrap_or_default();
            error.contains(&status.to_string()) && error.contains(code)
        });
        assert_eq!(site.metric(&server, "trug_remote_up"), 0.0);
        assert!(site.metric(&server, "trug_remote_unshipped_bytes") > 0.0);
        site.reject(None);
        site.wait_until_shipped(&server);
        assert_eq!(site.metric(&server, "trug_remote_up"), 1.0);
    }
    server.stop();
    site.check_restored(&["0.txt", "1.txt", "2.txt"]);
}

#[test]
#[ignore = "needs root and ip"]
fn rejections_of_the_remote_store_reject_remote_writes() {
    let site = Site::new();
    let server = site.serve("remote");
    site.wait_until_shipped(&server);
    assert_eq!(site.upload(&server, "before.txt").status, 200);
    for (status, code) in [(507, "InsufficientCapacity"), (403, "AccessDenied")] {
        site.reject(Some((status, code)));
        check_unavailable(&site.upload(&server, "during.txt"));
        site.reject(None);
        site.wait_until_shipped(&server);
    }
    assert_eq!(site.upload(&server, "after.txt").status, 200);
    server.stop();
    site.check_restored(&["before.txt", "after.txt"]);
}

#[test]
#[ignore = "needs root and ip"]
fn wrong_clock_is_named_as_the_cause() {
    let site = Site::with_clock_ahead(Duration::from_secs(20 * 60));
    let server = site.serve("local");
    assert_eq!(site.upload(&server, "local.txt").status, 200);
    site.wait_for(&server, "named", |state| {
        let error = state["error"].as_str().unwrap_or_default();
        error.contains("clock") && error.contains("RequestTimeTooSkewed")
    });
    let ran = site.network.at(End::Server, || {
        let keys = site.folder.parent().join("keys.txt");
        let mut command = trug();
        command.args(["remote", "check", "s3://pics/a", "--endpoint", &site.service.origin()]);
        tests::commands::run(command.arg("--credentials-file").arg(keys))
    });
    ran.check_failure(1, "clock");
}
