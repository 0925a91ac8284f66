//! Segments: the files that hold everything, and the states of their lives.
//!
//! ```text
//! log        spare --roll--> active --roll--> closed --seal--> sealed --retire--> gone
//! big        writing --finish--> sealed --let go--> retained --retire--> gone
//! compacted  writing --seal--> sealed --retire--> gone
//! ```
//!
//! A spare has its name and its space but a blank header. The active one takes groups and is read by `pread`, as is a
//! closed one until its footer is written. A sealed segment never changes again: it is cut to its footer,
//! memory-mapped, and handed out in slices; retiring removes its name, and its space returns when the last slice is
//! dropped.

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
pub(crate) use self::open::{Patience, read_header, read_origin};
pub use self::retained::RetainedStats;
pub(crate) use self::seal::{read_footer, seal};
pub(crate) use self::set::{BIG_FOLDER, COMPACTED_FOLDER, LOG_FOLDER, NamesHeld, SegmentSet};
pub(crate) use self::stretches::is_zero;
pub(crate) use self::walk::{GroupRead, LogWalk, Walked};
