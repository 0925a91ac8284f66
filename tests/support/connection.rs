//! HTTP over a real socket, in its simplest form: one connection, one request at a time.
//!
//! Guarantees: an incomplete response is an error, never a short body. Non-goals: retries.

use std::fmt::{self, Write as _};
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::Form;

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    key: Option<String>,
}

/// A response.
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Read timeout.
const PATIENCE: Duration = Duration::from_secs(30);

impl Connection {
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string(), key: None })
    }

    /// Returns the same connection; its requests use this host from now on.
    #[must_use]
    pub fn with_host(self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self }
    }

    /// Returns the same connection; its requests carry the key from now on.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.send("GET", path, &[], b"")
    }

    pub fn delete(&mut self, path: &str) -> io::Result<Response> {
        self.send("DELETE", path, &[], b"")
    }

    pub fn upload(&mut self, path: &str, form: Form) -> io::Result<Response> {
        let content_type = form.content_type();
        self.send("POST", path, &[("content-type", &content_type)], &form.body())
    }

    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        self.begin(method, path, headers, body.len())?;
        // A server that rejects early responds before it has read everything.
        let written = self.more(body);
        match self.read_response(method) {
            Err(_) if written.is_err() => Err(written.err().unwrap_or(ErrorKind::Other.into())),
            answer => answer,
        }
    }

    /// Sends the head of a request with a body of so many bytes.
    pub fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body_bytes: usize,
    ) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        if let Some(key) = &self.key {
            let _ = write!(head, "authorization: Bearer {key}\r\n");
        }
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if body_bytes > 0 {
            let _ = write!(head, "content-length: {body_bytes}\r\n");
        }
        head.push_str("\r\n");
        self.more(head.as_bytes())
    }

    /// Sends a piece of the body.
    pub fn more(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the response.
    pub fn read_response(&mut self, method: &str) -> io::Result<Response> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| unreadable(&first))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| unreadable(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Response { status, headers, body: Vec::new() };
        if method != "HEAD" && status != 204 && status != 304 {
            let length = answer.header("content-length").parse();
            let length = length.map_err(|_| unreadable("no content-length"))?;
            answer.body.resize(length, 0);
            self.stream.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Response {
    /// Returns the value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.text()))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.text())
    }
}

fn unreadable(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("not an answer: {what}"))
}
