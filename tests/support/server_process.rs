//! A real `trug serve` process: started, observed and stopped.
//!
//! Guarantees: no process outlives its value. Non-goals: requests to it; see `connection`.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::connection::Connection;

/// A server in a process of its own.
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
    output: Arc<Mutex<String>>,
    log: Arc<Mutex<String>>,
    /// Disconnects when stdout ends.
    lines: Receiver<String>,
}

/// Text before the address in the output of a server.
const LISTENING: &str = "  Listening    http";
/// Timeout for start and stop of a server.
const PATIENCE: Duration = Duration::from_secs(60);

impl ServerProcess {
    /// Starts a server and waits until it accepts requests.
    pub fn start(command: &mut Command) -> Self {
        let mut child = spawn(command);
        let (send, lines) = channel();
        let output = Arc::new(Mutex::new(String::new()));
        let log = Arc::new(Mutex::new(String::new()));
        let stdout = child.stdout.take().expect("stdout is piped");
        let kept = output.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let mut output = kept.lock().unwrap_or_else(PoisonError::into_inner);
                output.push_str(&line);
                output.push('\n');
                drop(output);
                let _ = send.send(line);
            }
        });
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let kept = log.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, address, output, log, lines };
        server.address = server.wait_for_address();
        server
    }

    fn wait_for_address(&self) -> SocketAddr {
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(why) => {
                    // The last log lines arrive shortly after the end of the output.
                    thread::sleep(Duration::from_millis(50));
                    panic!("the server does not start ({why}): {}{}", self.output(), self.log())
                }
            };
            if let Some(url) = line.strip_prefix(LISTENING) {
                let address = url.strip_prefix('s').unwrap_or(url).strip_prefix("://");
                let address = address.and_then(|address| address.parse().ok());
                return address.expect("an address is printed");
            }
        }
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the start-up output is complete.
    pub fn wait_for_output(&self, end: &str) -> String {
        while !self.output().contains(end) {
            let line = self.lines.recv_timeout(PATIENCE);
            assert!(line.is_ok(), "{end:?} is not printed: {}", self.output());
        }
        self.output()
    }

    /// Opens a connection to the server.
    pub fn connect(&self) -> Connection {
        Connection::connect(self.address).expect("the server takes connections")
    }

    /// Requests a graceful shutdown, as a service manager does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Requests a reload of the settings.
    pub fn reload(&self) {
        self.signal(Signal::HUP);
    }

    /// Suspends the process, as if it hung. Returns once it is stopped.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let status = format!("/proc/{}/status", self.id());
        let is_stopped = || {
            let text = std::fs::read_to_string(&status).expect("the process is there");
            text.contains("State:\tT")
        };
        while !is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Continues a suspended process.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the server is running");
    }

    /// Waits until this text was logged.
    pub fn wait_for_log(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not logged: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
        self.log()
    }

    /// Kills the process without any cleanup.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is there to be killed");
        self.child.wait().expect("its exit status is known");
    }

    /// Waits for the process to exit.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its exit status is known") {
                // The last lines are read by then.
                while self.lines.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Disconnected) {}
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not end: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Requests a graceful shutdown and waits for the exit.
    pub fn stop(mut self) {
        self.terminate();
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
    }
}

/// Starts a server and kills it after a delay, whatever its state.
pub fn start_and_kill(command: &mut Command, after: Duration) {
    let mut child = spawn(command);
    thread::sleep(after);
    child.kill().expect("the server is there to be killed");
    child.wait().expect("its exit status is known");
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
