//! A lower bound as a contestant: a loop with only the work that any server over these sockets needs. It waits for
//! connections (epoll), reads the request up to the blank line, and writes a response that is prepared in memory.
//!
//! It does not parse the request, has no time-outs and checks nothing: any additional cost of a server is the server's
//! own. Two threads, each with half of the connections.

use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::arguments::Arguments;
use super::server::ServerKind;
use super::{baseline_process, data};

/// Option that runs the program as the loop.
const OPTION: &str = "--bare-loop";
const THREADS: usize = 2;
const EVENTS_MAX: usize = 1_024;

/// The loop, and its responses.
pub struct Bare {
    /// Length of each response head in bytes.
    pub head_bytes: usize,
    /// Length of each response body in bytes.
    pub body_bytes: usize,
    /// Length of the file in bytes; bodies are its consecutive pieces, cyclically.
    pub file_bytes: usize,
}

impl ServerKind for Bare {
    fn label(&self) -> &'static str {
        "bare loop"
    }

    fn command(&self, _folder: &Path, address: SocketAddr) -> Result<Command, String> {
        let lengths = [self.head_bytes, self.body_bytes, self.file_bytes];
        baseline_process::command(OPTION, address, &lengths)
    }

    fn path(&self, _name: &str) -> String {
        "/".to_owned()
    }
}

/// Runs the loop until the process is ended, when the arguments request it. Returns false when they do not.
pub fn serve(arguments: &Arguments) -> Result<bool, String> {
    let Some((address, [head_bytes, body_bytes, file_bytes])) =
        baseline_process::requested(arguments, OPTION)?
    else {
        return Ok(false);
    };
    let bare = Bare { head_bytes, body_bytes, file_bytes };
    run(address, &bare).map_err(|error| error.to_string())?;
    Ok(true)
}

fn run(address: SocketAddr, bare: &Bare) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let file = data::bytes(4, bare.file_bytes);
    let start = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-rest: ", bare.body_bytes);
    let rest = "-".repeat(bare.head_bytes.saturating_sub(start.len() + 4));
    let head = format!("{start}{rest}\r\n\r\n").into_bytes();
    thread::scope(|scope| {
        let mut inboxes = Vec::new();
        for _ in 0..THREADS {
            let events = epoll::create(CreateFlags::CLOEXEC)?;
            let watched = rustix::io::dup(&events)?;
            let (new, inbox) = channel();
            let (head, file) = (&head[..], &file[..]);
            scope.spawn(move || respond(&watched, &inbox, head, file, bare.body_bytes));
            inboxes.push((events, new));
        }
        for (events, new) in inboxes.iter().cycle() {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let watched = stream.try_clone()?;
            let id = EventData::new_u64(u64::from(stream.as_raw_fd().cast_unsigned()));
            let _ = new.send(stream);
            epoll::add(events, watched, id, EventFlags::IN | EventFlags::OUT | EventFlags::ET)?;
        }
        Ok(())
    })
}

struct Connection {
    stream: TcpStream,
    asked: Vec<u8>,
    /// Offset in the file of the next response body.
    at: usize,
    /// Sent bytes of the current response; none without a request.
    sent: Option<usize>,
}

fn respond(
    events: &OwnedFd,
    inbox: &Receiver<TcpStream>,
    head: &[u8],
    file: &[u8],
    body_bytes: usize,
) {
    let mut connections = HashMap::new();
    let mut ready = Vec::with_capacity(EVENTS_MAX);
    loop {
        ready.clear();
        if epoll::wait(events, spare_capacity(&mut ready), None).is_err() {
            continue;
        }
        while let Ok(stream) = inbox.try_recv() {
            let id = u64::from(stream.as_raw_fd().cast_unsigned());
            connections.insert(id, Connection { stream, asked: Vec::new(), at: 0, sent: None });
        }
        for event in &ready {
            let id = event.data.u64();
            let Some(connection) = connections.get_mut(&id) else { continue };
            if connection.turn(head, file, body_bytes).is_err() {
                connections.remove(&id);
            }
        }
    }
}

impl Connection {
    fn turn(&mut self, head: &[u8], file: &[u8], body_bytes: usize) -> io::Result<()> {
        let mut buffer = [0; 4_096];
        loop {
            if let Some(sent) = &mut self.sent {
                let body = &file[self.at..self.at + body_bytes];
                while *sent < head.len() + body.len() {
                    let of_head = &head[(*sent).min(head.len())..];
                    let of_body = &body[sent.saturating_sub(head.len())..];
                    let pieces = [IoSlice::new(of_head), IoSlice::new(of_body)];
                    match self.stream.write_vectored(&pieces) {
                        Ok(written) => *sent += written,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                        Err(error) => return Err(error),
                    }
                }
                self.sent = None;
                self.at = (self.at + body_bytes) % (file.len() - file.len() % body_bytes);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.asked.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if !self.asked.ends_with(b"\r\n\r\n") {
                continue;
            }
            self.asked.clear();
            self.sent = Some(0);
        }
    }
}
