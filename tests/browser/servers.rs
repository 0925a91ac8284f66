//! Servers of single tests: started, killed and restarted at the same address, as the suite requests.
//!
//! The suite sends a line of JSON on a connection, `{"do": "start"}` or one of the others with the `name` from the
//! response to that, and reads a line. Guarantees: no server outlives this value. Non-goals: the tests that use them.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::free_address::free_address;
use tests::{DataFolder, ServerProcess};

use crate::{PASSWORD, past, write_archive};

/// End of the start-up output of a server with an empty folder.
const FIRST_LINES_END: &str = " account password ";
/// Length of the alternating pauses and work periods of a slow server.
const RESTS: Duration = Duration::from_millis(100);
const WORKS: Duration = Duration::from_millis(3);

/// All servers, by the name that the suite knows.
type Named = HashMap<String, Running>;

/// A server, and its data.
struct Running {
    /// Declared before the server, which it stops and resumes.
    slow: Option<Slow>,
    server: ServerProcess,
    arguments: Vec<String>,
    data: DataFolder,
}

/// Servers, which live as long as this value.
pub(crate) struct Servers {
    all: Arc<Mutex<Named>>,
    address: SocketAddr,
}

impl Servers {
    /// Starts to listen to the suite.
    pub(crate) fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let all = Arc::new(Mutex::new(Named::new()));
        let shared = all.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                // The suite reports a connection that ends early.
                thread::spawn(move || answer(&stream, &shared));
            }
        });
        Ok(Self { all, address })
    }

    /// Returns the address for the suite.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        locked(&self.all).clear();
    }
}

fn locked(all: &Mutex<Named>) -> MutexGuard<'_, Named> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Responds to one line.
fn answer(mut stream: &TcpStream, all: &Mutex<Named>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let asked: Value = serde_json::from_str(&line)?;
    let name = asked["name"].as_str().unwrap_or_default();
    let reply = match asked["do"].as_str() {
        Some("start") => start(all, &asked),
        Some("start with a past") => start_with_past(all, &asked),
        Some("kill") => with(all, name, |it| {
            it.slow = None;
            it.server.kill();
        }),
        Some("start again") => with(all, name, |it| it.server = it.serve()),
        Some("slow down") => with(all, name, |it| it.slow = Some(Slow::down(&it.server))),
        Some("speed up") => with(all, name, |it| it.slow = None),
        Some("damage") => with(all, name, |it| {
            it.data.damage(asked["text"].as_str().unwrap_or_default().as_bytes());
        }),
        Some("stop") => match locked(all).remove(name) {
            Some(Running { slow, server, .. }) => {
                drop(slow);
                server.stop();
                json!({})
            }
            None => unknown(name),
        },
        _ => json!({"error": format!("nobody knows what to do: {line}")}),
    };
    writeln!(stream, "{reply}")
}

/// Starts a server over an empty folder, or over one with an account without a password.
fn start(all: &Mutex<Named>, asked: &Value) -> Value {
    let data = match asked["account"].as_bool() {
        Some(true) => DataFolder::with_bucket().0,
        _ => DataFolder::new(),
    };
    let mut reply = serve(all, data, &[]);
    let name = reply["name"].as_str().unwrap_or_default();
    let printed = locked(all)[name].server.wait_for_output(FIRST_LINES_END);
    reply["printed"] = printed.into();
    reply
}

/// Starts a server over a store with history. Its webhooks go to the `receiver`, from which it also imports files; as
/// many `files` as requested are in the bucket `heap`.
fn start_with_past(all: &Mutex<Named>, asked: &Value) -> Value {
    let data = DataFolder::new();
    let receiver = asked["receiver"].as_str().unwrap_or_default();
    let past = past::live(&data, PASSWORD, receiver);
    if let Some(count @ 1..) = asked["files"].as_u64() {
        let archive = data.parent().join("heap.tar");
        write_archive(&archive, "sub/", count as usize);
        data.done(&["bucket", "create", "--account", "olga", "--name", "heap"]);
        data.done(&["import", "--bucket", "heap", "--from", archive.to_str().expect("a path")]);
    }
    let config = data.parent().join("trug.toml");
    let allowed = format!("webhook_allow = {receiver:?}\nimport_allow = {receiver:?}\n");
    fs::write(&config, allowed).expect("the folder takes files");
    let config = config.to_str().expect("a path").to_owned();
    let mut reply = serve(all, data, &["--config".to_owned(), config]);
    reply["past"] = past;
    reply
}

/// Starts a server of the folder.
fn serve(all: &Mutex<Named>, data: DataFolder, more: &[String]) -> Value {
    let listen = free_address().to_string();
    let arguments = [&["--listen".to_owned(), listen], more].concat();
    let server = serve_with(&data, &arguments);
    let base = format!("http://{}", server.address());
    let name = format!("server {}", server.id());
    locked(all).insert(name.clone(), Running { slow: None, server, arguments, data });
    json!({"name": name, "base": base})
}

fn serve_with(data: &DataFolder, arguments: &[String]) -> ServerProcess {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    data.serve_with(&arguments)
}

fn with(all: &Mutex<Named>, name: &str, work: impl FnOnce(&mut Running)) -> Value {
    match locked(all).get_mut(name) {
        Some(it) => {
            work(it);
            json!({"log": it.server.log()})
        }
        None => unknown(name),
    }
}

fn unknown(name: &str) -> Value {
    json!({"error": format!("there is no {name}")})
}

impl Running {
    fn serve(&self) -> ServerProcess {
        serve_with(&self.data, &self.arguments)
    }
}

/// A server that runs intermittently, as on a busy machine. It is at full speed again when this is dropped, which is
/// before it ends.
struct Slow {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Slow {
    fn down(server: &ServerProcess) -> Self {
        let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("it has a number");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _ = kill_process(pid, Signal::STOP);
                thread::sleep(RESTS);
                let _ = kill_process(pid, Signal::CONT);
                thread::sleep(WORKS);
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
