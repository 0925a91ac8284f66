//! Ledger of a client: the acknowledged state of each key, and the request in flight.
//!
//! A body follows from its number, so the ledger holds numbers only. Guarantees: two bodies never look alike, and a
//! piece of one is never a body.

use std::collections::BTreeMap;

/// State of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    /// The body of this number.
    Body(BodyNumber),
}

/// Names a body: its bytes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyNumber {
    pub(crate) number: u64,
    pub(crate) bytes: usize,
}

/// Ledger of one client.
#[derive(Default)]
pub(crate) struct Ledger {
    acknowledged: BTreeMap<String, State>,
    /// Keys of the request in flight, with their new states.
    in_flight: Vec<(String, State)>,
    pub(crate) uploads: u64,
    /// Uploads of bodies above 1 MiB, which get a segment of their own.
    pub(crate) big_uploads: u64,
    pub(crate) deletions: u64,
}

impl BodyNumber {
    /// Returns the bytes: the number, then noise that follows from it.
    pub(crate) fn body(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes + 8);
        let mut state = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        bytes.extend_from_slice(&self.number.to_le_bytes());
        while bytes.len() < self.bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(self.bytes);
        bytes
    }
}

impl Ledger {
    /// Returns the last acknowledged state of a key.
    pub(crate) fn state(&self, key: &str) -> State {
        self.acknowledged.get(key).copied().unwrap_or(State::Absent)
    }

    /// Returns the number of objects, and their bytes.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let bodies = self.acknowledged.values().filter_map(|state| match state {
            State::Body(body) => Some(body.bytes),
            State::Absent => None,
        });
        bodies.fold((0, 0), |(objects, bytes), body_bytes| (objects + 1, bytes + body_bytes))
    }

    /// Records a request before it is sent.
    pub(crate) fn begin(&mut self, changes: Vec<(String, State)>) {
        self.in_flight = changes;
    }

    /// Records the success of the request in flight.
    pub(crate) fn acknowledge(&mut self) {
        for (key, state) in std::mem::take(&mut self.in_flight) {
            match state {
                State::Absent => self.deletions += 1,
                State::Body(body) => {
                    self.uploads += 1;
                    self.big_uploads += u64::from(body.bytes > 1 << 20);
                }
            }
            self.acknowledged.insert(key, state);
        }
    }

    /// Compares the ledger with the stored state, and records the outcome of the request in flight.
    pub(crate) fn check(&mut self, mut read: impl FnMut(&str) -> Option<Vec<u8>>) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let mut happened = Vec::new();
        for (key, wanted) in &in_flight {
            let there = read(key);
            let (is_old, is_new) =
                (is(there.as_deref(), self.state(key)), is(there.as_deref(), *wanted));
            assert!(is_old || is_new, "{key} is torn: {}", shown(there.as_deref()));
            if !(is_old && is_new) {
                happened.push(is_new);
            }
        }
        happened.dedup();
        assert!(happened.len() < 2, "a request happened by half: {in_flight:?}");
        if happened == [true] {
            self.acknowledged.extend(in_flight);
        }
        for (key, state) in &self.acknowledged {
            let there = read(key);
            let shown = shown(there.as_deref());
            assert!(is(there.as_deref(), *state), "{key} was to be {state:?} and is {shown}");
        }
    }
}

fn is(there: Option<&[u8]>, state: State) -> bool {
    match (there, state) {
        (None, State::Absent) => true,
        (Some(bytes), State::Body(body)) => bytes == body.body(),
        _ => false,
    }
}

fn shown(there: Option<&[u8]>) -> String {
    match there {
        None => "absent".to_owned(),
        Some(bytes) => {
            let number = bytes.first_chunk().map(|number| u64::from_le_bytes(*number));
            format!("{} bytes that begin with the number {number:?}", bytes.len())
        }
    }
}

#[test]
fn ledger_detects_lost_torn_and_partial_writes() {
    let body = |number: u64| BodyNumber { number, bytes: 100 };
    let check = |there: &dyn Fn(&str) -> Option<Vec<u8>>| {
        let mut ledger = Ledger::default();
        let two = |first, second| vec![("a".to_owned(), first), ("b".to_owned(), second)];
        ledger.begin(two(State::Body(body(1)), State::Body(body(2))));
        ledger.acknowledge();
        ledger.begin(two(State::Body(body(3)), State::Body(body(4))));
        let checked = std::panic::AssertUnwindSafe(|| ledger.check(there));
        std::panic::catch_unwind(checked).is_ok()
    };
    let bodies =
        |a: u64, b: u64| move |key: &str| Some(body(if key == "a" { a } else { b }).body());
    assert!(check(&bodies(1, 2)) && check(&bodies(3, 4)));
    assert!(!check(&bodies(3, 2)), "half done");
    assert!(!check(&bodies(1, 5)), "not ours");
    assert!(!check(&|_: &str| None), "lost");
    let torn = |key: &str| bodies(3, 4)(key).map(|mut body| body.split_off(1));
    assert!(!check(&torn), "torn");
}
