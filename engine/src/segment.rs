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
mod big_segment;
mod body_cache;
mod body_reader;
mod compacted_writer;
mod data_extents;
mod group_cursor;
mod head_reader;
mod open_segment;
mod record_cursor;
mod remote_segments;
mod reported_corruption;
mod retained_files;
mod retention;
mod seal;
mod set;
mod verify_copy;

pub(crate) use self::active::{ActiveSegment, LogPosition};
pub(crate) use self::big_segment::{BigReader, BigWriter, adopt_big};
pub use self::body_reader::Body;
pub(crate) use self::compacted_writer::CompactedWriter;
pub(crate) use self::data_extents::is_zero;
pub(crate) use self::group_cursor::{GroupCursor, GroupStep, ReadGroup};
pub use self::open_segment::Verification;
pub(crate) use self::open_segment::{ReadMode, read_header, read_origin};
pub(crate) use self::record_cursor::{CursorFault, CursorRecord, RecordCursor};
pub(crate) use self::remote_segments::{RemoteCopy, RemoteSegments};
pub use self::retention::RetainedStats;
pub(crate) use self::seal::{read_footer, seal};
pub(crate) use self::set::{RemovalGuard, SegmentSet};
pub(crate) use self::verify_copy::SegmentCopy;
