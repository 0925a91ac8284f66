//! Certificates that the server gets itself, from `pebble`, the server of Let's Encrypt for tests of ACME: an authority
//! that checks signatures, refuses a part of all nonces, and connects to the server to see who has a name.
//!
//! Only in a build with the feature `acme`. Where `pebble` is missing nothing is tested, and says so.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod pebble;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tests::commands::{Ran, has_program, run, trug};
use tests::{DataFolder, ServerProcess};

use self::pebble::Pebble;

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The server at a port, with certificates for these names.
fn command(folder: &DataFolder, pebble: &Pebble, port: u16, names: &str) -> Command {
    let listen = format!("127.0.0.1:{port}");
    let mut command = folder.command(&["serve", "--listen", &listen]);
    command.env("TRUG_ACME_DOMAINS", names).env("TRUG_ACME_CONTACT", "ann@example.com");
    command
        .env("TRUG_ACME_DIRECTORY", pebble.directory())
        .env("TRUG_ACME_CA_FILE", pebble.ca_file());
    command
}

/// What curl says of the server's health, where it trusts pebble's authority alone.
fn curl(pebble: &Pebble, port: u16) -> Ran {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--cacert"]).arg(pebble.root());
    run(curl.args([
        "-w",
        "%{http_version} %{certs}",
        &format!("https://localhost:{port}/-/health"),
    ]))
}

/// The same, once it is well.
fn curl_soon(pebble: &Pebble, server: &ServerProcess, port: u16) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let asked = curl(pebble, port);
        if asked.code == 0 {
            return asked.stdout;
        }
        assert!(Instant::now() < deadline, "{asked:?}: {} {}", server.log(), pebble.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The certificates in what curl says.
fn certificates(answer: &str) -> &str {
    &answer[answer.find("-----BEGIN").unwrap_or_else(|| panic!("{answer}"))..]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_certificate_is_got_kept_and_used_again_after_a_restart() {
    if !has_program("pebble", "-h") {
        return;
    }
    let port = free_port();
    let pebble = Pebble::start(port, 3_600);
    let folder = DataFolder::new();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    assert!(server.output().contains("listening on https://127.0.0.1:"), "{}", server.output());
    server.wait_for_log("there is no certificate yet");
    let answer = curl_soon(&pebble, &server, port);
    assert!(answer.contains("\"status\":\"ok\"") && answer.contains("}2 "), "{answer}");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    // Who asks by the settings needs no name.
    let mut health = trug();
    health.env("TRUG_ACME_DOMAINS", "localhost");
    let asked = run(health.args(["health", "--listen", &format!("127.0.0.1:{port}")]));
    assert_eq!(asked.code, 0, "{asked:?}");

    let kept = folder.path().join("acme");
    let file = kept.join("certificate.json");
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(mode(&kept), 0o700);
    for name in ["account.json", "certificate.json"] {
        assert_eq!(mode(&kept.join(name)), 0o600, "{name}");
    }
    let text = fs::read_to_string(&file).unwrap();
    let text: serde_json::Value = serde_json::from_str(&text).unwrap();
    let line = text["key"].as_str().unwrap().lines().nth(1).unwrap().to_owned();
    assert!(!server.log().contains(&line), "the key is nobody's to read");
    server.stop();

    // The same names: nothing is asked for, even with nobody there to be asked.
    let log = pebble.log();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    assert!(curl(&pebble, port).stdout.contains("\"status\":\"ok\""));
    assert!(!server.log().contains("there is no certificate yet"), "{}", server.log());
    assert_eq!(pebble.log(), log);
    server.stop();

    // What lies there is in the way of no other command, and in no backup.
    folder.done(&["fsck", "--deep"]);
    let backup = folder.beside().join("backup");
    folder.done(&["backup", "--to", backup.to_str().unwrap()]);
    assert!(!backup.join("acme").exists());
}

#[test]
fn a_refused_order_is_logged_with_what_to_do_and_tried_again() {
    if !has_program("pebble", "-h") {
        return;
    }
    // Pebble looks at another port than the one where the server listens, until it is started again.
    let (port, other) = (free_port(), free_port());
    let pebble = Pebble::start(other, 3_600);
    let folder = DataFolder::new();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    let log = server.wait_for_log("no certificate came: localhost: ");
    assert!(log.contains("the authority connects to port 443 of the name"), "{log}");
    assert!(log.contains("\"again_after_seconds\":10"), "{log}");
    let asked = curl(&pebble, port);
    assert_eq!(asked.code, 35, "nobody gets a connection: {asked:?}");

    // Started again it knows the account no more: another one is made.
    let pebble = pebble.restart(port);
    server.wait_for_log("the authority does not know the account that was kept");
    curl_soon(&pebble, &server, port);
    server.stop();
}

#[test]
fn a_name_that_the_authority_refuses_is_told() {
    if !has_program("pebble", "-h") {
        return;
    }
    let port = free_port();
    let pebble = Pebble::start(port, 3_600);
    let folder = DataFolder::new();
    let names = "localhost, refused.example";
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, names));
    let log = server.wait_for_log("(rejectedIdentifier)");
    assert!(log.contains("look at acme_domains"), "{log}");
    server.stop();
}

#[test]
fn a_certificate_is_renewed_before_its_end_and_by_other_names_at_once() {
    if !has_program("pebble", "-h") {
        return;
    }
    let port = free_port();
    // After two thirds of this another one is due.
    let pebble = Pebble::start(port, 20);
    let folder = DataFolder::new();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    let first = curl_soon(&pebble, &server, port);
    let deadline = Instant::now() + Duration::from_secs(18);
    loop {
        let asked = curl(&pebble, port);
        assert_eq!(asked.code, 0, "there is always one that holds: {asked:?} {}", server.log());
        if certificates(&asked.stdout) != certificates(&first) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(pebble.orders() >= 2, "{}", pebble.log());
    server.stop();
}

#[test]
fn settings_that_contradict_one_another_are_refused() {
    let check = |variables: &[(&str, &str)]| {
        let mut command = trug();
        command.args(["config", "check"]).envs(variables.iter().copied());
        run(&mut command)
    };
    let names = ("TRUG_ACME_DOMAINS", "a.example, b.example");
    let ran = check(&[names]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected =
        "certificates for a.example, b.example come from https://acme-v02.api.letsencrypt.org/";
    assert!(ran.stdout.contains(expected), "{ran:?}");
    let both = [names, ("TRUG_TLS_CERTIFICATE_FILE", "/a"), ("TRUG_TLS_KEY_FILE", "/b")];
    check(&both).check_failure(2, "environment: tls_certificate_file: acme_domains says");
    check(&[names, ("TRUG_ACME_CA_FILE", "/none.pem")])
        .check_failure(2, "acme_ca_file: /none.pem: ");
    check(&[("TRUG_ACME_DOMAINS", "*.example.com")])
        .check_failure(2, "environment: acme_domains: \"*.example.com\" is no name");
}
