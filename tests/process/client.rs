//! A client that uploads, overwrites and deletes until its server is down.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::rng::{Rng, SeededRng};
use tests::{Connection, Form, Response};

use crate::ledger::{BodyNumber, Ledger, State};

/// Number of keys of one client: few, so that most requests overwrite or delete something.
const SLOTS: u64 = 24;

/// A client and its ledger.
pub(crate) struct Client {
    number: u64,
    chance: SeededRng,
    bodies: u64,
    pub(crate) ledger: Ledger,
}

impl Client {
    pub(crate) fn new(number: u64, seed: u64) -> Self {
        let chance = SeededRng::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9));
        Self { number, chance, bodies: 0, ledger: Ledger::default() }
    }

    /// Sends requests until the server is down or rejects them, which is only permitted after its end.
    pub(crate) fn run(&mut self, address: SocketAddr, key: &str, is_ended: &AtomicBool) {
        let Ok(connection) = Connection::connect(address) else { return };
        let mut connection = connection.with_key(key);
        loop {
            match self.request(&mut connection) {
                Ok(answer) if answer.status == 200 => self.ledger.acknowledge(),
                Ok(answer) => {
                    assert!(is_ended.load(Ordering::SeqCst), "refused: {answer:?}");
                    return;
                }
                Err(error) => {
                    assert!(is_ended.load(Ordering::SeqCst), "the server hung up: {error}");
                    return;
                }
            }
        }
    }

    fn request(&mut self, connection: &mut Connection) -> io::Result<Response> {
        match self.pick(10) {
            0..=1 => self.delete(connection),
            2 => self.upload_three(connection),
            _ => self.upload_one(connection),
        }
    }

    fn delete(&mut self, connection: &mut Connection) -> io::Result<Response> {
        let slot = self.pick(SLOTS);
        let key = self.key(slot);
        if self.ledger.state(&key) == State::Absent {
            return self.upload_one(connection);
        }
        self.ledger.begin(vec![(key.clone(), State::Absent)]);
        connection.delete(&format!("/photos/{key}"))
    }

    fn upload_one(&mut self, connection: &mut Connection) -> io::Result<Response> {
        let slot = self.pick(SLOTS);
        let (key, body) = (self.key(slot), self.body());
        self.ledger.begin(vec![(key.clone(), State::Body(body))]);
        connection.upload_file(&format!("/photos/{key}?overwrite=true"), "any.bin", &body.body())
    }

    /// Uploads three files in one request: all of them are stored, or none.
    fn upload_three(&mut self, connection: &mut Connection) -> io::Result<Response> {
        let first = self.pick(SLOTS);
        let mut form = Form::new();
        let mut changes = Vec::new();
        for slot in (first..first + 3).map(|slot| slot % SLOTS) {
            let body = self.body();
            form = form.file("file", &format!("{slot}.bin"), None, &body.body());
            changes.push((self.key(slot), State::Body(body)));
        }
        self.ledger.begin(changes);
        connection.upload(&format!("/photos/{}/?overwrite=true", self.number), form)
    }

    fn key(&self, slot: u64) -> String {
        format!("{}/{slot}.bin", self.number)
    }

    /// Chooses mostly small bodies, some as large as the log takes, a few that get a segment of their own.
    fn body(&mut self) -> BodyNumber {
        let bytes = match self.pick(40) {
            0 => 1_100_000 + self.pick(1_500_000),
            1..=5 => 20_000 + self.pick(300_000),
            6..=7 => 8,
            _ => 8 + self.pick(12_000),
        };
        self.bodies += 1;
        let number = (self.number << 48) | self.bodies;
        BodyNumber { number, bytes: usize::try_from(bytes).unwrap_or(8) }
    }

    fn pick(&mut self, below: u64) -> u64 {
        self.chance.next_u64() % below
    }
}
