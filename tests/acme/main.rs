//! Automatic certificates from `pebble`, the ACME test server of Let's Encrypt: an authority that checks signatures,
//! rejects a part of all nonces, and connects to the server to validate names.
//!
//! Tests that need `pebble` are ignored unless requested: `cargo test -p tools --test acme -- --include-ignored`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the rules of the package are for the binary, not for those who look at it from outside"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod pebble;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tests::commands::{Ran, require_program, run, trug};
use tests::free_address::free_port;
use tests::secure::Authority;
use tests::{Connection, DataFolder, OpenMetrics, Receiver, Scripted, ServerProcess};

use self::pebble::Pebble;

/// Builds the command of a server at a port, with certificates for these names.
fn command(folder: &DataFolder, pebble: &Pebble, port: u16, names: &str) -> Command {
    let listen = format!("127.0.0.1:{port}");
    let mut command = folder.command(&["serve", "--listen", &listen]);
    command.env("TRUG_ACME_DOMAINS", names).env("TRUG_ACME_CONTACT", "ann@example.com");
    command
        .env("TRUG_ACME_DIRECTORY", pebble.directory())
        .env("TRUG_ACME_CA_FILE", pebble.ca_file());
    command
}

/// Queries the server's health with curl, trusting pebble's authority alone.
fn curl(pebble: &Pebble, port: u16) -> Ran {
    curl_trusting(&pebble.root(), port)
}

fn curl_trusting(root: &Path, port: u16) -> Ran {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--cacert"]).arg(root);
    run(curl.args([
        "-w",
        "%{http_version} %{certs}",
        &format!("https://localhost:{port}/-/health"),
    ]))
}

/// Queries the server's health until it succeeds.
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

/// Options for an admin listener without TLS.
const ADMIN: &[&str] = &["--set", "admin_listen=127.0.0.1:0"];

/// Opens a connection to the admin listener of a server.
fn watching(server: &ServerProcess) -> Connection {
    let start = "  Metrics      http://";
    Connection::connect(server.printed_address(start)).unwrap()
}

/// Returns the readiness status, the seconds until its certificate expires, and the number of failed orders.
fn watched(server: &ServerProcess) -> (u16, Option<f64>, f64) {
    let mut watching = watching(server);
    let ready = watching.get("/-/ready").unwrap().status;
    let metrics = OpenMetrics::read(&watching.get("/-/metrics").unwrap().text());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let end = metrics.series().get("trug_tls_certificate_expiry_timestamp_seconds").copied();
    (ready, end.map(|end| end - now), metrics.value("trug_acme_failures_total"))
}

/// Returns the certificates in curl's output.
fn certificates(answer: &str) -> &str {
    &answer[answer.find("-----BEGIN").unwrap_or_else(|| panic!("{answer}"))..]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
#[ignore = "needs pebble"]
fn certificate_is_issued_stored_and_reused_after_restart() {
    require_program("pebble", "-h");
    let port = free_port();
    let pebble = Pebble::start(port, 3_600);
    let folder = DataFolder::new();
    let server = ServerProcess::start(command(&folder, &pebble, port, "localhost").args(ADMIN));
    assert!(server.output().contains("Listening    https://127.0.0.1:"), "{}", server.output());
    server.wait_for_log("no certificate yet");
    let answer = curl_soon(&pebble, &server, port);
    assert!(answer.contains("\"status\":\"ok\"") && answer.contains("}2 "), "{answer}");
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    let (_, end, failures) = watched(&server);
    assert!(end.is_some_and(|end| end > 3_000.0 && end <= 3_600.0), "{end:?}");
    assert_eq!(failures, 0.0, "{}", server.output());
    // A health check by the settings needs no name.
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

    // With the same names no certificate is ordered, even when the authority is unreachable.
    let log = pebble.log();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    assert!(curl(&pebble, port).stdout.contains("\"status\":\"ok\""));
    assert!(!server.log().contains("no certificate yet"), "{}", server.log());
    assert_eq!(pebble.log(), log);
    server.stop();

    // The stored files do not affect any other command, and are in no backup.
    folder.done(&["fsck", "--deep"]);
    let backup = folder.parent().join("backup");
    folder.done(&["backup", "--to", backup.to_str().unwrap()]);
    assert!(!backup.join("acme").exists());
}

#[test]
#[ignore = "needs pebble"]
fn rejected_order_is_logged_with_advice_and_retried() {
    require_program("pebble", "-h");
    // Pebble validates at another port than the server's, until it is restarted.
    let (port, other) = (free_port(), free_port());
    let pebble = Pebble::start(other, 3_600);
    let folder = DataFolder::new();
    let server = ServerProcess::start(command(&folder, &pebble, port, "localhost").args(ADMIN));
    let log = server.wait_for_log("certificate order failed: localhost: ");
    // An order also fails if pebble rejects three nonces of a request in succession.
    let failures = log.matches("certificate order failed: ").count();
    assert!(log.contains("port 443 of the domain must reach this server"), "{log}");
    assert!(log.contains("\"again_after_seconds\":10"), "{log}");
    let asked = curl(&pebble, port);
    assert_eq!(asked.code, 35, "nobody gets a connection: {asked:?}");
    // The server is ready all the same: without connections it could not validate a name.
    assert_eq!(watched(&server), (200, None, failures as f64), "{log}");

    // A restarted pebble no longer knows the account: another one is created.
    let pebble = pebble.restart(port);
    server.wait_for_log("stored ACME account unknown to the server");
    curl_soon(&pebble, &server, port);
    server.stop();
}

#[test]
#[ignore = "needs pebble"]
fn stored_certificate_is_used_while_authority_fails() {
    require_program("pebble", "-h");
    let port = free_port();
    let mut pebble = Pebble::start(port, 3_600);
    let folder = DataFolder::new();
    let file = folder.parent().join("trug.toml");
    let settings = |names: &str| fs::write(&file, format!("acme_domains = [{names}]\n")).unwrap();
    let start = |pebble: &Pebble| {
        let mut command = command(&folder, pebble, port, "");
        command.env_remove("TRUG_ACME_DOMAINS").arg("--config").arg(&file).args(ADMIN);
        ServerProcess::start(&mut command)
    };
    settings("\"localhost\"");
    let server = start(&pebble);
    let first = curl_soon(&pebble, &server, port);
    let root = folder.parent().join("first.pem");
    fs::copy(pebble.root(), &root).unwrap();
    let is_as_before = |server: &ServerProcess| {
        let asked = curl_trusting(&root, port);
        assert_eq!(asked.code, 0, "{asked:?}: {}", server.log());
        assert_eq!(certificates(&asked.stdout), certificates(&first));
    };
    server.wait_for_log("certificate issued");

    // Other names require a restart.
    settings("\"localhost\", \"refused.example\"");
    server.reload();
    let log = server.wait_for_log("restart required for changed settings");
    assert!(log.contains("\"settings\":\"acme_domains\""), "{log}");
    is_as_before(&server);
    assert_eq!(pebble.orders(), 1);
    server.stop();

    // The authority is unreachable for the new names.
    pebble.end();
    let server = start(&pebble);
    let log = server.wait_for_log("certificate order failed: ");
    assert!(log.contains(&pebble.directory()) && !log.contains("no certificate yet"), "{log}");
    is_as_before(&server);
    let (ready, end, failures) = watched(&server);
    assert!(ready == 200 && end.is_some_and(|end| end > 0.0) && failures >= 1.0, "{log}");

    // The authority is reachable, and rejects one.
    let pebble = pebble.restart(port);
    let log = server.wait_for_log("(rejectedIdentifier)");
    assert!(log.contains("check acme_domains"), "{log}");
    is_as_before(&server);
    server.stop();

    // With the names of the certificate nothing is ordered.
    settings("\"localhost\"");
    let server = start(&pebble);
    is_as_before(&server);
    assert_eq!((watched(&server).2, pebble.orders()), (0.0, 0));
    server.stop();
}

#[test]
#[ignore = "needs pebble"]
fn certificate_is_renewed_before_expiry_without_downtime() {
    require_program("pebble", "-h");
    let port = free_port();
    // After two thirds of this validity a renewal is due.
    let pebble = Pebble::start(port, 20);
    let folder = DataFolder::new();
    let server = ServerProcess::start(&mut command(&folder, &pebble, port, "localhost"));
    let first = curl_soon(&pebble, &server, port);
    let began = Instant::now();
    loop {
        let asked = curl(&pebble, port);
        assert_eq!(asked.code, 0, "there is always one that holds: {asked:?} {}", server.log());
        if certificates(&asked.stdout) != certificates(&first) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(18), "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(began.elapsed() > Duration::from_secs(8), "that is too early: {:?}", began.elapsed());
    assert_eq!(pebble.orders(), 2, "{}", pebble.log());
    server.stop();
}

#[test]
#[ignore = "needs pebble"]
fn authority_retry_after_is_respected() {
    let authority = Authority::new();
    let receiver = Receiver::start_tls(authority.server().config());
    let folder = DataFolder::new();
    let roots = folder.parent().join("roots.pem");
    fs::write(&roots, authority.pem()).unwrap();
    let at = |path: &str| format!("https://localhost:{}/{path}", receiver.port());
    let answer = |status: u16, headers: &[(&'static str, &str)], body: serde_json::Value| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Scripted { headers, body: body.to_string(), ..Scripted::status(status) }
    };
    let nonce = ("replay-nonce", "bm9uY2U");
    let directory = json!({
        "newNonce": at("nonce"), "newAccount": at("account"), "newOrder": at("order"),
        "revokeCert": at("revoke"), "keyChange": at("key"),
    });
    let refusal = json!({
        "type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many", "status": 429,
    });
    let fresh = Scripted { headers: vec![(nonce.0, nonce.1.to_owned())], ..Scripted::status(200) };
    receiver.script([
        answer(200, &[], directory),
        fresh.clone(),
        answer(201, &[nonce, ("location", &at("account/1"))], json!({ "status": "valid" })),
        fresh,
        answer(429, &[nonce, ("retry-after", "4000")], refusal),
    ]);
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TRUG_ACME_DOMAINS", "a.example").env("TRUG_ACME_DIRECTORY", at("directory"));
    let server = ServerProcess::start(command.env("TRUG_ACME_CA_FILE", &roots));
    let log = server.wait_for_log("certificate order failed: too many (rateLimited)");
    assert!(log.contains("rate limit is exceeded"), "{log}");
    assert!(log.contains("\"again_after_seconds\":4000"), "{log}");
    let seen: Vec<String> = receiver.seen().into_iter().map(|seen| seen.line).collect();
    assert!(seen.last().is_some_and(|line| line.starts_with("POST /order ")), "{seen:?}");
    server.stop();
}

#[test]
fn contradictory_acme_settings_are_rejected() {
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
    let reached = "it connects to port 443 of each, which must reach 127.0.0.1:8080";
    assert!(ran.stdout.contains(reached), "{ran:?}");
    let both = [names, ("TRUG_TLS_CERTIFICATE_FILE", "/a"), ("TRUG_TLS_KEY_FILE", "/b")];
    check(&both).check_failure(2, "environment: tls_certificate_file: acme_domains is set too");
    check(&[names, ("TRUG_ACME_CA_FILE", "/none.pem")])
        .check_failure(2, "acme_ca_file: /none.pem: ");
    check(&[("TRUG_ACME_DOMAINS", "*.example.com")])
        .check_failure(2, "environment: acme_domains: \"*.example.com\" is not a domain");
}
