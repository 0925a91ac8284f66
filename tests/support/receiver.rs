//! Webhook receiver for tests: HTTP/1.1 on a port of its own, with or without TLS, with a thread for each connection.
//!
//! It records requests and sends scripted responses. Guarantees: an answered request is recorded. Non-goals: checks of
//! the requests.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// Timeout for expected requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The receiver.
#[derive(Clone)]
pub struct Receiver(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    scheme: &'static str,
    state: Mutex<State>,
    changed: Condvar,
    connections: AtomicUsize,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    script: VecDeque<Scripted>,
    otherwise: Option<Scripted>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Request line.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Number of its connection, from 1.
    pub connection: usize,
}

/// A scripted response.
#[derive(Clone, Debug)]
pub struct Scripted {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// Delay before the response.
    pub wait: Duration,
}

impl Scripted {
    /// Builds a response without delay.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), wait: Duration::ZERO }
    }
}

impl Receiver {
    /// Starts to listen.
    pub fn start() -> Self {
        Self::listen("http", None)
    }

    /// Starts to listen with TLS.
    pub fn start_tls(config: Arc<ServerConfig>) -> Self {
        Self::listen("https", Some(config))
    }

    fn listen(scheme: &'static str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let inner = Arc::new(Inner {
            address: listener.local_addr().expect("the port is known"),
            scheme,
            state: Mutex::default(),
            changed: Condvar::new(),
            connections: AtomicUsize::new(0),
        });
        let receiver = Self(inner);
        let served = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (served, tls) = (served.clone(), tls.clone());
                let connection = served.0.connections.fetch_add(1, Ordering::SeqCst) + 1;
                // The sender observes a failure.
                thread::spawn(move || drop(served.serve(stream, tls, connection)));
            }
        });
        receiver
    }

    /// Returns the origin, which an operator must allow for webhooks to be delivered here.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.0.scheme, self.0.address)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    pub fn port(&self) -> u16 {
        self.0.address.port()
    }

    /// Appends responses to the script.
    pub fn script(&self, answers: impl IntoIterator<Item = Scripted>) {
        self.state().script.extend(answers);
    }

    /// Sets the response after the end of the script; the default is 200.
    pub fn otherwise(&self, answer: Scripted) {
        self.state().otherwise = Some(answer);
    }

    /// Returns all recorded requests.
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Returns the requests recorded since the last call.
    pub fn take_received(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// Waits until the recorded requests satisfy the condition.
    pub fn wait_until(&self, is_there: impl Fn(&[Seen]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !is_there(&state.seen) {
            assert!(Instant::now() < deadline, "it does not come: {:?}", state.seen);
            let waited = self.0.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the recorded requests satisfy the condition, for tests whose server runs on their own thread.
    pub async fn wait_until_async(&self, is_there: impl Fn(&[Seen]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there(&self.state().seen) {
            assert!(Instant::now() < deadline, "it does not come: {:?}", self.seen());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(
        &self,
        stream: TcpStream,
        tls: Option<Arc<ServerConfig>>,
        connection: usize,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        match tls {
            None => self.serve_requests(stream, connection),
            Some(config) => {
                let session = ServerConnection::new(config).map_err(io::Error::other)?;
                self.serve_requests(StreamOwned::new(session, stream), connection)
            }
        }
    }

    fn serve_requests(&self, stream: impl Read + Write, connection: usize) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(seen) = Seen::read(&mut stream, connection)? {
            let answer = {
                let mut state = self.state();
                state.seen.push(seen);
                let scripted = state.script.pop_front().or_else(|| state.otherwise.clone());
                scripted.unwrap_or_else(|| Scripted::status(200))
            };
            self.0.changed.notify_all();
            thread::sleep(answer.wait);
            let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
            for (name, value) in &answer.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("content-length: {}\r\n\r\n", answer.body.len()));
            stream.get_mut().write_all((head + &answer.body).as_bytes())?;
            stream.get_mut().flush()?;
        }
        Ok(())
    }
}

impl Seen {
    fn read(stream: &mut impl BufRead, connection: usize) -> io::Result<Option<Self>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let headers: Vec<(String, String)> = lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let line = lines.first().cloned().unwrap_or_default();
        let mut seen = Self { line, headers, body: Vec::new(), connection };
        seen.body = vec![0; seen.header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut seen.body)?;
        Ok(Some(seen))
    }

    /// Returns the value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// Returns the kind of event and the key from the body.
    pub fn kind_and_key(&self) -> (String, String) {
        let json = self.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&json["type"]), text(&json["data"]["key"]))
    }
}
