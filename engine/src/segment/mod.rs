//! Segments: files, life cycle and access.
//!
//! ```text
//! log        spare --roll--> active --roll--> closed --seal--> sealed --retire--> removed
//! big        writing --finish--> sealed --release--> retained --retire--> removed
//! compacted  writing --seal--> sealed --retire--> removed
//! ```
//!
//! A spare has a name and reserved space but a blank header. Groups are appended to the active segment, which is
//! read by `pread`, as is a closed one until its footer is written. A sealed segment is immutable: it is truncated
//! after its footer, memory-mapped, and read as slices of the map. Retiring removes its name; the space is reclaimed
//! when the last slice is dropped.

mod active;
mod big;
mod body;
mod compacted;
mod cursor;
mod heads;
mod kept;
mod open;
mod retained;
mod seal;
mod set;
mod sightings;
mod stretches;
mod walk;

pub(crate) use self::active::{ActiveSegment, LogPosition};
pub(crate) use self::big::{BigReader, BigWriter, adopt_big};
pub use self::body::Body;
pub(crate) use self::compacted::CompactedWriter;
pub(crate) use self::cursor::{CursorFault, CursorRecord, RecordCursor};
pub use self::open::Verification;
pub(crate) use self::open::{ReadMode, read_header, read_origin};
pub use self::retained::RetainedStats;
pub(crate) use self::seal::{read_footer, seal};
pub(crate) use self::set::{BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER, RemovalGuard, SegmentSet};
pub(crate) use self::stretches::is_zero;
pub(crate) use self::walk::{GroupCursor, GroupStep, ReadGroup};
