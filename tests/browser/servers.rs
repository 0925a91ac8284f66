//! Servers of single tests: started, killed and started again where they listened, when the suite asks for it.
//!
//! The suite sends a line of JSON on a connection, `{"do": "start"}` or one of the others with the `name` that the answer
//! to that had, and reads a line. Promises: no server outlives this value. Never here: what is tested with them.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tests::{DataFolder, ServerProcess};

/// Below the ports that the system gives to connections, so that none takes one while its server is down.
const PORTS: std::ops::Range<u16> = 21_000..31_000;
/// How what a server of an empty folder prints at the start ends.
const FIRST_LINES_END: &str = "pics/hello.txt\n";

/// All of them, by the name that the suite knows.
type Named = HashMap<String, Running>;

/// A server, and what it stands on.
struct Running {
    data: DataFolder,
    listen: String,
    server: ServerProcess,
}

/// Servers that are there as long as this is.
pub(crate) struct Servers {
    all: Arc<Mutex<Named>>,
    address: SocketAddr,
}

impl Servers {
    /// Begins to listen to the suite.
    pub(crate) fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let all = Arc::new(Mutex::new(Named::new()));
        let shared = all.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                // The suite says what it missed when a connection ends early.
                thread::spawn(move || answer(&stream, &shared));
            }
        });
        Ok(Self { all, address })
    }

    /// Where the suite asks.
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

/// Answers one line.
fn answer(mut stream: &TcpStream, all: &Mutex<Named>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let asked: Value = serde_json::from_str(&line)?;
    let name = asked["name"].as_str().unwrap_or_default();
    let told = match asked["do"].as_str() {
        Some("start") => start(all),
        Some("kill") => with(all, name, |it| it.server.kill()),
        Some("start again") => {
            with(all, name, |it| it.server = it.data.serve_with(&it.arguments()))
        }
        Some("stop") => match locked(all).remove(name) {
            Some(it) => {
                it.server.stop();
                json!({})
            }
            None => unknown(name),
        },
        _ => json!({"error": format!("nobody knows what to do: {line}")}),
    };
    writeln!(stream, "{told}")
}

/// A server over an empty folder, as somebody starts it who has never used it.
fn start(all: &Mutex<Named>) -> Value {
    let data = DataFolder::new();
    let mut all = locked(all);
    let listen = free_address(&all);
    let server = data.serve_with(&["--listen", &listen]);
    let printed = server.wait_for_output(FIRST_LINES_END);
    let base = format!("http://{}", server.address());
    let name = format!("server {}", server.id());
    all.insert(name.clone(), Running { data, listen, server });
    json!({"name": name, "base": base, "printed": printed})
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

/// An address on which nothing listens, and none of these when it is started again. Whoever begins at another place in
/// the range is less likely to want the same.
fn free_address(all: &Named) -> String {
    let count = PORTS.end - PORTS.start;
    let from = (std::process::id() % u32::from(count)) as u16;
    let ports = (0..count).map(|step| PORTS.start + (from + step) % count);
    let mut addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    let is_kept = |it: &str| all.values().any(|running| running.listen == it);
    addresses.find(|it| !is_kept(it) && TcpListener::bind(it).is_ok()).expect("a port is free")
}

impl Running {
    fn arguments(&self) -> [&str; 2] {
        ["--listen", &self.listen]
    }
}
