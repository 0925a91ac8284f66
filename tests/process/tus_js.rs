//! tus-js-client from npm, under Node, against a real server that is killed under it. Needs Node and npm, which other
//! tests do not; `CONTRIBUTING.md` has the commands.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tests::{DataFolder, ServerProcess};

use crate::ledger::BodyNumber;

const BYTES: usize = 24_000_000;
const CHUNK_BYTES: u64 = 256 * 1_024;
/// Timeout for an event of the client.
const PATIENCE: Duration = Duration::from_secs(60);

/// The client in a process of its own, with the commands of `tests/clients-js/tus.mjs`.
struct TusJs {
    child: Child,
    commands: ChildStdin,
    events: Receiver<Value>,
}

impl TusJs {
    fn start(options: &Value) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients-js");
        assert!(
            folder.join("node_modules").exists(),
            "the client is not there: `npm ci --prefix tests/clients-js` brings it"
        );
        let mut node = Command::new("node");
        node.arg("tus.mjs").arg(options.to_string()).current_dir(folder);
        let piped = node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("Node is there");
        let commands = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (send, events) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("the client prints JSON");
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, commands, events }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("the client listens");
    }

    /// Waits for an event, and skips others except failures.
    fn wait(&self, name: &str) -> Value {
        loop {
            let event = self.events.recv_timeout(PATIENCE);
            let event = event.unwrap_or_else(|why| panic!("{name} does not come: {why}"));
            if event["event"] == name {
                return event;
            }
            assert_ne!(event["event"], "failed", "{event}");
        }
    }

    /// Starts the client, and waits until some pieces were accepted.
    fn begin(&mut self, command: &str, pieces: u64) {
        self.tell(command);
        while self.wait("chunk")["accepted"].as_u64() < Some(pieces * CHUNK_BYTES) {}
    }
}

impl Drop for TusJs {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server, and a file to upload.
struct Town {
    folder: DataFolder,
    server: ServerProcess,
    key: String,
    whole: Vec<u8>,
}

impl Town {
    fn new(bytes: usize) -> Self {
        let (folder, key) = DataFolder::with_bucket();
        let whole = BodyNumber { number: 9, bytes }.body();
        std::fs::write(folder.parent().join("film.webm"), &whole).expect("a file can be written");
        let server = folder.serve();
        Self { folder, server, key, whole }
    }

    fn options(&self, more: Value) -> Value {
        let mut options = json!({
            "endpoint": format!("http://{}/api/tus/", self.server.address()),
            "key": self.key,
            "file": self.folder.parent().join("film.webm"),
            "chunkSize": CHUNK_BYTES,
            "metadata": { "bucketName": "photos", "path": "films/", "filename": "film.webm" },
        });
        for (name, value) in more.as_object().expect("more options") {
            options[name] = value.clone();
        }
        options
    }

    /// Kills the server and starts it again at the same address.
    fn restart(&mut self) {
        let address = self.server.address().to_string();
        self.server.kill();
        self.server = self.folder.serve_with(&["--listen", &address]);
    }

    fn stored(&self) -> Option<Vec<u8>> {
        let answer = self.server.get("/photos/films/film.webm");
        (answer.status == 200).then_some(answer.body)
    }

    fn check_stored(&self, client: &TusJs) {
        let url = client.wait("stored")["url"].clone();
        assert!(url.as_str().is_some_and(|url| url.ends_with("/photos/films/film.webm")), "{url}");
        assert!(self.stored().as_ref() == Some(&self.whole), "other bytes are stored");
    }
}

#[test]
#[ignore = "needs Node, and `npm ci --prefix tests/clients-js`"]
fn tus_js_client_pauses_and_resumes_after_server_kill() {
    for more in [json!({}), json!({"checksum": "sha1"}), json!({"checksum": "sha256"})] {
        let mut town = Town::new(BYTES);
        let mut client = TusJs::start(&town.options(more));
        client.begin("start", 3);
        client.tell("pause");
        client.wait("paused");
        assert_eq!(town.stored(), None, "it was paused too late");
        town.restart();
        client.tell("start");
        town.check_stored(&client);
    }
}

#[test]
#[ignore = "needs Node, and `npm ci --prefix tests/clients-js`"]
fn tus_js_client_resumes_automatically_after_server_kill() {
    let mut town = Town::new(BYTES);
    let retry = json!({"retryDelays": [100, 500, 1_000, 1_000, 2_000, 5_000, 10_000]});
    let mut client = TusJs::start(&town.options(retry));
    client.begin("start", 3);
    town.restart();
    client.wait("retry");
    town.check_stored(&client);
}

#[test]
#[ignore = "needs Node, and `npm ci --prefix tests/clients-js`"]
fn tus_js_client_resumes_upload_of_a_killed_process() {
    let mut town = Town::new(BYTES);
    let notes = town.folder.parent().join("notes.json");
    let options = town.options(json!({"notes": notes}));
    let mut first = TusJs::start(&options);
    first.begin("start", 3);
    drop(first);
    town.restart();
    let mut second = TusJs::start(&options);
    second.tell("previous");
    assert_eq!(second.wait("found")["count"], 1);
    let first_piece = second.wait("chunk");
    assert!(first_piece["accepted"].as_u64() > Some(3 * CHUNK_BYTES), "it began again");
    town.check_stored(&second);
}

#[test]
#[ignore = "needs Node, and `npm ci --prefix tests/clients-js`"]
fn tus_js_client_terminates_an_upload() {
    let town = Town::new(BYTES);
    let mut client = TusJs::start(&town.options(json!({})));
    client.begin("start", 3);
    client.tell("terminate");
    client.wait("terminated");
    assert_eq!(town.stored(), None);
    let uploads = std::fs::read_dir(town.folder.path().join("uploads"));
    assert_eq!(uploads.expect("there is a folder of uploads").count(), 0);
}

#[test]
#[ignore = "needs Node, and `npm ci --prefix tests/clients-js`"]
fn tus_js_client_sends_small_files_in_one_post() {
    for (bytes, more) in [
        (10, json!({"withCreation": true})),
        (10, json!({"withCreation": true, "checksum": "sha256"})),
        (1_000_000, json!({"withCreation": true, "overridden": true, "checksum": "sha1"})),
        (1_000_000, json!({"overridden": true})),
        (0, json!({})),
    ] {
        let town = Town::new(bytes);
        let mut client = TusJs::start(&town.options(more));
        client.tell("start");
        town.check_stored(&client);
    }
}
