//! `trug health`: healthy, unhealthy, and unreachable.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use tests::DataFolder;
use tests::commands::{Ran, run, trug};

/// Runs the command with these arguments and environment variables.
fn health(words: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = trug();
    command.arg("health").args(words).envs(variables.iter().copied());
    run(&mut command)
}

#[test]
fn health_finds_server_by_address_or_settings() {
    let folder = DataFolder::new();
    let server = folder.serve();
    let address = server.address().to_string();
    let url = format!("http://{address}");
    for words in [&["--url", &url][..], &["--url", &url, "--ready"], &["--listen", &address]] {
        let ran = health(words, &[]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("{url} is healthy: ")), "{ran:?}");
        assert!(ran.stdout.ends_with("the store is writable\n"), "{ran:?}");
    }
    let by_environment = health(&["--json"], &[("TRUG_LISTEN", &address)]);
    assert_eq!(by_environment.code, 0, "{by_environment:?}");
    let json: serde_json::Value = serde_json::from_str(&by_environment.stdout).expect("JSON");
    assert_eq!((&json["status"], &json["store"]), (&"ok".into(), &"writable".into()));
    // As in a container, where it listens on every address.
    let port = format!("0.0.0.0:{}", server.address().port());
    let everywhere = health(&[], &[("TRUG_LISTEN", &port)]);
    assert_eq!(everywhere.code, 0, "{everywhere:?}");
    server.stop();
    let ran = health(&["--url", &url], &[]);
    ran.check_failure(1, &format!("{url} is unhealthy: "));
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
}

#[test]
fn health_reports_full_disk_and_draining_server() {
    let folder = DataFolder::new();
    let reserve = u64::MAX / 2;
    let server = folder.serve_with(&[
        "--listen",
        "127.0.0.1:0",
        "--set",
        &format!("reserve_bytes={reserve}"),
        "--set",
        "drain_seconds=20",
    ]);
    let url = format!("http://{}", server.address());
    let full = health(&["--url", &url, "--ready"], &[]);
    assert!(full.code == 0 && full.stdout.ends_with("the store is full\n"), "{full:?}");

    // Requests in progress keep the server running, and a connection opened before the stop still gets a response.
    let mut held = server.connect();
    held.begin("POST", "/photos/", &[("content-type", "multipart/form-data; boundary=x")], 100)
        .expect("the head is sent");
    server.terminate();
    thread::sleep(Duration::from_millis(300));
    let ran = health(&["--url", &url, "--ready"], &[]);
    ran.check_failure(1, "is unhealthy: ");
}

#[test]
fn health_fails_on_foreign_or_absent_server() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", other.local_addr().expect("it has one"));
    let answers = ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "\x1b[31mhello", ""];
    let answering = thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = other.accept().expect("somebody comes");
            let mut asked = [0; 4_096];
            let _ = stream.read(&mut asked).expect("it asks");
            stream.write_all(answer.as_bytes()).expect("it is answered");
        }
        other
    });
    for says in ["is not trug", "is not trug", "without a response"] {
        health(&["--url", &url], &[]).check_failure(1, says);
    }
    // From here on there is no response: the system accepts the connection, and that is all.
    let _silent = answering.join().expect("all of them came");
    let begun = Instant::now();
    let ran = health(&["--url", &url, "--timeout", "1"], &[]);
    ran.check_failure(1, "no response within 1 s");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn health_rejects_invalid_arguments() {
    for (words, says) in [
        (&["--url", "127.0.0.1:8080"][..], "--url"),
        (&["--ca-file", "authority.pem"], "--url"),
        (&["--listen", "127.0.0.1:0"], "with --url"),
        (&["--timeout", "0"], "--timeout"),
    ] {
        health(words, &[]).check_failure(2, says);
    }
}
