//! Objects on a disk: buckets of named bodies, kept in append-only segments and found through an index that can always be
//! rebuilt from them.
#![warn(missing_docs)]

pub mod clock;
mod commit;
pub mod disk;
pub mod entropy;
mod error;
pub mod format;
mod index;
pub mod limits;
pub mod name;
mod recovery;
mod replay;
mod segment;
mod stats;
mod store;
mod upload;

pub use self::clock::{Clock, SimClock, SystemClock};
pub use self::commit::{Batch, Committed, Etag, Health, Precondition, Progress, PutOptions};
pub use self::disk::RealDisk;
pub use self::entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use self::error::{Conflict, Corruption, Error, Result};
pub use self::format::{BucketUsage, SegmentId};
pub use self::index::{FolderCursor, FolderPage, KeyPage, Object};
pub use self::name::{BucketName, FactName, FolderKey, NameError, ObjectKey, ObjectName};
pub use self::recovery::{Create, LogDamage, RecoveryReport};
pub use self::segment::Body;
pub use self::stats::{ClassStats, StoreStats};
pub use self::store::{Background, OpenOptions, Store, Surroundings};
pub use self::upload::{Staged, UPLOAD_HEAD_BYTES, Upload};
