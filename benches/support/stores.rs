//! Stores of the engine, opened and filled.

use std::path::Path;

use engine::{Batch, Create, ObjectName, OpenOptions, PutOptions, RecoveryReport, Staged, Store};

/// How bodies come in over a socket, about.
const PIECE_BYTES: usize = 1 << 20;

/// Opens the store in a folder, as a server would; makes it when there is none.
///
/// # Panics
///
/// When it cannot be opened.
pub fn open(folder: &Path) -> (Store, RecoveryReport) {
    Store::open_folder(folder, OpenOptions::new(Create::IfMissing)).expect("a store")
}

/// Takes a body in.
///
/// # Panics
///
/// When the store refuses it.
pub fn stage(store: &Store, body: &[u8]) -> Staged {
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
/// When the store refuses it.
pub fn put(store: &Store, name: ObjectName, body: &[u8]) {
    let options = PutOptions { content_type: "image/jpeg".into(), ..PutOptions::default() };
    let batch = Batch::new().put(name, stage(store, body), options);
    store.commit(batch).expect("a durable put");
}
