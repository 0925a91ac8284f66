//! File server for tests: HTTP/1.1 on a port of its own, with a thread for each connection.
//!
//! Responses are computed by a function of the request, so the order of requests does not matter. It may cut off a
//! body. Guarantees: an answered request is recorded. Non-goals: checks of the requests.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The file server.
#[derive(Clone)]
pub struct FileHost(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    seen: Mutex<Vec<RequestedFile>>,
    answer: Box<dyn Fn(&RequestedFile) -> File + Send + Sync>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RequestedFile {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body of a request with `Content-Length`.
    pub body: Vec<u8>,
    /// Number of requests for this target so far, from 1.
    pub time: usize,
}

/// A response.
#[derive(Clone, Debug)]
pub struct File {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    sent: usize,
    is_chunked: bool,
}

impl File {
    /// Builds the response for an existing file.
    pub fn of(body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status: 200, headers: Vec::new(), sent: body.len(), body, is_chunked: false }
    }

    pub fn status(status: u16) -> Self {
        Self { status, ..Self::of("sorry") }
    }

    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection after so many bytes.
    pub fn cut_at(mut self, bytes: usize) -> Self {
        self.sent = bytes;
        self
    }

    /// Sends the body without a content length.
    pub fn chunked(mut self) -> Self {
        self.is_chunked = true;
        self
    }
}

impl RequestedFile {
    /// Returns the value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value)
    }
}

impl FileHost {
    /// Starts to listen.
    pub fn start(answer: impl Fn(&RequestedFile) -> File + Send + Sync + 'static) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").expect("a port is free"), answer)
    }

    /// Accepts the connections of a listener.
    pub fn start_on(
        listener: TcpListener,
        answer: impl Fn(&RequestedFile) -> File + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("the port is known");
        let answer = Box::new(answer);
        let host = Self(Arc::new(Inner { address, seen: Mutex::default(), answer }));
        let serving = host.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                // The client observes a failure.
                thread::spawn(move || drop(serving.serve(stream)));
            }
        });
        host
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.0.address)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<RequestedFile> {
        std::mem::take(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(wanted) = self.read(&mut stream)? {
            let file = (self.0.answer)(&wanted);
            let mut head = format!("HTTP/1.1 {} X\r\n", file.status);
            for (name, value) in &file.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            let out = stream.get_mut();
            let sent = &file.body[..file.sent];
            if file.is_chunked {
                out.write_all((head + "transfer-encoding: chunked\r\n\r\n").as_bytes())?;
                for piece in sent.chunks(1_000) {
                    out.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
                    out.write_all(&[piece, b"\r\n"].concat())?;
                }
                if file.sent == file.body.len() {
                    out.write_all(b"0\r\n\r\n")?;
                }
            } else {
                if !file.headers.iter().any(|(name, _)| name == "Content-Length") {
                    head.push_str(&format!("content-length: {}\r\n", file.body.len()));
                }
                head.push_str("\r\n");
                out.write_all(&[head.as_bytes(), sent].concat())?;
            }
            out.flush()?;
            if file.sent < file.body.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn read(&self, stream: &mut impl BufRead) -> io::Result<Option<RequestedFile>> {
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
        let pairs = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        let headers = pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: Vec<_> = headers.collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let mut words = lines.first().map_or("", |line| line).split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let time = 1 + seen.iter().filter(|it| it.target == target).count();
        let (method, target) = (method.to_owned(), target.to_owned());
        let wanted = RequestedFile { method, target, headers, body, time };
        seen.push(wanted.clone());
        Ok(Some(wanted))
    }
}
