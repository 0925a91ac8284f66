//! systemd notifications, read from a socket as systemd reads it, and socket activation.

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use tests::commands::run;
use tests::{Connection, DataFolder, ServerProcess};

/// Timeout for a message.
const PATIENCE: Duration = Duration::from_secs(30);

struct Manager {
    folder: DataFolder,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let (folder, _) = DataFolder::with_bucket();
        let socket = UnixDatagram::bind(folder.parent().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { folder, socket }
    }

    fn command(&self) -> Command {
        let mut command = self.folder.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("NOTIFY_SOCKET", self.folder.parent().join("notify"));
        command
    }

    /// Returns the next message, line by line.
    fn next(&self) -> Vec<String> {
        let mut bytes = [0; 4_096];
        let count = self.socket.recv(&mut bytes).expect("a message is received");
        let text = std::str::from_utf8(&bytes[..count]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the next message that is not a watchdog message.
    fn next_but_work(&self) -> Vec<String> {
        loop {
            let message = self.next();
            if message != ["WATCHDOG=1"] {
                return message;
            }
        }
    }

    /// Returns the number of messages in a period; all of them are watchdog messages.
    fn count_work(&self, time: Duration) -> u32 {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let (mut bytes, mut count) = ([0; 4_096], 0);
        let until = now() + time;
        while now() < until {
            if let Ok(length) = self.socket.recv(&mut bytes) {
                assert_eq!(&bytes[..length], b"WATCHDOG=1\n");
                count += 1;
            }
        }
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        count
    }
}

fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[test]
fn sd_notify_reports_lifecycle_in_order() {
    let manager = Manager::new();
    let file = manager.folder.parent().join("trug.toml");
    fs::write(&file, "drain_seconds = 5\n").unwrap();
    let mut command = manager.command();
    let mut server = ServerProcess::start(command.arg("--config").arg(&file));
    let address = server.address();
    assert_eq!(manager.next(), ["READY=1", &format!("STATUS=serving http://{address}")]);
    assert_eq!(server.get("/-/ready").status, 200);

    server.reload();
    let reloading = manager.next();
    assert_eq!(reloading[0], "RELOADING=1");
    let at: u64 = reloading[1].strip_prefix("MONOTONIC_USEC=").unwrap().parse().unwrap();
    assert!(at > 0);
    assert_eq!(manager.next(), ["READY=1"]);
    // A reload with invalid settings is completed, too.
    fs::write(&file, "drain_second = 5\n").unwrap();
    server.reload();
    assert_eq!(manager.next()[0], "RELOADING=1");
    assert_eq!(manager.next(), ["READY=1"]);

    server.terminate();
    let stopping = manager.next();
    assert_eq!(stopping[0], "STOPPING=1");
    assert!(stopping[1].starts_with("STATUS=stopping"), "{stopping:?}");
    assert!(server.wait().success());
}

#[test]
fn sd_notify_watchdog_pings_while_healthy() {
    let manager = Manager::new();
    let mut command = manager.command();
    let server = ServerProcess::start(command.env("WATCHDOG_USEC", "200000"));
    assert_eq!(manager.next_but_work()[0], "READY=1");
    let count = manager.count_work(Duration::from_secs(2));
    assert!((10..=22).contains(&count), "{count} times in 2 s, at a tenth of a second each");
    // A stopped process sends no messages.
    let pid = Pid::from_raw(server.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    manager.count_work(Duration::from_millis(100));
    assert_eq!(manager.count_work(Duration::from_secs(1)), 0);
    kill_process(pid, Signal::CONT).unwrap();
    assert!(manager.count_work(Duration::from_secs(1)) > 2);
    server.stop();
}

#[test]
fn sd_notify_ignores_variables_of_another_process() {
    let manager = Manager::new();
    let mut command = manager.command();
    command.env("WATCHDOG_USEC", "200000").env("WATCHDOG_PID", "1");
    let server = ServerProcess::start(&mut command);
    assert_eq!(manager.next()[0], "READY=1");
    assert_eq!(manager.count_work(Duration::from_millis(500)), 0);
    server.stop();
    // Without a listener on the notify socket the server runs.
    let mut command = manager.folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", manager.folder.parent().join("nobody"));
    let mut server = ServerProcess::start(&mut command);
    server.wait_for_log("sd_notify failed");
    server.terminate();
    assert!(server.wait().success());
}

/// Passes sockets through a shell as systemd does, from descriptor 3 on, and its own process id where required.
fn activated(manager: &Manager, names: &str, sockets: &[&TcpListener]) -> Command {
    let mut moves = String::new();
    for (at, socket) in sockets.iter().enumerate() {
        fcntl_setfd(socket, FdFlags::empty()).unwrap();
        moves.push_str(&format!("exec {}<&{}; ", at + 3, socket.as_raw_fd()));
    }
    let count = sockets.len();
    let given = format!("LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES={names}");
    let command = manager.command();
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("{moves}{given} exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn socket() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn socket_activation_sockets_are_used() {
    let manager = Manager::new();
    let (public, premium) = (socket(), socket());
    // A client connects before the server has started.
    let address = public.local_addr().unwrap();
    let mut early = Connection::connect(address).unwrap();
    early.begin("GET", "/-/ready", &[], 0).unwrap();
    let sockets = [&premium, &public];
    let server =
        ServerProcess::start(&mut activated(&manager, "upload_listen:trug.socket", &sockets));
    assert_eq!(server.address(), address);
    assert_eq!(early.read_response("GET").unwrap().status, 200);
    let premium = premium.local_addr().unwrap();
    server.wait_for_output(&format!("  Uploads      http://{premium}"));
    assert_eq!(Connection::connect(premium).unwrap().get("/-/ready").unwrap().status, 200);
    server.stop();
    // The socket outlives the server: a new connection waits for the next server.
    let mut between = Connection::connect(address).unwrap();
    between.begin("GET", "/-/ready", &[], 0).unwrap();
    let server = ServerProcess::start(&mut activated(&manager, "trug.socket", &[&public]));
    assert_eq!(between.read_response("GET").unwrap().status, 200);
    server.stop();

    let other = socket();
    let ran = run(&mut activated(&manager, "one:two", &[&public, &other]));
    ran.check_failure(2, "\"two\": only two sockets are supported");
}
