//! Memory of the server: constant for large uploads, and small for many connections.
//!
//! Anonymous memory is measured: pages of mapped files belong to the system, which reclaims them.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::{Connection, DataFolder, Form, ServerProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const MIB: usize = 1 << 20;

/// Size of an upload in bytes.
const UPLOAD_BYTES: usize = 64 * MIB;
/// Size of all uploads together in bytes.
const UPLOADED_BYTES: usize = 1_024 * MIB;
/// Concurrently uploading clients.
const UPLOADERS: usize = 2;
/// Maximum memory of uploads, in addition to the memory after the first ones: 32 MiB is the target for one.
const UPLOADING_BYTES_MAX: usize = UPLOADERS * 24 * MIB;

const CONNECTIONS: usize = 10_000;
/// Connections from one address; the next ones come from the next address of 127.0.0.0/8.
const PER_ADDRESS: usize = 250;
/// Number of rounds of opening and closing all connections.
const ROUNDS: usize = 5;
/// Maximum memory of one idle connection. The allocator reuses earlier memory, so a leak of a few bytes per connection
/// would add up to more than this.
const CONNECTION_BYTES_MAX: usize = 48 * 1_024;
/// Maximum number of open files of a server without connections.
const FILES_AT_REST_MAX: usize = 60;
/// Number of files of this process in addition to its connections.
const OTHER_FILES: u64 = 300;

/// Returns the current anonymous memory of a process.
fn held_bytes(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

#[test]
fn memory_stays_flat_while_a_gibibyte_is_uploaded() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let connect = || server.connect().with_key(&key);
    upload(connect(), "first", 2);
    let before = held_bytes(server.id());
    let most = peak_held_while(server.id(), || {
        thread::scope(|scope| {
            for number in 0..UPLOADERS {
                let (connection, folder) = (connect(), number.to_string());
                let count = UPLOADED_BYTES / UPLOAD_BYTES / UPLOADERS;
                scope.spawn(move || upload(connection, &folder, count));
            }
        });
    });
    println!("{} MiB before, at most {} MiB", before / MIB, most / MIB);
    assert!(most < before + UPLOADING_BYTES_MAX, "{before} bytes grew to {most}");
    server.stop();
}

/// Files of a folder that is downloaded as a zip archive, and their size.
const ZIP_FILES: usize = 20_000;
const ZIP_FILE_BYTES: usize = 16 * 1_024;
/// Maximum memory of the archive: its entries and its directory, pieces in the buffers of the socket, and memory that
/// the allocator retains for the threads that read.
const ZIP_BYTES_MAX: usize = 48 * MIB;

#[test]
fn memory_stays_flat_while_20000_files_leave_as_one_zip() {
    let (folder, key) = DataFolder::with_bucket();
    let server = folder.serve();
    let mut connection = server.connect().with_key(&key);
    let content = vec![b'z'; ZIP_FILE_BYTES];
    for batch in 0..ZIP_FILES / 100 {
        let file = |form: Form, number| form.file("f", &format!("{number}.bin"), None, &content);
        let form = (0..100).fold(Form::new(), file);
        let answer = connection.upload(&format!("/photos/many/{batch}/"), form).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let before = held_bytes(server.id());
    let mut received = 0;
    let most = peak_held_while(server.id(), || received = zip_bytes(server.address(), &key));
    println!("{} MiB before, at most {} MiB", before / MIB, most / MIB);
    assert!(received > ZIP_FILES * ZIP_FILE_BYTES, "{received} bytes");
    assert!(most < before + ZIP_BYTES_MAX, "{before} bytes grew to {most}");
    server.stop();
}

/// Downloads the folder as a zip archive; returns the bytes of the response.
fn zip_bytes(address: SocketAddr, key: &str) -> usize {
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let path = "/api/buckets/photos/zip?prefix=many/";
    let head = format!("Host: x\r\nAuthorization: Bearer {key}\r\nConnection: close");
    socket.write_all(format!("GET {path} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
    io::copy(&mut socket, &mut io::sink()).unwrap() as usize
}

/// Concurrent forms, and files in each: more bytes together than the bound.
const FORMS: [(usize, usize); 2] = [(100, 95), (800, 12)];
const FORM_FILE_BYTES: usize = 60_000;
/// Memory budget of all uploads.
const UPLOAD_MEMORY_BYTES_MAX: usize = 256 * MIB;
/// Maximum memory of a form beyond the budget, while it is written to disk: read buffers, a block, its request.
const FORM_BYTES_MAX: usize = 192 * 1_024;
/// Maximum memory of threads, and memory retained by the allocator.
const THREADS_BYTES_MAX: usize = 32 * MIB;

#[test]
fn concurrent_form_memory_is_bounded() {
    for (forms, files) in FORMS {
        let (folder, key) = DataFolder::with_bucket();
        let server = folder.serve();
        upload(server.connect().with_key(&key), "first", 1);
        let before = held_bytes(server.id());
        let most = peak_held_while(server.id(), || {
            let form = form(files);
            thread::scope(|scope| {
                // A thread for each form would need more memory here than the server has.
                for number in 0..16 {
                    let (address, key, form) = (server.address(), &key, &form);
                    scope.spawn(move || {
                        let count = forms / 16 + usize::from(number < forms % 16);
                        send_together(address, key, form, count);
                    });
                }
            });
        });
        println!("{forms} forms: {} MiB before, at most {} MiB", before / MIB, most / MIB);
        let growth_max = UPLOAD_MEMORY_BYTES_MAX + forms * FORM_BYTES_MAX + THREADS_BYTES_MAX;
        assert!(most < before + growth_max, "{forms} forms: {before} bytes grew to {most}");
        server.stop();
    }
}

/// Sends forms side by side, a piece of each in turn, so that all of them are held before the first one ends.
fn send_together(address: SocketAddr, key: &str, form: &[u8], count: usize) {
    let kind = ("content-type", "multipart/form-data; boundary=b");
    let connect = |_| Connection::connect(address).unwrap().with_key(key);
    let mut connections: Vec<_> = (0..count).map(connect).collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        let path = format!("/photos/{:?}-{number}/", thread::current().id());
        let path = path.replace(['(', ')'], "");
        connection.begin("POST", &path, &[kind], form.len()).unwrap();
    }
    for piece in form.chunks(64 * 1_024) {
        for connection in &mut connections {
            connection.more(piece).unwrap();
        }
    }
    for connection in &mut connections {
        let answer = connection.read_response("POST").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

fn form(files: usize) -> Vec<u8> {
    let mut form = Vec::new();
    let content = vec![b'x'; FORM_FILE_BYTES];
    for number in 0..files {
        let name = format!("name=\"file\"; filename=\"{number}.bin\"");
        form.extend_from_slice(
            format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\n").as_bytes(),
        );
        form.extend_from_slice(&content);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--b--\r\n");
    form
}

/// Returns the peak anonymous memory of a process during some work.
fn peak_held_while(process: u32, work: impl FnOnce()) -> usize {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_done = &is_done;
        let most = scope.spawn(move || {
            let mut most = 0;
            while !is_done.load(Ordering::SeqCst) {
                most = most.max(held_bytes(process));
                thread::sleep(Duration::from_millis(10));
            }
            most
        });
        let worked = catch_unwind(AssertUnwindSafe(work));
        is_done.store(true, Ordering::SeqCst);
        worked.unwrap_or_else(|panic| resume_unwind(panic));
        most.join().unwrap()
    })
}

/// Uploads large files, each a repetition of the same few bytes.
fn upload(mut connection: Connection, folder: &str, count: usize) {
    let piece: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8).collect();
    let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n";
    let (end, kind) = ("\r\n--b--\r\n", ("content-type", "multipart/form-data; boundary=b"));
    for number in 0..count {
        let path = format!("/photos/{folder}/{number}.bin");
        let length = head.len() + UPLOAD_BYTES + end.len();
        connection.begin("POST", &path, &[kind], length).unwrap();
        connection.more(head.as_bytes()).unwrap();
        (0..UPLOAD_BYTES / MIB).for_each(|_| connection.more(&piece).unwrap());
        connection.more(end.as_bytes()).unwrap();
        let answer = connection.read_response("POST").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn memory_of_10000_idle_connections_is_bounded() {
    let count = CONNECTIONS.min(files_allowed());
    let (folder, _) = DataFolder::with_bucket();
    let connections_max = (count + 10).to_string();
    let server = folder.serve_with_env(&[("TRUG_CONNECTIONS_MAX", &connections_max)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = held_bytes(server.id());
    for _ in 0..ROUNDS {
        let mut connections = runtime.block_on(open_all(server.address(), count)).unwrap();
        let each = (held_bytes(server.id()) - before) / count;
        println!("{count} connections: {each} bytes each");
        assert!(each < CONNECTION_BYTES_MAX, "{each} bytes each");
        // None of them was closed to make room for others.
        runtime.block_on(async {
            for connection in connections.iter_mut().step_by(10) {
                ask(connection).await.unwrap();
            }
        });
        drop(connections);
        wait_for_hanging_up(&server);
    }
    server.stop();
}

/// Waits until the server has closed the connections that its clients closed.
fn wait_for_hanging_up(server: &ServerProcess) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count() > FILES_AT_REST_MAX {
        assert!(Instant::now() < deadline, "connections stay open");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Opens connections; each has received a response.
async fn open_all(address: SocketAddr, count: usize) -> io::Result<Vec<TcpStream>> {
    let mut connections = Vec::with_capacity(count);
    for number in 0..count {
        let socket = TcpSocket::new_v4()?;
        let host = u8::try_from(number / PER_ADDRESS).unwrap_or(u8::MAX);
        socket.bind((Ipv4Addr::new(127, 1, 1, host), 0).into())?;
        let mut connection = socket.connect(address).await?;
        ask(&mut connection).await?;
        connections.push(connection);
    }
    Ok(connections)
}

async fn ask(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(b"HEAD /photos/none HTTP/1.1\r\nhost: a\r\n\r\n").await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if connection.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 404 "), "{}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// Returns the number of connections that this process and the server may both open.
fn files_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).unwrap();
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX)
}
