//! Puts over HTTP from many connections of one thread.
//!
//! The thread waits for all connections at once (epoll): each sends its next put as soon as the response to its last
//! one has arrived. Content differs in each put: servers that store equal content once gain nothing.
//!
//! Guarantees: no request is under way when a run is over. Non-goals: bodies of responses, and responses without a
//! `Content-Length`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

use super::data;
use super::rounds::{self, Sample};
use super::server::Running;

const SEED: u64 = 8;
/// Bytes at the start of the content that are the number of the put.
const NUMBER_BYTES: usize = 8;
const NO_CONTENT: &[u8] = b"204";
/// Statuses of successful puts.
const SUCCESSES: [&[u8]; 3] = [b"200", b"201", NO_CONTENT];
const RESPONSE_TIMEOUT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// Requests of a load.
pub struct PutRequests<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// Length of the content in bytes: at least 8.
    pub bytes: usize,
    /// Bytes of the request body before and after the content.
    pub frame: (&'a str, &'a str),
    /// Returns the head of the put with this number, for a request body of so many bytes.
    pub head: &'a dyn Fn(u64, usize) -> String,
}

/// Measured part of a run: after a warm-up of a quarter of its length.
#[derive(Clone, Copy)]
pub struct Window {
    /// Maximum duration.
    pub length: Duration,
    /// Maximum number of puts.
    pub puts_max: u64,
}

/// Runs puts on so many connections, and measures those in the window. Numbers of puts begin at `next`, which is then
/// the first number that was not put.
///
/// # Errors
///
/// A response other than 200, 201 and 204, or a failed connection.
pub fn measure(
    server: &Running,
    requests: &PutRequests<'_>,
    connections: usize,
    window: Window,
    next: &mut u64,
) -> Result<Sample, String> {
    let mut load = Load::open(requests, connections)?;
    let began = Instant::now();
    load.run(next, |load| load.count < window.puts_max / 4 && began.elapsed() < window.length / 4)?;
    let (before, cpu, started) = (load.count, server.cpu(), Instant::now());
    load.run(next, |load| {
        load.count - before < window.puts_max && started.elapsed() < window.length
    })?;
    let cpu = server.cpu().saturating_sub(cpu);
    let sample = rounds::sample(load.count - before, started.elapsed(), cpu);
    load.finish()?;
    Ok(sample)
}

/// Puts `count` objects over so many connections.
///
/// # Errors
///
/// As of [`measure`].
pub fn fill(requests: &PutRequests<'_>, connections: usize, count: u64) -> Result<(), String> {
    let mut load = Load::open(requests, connections.min(count as usize))?;
    load.last = count;
    let mut next = 0;
    load.run(&mut next, |load| load.count < count)?;
    load.finish()
}

/// Connections of a run.
struct Load<'a> {
    requests: &'a PutRequests<'a>,
    poll: OwnedFd,
    clients: Vec<Client>,
    /// Number of successful responses.
    count: u64,
    /// Number of the first put that is not sent.
    last: u64,
}

impl<'a> Load<'a> {
    fn open(requests: &'a PutRequests<'a>, connections: usize) -> Result<Self, String> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?;
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections as u64 {
            let client = Client::open(requests, number).map_err(text)?;
            let events = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&poll, &client.stream, epoll::EventData::new_u64(number), events)
                .map_err(errno)?;
            clients.push(client);
        }
        Ok(Self { requests, poll, clients, count: 0, last: u64::MAX })
    }

    /// Sends puts while the condition holds, beginning with all connections: earlier events are not reported again.
    fn run(&mut self, next: &mut u64, is_open: impl Fn(&Self) -> bool) -> Result<(), String> {
        let mut ready: Vec<usize> = (0..self.clients.len()).collect();
        loop {
            for number in ready {
                self.advance(number, Some(next))?;
            }
            if !is_open(self) {
                return Ok(());
            }
            ready = self.wait()?;
        }
    }

    /// Waits for the responses to all requests that are under way.
    fn finish(mut self) -> Result<(), String> {
        let mut ready: Vec<usize> = (0..self.clients.len()).collect();
        loop {
            for number in ready {
                self.advance(number, None)?;
            }
            if self.clients.iter().all(|client| client.is_idle) {
                return Ok(());
            }
            ready = self.wait()?;
        }
    }

    /// Waits for events, and returns the numbers of the connections with any.
    fn wait(&self) -> Result<Vec<usize>, String> {
        let mut events = Vec::with_capacity(self.clients.len());
        let buffer = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.poll, buffer, Some(&RESPONSE_TIMEOUT)) {
            Ok(0) => {
                return Err(format!("no response within {} seconds", RESPONSE_TIMEOUT.tv_sec));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno(error)),
        }
        Ok(events.iter().map(|event| event.data.u64() as usize).collect())
    }

    /// Sends and receives on a connection without blocking; begins further puts if there are numbers for them.
    fn advance(&mut self, number: usize, mut next: Option<&mut u64>) -> Result<(), String> {
        let client = &mut self.clients[number];
        loop {
            if client.is_idle {
                match &mut next {
                    Some(next) if **next < self.last => {
                        client.begin(self.requests, **next);
                        **next += 1;
                    }
                    _ => return Ok(()),
                }
            }
            if !client.advance()? {
                return Ok(());
            }
            self.count += 1;
        }
    }
}

/// A connection that puts one object after another.
struct Client {
    stream: TcpStream,
    head: Vec<u8>,
    body: Vec<u8>,
    /// Sent bytes of head and body.
    sent: usize,
    response: Vec<u8>,
    /// Whether no request is under way.
    is_idle: bool,
}

impl Client {
    fn open(requests: &PutRequests<'_>, number: u64) -> io::Result<Self> {
        let stream = TcpStream::connect(requests.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (before, after) = requests.frame;
        let content = data::bytes(SEED + number, requests.bytes);
        let body = [before.as_bytes(), &content, after.as_bytes()].concat();
        Ok(Self { stream, head: Vec::new(), body, sent: 0, response: Vec::new(), is_idle: true })
    }

    /// Prepares the put with this number.
    fn begin(&mut self, requests: &PutRequests<'_>, number: u64) {
        let content_at = requests.frame.0.len();
        self.body[content_at..content_at + NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        self.head = (requests.head)(number, self.body.len()).into_bytes();
        self.sent = 0;
        self.is_idle = false;
    }

    /// Sends and receives without blocking. Returns true when a whole response arrived and was a success.
    fn advance(&mut self) -> Result<bool, String> {
        while self.sent < self.head.len() + self.body.len() {
            let head = &self.head[self.sent.min(self.head.len())..];
            let body = &self.body[self.sent.saturating_sub(self.head.len())..];
            match self.stream.write_vectored(&[io::IoSlice::new(head), io::IoSlice::new(body)]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(text(error)),
            }
        }
        let mut piece = [0; 8 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                Ok(read) => self.response.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(text(error)),
            }
            if let Some(whole) = response_length(&self.response) {
                let is_success = SUCCESSES.contains(&status(&self.response));
                if !is_success || self.response.len() != whole {
                    return Err(String::from_utf8_lossy(&self.response).into_owned());
                }
                self.response.clear();
                self.is_idle = true;
                return Ok(true);
            }
        }
    }
}

/// Returns the length of the response at the start of these bytes, once it is complete.
fn response_length(bytes: &[u8]) -> Option<usize> {
    let head_bytes = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..head_bytes]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = head_bytes + length.or_else(|| (status(bytes) == NO_CONTENT).then_some(0))?;
    (bytes.len() >= whole).then_some(whole)
}

/// Returns the digits of the status of a response; nothing where it is not complete.
fn status(response: &[u8]) -> &[u8] {
    response.get(9..12).unwrap_or_default()
}

fn text(error: io::Error) -> String {
    error.to_string()
}

fn errno(error: rustix::io::Errno) -> String {
    error.to_string()
}
