//! fjall, a log-structured store, with batched puts: one thread takes the queued puts, commits them, and syncs once.
//!
//! fjall by itself syncs for each batch of each caller. Values are separated from keys, as it recommends for large
//! values.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use engine::limits::{GROUP_BYTES_MAX, GROUP_RECORDS_MAX};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

/// A store of fjall. It closes when the last putter is dropped.
pub struct BatchedFjall {
    puts: SyncSender<Put>,
}

struct Put {
    key: String,
    body: Vec<u8>,
    done: SyncSender<()>,
}

impl BatchedFjall {
    /// Opens a store in a folder.
    ///
    /// # Panics
    ///
    /// When it cannot be created.
    pub fn open(folder: &Path) -> Self {
        let database = Database::builder(folder).open().expect("a store of fjall");
        let options = || {
            let apart = Some(KvSeparationOptions::default());
            KeyspaceCreateOptions::default().with_kv_separation(apart)
        };
        let objects = database.keyspace("objects", options).expect("a keyspace");
        let (puts, waiting) = sync_channel(GROUP_RECORDS_MAX);
        thread::spawn(move || commit_all(&database, &objects, &waiting));
        Self { puts }
    }

    /// Puts objects, one after another, each durable when the call returns.
    pub fn putter(&self) -> impl FnMut(String, &[u8]) + Send + use<> {
        let puts = self.puts.clone();
        let (done, answers) = sync_channel(1);
        move |key, body| {
            let put = Put { key, body: body.to_vec(), done: done.clone() };
            puts.send(put).expect("a store that takes puts");
            answers.recv().expect("an answer");
        }
    }
}

fn commit_all(database: &Database, objects: &Keyspace, waiting: &Receiver<Put>) {
    while let Ok(first) = waiting.recv() {
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        let (mut bytes, mut answers, mut next) = (0, Vec::new(), Some(first));
        while let Some(Put { key, body, done }) = next.take() {
            bytes += body.len() as u64;
            batch.insert(objects, key, body);
            answers.push(done);
            if answers.len() < GROUP_RECORDS_MAX && bytes < GROUP_BYTES_MAX {
                next = waiting.try_recv().ok();
            }
        }
        batch.commit().expect("a durable batch");
        for done in answers {
            let _ = done.send(());
        }
    }
}
