//! Engine stores, opened and filled.

use std::path::Path;
use std::sync::mpsc;

use engine::recovery::RecoveryReport;
use engine::{Batch, Create, ObjectName, OpenOptions, PutOptions, StagedBody, Store};

/// Maximum number of batches in flight.
const BATCHES_IN_FLIGHT: usize = 16;
const PUTS_PER_BATCH: u64 = 100;
/// Index cache for filling in bytes: about the index of ten million names.
const FILLING_CACHE_BYTES: usize = 3 << 30;
/// Size of the pieces of a body in bytes, about as from a socket.
const PIECE_BYTES: usize = 1 << 20;

/// Opens the store in a folder, as a server would; creates it when there is none.
///
/// # Panics
///
/// When it cannot be opened.
pub fn open(folder: &Path) -> (Store, RecoveryReport) {
    Store::open_folder(folder, OpenOptions::new(Create::IfMissing)).expect("a store")
}

/// Opens a store for putting millions of objects into it in any order: with much of its index in memory, which would
/// distort a measurement.
///
/// # Panics
///
/// When it cannot be opened.
pub fn open_to_fill(folder: &Path) -> Store {
    let mut options = OpenOptions::new(Create::IfMissing);
    options.index_cache_bytes = FILLING_CACHE_BYTES;
    Store::open_folder(folder, options).expect("a store").0
}

/// Stages a body.
///
/// # Panics
///
/// When the store rejects it.
pub fn stage(store: &Store, body: &[u8]) -> StagedBody {
    let mut upload = store.upload();
    for piece in body.chunks(PIECE_BYTES) {
        upload.push(piece).expect("a body on its way");
    }
    upload.finish().expect("a staged body")
}

/// Puts one object and waits until it is durable.
///
/// # Panics
///
/// When the store rejects it.
pub fn put(store: &Store, name: ObjectName, body: &[u8]) {
    let options = PutOptions { content_type: "image/jpeg".into(), ..PutOptions::default() };
    let batch = Batch::new().put(name, stage(store, body), options);
    store.commit(batch).expect("a durable put");
}

/// Returns batches that put `count` objects: each number's name and body.
///
/// # Panics
///
/// When the store rejects a body.
pub fn batches(
    store: &Store,
    count: u64,
    object: impl Fn(u64) -> (ObjectName, Vec<u8>),
) -> impl Iterator<Item = Batch> {
    (0..count).step_by(PUTS_PER_BATCH as usize).map(move |first| {
        (first..count.min(first + PUTS_PER_BATCH)).fold(Batch::new(), |batch, number| {
            let (name, body) = object(number);
            let content_type = "application/octet-stream".to_owned();
            let options = PutOptions { content_type, ..PutOptions::default() };
            batch.put(name, stage(store, &body), options)
        })
    })
}

/// Commits batches, several at a time, and waits until all are durable.
///
/// # Panics
///
/// When the store rejects one.
pub fn commit_all(store: &Store, batches: impl IntoIterator<Item = Batch>) {
    let (answer, answers) = mpsc::channel::<engine::Result<()>>();
    let await_one = || answers.recv().expect("an answer").expect("a durable batch");
    let mut in_flight = 0;
    for batch in batches {
        let answer = answer.clone();
        store.submit(batch, move |result| {
            let _ = answer.send(result.map(drop));
        });
        in_flight += 1;
        if in_flight == BATCHES_IN_FLIGHT {
            await_one();
            in_flight -= 1;
        }
    }
    (0..in_flight).for_each(|_| await_one());
}
