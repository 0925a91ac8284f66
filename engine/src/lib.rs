//! Embedded object store: buckets of named objects in append-only segments, with an index that can always be rebuilt
//! from them.
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
//! # Layers
//!
//! A file uses only lower layers, never the same or a higher layer; the tidy tests enforce the table.
//!
//! ```text
//! fsck                                 offline check and repair of a store
//! store                                public API
//! recovery   compaction   scrub        whole-store work
//! history    backup       stats
//! commit     replay    search          write path, replay of the log, fuzzy search
//! upload                               staging of bodies
//! segment    index                     data files and index
//! free_space                           free disk space
//! error                                error type
//! format  |  disk                      on-disk format | disk abstraction
//! name   metrics                       names, metrics
//! limits  clock  rng  progress         limits, clock, random numbers, progress
//! ```
//!
//! Start with `FORMAT.md`, then [`format::record`], `commit/committer.rs`, `recovery.rs`.
#![warn(missing_docs)]

mod backup;
pub mod clock;
mod commit;
mod compaction;
pub mod disk;
mod error;
pub mod format;
mod free_space;
pub mod fsck;
mod history;
mod index;
pub mod limits;
mod metrics;
pub mod name;
mod progress;
mod recovery;
mod replay;
pub mod rng;
mod scrub;
mod search;
mod segment;
mod stats;
mod store;
mod upload;

pub use self::backup::BackupReport;
pub use self::clock::{Clock, SimClock, SystemClock};
pub use self::commit::{
    Batch, CommitInfo, CommitStep, Etag, Health, NoncurrentReason, NoncurrentVersion, ObjectChange,
    Precondition, PutOptions,
};
pub use self::compaction::{
    CompactionInput, CompactionPlan, CompactionReport, CompactionRules, CompactionStep,
};
pub use self::disk::RealDisk;
pub use self::error::{Conflict, Corruption, Error, Result};
pub use self::format::{Damage, Malformed, RecordName, SegmentClass, SegmentId, Usage};
pub use self::history::{
    DeletedFilter, LogScanCursor, LsnRange, NoncurrentFilter, NoncurrentLogPage, NoncurrentPage,
    PutVersion, RestoreError, RestoredObject, UndeleteReport, UndeleteRequest, Version,
    VersionEvent, VersionFilter, VersionHistory, VersionScope, VersionState,
};
pub use self::index::{
    DamageList, FolderCursor, FolderPage, KeyGroupPage, KeyGrouping, KeyPage, Object, UsagePage,
};
pub use self::metrics::{Counter, Histogram, HistogramSnapshot, StoreMetrics};
pub use self::name::{BucketName, FactName, FolderKey, NameError, ObjectKey, ObjectName};
pub use self::progress::{ProgressCallback, WorkProgress};
pub use self::recovery::{Create, LogDamage, RecoveryReport};
pub use self::rng::{Rng, SeededRng, SystemRng};
pub use self::scrub::{ScrubOptions, ScrubReport};
pub use self::search::{Hit, HitItem, HitPage, SearchOptions, SearchQuery};
pub use self::segment::{Body, RetainedStats, Verification};
pub use self::stats::{ClassStats, DiskStats, SegmentStats, StoreStats};
pub use self::store::{Background, CompactionOptions, Environment, OpenOptions, Store};
pub use self::upload::{
    ResumableUpload, ResumePoint, StagedBody, StagedReader, UPLOAD_HEAD_BYTES, Upload,
};
