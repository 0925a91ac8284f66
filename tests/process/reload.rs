//! Settings that change while the server runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tests::{DataFolder, Response, ServerProcess};

struct Served {
    folder: DataFolder,
    key: String,
    file: PathBuf,
    server: ServerProcess,
}

fn serve(text: &str) -> Served {
    let (folder, key) = DataFolder::with_bucket();
    let file = folder.parent().join("trug.toml");
    fs::write(&file, text).unwrap();
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    let server = ServerProcess::start(command.arg("--config").arg(&file));
    Served { folder, key, file, server }
}

impl Served {
    /// Writes another file, and waits for the log line about it.
    fn reload(&self, text: &str, logged: &str) -> String {
        let before = self.server.log().len();
        fs::write(&self.file, text).unwrap();
        self.server.reload();
        for _ in 0..6_000 {
            let log = self.server.log().split_off(before);
            if log.contains(logged) {
                return log;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{logged:?} is not logged: {}", self.server.log())
    }

    fn upload(&self, bytes: usize) -> Response {
        self.server.upload(&self.key, "/photos/", "a.bin", &vec![b'x'; bytes])
    }
}

const DONE: &str = "settings reloaded";

#[test]
fn reload_applies_live_settings_and_reports_the_rest() {
    let served = serve("body_bytes_max = 2000\nplan_rates = false\n");
    let mut old = served.server.connect();
    assert_eq!(old.get("/-/health").unwrap().status, 200);
    assert_eq!(served.upload(3_000).status, 413);

    let log = served.reload("body_bytes_max = 5000\nplan_rates = false\n", DONE);
    assert!(log.contains("\"changed\":\"body_bytes_max\""), "{log}");
    assert_eq!(served.upload(3_000).status, 200);
    assert_eq!(served.upload(6_000).json()["limit"], 5_000);

    // From no rates to some, and to others; connections stay open throughout.
    let rates = "address_requests_per_second = 1\naddress_requests_burst = 3\n";
    let trusted = "trusted_proxies = [\"127.0.0.1\"]\n";
    let log = served.reload(&format!("{rates}{trusted}scrub_days = 3\n"), DONE);
    for name in ["plan_rates", "address_requests_per_second", "trusted_proxies"] {
        assert!(log.contains(name), "{name}: {log}");
    }
    assert!(log.contains("restart required"), "{log}");
    assert!(log.contains("\"settings\":\"scrub_days\""), "{log}");
    let forwarded = [("x-forwarded-for", "192.0.2.1")];
    let mut ask = || old.send("GET", "/photos/none", &forwarded, b"").unwrap().status;
    assert_eq!([ask(), ask(), ask(), ask()], [404, 404, 404, 429]);
    // Without a trusted proxy the header is ignored, and the machine itself has no limits.
    served.reload(rates, DONE);
    assert_eq!(old.send("GET", "/photos/none", &forwarded, b"").unwrap().status, 404);

    let ask = || {
        let mut wire = TcpStream::connect(served.server.address()).unwrap();
        let head = "GET /-/session HTTP/1.1\r\nhost: files.internal\r\nconnection: close\r\n\r\n";
        wire.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        wire.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask().starts_with("HTTP/1.1 421 "), "{}", ask());
    served.reload("dashboard_hosts = [\"files.internal\"]\n", DONE);
    assert!(!ask().starts_with("HTTP/1.1 421 "), "{}", ask());
    served.server.stop();
}

#[test]
fn reload_of_invalid_settings_changes_nothing() {
    let served = serve("body_bytes_max = 2000\n");
    let refused = "invalid settings; keeping current values";
    for (text, says) in [
        (
            "body_bytes_max = 9000\n\nscrub_day = 3\n",
            "trug.toml: line 3: unknown setting scrub_day",
        ),
        (
            "body_bytes_max = 9000\nscrub_days = 4000\n",
            "scrub_days: 4000 is out of range: 0 to 3650",
        ),
        ("body_bytes_max = 9000\nlisten =", "line 2"),
        (
            "body_bytes_max = 9000\ntls_key_file = \"/x\"\n",
            "tls_certificate_file is required with it",
        ),
    ] {
        let log = served.reload(text, refused);
        assert!(log.contains(says), "{says}: {log}");
        assert_eq!(served.upload(3_000).json()["limit"], 2_000);
    }
    fs::remove_file(&served.file).unwrap();
    served.server.reload();
    served.server.wait_for_log("cannot read");
    assert_eq!(served.upload(3_000).json()["limit"], 2_000);
    // TLS is not enabled on a listener that runs without it.
    let text = "body_bytes_max = 9000\ntls_certificate_file = \"/x\"\ntls_key_file = \"/y\"\n";
    let log = served.reload(text, DONE);
    assert!(log.contains("\"settings\":\"tls_certificate_file, tls_key_file\""), "{log}");
    assert_eq!(served.upload(3_000).status, 200);
    let stats = served.folder.done(&["stats"]);
    assert_eq!(stats.code, 0);
    served.server.stop();
}

#[test]
fn repeated_reload_under_load_disturbs_no_request() {
    let served = serve("plan_rates = false\n");
    assert_eq!(served.upload(100).status, 200);
    let address = served.server.address();
    let load: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                let mut connection = tests::Connection::connect(address).unwrap();
                (0..2_000).all(|_| connection.get("/photos/a.bin").unwrap().status == 200)
            })
        })
        .collect();
    for number in 0..40 {
        let text = format!("plan_rates = false\nbody_bytes_max = {}\n", 10_000 + number);
        served.reload(&text, DONE);
    }
    assert!(load.into_iter().all(|client| client.join().unwrap()));
    assert_eq!(served.upload(20_000).json()["limit"], 10_039);
    served.server.stop();
}
