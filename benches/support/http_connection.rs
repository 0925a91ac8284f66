//! One connection that sends a request and waits for the response, for benches that measure single responses.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A received response head.
struct Head {
    status: u16,
    body_bytes: usize,
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
        let Head { status, body_bytes: length, .. } = self.request(path)?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }

    /// Sends a GET, discards the body of the response, and returns the status and the length of the body.
    pub fn read_over(&mut self, path: &str) -> io::Result<(u16, usize)> {
        let Head { status, body_bytes: length, .. } = self.request(path)?;
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
        self.request(path).map(|head| head.bytes)
    }

    /// Sends a GET, and reads the head of the answer.
    fn request(&mut self, path: &str) -> io::Result<Head> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut body_bytes, mut line, mut bytes) = (None, 0, String::new(), 0);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes += line.len();
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            match (status, text.split_once(": ")) {
                (None, _) => status = text.split(' ').nth(1).and_then(|it| it.parse().ok()),
                (_, Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                    body_bytes = value.parse().map_err(io::Error::other)?;
                }
                _ => {}
            }
        }
        let status = status.ok_or_else(|| io::Error::other("an answer without a status"))?;
        Ok(Head { status, body_bytes, bytes })
    }
}
