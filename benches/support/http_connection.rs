//! One connection that sends a request and waits for the response, for benches that measure single responses.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A received response head.
struct Head {
    status: u16,
    body_bytes: usize,
    is_chunked: bool,
    bytes: usize,
}

/// A keep-alive connection.
pub struct Wire {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Wire {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Self { address, stream: BufReader::with_capacity(1 << 16, stream) })
    }

    /// Sends a GET, and returns the status and the body of the answer.
    pub fn get(&mut self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        let head = self.head_of_get(path);
        self.exchange(&head)
    }

    /// Sends a request without a body, and returns the status and the body of the response.
    pub fn exchange(&mut self, head: &str) -> io::Result<(u16, Vec<u8>)> {
        let Head { status, body_bytes, is_chunked, .. } = self.send(head)?;
        let mut body = vec![0; body_bytes];
        if is_chunked {
            self.read_chunks(&mut body)?;
        } else {
            self.stream.read_exact(&mut body)?;
        }
        Ok((status, body))
    }

    /// Reads the chunks of a body, up to the end of its trailers.
    fn read_chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            if length == 0 {
                break;
            }
            let start = body.len();
            body.resize(start + length, 0);
            self.stream.read_exact(&mut body[start..])?;
            self.line()?;
        }
        while !self.line()?.is_empty() {}
        Ok(())
    }

    /// Sends a GET, discards the body of the response, and returns the status and the length of the body.
    pub fn read_over(&mut self, path: &str) -> io::Result<(u16, usize)> {
        let head = self.head_of_get(path);
        let Head { status, body_bytes: length, .. } = self.send(&head)?;
        let mut left = length;
        while left > 0 {
            let read = self.stream.fill_buf()?.len().min(left);
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.stream.consume(read);
            left -= read;
        }
        Ok((status, length))
    }

    /// Returns the length of the response head of a GET.
    pub fn head_bytes(mut self, path: &str) -> io::Result<usize> {
        let head = self.head_of_get(path);
        self.send(&head).map(|head| head.bytes)
    }

    fn head_of_get(&self, path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)
    }

    /// Reads a line, without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok(line)
    }

    /// Sends the head of a request, and reads the head of the response.
    fn send(&mut self, head: &str) -> io::Result<Head> {
        self.stream.get_mut().write_all(head.as_bytes())?;
        let (mut status, mut body_bytes, mut is_chunked, mut bytes) = (None, 0, false, 0);
        loop {
            let line = self.line()?;
            bytes += line.len() + "\r\n".len();
            if line.is_empty() {
                break;
            }
            match (status, line.split_once(": ")) {
                (None, _) => status = line.split(' ').nth(1).and_then(|it| it.parse().ok()),
                (_, Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                    body_bytes = value.parse().map_err(io::Error::other)?;
                }
                (_, Some((name, value))) if name.eq_ignore_ascii_case("transfer-encoding") => {
                    is_chunked = value.eq_ignore_ascii_case("chunked");
                }
                _ => {}
            }
        }
        let status = status.ok_or_else(|| io::Error::other("an answer without a status"))?;
        Ok(Head { status, body_bytes, is_chunked, bytes })
    }
}
