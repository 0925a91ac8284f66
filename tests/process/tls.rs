//! TLS of the real binary: with curl as the client, and certificates that change at run time.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tests::commands::{done, run, trug};
use tests::secure::{Authority, Holds, Pair};
use tests::{Connection, DataFolder, OpenMetrics, ServerProcess};

struct Served {
    folder: DataFolder,
    key: String,
    server: ServerProcess,
}

fn files(folder: &DataFolder) -> (PathBuf, PathBuf) {
    (folder.parent().join("tls.crt"), folder.parent().join("tls.key"))
}

fn command(folder: &DataFolder) -> Command {
    let (certificates, key) = files(folder);
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TRUG_PLAN_RATES", "false").env("TRUG_ADMIN_LISTEN", "127.0.0.1:0");
    command.env("TRUG_TLS_CERTIFICATE_FILE", certificates).env("TRUG_TLS_KEY_FILE", key);
    command
}

fn serve(pair: &Pair) -> Served {
    let (folder, key) = DataFolder::with_bucket();
    let (certificates, private) = files(&folder);
    pair.write(&certificates, &private);
    let server = ServerProcess::start(&mut command(&folder));
    Served { folder, key, server }
}

impl Served {
    /// Runs curl; its exit code is not zero where it gets no response.
    fn curl(&self, authority: &Authority, words: &[&str]) -> tests::Ran {
        let roots = self.folder.parent().join("roots.pem");
        fs::write(&roots, authority.pem()).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--cacert"]).arg(&roots).args(words);
        run(&mut curl)
    }

    /// Returns the expiry of the server's certificate, from the admin listener, in seconds since 1970.
    fn end(&self) -> f64 {
        let start = "  Metrics      http://";
        let mut watching = Connection::connect(self.server.printed_address(start)).unwrap();
        let metrics = OpenMetrics::read(&watching.get("/-/metrics").unwrap().text());
        metrics.value("trug_tls_certificate_expiry_timestamp_seconds")
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.address().port())
    }
}

#[test]
fn curl_uploads_and_downloads_over_http1_and_http2() {
    let authority = Authority::new();
    let served = serve(&authority.pair(Holds::Now));
    let output = served.server.output();
    let address = served.server.address();
    assert!(output.contains(&format!("  Listening    https://{address}\n")), "{output}");
    let bytes: Vec<u8> =
        (0..9_000_000_u32).map(|at| (at.wrapping_mul(40_503) >> 7) as u8).collect();
    let file = served.folder.parent().join("large.bin");
    fs::write(&file, &bytes).unwrap();
    let form = format!("file=@{}", file.display());
    let key = format!("Authorization: Bearer {}", served.key);
    let back = served.folder.parent().join("back.bin");
    let to = back.to_str().unwrap();
    for (protocol, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let place = served.url(&format!("/photos/{version}/"));
        let stored = served.curl(&authority, &[protocol, "-H", &key, "-F", &form, &place]);
        let reply: serde_json::Value = serde_json::from_str(&stored.stdout)
            .unwrap_or_else(|error| panic!("{error}: {stored:?}"));
        // By default, addresses begin with https.
        let url = reply["url"].as_str().unwrap_or_else(|| panic!("{stored:?}"));
        assert_eq!(url, format!("https://{address}/photos/{version}/large.bin"));
        let path = served.url(&format!("/photos/{version}/large.bin"));
        let words = [protocol, "-w", "%{http_version}", "-o", to, &path];
        let read = served.curl(&authority, &words);
        assert_eq!((read.code, &*read.stdout), (0, version), "{read:?}");
        assert!(fs::read(&back).unwrap() == bytes, "{protocol}");
    }
    // Without TLS the response explains what to do.
    let plain = format!("http://{address}/photos/2/large.bin");
    let plain = served.curl(&authority, &[&plain]);
    assert!(plain.stdout.contains("tls_required"), "{plain:?}");
    served.server.stop();
}

#[test]
fn health_check_over_tls_verifies_server_name() {
    let authority = Authority::new();
    let served = serve(&authority.pair(Holds::Now));
    let roots = served.folder.parent().join("roots.pem");
    fs::write(&roots, authority.pem()).unwrap();
    let url = served.url("");
    let address = served.server.address().to_string();
    let roots = roots.to_str().unwrap();
    let (certificates, key) = files(&served.folder);
    let mut by_settings = trug();
    by_settings.env("TRUG_TLS_CERTIFICATE_FILE", certificates).env("TRUG_TLS_KEY_FILE", key);
    let ran = done(by_settings.args(["health", "--ready", "--listen", &address]));
    assert!(ran.stdout.starts_with(&format!("https://{address} is healthy: ")), "{ran:?}");

    let _ran = done(trug().args(["health", "--url", &url, "--ca-file", roots]));
    let unknown = run(trug().args(["health", "--url", &url]));
    unknown.check_failure(1, &format!("{url} is unhealthy: invalid peer certificate"));
    let other_name = format!("https://{address}");
    let other_name = run(trug().args(["health", "--url", &other_name, "--ca-file", roots]));
    other_name.check_failure(1, "is unhealthy: invalid peer certificate");
    let plain = run(trug().args(["health", "--url", &format!("http://{address}")]));
    plain.check_failure(1, "tls_required");
    let empty = served.folder.parent().join("empty.pem");
    fs::write(&empty, "").unwrap();
    for (file, why) in [("none.pem", "No such file"), (empty.to_str().unwrap(), "no certificate")] {
        let ran = run(trug().args(["health", "--url", &url, "--ca-file", file]));
        ran.check_failure(2, why);
    }
    served.server.stop();
}

#[test]
fn session_cookies_are_secure_when_tls_is_enabled() {
    let authority = Authority::new();
    let (folder, _) = DataFolder::with_bucket();
    let password = folder.parent().join("password");
    fs::write(&password, "correct horse battery").unwrap();
    let password = password.to_str().unwrap();
    folder.done(&["account", "password", "--account", "ann", "--password-file", password]);
    let (certificates, key) = files(&folder);
    authority.pair(Holds::Now).write(&certificates, &key);
    let mut command = command(&folder);
    let server = ServerProcess::start(command.env("TRUG_TLS_HSTS_SECONDS", "300"));
    let served = Served { folder, key: String::new(), server };
    let body = r#"{"name":"ann","password":"correct horse battery"}"#;
    let url = served.url("/-/session");
    let words = ["-i", "-H", "Content-Type: application/json", "-H", "Sec-Fetch-Site: same-origin"];
    let signed_in = served.curl(&authority, &[&words[..], &["-d", body, &url]].concat());
    let answer = signed_in.stdout.to_ascii_lowercase();
    assert!(answer.contains("set-cookie: __host-trug-session="), "{answer}");
    assert!(answer.contains("; secure"), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age=300\r\n"), "{answer}");
    let file = served.curl(&authority, &["-i", &served.url("/photos/none.txt")]).stdout;
    assert!(!file.to_ascii_lowercase().contains("strict-transport"), "files say nothing: {file}");
    served.server.stop();
}

#[test]
fn certificate_is_reloaded_on_signal_and_on_file_change() {
    let (first, second) = (Authority::new(), Authority::new());
    let served = serve(&first.pair(Holds::Now));
    let (certificates, key) = files(&served.folder);
    let health = served.url("/-/health");
    let is_trusted = |authority: &Authority| {
        let asked = served.curl(authority, &[&health]);
        // 60 is no trust; 35 another authority of the same name, whose signature is not this one.
        assert!(matches!(asked.code, 0 | 35 | 60), "{asked:?}");
        asked.code == 0
    };
    assert!(is_trusted(&first) && !is_trusted(&second));
    // As rcgen makes them: they hold until the year 4096.
    assert_eq!(served.end(), 67_090_118_400.0);

    second.pair(Holds::Now).write(&certificates, &key);
    served.server.reload();
    served.server.wait_for_log("certificate reloaded");
    assert!(is_trusted(&second) && !is_trusted(&first));

    // A mismatched pair changes nothing, and is logged.
    fs::write(&certificates, first.pair(Holds::Now).certificates).unwrap();
    served.server.reload();
    let log = served.server.wait_for_log("invalid settings; keeping current values");
    assert!(log.contains("it does not match the first certificate"), "{log}");
    fs::write(&certificates, "nothing").unwrap();
    served.server.reload();
    served.server.wait_for_log("it contains no certificate");
    assert!(is_trusted(&second) && !is_trusted(&first));

    // An expired certificate is accepted, with a warning; and without a signal.
    first.pair(Holds::Before).write(&certificates, &key);
    served.server.wait_for_log("the certificate has expired at 2002-01-01");
    served.server.wait_for_log("\"ends\":\"2002-01-01T00:00:00Z\"");
    assert!(!is_trusted(&first) && !is_trusted(&second));
    assert_eq!(served.end(), 1_009_843_200.0);
    first.pair(Holds::Now).write(&certificates, &key);
    served.server.reload();
    while !is_trusted(&first) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    served.server.stop();
}

#[test]
fn tls_check_reads_key_pair_and_server_requires_one() {
    let authority = Authority::new();
    let folder = DataFolder::new();
    let (certificates, key) = files(&folder);
    let check = || {
        let mut command = tests::commands::trug();
        command.args(["config", "check"]);
        command.env("TRUG_TLS_CERTIFICATE_FILE", &certificates).env("TRUG_TLS_KEY_FILE", &key);
        run(&mut command)
    };
    check().check_failure(2, "tls_certificate_file: ");
    let ran = run(&mut command(&folder));
    ran.check_failure(2, "tls_certificate_file: ");
    authority.pair(Holds::Now).write(&certificates, &key);
    let ran = check();
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    assert!(ran.stdout.contains("the certificate is valid until "), "{ran:?}");

    use std::os::unix::fs::PermissionsExt;
    authority.pair(Holds::Before).write(&certificates, &key);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = check();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("the certificate has expired"), "{ran:?}");
    assert!(ran.stderr.contains("the key file is world-readable"), "{ran:?}");

    fs::write(&key, authority.pair(Holds::Now).key).unwrap();
    check().check_failure(2, "tls_key_file: ");
    let mut alone = tests::commands::trug();
    alone.args(["config", "check"]).env("TRUG_TLS_KEY_FILE", &key);
    run(&mut alone)
        .check_failure(2, "environment: tls_key_file: tls_certificate_file is required with it");
}
