//! A server under test: started on a free local port, awaited, loaded with `wrk`, stopped with all its processes.

use std::any::Any;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::process;
use super::process_group::ProcessGroup;
use super::rounds::{self, Sample};

const READY_MAX: Duration = Duration::from_secs(30);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A kind of server under test.
pub trait ServerKind {
    /// Label in tables.
    fn label(&self) -> &'static str;

    /// Prepares `folder` and returns the command that runs the server in the foreground, on this address.
    fn command(&self, folder: &Path, address: SocketAddr) -> Result<Command, String>;

    /// Prepares `folder` and returns the commands of further processes of the server, which are started before it.
    fn backends(&self, _folder: &Path) -> Result<Vec<Command>, String> {
        Ok(Vec::new())
    }

    /// Uploads the objects to the server at this address, where they are not in place already.
    fn fill(&self, _folder: &Path, _address: SocketAddr) -> Result<(), String> {
        Ok(())
    }

    /// Whether the server must be restarted after filling to reach its full speed.
    fn restarts_when_full(&self) -> bool {
        false
    }

    /// Returns the path of the object with this name.
    fn path(&self, name: &str) -> String;
}

/// A running server. Dropping it stops it.
pub struct Running {
    /// Process groups in the order of their stop.
    processes: Vec<ProcessGroup>,
    /// Ids of the processes whose CPU time is counted, each with its descendants; the first accepts the requests.
    ids: Vec<u32>,
    address: SocketAddr,
    /// Owner of processes that are not in `processes`.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

/// Parameters of one run of `wrk`.
pub struct Load<'a> {
    /// Requested path.
    pub path: &'a str,
    /// Lua script that makes the requests, instead of one for the whole object.
    pub script: Option<String>,
    /// Concurrent connections.
    pub connections: u32,
    /// Duration in seconds.
    pub seconds: u64,
}

impl Running {
    /// Starts a server, waits until it responds, fills it, and requests `name` once.
    pub fn start(kind: &dyn ServerKind, folder: &Path, name: &str) -> Result<Self, String> {
        let mut running = Self::start_empty(kind, folder, name)?;
        kind.fill(folder, running.address)?;
        if kind.restarts_when_full() {
            drop(running);
            running = Self::start_empty(kind, folder, name)?;
        }
        let head = head_request(kind, running.address, name);
        let answer =
            exchange(running.address, head.as_bytes()).map_err(|error| error.to_string())?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(running),
            false => Err(format!("{} answers for {name}: {answer}", kind.label())),
        }
    }

    /// Takes a server with these processes that something else started, and stops when it is dropped.
    pub fn owned(address: SocketAddr, ids: Vec<u32>, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { processes: Vec::new(), ids, address, _owner: Some(owner) }
    }

    /// Starts a server and waits until it responds, with any status.
    ///
    /// # Errors
    ///
    /// When it ends at once, or does not respond within 30 seconds.
    pub fn start_empty(kind: &dyn ServerKind, folder: &Path, name: &str) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        drop(listener);
        let mut running = Self { processes: Vec::new(), ids: Vec::new(), address, _owner: None };
        for mut command in kind.backends(folder)? {
            running.processes.push(ProcessGroup::start(&mut command)?);
        }
        running.processes.insert(0, ProcessGroup::start(&mut kind.command(folder, address)?)?);
        running.ids = running.processes.iter().map(ProcessGroup::id).collect();
        let head = head_request(kind, address, name);
        let deadline = Instant::now() + READY_MAX;
        while let Err(error) = exchange(address, head.as_bytes()) {
            let ended = running.processes.iter_mut().find_map(ProcessGroup::exit_status);
            if let Some(status) = ended {
                return Err(format!("{} ended at once: {status}", kind.label()));
            }
            if Instant::now() > deadline {
                return Err(format!("{} is not ready: {error}", kind.label()));
            }
            std::thread::sleep(POLL);
        }
        Ok(running)
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the id of the process that accepts the requests.
    pub fn id(&self) -> u32 {
        self.ids[0]
    }

    /// Returns the CPU time of all its processes so far.
    pub fn cpu(&self) -> Duration {
        self.ids.iter().map(|id| process::tree_cpu(*id)).sum()
    }

    /// Loads the server for a while.
    pub fn load(&self, folder: &Path, load: &Load<'_>) -> Result<Sample, String> {
        let mut command = Command::new("wrk");
        command.args(["--threads", "1", "--connections", &load.connections.to_string()]);
        command.args(["--duration", &format!("{}s", load.seconds), "--timeout", "10s"]);
        if let Some(text) = &load.script {
            let script = folder.join("requests.lua");
            fs::write(&script, text).map_err(|error| error.to_string())?;
            command.arg("--script").arg(script);
        }
        command.arg(format!("http://{}{}", self.address, load.path));
        let (started, cpu) = (Instant::now(), self.cpu());
        let output = command.output().map_err(|error| format!("wrk: {error}"))?;
        let (elapsed, cpu) = (started.elapsed(), self.cpu().saturating_sub(cpu));
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("wrk: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let requests = parse(&text)?;
        Ok(rounds::sample(requests, elapsed, cpu))
    }
}

fn head_request(kind: &dyn ServerKind, address: SocketAddr, name: &str) -> String {
    format!("HEAD {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n", kind.path(name))
}

/// Checks that a program is installed: it need not succeed, but it must start.
pub fn require_program(name: &str, install: &str) -> Result<(), String> {
    let started = Command::new(name).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.map(drop).map_err(|error| format!("{name} is missing ({error}): {install}"))
}

/// Uploads a file as a form with one part, as browsers and game servers do.
pub fn post_file(
    address: SocketAddr,
    path: &str,
    api_key: &str,
    file: &Path,
) -> Result<(), String> {
    let body = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    let length = part.len() + body.len() + end.len();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer {api_key}\r\nContent-Length: {length}\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{part}"
    )
    .into_bytes();
    request.extend_from_slice(&body);
    request.extend_from_slice(end.as_bytes());
    let answer = exchange(address, &request).map_err(|error| format!("POST {path}: {error}"))?;
    match answer.starts_with("HTTP/1.1 2") {
        true => Ok(()),
        false => Err(format!("POST {path}: {answer}")),
    }
}

const BOUNDARY: &str = "----bench-7d1f20c3";

/// Sends a request and returns the status line of the response.
fn exchange(address: SocketAddr, request: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    stream.write_all(request)?;
    let mut answer = [0; 512];
    let length = stream.read(&mut answer)?;
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    match text.lines().next() {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Returns the number of requests of a run of `wrk`; an error when any of them failed.
fn parse(text: &str) -> Result<u64, String> {
    if let Some(line) =
        text.lines().find(|line| line.contains("Socket errors") || line.contains("Non-2xx"))
    {
        return Err(format!("wrk: {}", line.trim()));
    }
    let line = text.lines().find(|line| line.contains(" requests in "));
    let requests = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    requests.ok_or_else(|| format!("wrk printed no count:\n{text}"))
}
