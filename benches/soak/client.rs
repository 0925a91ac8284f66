//! One client connection, and the requests that it sends.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use benches::data::{self, SeededRng};
use benches::table;
use benches::trug::BUCKET;
use serde_json::Value;
use tests::Form;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::PICTURE;

/// Maximum pause between two requests of a connection; the mean is half of it.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Response timeout: a server that is silent for longer has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of files of a connection.
const FILES_MAX: usize = 6;
/// Number of different widths requested of the picture: more than the cached variants of one picture.
const WIDTHS: u64 = 400;

/// Kind of request, its percentage, and whether it may be rejected because of load.
const KINDS: [(Kind, u64, bool); 7] = [
    (Kind::Download, 62, false),
    (Kind::Range, 8, false),
    (Kind::Upload, 12, false),
    (Kind::Delete, 6, false),
    (Kind::List, 5, false),
    (Kind::Search, 3, true),
    (Kind::Picture, 4, true),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Download,
    Range,
    Upload,
    Delete,
    List,
    Search,
    Picture,
}

/// State shared by all connections.
pub(crate) struct Shared {
    address: SocketAddr,
    key: String,
    is_over: AtomicBool,
    seen: Mutex<Seen>,
}

/// Recorded responses.
#[derive(Default)]
struct Seen {
    /// Responses since the last report.
    latest: Times,
    /// Durations by kind, from the start.
    all: BTreeMap<Kind, Vec<u32>>,
    rejected: BTreeMap<Kind, u64>,
    /// First failed check.
    fault: Option<String>,
}

/// Response times in microseconds.
#[derive(Default)]
pub(crate) struct Times {
    /// Pictures, most of which are rendered rather than cached.
    pub(crate) pictures: Vec<u32>,
    /// All other requests.
    pub(crate) others: Vec<u32>,
}

/// Files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientStats {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl AddAssign for ClientStats {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl Shared {
    pub(crate) fn new(address: SocketAddr, key: String) -> Self {
        Self { address, key, is_over: AtomicBool::new(false), seen: Mutex::default() }
    }

    /// Stops all connections after their pending responses.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.seen().fault.clone()
    }

    /// Returns the response times since the last call, sorted.
    pub(crate) fn take_latest(&self) -> Times {
        let mut latest = std::mem::take(&mut self.seen().latest);
        latest.pictures.sort_unstable();
        latest.others.sort_unstable();
        latest
    }

    /// Returns the table rows of each kind.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let mut seen = self.seen();
        let Seen { all, rejected: refused, .. } = &mut *seen;
        let row = |(kind, times): (&Kind, &mut Vec<u32>)| {
            times.sort_unstable();
            let ms = |of: f64| table::figure(f64::from(at(times, of)) / 1e3);
            let refused = refused.get(kind).copied().unwrap_or(0);
            let (count, refused) = (table::count(times.len() as f64), table::count(refused as f64));
            vec![format!("{kind:?}").to_lowercase(), count, ms(0.5), ms(0.99), refused]
        };
        all.iter_mut().map(row).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the given quantile; 0 for an empty slice.
pub(crate) fn at(sorted: &[u32], part: f64) -> u32 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// One connection, with a folder of its own.
pub(crate) struct Client {
    number: u64,
    shared: Arc<Shared>,
    random: SeededRng,
    /// Lengths of its files, and the seeds of their bytes, by name.
    files: BTreeMap<String, (usize, u64)>,
    stream: Option<BufReader<TcpStream>>,
}

/// A response.
struct Response {
    status: u16,
    body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(number: u64, shared: Arc<Shared>) -> Self {
        let random = SeededRng::new(number.wrapping_mul(0x9E37_79B9));
        Self { number, shared, random, files: BTreeMap::new(), stream: None }
    }

    /// Sends requests until all are stopped; returns the files that remain.
    pub(crate) async fn run(mut self) -> ClientStats {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let pause = self.random.below(PAUSE_MAX.as_millis() as u64);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let (kind, may_refuse) = self.kind();
            let asked = tokio::time::timeout(RESPONSE_TIMEOUT, self.request(kind));
            let fault = match asked.await {
                Ok(Ok((took, 200..300))) => {
                    self.count(kind, took);
                    continue;
                }
                Ok(Ok((_, 429 | 503))) if may_refuse => {
                    *self.shared.seen().rejected.entry(kind).or_default() += 1;
                    continue;
                }
                Ok(Ok((_, status))) => status.to_string(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let fault = format!("connection {}, {kind:?}: {fault}", self.number);
            self.shared.seen().fault.get_or_insert(fault);
            break;
        }
        let bytes = self.files.values().map(|(length, _)| *length as u64).sum();
        ClientStats { files: self.files.len() as u64, bytes }
    }

    fn count(&self, kind: Kind, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut seen = self.shared.seen();
        match kind {
            Kind::Picture => seen.latest.pictures.push(micros),
            _ => seen.latest.others.push(micros),
        }
        seen.all.entry(kind).or_default().push(micros);
    }

    fn kind(&mut self) -> (Kind, bool) {
        let mut left = self.random.below(100);
        for (kind, of_hundred, may_refuse) in KINDS {
            if left < of_hundred {
                return (kind, may_refuse);
            }
            left -= of_hundred;
        }
        (Kind::Download, false)
    }

    /// Returns the response time and the status; an error for an unexpected response.
    async fn request(&mut self, kind: Kind) -> io::Result<(Duration, u16)> {
        let folder = format!("c{}", self.number);
        let chosen = self.random.below(self.files.len() as u64) as usize;
        let own = self.files.iter().nth(chosen).map(|(name, file)| (name.clone(), *file));
        // A client without a file to read or delete uploads one.
        let Some((name, (length, seed))) = own else { return self.upload(&folder).await };
        let path = format!("/{BUCKET}/{folder}/{name}");
        match kind {
            Kind::Upload => self.upload(&folder).await,
            Kind::Download => {
                let (took, answer) = self.exchange("GET", &path, &[], b"").await?;
                same(&answer, 200, &data::bytes(seed, length))?;
                Ok((took, answer.status))
            }
            Kind::Range => {
                let range = format!("bytes={}-", length / 2);
                let (took, answer) = self.exchange("GET", &path, &[("Range", &range)], b"").await?;
                same(&answer, 206, &data::bytes(seed, length)[length / 2..])?;
                Ok((took, answer.status))
            }
            Kind::Delete => {
                let (took, answer) = self.exchange("DELETE", &path, &[], b"").await?;
                if answer.status == 200 {
                    self.files.remove(&name);
                }
                Ok((took, answer.status))
            }
            Kind::List => {
                let path = format!("/api/list-objects?bucketName={BUCKET}&prefix={folder}/");
                let (took, answer) = self.exchange("GET", &path, &[], b"").await?;
                let page: Value = serde_json::from_slice(&answer.body)?;
                let listed = page["Contents"].as_array().map(|entries| {
                    entries.iter().map(|entry| (entry["Key"].as_str(), entry["Size"].as_u64()))
                });
                let keys: Vec<String> =
                    self.files.keys().map(|name| format!("{folder}/{name}")).collect();
                let lengths = self.files.values().map(|(length, _)| Some(*length as u64));
                let own = keys.iter().map(|key| Some(key.as_str())).zip(lengths);
                match listed.is_some_and(|listed| listed.eq(own)) {
                    true => Ok((took, answer.status)),
                    false => Err(io::Error::other(format!("{keys:?} are listed as {page}"))),
                }
            }
            Kind::Search => {
                let path = format!("/api/search/{BUCKET}?q={name}&limit=20");
                let (took, answer) = self.exchange("GET", &path, &[], b"").await?;
                Ok((took, answer.status))
            }
            Kind::Picture => {
                let width = 40 + self.random.below(WIDTHS);
                let path = format!("/{BUCKET}/{PICTURE}?width={width}&format=webp");
                let (took, answer) = self.exchange("GET", &path, &[], b"").await?;
                Ok((took, answer.status))
            }
        }
    }

    /// Uploads a new file, or overwrites an existing one. Most are small.
    async fn upload(&mut self, folder: &str) -> io::Result<(Duration, u16)> {
        let name = format!("file-{}.bin", self.random.below(FILES_MAX as u64));
        let magnitude = 8 + self.random.below(10);
        let length = 100 + self.random.below(1 << magnitude) as usize;
        let seed = self.random.next_u64();
        let bytes = data::bytes(seed, length);
        let form = Form::new().file("files", &name, Some("application/octet-stream"), &bytes);
        let kind = form.content_type();
        let path = format!("/{BUCKET}/{folder}/{name}?overwrite=true");
        let headers = [("Content-Type", kind.as_str())];
        let (took, answer) = self.exchange("POST", &path, &headers, &form.body()).await?;
        if answer.status == 200 {
            self.files.insert(name, (length, seed));
        }
        Ok((took, answer.status))
    }

    /// Sends a request, on a new connection where the server has closed the last, and reads the response.
    async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(Duration, Response)> {
        let Shared { address, key, .. } = &*self.shared;
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let request = [request.as_bytes(), b"\r\n", body].concat();
        let asked = Instant::now();
        let mut stream = match self.stream.take() {
            Some(stream) if !is_closed(&stream) => stream,
            _ => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.write_all(&request).await?;
        let answer = read(&mut stream).await?;
        self.stream = Some(stream);
        Ok((asked.elapsed(), answer))
    }
}

/// Whether the peer has closed an idle connection.
fn is_closed(stream: &BufReader<TcpStream>) -> bool {
    let read = stream.get_ref().try_read(&mut [0]);
    read.is_ok() || read.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Response> {
    let (mut status, mut length, mut line) = (None, 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        match (status, text.split_once(": ")) {
            (None, _) => status = text.split(' ').nth(1).and_then(|it| it.parse().ok()),
            // An interim response.
            (Some(102), _) if text.is_empty() => status = None,
            _ if text.is_empty() => break,
            (_, Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().map_err(io::Error::other)?;
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let status = status.ok_or_else(|| io::Error::other("an answer without a status"))?;
    Ok(Response { status, body })
}

fn same(answer: &Response, status: u16, bytes: &[u8]) -> io::Result<()> {
    match answer.status != status || answer.body == bytes {
        true => Ok(()),
        false => Err(io::Error::other("other bytes than were uploaded")),
    }
}
