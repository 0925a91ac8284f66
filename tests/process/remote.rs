//! Replication to a remote store: what it acknowledged survives the loss of the machine, and a server that is no longer
//! the primary stops.
//!
//! `TRUG_ROUNDS` sets another number of rounds.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use engine::rng::{Rng, SeededRng};
use tests::commands::{done, run, trug};
use tests::server_process::start_and_kill;
use tests::{DataFolder, ServerProcess};

use crate::client::Client;
use crate::kill::{CLIENTS, compare, load};

const ROUNDS: u32 = 3;
/// Interval of the rounds in which the restored store is killed during its start, too.
const KILL_AT_START_EVERY: u32 = 3;
const RUN_MS_MIN: u64 = 300;
const RUN_MS_MAX: u64 = 1_500;
/// Timeout for the first restore point.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn remotely_acknowledged_uploads_survive_loss_of_the_machine() {
    let set = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = set("TRUG_SEED").unwrap_or(5);
    let rounds = set("TRUG_ROUNDS").and_then(|it| u32::try_from(it).ok()).unwrap_or(ROUNDS);
    println!("seed {seed}");
    let chance = SeededRng::new(seed);
    let remote = tempfile::tempdir().expect("a folder");
    let settings = remote_settings(remote.path(), "remote");
    let (mut folder, key) = DataFolder::with_bucket();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client::new(number, seed)).collect();
    let mut server = serve(&folder, &settings);
    wait_for_restore_point(remote.path());
    wait_for_primary(&server, &key);
    for round in 0..rounds {
        let life_ms = RUN_MS_MIN + chance.next_u64() % (RUN_MS_MAX - RUN_MS_MIN);
        load(server.address(), &key, &mut clients, Duration::from_millis(life_ms), || {
            server.kill()
        });
        // The machine with its data folder is lost.
        folder = restore(remote.path());
        if round % KILL_AT_START_EVERY == 1 {
            let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
            command.args(&settings);
            start_and_kill(&mut command, Duration::from_millis(chance.next_u64() % 300));
        }
        server = serve(&folder, &settings);
        compare(&server, &mut clients, round);
        wait_for_primary(&server, &key);
    }
    server.stop();
    compare(&restore(remote.path()).serve(), &mut clients, rounds);

    let uploads: u64 = clients.iter().map(|client| client.ledger.uploads).sum();
    let big_uploads: u64 = clients.iter().map(|client| client.ledger.big_uploads).sum();
    println!("{rounds} rounds, {uploads} uploads acknowledged, {big_uploads} above 1 MiB; 0 lost");
    assert!(uploads > 10 * u64::from(rounds) && big_uploads > 0, "there was hardly any load");
}

#[test]
fn fenced_server_rejects_writes_and_exits_with_code_5() {
    let remote = tempfile::tempdir().expect("a folder");
    let settings = remote_settings(remote.path(), "remote");
    let (folder, key) = DataFolder::with_bucket();
    let mut first = serve(&folder, &settings);
    wait_for_restore_point(remote.path());
    wait_for_primary(&first, &key);
    let mut before = first.connect().with_key(&key);
    assert_eq!(before.upload_file("/photos/", "before.txt", b"before").unwrap().status, 200);

    // The first server hangs, so an operator starts another one on a copy of its folder.
    first.pause();
    let copy = DataFolder::new();
    done(Command::new("cp").arg("-r").arg(folder.path()).arg(copy.path()));
    let second = serve(&copy, &settings);
    wait_for_primary(&second, &key);
    let mut after = second.connect().with_key(&key);
    assert_eq!(after.upload_file("/photos/", "after.txt", b"after").unwrap().status, 200);
    first.resume();
    // The connection may be closed instead of answered.
    if let Ok(rejected) = before.upload_file("/photos/", "late.txt", b"late") {
        assert_eq!(rejected.status, 503, "{rejected:?}");
    }
    assert_eq!(first.wait().code(), Some(5), "{}", first.log());
    first.wait_for_log("trug: fenced: process ");

    // The same folder does not become the primary again: the remote store has a write that it lacks.
    let ended = run(folder.command(&["serve", "--listen", "127.0.0.1:0"]).args(&settings));
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.stderr.contains("trug: fenced: "), "{ended:?}");

    assert_eq!(after.get("/photos/before.txt").unwrap().body, b"before");
    assert_eq!(after.get("/photos/after.txt").unwrap().body, b"after");
    assert_eq!(after.get("/photos/late.txt").unwrap().status, 404);
    second.stop();
    let folder = restore(remote.path());
    let server = folder.serve();
    let mut restored = server.connect();
    assert_eq!(restored.get("/photos/after.txt").unwrap().body, b"after");
    assert_eq!(restored.get("/photos/late.txt").unwrap().status, 404);
}

#[test]
fn server_starts_without_its_remote_store() {
    let keys = tempfile::NamedTempFile::new().expect("a file");
    fs::write(keys.path(), "key-id-1\nsecret-1\n").expect("it can be written");
    // Nothing listens on port 1.
    let settings = |ack: &str| {
        [
            "remote_url=s3://pics/a".to_owned(),
            "remote_endpoint=http://127.0.0.1:1".to_owned(),
            format!("remote_credentials_file={}", keys.path().display()),
            format!("remote_ack={ack}"),
        ]
        .into_iter()
        .flat_map(|setting| ["--set".to_owned(), setting])
        .collect::<Vec<_>>()
    };
    let (folder, key) = DataFolder::with_bucket();
    let mut server = serve(&folder, &settings("local"));
    let mut connection = server.connect().with_key(&key);
    assert_eq!(connection.upload_file("/photos/", "a.txt", b"local").unwrap().status, 200);
    assert_eq!(connection.get("/photos/a.txt").unwrap().body, b"local");
    server.kill();

    let server = serve(&folder, &settings("remote"));
    let mut connection = server.connect().with_key(&key);
    let rejected = connection.upload_file("/photos/", "b.txt", b"remote").unwrap();
    assert_eq!(rejected.status, 503, "{rejected:?}");
    assert_eq!(rejected.json()["code"], "remote_unavailable", "{rejected:?}");
    assert_eq!(rejected.header("retry-after"), "5");
    assert_eq!(connection.get("/photos/a.txt").unwrap().body, b"local");
    assert!(!server.log().contains("secret-1"), "{}", server.log());
}

fn remote_settings(remote: &Path, ack: &str) -> Vec<String> {
    let settings = [format!("remote_url={}", url(remote)), format!("remote_ack={ack}")];
    settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
}

fn url(remote: &Path) -> String {
    format!("file://{}", remote.display())
}

fn serve(folder: &DataFolder, settings: &[String]) -> ServerProcess {
    let words: Vec<&str> = settings.iter().map(String::as_str).collect();
    folder.serve_with(&[&["--listen", "127.0.0.1:0"], &words[..]].concat())
}

/// Waits until the remote store has everything from before replication began.
fn wait_for_restore_point(remote: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ran = run(trug().args(["remote", "points", &url(remote)]));
        if ran.code == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "there is no restore point: {ran:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the server accepts uploads: until it is the primary, it rejects them.
fn wait_for_primary(server: &ServerProcess, key: &str) {
    let deadline = Instant::now() + PATIENCE;
    let mut connection = server.connect().with_key(key);
    loop {
        let path = "/photos/ready.txt?overwrite=true";
        let reply = connection.upload_file(path, "ready.txt", b"ready").expect("it answers");
        if reply.status == 200 {
            return;
        }
        assert_eq!((reply.status, &reply.json()["code"]), (503, &"remote_unavailable".into()));
        assert!(Instant::now() < deadline, "it is not the primary: {}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Restores the newest state into a new folder.
fn restore(remote: &Path) -> DataFolder {
    let folder = DataFolder::new();
    folder.done(&["remote", "restore", &url(remote)]);
    folder
}
