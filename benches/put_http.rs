//! Durable puts per second over HTTP, as forms, compared with those of the engine alone.
//!
//! Expected: a small group costs the engine about 25 us of CPU for each put, and a request costs the server about 15 us
//! more than that for sockets, heads and the form, with the load generator on the same two cores. So about half of the
//! engine's rate, of 4 KiB from 64 clients.
//!
//! The clients are connections of one thread that waits for all of them at once (epoll): each sends a prepared form as
//! soon as the response to its last one has arrived. Server and engine each have a store of their own on the same disk,
//! and take turns. Every acknowledged put is durable in both.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benches::arguments::Arguments;
use benches::rounds::{self, Sample};
use benches::server::Running;
use benches::table::{self, Table};
use benches::trug::{BUCKET, Trug};
use benches::{data, folder, get_latency, process, stores};
use engine::Store;
use rustix::event::{Timespec, epoll};

const SEED: u64 = 8;
const CLIENTS: usize = 64;
const BYTES: usize = 4 << 10;
const BOUNDARY: &str = "----bench-7d1f20c3";
/// Maximum bytes written per round, approximately.
const MEMORY_BYTES: usize = 1 << 30;

fn main() -> ExitCode {
    Arguments::run("put_http", run)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (round_count, length) = if arguments.quick { (1, 300) } else { (7, 1_000) };
    let length = Duration::from_millis(length);
    let bytes = arguments.number("--size").map_or(BYTES, |size| size as usize);
    let clients = arguments.number("--clients").map_or(CLIENTS, |clients| clients as usize);
    let program = Trug::chosen(arguments)?;
    let folder = folder::make(&arguments.data_folder()).map_err(text)?;
    let kind = Trug {
        program,
        files: get_latency::make_files(folder.path()).map_err(text)?,
        names: vec![get_latency::SMALL.to_owned()],
        settings: vec![("TRUG_PLAN_RATES", "false".to_owned())],
    };
    let server = Running::start(&kind, folder.path(), get_latency::SMALL)?;
    let key = fs::read_to_string(folder.path().join("api-key")).map_err(text)?;
    let engine = stores::open(&folder.path().join("engine")).0;
    process::touch_memory(MEMORY_BYTES);

    let next = AtomicU64::new(0);
    let mut failed = None;
    let samples = rounds::interleaved(round_count, 2, |contestant| {
        let sample = match contestant {
            0 => {
                let form = Form { address: server.address(), key: &key, bytes };
                over_http(&server, &form, clients, length, &next)
            }
            _ => Ok(alone(&engine, clients, bytes, length, &next)),
        };
        let forgotten = folder::drop_page_cache(folder.path()).map_err(text);
        sample.and_then(|sample| forgotten.map(|()| sample)).unwrap_or_else(|why| {
            failed = Some(why);
            Sample::default()
        })
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let mut table = Table::new(&[
        "object",
        "clients",
        "HTTP, puts/s",
        "engine",
        "HTTP / engine",
        "CPU us: server",
        "engine",
    ]);
    let (low, high) = rounds::spread(&samples[0], &samples[1]);
    table.row(vec![
        table::bytes(bytes as u64),
        clients.to_string(),
        table::count(rounds::rate(&samples[0])),
        table::count(rounds::rate(&samples[1])),
        format!("{:.2} ({low:.2}-{high:.2})", rounds::ratio(&samples[0], &samples[1])),
        table::figure(rounds::cpu_us(&samples[0])),
        table::figure(rounds::cpu_us(&samples[1])),
    ]);
    table.print();
    println!("Not compared with Garage, RustFS or Swift: this bench speaks forms only.");
    Ok(())
}

/// Request content of a client.
struct Form<'a> {
    address: SocketAddr,
    key: &'a str,
    bytes: usize,
}

impl Form<'_> {
    /// Returns the request that puts a body of `client`, and the offset of the body in it.
    fn request(&self, client: u64) -> (Vec<u8>, usize) {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jpg\"\r\n\
             Content-Type: image/jpeg\r\n\r\n"
        );
        let end = format!("\r\n--{BOUNDARY}--\r\n");
        let length = part.len() + self.bytes + end.len();
        let head = format!(
            "POST /{BUCKET}/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {length}\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n\
             \r\n{part}",
            data::key(SEED, 0),
            self.address,
            self.key,
        );
        let body_at = head.len();
        let mut request = head.into_bytes();
        request.extend_from_slice(&data::bytes(SEED + client, self.bytes));
        request.extend_from_slice(end.as_bytes());
        (request, body_at)
    }
}

/// A connection that puts one object after another.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    body_at: usize,
    sent: usize,
    response: Vec<u8>,
}

impl Client {
    fn open(form: &Form<'_>, client: u64) -> io::Result<Self> {
        let stream = TcpStream::connect(form.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (request, body_at) = form.request(client);
        Ok(Self { stream, sent: request.len(), request, body_at, response: Vec::new() })
    }

    /// Prepares the request for an object with this number.
    fn prepare(&mut self, number: u64) {
        let key = data::key(SEED, number);
        let key_at = format!("POST /{BUCKET}/").len();
        self.request[key_at..key_at + key.len()].copy_from_slice(key.as_bytes());
        self.request[self.body_at..self.body_at + 8].copy_from_slice(&number.to_le_bytes());
        self.sent = 0;
    }

    /// Sends and receives without blocking. Returns true when a whole response arrived and was a success.
    fn advance(&mut self) -> Result<bool, String> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(text(error)),
            }
        }
        let mut piece = [0; 8 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err("the server hung up".to_owned()),
                Ok(read) => self.response.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(text(error)),
            }
            if let Some(whole) = response_length(&self.response) {
                if !self.response.starts_with(b"HTTP/1.1 200") || self.response.len() != whole {
                    return Err(String::from_utf8_lossy(&self.response).into_owned());
                }
                self.response.clear();
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
    let whole = head_bytes + length?;
    (bytes.len() >= whole).then_some(whole)
}

/// Runs all clients for a while, and counts the responses in a window that starts after the warm-up.
fn over_http(
    server: &Running,
    form: &Form<'_>,
    clients: usize,
    length: Duration,
    next: &AtomicU64,
) -> Result<Sample, String> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?;
    let mut all = Vec::with_capacity(clients);
    for number in 0..clients as u64 {
        let mut client = Client::open(form, number).map_err(text)?;
        let wish = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&poll, &client.stream, epoll::EventData::new_u64(number), wish)
            .map_err(errno)?;
        client.prepare(next.fetch_add(1, Ordering::Relaxed));
        all.push(client);
    }
    let (began, mut window, mut count) = (Instant::now(), None, 0);
    let mut events = Vec::with_capacity(clients);
    loop {
        let now = Instant::now();
        match window {
            None if now - began >= length / 4 => window = Some((now, server.cpu(), count)),
            Some((from, cpu, before)) if now - from >= length => {
                let cpu = server.cpu().saturating_sub(cpu);
                return Ok(rounds::sample(count - before, now - from, cpu));
            }
            _ => {}
        }
        events.clear();
        let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&poll, buffer, Some(&patience)).map_err(errno)?;
        for event in &events {
            let client = &mut all[event.data.u64() as usize];
            while client.advance()? {
                count += 1;
                client.prepare(next.fetch_add(1, Ordering::Relaxed));
            }
        }
    }
}

/// Measures the same puts from threads that call the engine.
fn alone(
    store: &Store,
    writers: usize,
    bytes: usize,
    length: Duration,
    next: &AtomicU64,
) -> Sample {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..writers as u64 {
            let (done, stop) = (&done, &stop);
            scope.spawn(move || {
                let mut body = data::bytes(SEED + writer, bytes);
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    body[..8].copy_from_slice(&number.to_le_bytes());
                    stores::put(store, data::name(SEED, number), &body);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(length / 4);
        let before = (done.load(Ordering::Relaxed), Instant::now(), process::own_cpu());
        thread::sleep(length);
        let count = done.load(Ordering::Relaxed) - before.0;
        let sample = rounds::sample(count, before.1.elapsed(), process::own_cpu() - before.2);
        stop.store(true, Ordering::Relaxed);
        sample
    })
}

fn text(error: io::Error) -> String {
    error.to_string()
}

fn errno(error: rustix::io::Errno) -> String {
    error.to_string()
}
