//! Embedded storage engine for objects: buckets of named bodies in append-only segments, with an index that can be
//! rebuilt from them.
//!
//! The engine is the library below the trug server: synchronous, with threads of its own. A [`Store`] is a folder, open
//! in one process at a time. It contains *objects* (bodies with content type and attributes, each under a bucket and a
//! key) and *facts* (small values under a name, for metadata of the application).
//!
//! The engine has no HTTP, authentication, quotas or encryption. It stores bodies as they are, without
//! compression or deduplication. A [`snapshot::Snapshot`] reads names and attributes at one time; there are no other
//! read transactions over several calls. The crate `search` finds objects by parts of their names.
//!
//! The root has what is needed to store and read objects. Modules have the rest: [`listing`], [`history`] with
//! undelete, [`compaction`], [`scrub`], [`backup`], [`replication`], [`fsck`], [`stats`], [`snapshot`].
//!
//! # Example
//!
//! ```
//! use engine::{Batch, BucketName, Create, ObjectKey, ObjectName, OpenOptions, Precondition, PutOptions, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let (store, report) = Store::open_folder(folder.path(), OpenOptions::new(Create::IfMissing))?;
//! println!("{report}");
//!
//! // A body is uploaded in pieces; small bodies stay in memory, large ones are written to separate files.
//! let mut upload = store.upload();
//! upload.push(b"meow")?;
//! let staged = upload.finish()?;
//!
//! // A batch is atomic. When `commit` returns, it is durable.
//! let name = ObjectName::new(BucketName::parse("pets")?, ObjectKey::parse("cats/tom.txt")?);
//! let options = PutOptions { content_type: "text/plain".to_owned(), ..PutOptions::default() };
//! let batch = Batch::new()
//!     .put(name.clone(), staged, options)
//!     .require(Precondition::KeyAbsent(name.clone()));
//! store.commit(batch)?;
//!
//! let object = store.get(&name)?.ok_or("it was just put")?;
//! let body = store.body(&object)?;
//! assert_eq!(body.read(1..4)?, "eow");
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! | subject | guarantee |
//! |---|---|
//! | durability | a batch and its bodies are synced to disk before they are acknowledged |
//! | atomicity | a batch takes effect completely or not at all, also after a crash |
//! | read isolation | each lookup and listing page reads one snapshot, with every batch acknowledged before |
//! | corruption | a read returns verified bytes, or [`Error::Corrupt`] |
//! | recovery | opening replays the log and reports damage; the index is rebuilt if it is missing or damaged |
//! | full disk | bodies are rejected with [`Error::NoSpace`]; reads, deletions and facts continue |
//! | limits | 1,024 bytes per key, 64 GiB per body, 64 KiB per fact; see [`limits`] |
//!
//! - Durability: after a failed write or sync of the log the store is read-only until it is reopened; see [`Health`].
//! - Atomicity: batches are committed one after another. Of two concurrent batches that put the same key and require
//!   [`Precondition::KeyAbsent`], only one succeeds. A batch has at most 1,024 operations and 128 MiB in the log.
//! - Read isolation: two calls to a [`Store`] may read different snapshots. An open [`Body`] stays readable when its
//!   object is overwritten or deleted.
//! - Corruption: bodies, in blocks of 64 KiB, and record heads have CRC-32 checksums bound to segment and offset. A
//!   block is verified on its first read and trusted until its file changes. The scrub
//!   ([`scrub::ScrubOptions`], off by default) verifies everything again, live bodies also by their BLAKE3 hash.
//! - Recovery: an interrupted write at the end of the log, which was never acknowledged, is cut off. Damage to
//!   acknowledged data is listed in the [`recovery::RecoveryReport`] and in [`Store::damage`], and the rest stays
//!   available. Exception: damage to the last group before a crash may look like an interrupted write.
//! - Full disk: bodies may not use the reserve of free space, [`OpenOptions::reserve_bytes`]; deletions and facts may.
//! - Limits: the number of buckets and objects is bounded by disk space only.
//!
//! # Layers
//!
//! A file may use its own module and lower layers, never another module of the same layer or of a higher one. A tidy
//! test enforces this table.
//!
//! ```text
//! fsck                                 offline check and repair of a store
//! store                                public API
//! recovery   compaction   scrub        whole-store work
//! history    backup       stats        replication
//! commit     replay    snapshot        write path, replay of the log, snapshots for caches
//! upload                               staging of bodies
//! segment    index                     data files and index
//! free_space  upload_memory            free disk space, memory of uploads
//! error                                error type
//! format  |  disk                      on-disk format | disk abstraction
//! name   metrics                       names, metrics
//! limits  clock  rng  progress         limits, clock, random numbers, progress,
//! mapped_buffer                        memory that returns to the system at once
//! ```
//!
//! To read the code, start with `FORMAT.md`, then [`format::record`], `commit/committer.rs` and `recovery.rs`.
#![warn(missing_docs)]

pub mod backup;
pub mod clock;
pub mod commit;
pub mod compaction;
pub mod disk;
mod error;
pub mod format;
mod free_space;
pub mod fsck;
pub mod history;
mod index;
pub mod limits;
mod mapped_buffer;
pub mod metrics;
pub mod name;
pub mod progress;
pub mod recovery;
pub mod remote;
mod replay;
pub mod replication;
pub mod rng;
pub mod scrub;
mod segment;
pub mod snapshot;
pub mod stats;
mod store;
mod tier;
pub mod upload;
mod upload_memory;

/// Pages of listings.
pub mod listing {
    pub use crate::index::{FolderCursor, FolderPage, KeyGroupPage, KeyGrouping, KeyPage};
}

/// What is known of damage: its place, kind, and the objects that it concerns.
pub mod damage {
    pub use crate::error::Corruption;
    pub use crate::format::{Damage, Malformed, RecordName, SegmentClass, SegmentId};
    pub use crate::index::DamageList;
}

pub use self::commit::{Batch, CommitInfo, Etag, Health, Precondition, PutOptions};
pub use self::disk::RealDisk;
pub use self::error::{Conflict, Error, Result};
pub use self::format::Usage;
pub use self::index::Object;
pub use self::name::{BucketName, FactName, FolderKey, ObjectKey, ObjectName};
pub use self::recovery::Create;
pub use self::segment::{Body, Verification};
pub use self::store::{Background, Environment, OpenOptions, Store};
pub use self::upload::{StagedBody, Upload};
