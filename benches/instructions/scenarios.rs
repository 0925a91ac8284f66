//! Request scenarios, the same for each run.

use benches::data;
use fuzz::synthetic_photo::{Encoding, SyntheticPhoto};
use tests::{Connection, Form, ServerProcess};

/// Bucket of all files, and the account that owns it.
pub(crate) const BUCKET: &str = "counted";
const FILE: &str = "application/octet-stream";

/// A request whose instructions are counted.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Requests of the shorter run: enough for at least some hundred million more instructions in the longer one.
    pub(crate) times: u64,
    /// Puts files into the empty bucket, uncounted.
    pub(crate) fill: fn(&mut Asker) -> Result<(), String>,
    /// Sends the request with this number.
    pub(crate) ask: fn(&mut Asker, u64) -> Result<(), String>,
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "GET of 4 KiB",
        times: 2_000,
        fill: |asker| asker.upload("small", &data::bytes(1, 4 << 10)),
        ask: |asker, _| asker.get(&format!("/{BUCKET}/small"), 4 << 10),
    },
    Scenario {
        name: "GET of 1 MiB",
        times: 500,
        fill: |asker| asker.upload("large", &data::bytes(1, 1 << 20)),
        ask: |asker, _| asker.get(&format!("/{BUCKET}/large"), 1 << 20),
    },
    Scenario {
        name: "upload of 4 KiB",
        times: 200,
        fill: |_| Ok(()),
        ask: |asker, number| asker.upload(&format!("{number}"), &data::bytes(number, 4 << 10)),
    },
    Scenario {
        name: "upload of 4 MiB",
        times: 5,
        fill: |_| Ok(()),
        ask: |asker, number| asker.upload(&format!("{number}"), &data::bytes(number, 4 << 20)),
    },
    Scenario {
        name: "page of 1,000 keys",
        times: 10,
        fill: Asker::upload_many,
        ask: |asker, _| asker.get_some(&format!("/api/list-objects?bucketName={BUCKET}")),
    },
    Scenario {
        name: "search of 2,000 names",
        times: 20,
        fill: Asker::upload_many,
        ask: |asker, _| asker.get_some(&format!("/api/search/{BUCKET}?q=beach+17")),
    },
    Scenario {
        name: "photograph of 0.8 MP to WebP of 200 pixels",
        times: 2,
        fill: |asker| {
            let photograph = SyntheticPhoto::new(7, 1_024, 768).jpeg(&Encoding::PLAIN);
            asker.upload("photograph.jpg", &photograph)
        },
        // A cached variant is not rendered again.
        ask: |asker, number| {
            let width = 200 + number;
            asker.get_some(&format!("/{BUCKET}/photograph.jpg?width={width}&format=webp"))
        },
    },
];

/// A client with one connection.
pub(crate) struct Asker {
    connection: Connection,
}

impl Asker {
    pub(crate) fn new(server: &ServerProcess, key: &str) -> Self {
        Self { connection: server.connect().with_key(key) }
    }

    fn upload(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.post(Form::new().file("files", name, Some(FILE), bytes))
    }

    /// Uploads two thousand small files.
    fn upload_many(&mut self) -> Result<(), String> {
        for hundred in 0..20 {
            let names = (0..100).map(|number| format!("beach-{hundred}-{number}.txt"));
            let form =
                names.fold(Form::new(), |form, name| form.file("files", &name, None, b"sand"));
            self.post(form)?;
        }
        Ok(())
    }

    fn post(&mut self, form: Form) -> Result<(), String> {
        let answer = self.connection.upload(&format!("/{BUCKET}/"), form);
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            200 => Ok(()),
            status => Err(format!("{status}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    fn get(&mut self, path: &str, length: usize) -> Result<(), String> {
        match self.body(path)?.len() == length {
            true => Ok(()),
            false => Err(format!("{path} is not of {length} bytes")),
        }
    }

    fn get_some(&mut self, path: &str) -> Result<(), String> {
        self.body(path).map(drop)
    }

    fn body(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let answer = self.connection.get(path).map_err(|error| error.to_string())?;
        match answer.status {
            200 => Ok(answer.body),
            status => Err(format!("{status}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }
}
