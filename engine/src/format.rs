//! On-disk format: every structure that a store writes, with its codec.
//!
//! Each structure has its own file with an offset table in the module head; `FORMAT.md` describes them together,
//! with the order of writes and syncs.
//!
//! ```text
//! STORE             store_file
//! BACKUP            backup_file, in an image of a store
//! REMOTE            remote_mark, in a replicated store
//! *.ref             remote_reference, in place of a segment
//! log/*.seg         segment_header | group: (frame: (record, body)...)... | footer
//! compacted/*.seg   segment_header with origin | group... | footer
//! big/*/*.seg       segment_header | body | big_footer
//! remote store      remote_file, chunk, manifest, and the segments as they are
//! index.redb        entry_key -> entry, fact_entry, segment_usage, usage, applied_position,
//!                   scrub_result, damage, retained
//! ```
//!
//! Guarantees: no decoder panics, or allocates memory by a length that was not checked; what a decoder accepts encodes
//! to the same bytes, except the content of a compressed block; everything is little-endian and comes from
//! [`byte_codec`]; every checksum comparison goes through [`checksum::compare`].
//! Non-goals: files, policies, the order of events.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod applied_position;
pub mod backup_file;
pub mod big_footer;
pub mod body;
pub mod byte_codec;
pub mod checksum;
pub mod chunk;
mod content_type_code;
pub mod damage;
pub mod entry;
pub mod entry_key;
pub mod fact_entry;
pub mod footer;
pub mod footer_block;
pub mod footer_reader;
pub mod group;
pub mod group_builder;
pub mod group_view;
pub mod malformed;
pub mod manifest;
pub mod object_meta;
pub mod origin;
pub mod record;
pub mod record_kind;
pub mod remote_file;
pub mod remote_mark;
pub mod remote_reference;
pub mod retained;
pub mod scrub_result;
pub mod segment_header;
pub mod segment_id;
pub mod segment_usage;
pub mod store_file;
pub mod usage;

#[cfg(test)]
mod testing;

pub use self::applied_position::{APPLIED_POSITION_BYTES, AppliedPosition};
pub use self::backup_file::{BACKUP_FILE, BackupFile};
pub use self::big_footer::{BIG_BODY_OFFSET, BIG_TRAILER_BYTES, BigTrailer};
pub use self::body::{BodyFault, block_addresses};
pub use self::byte_codec::{ByteReader, ByteWriter};
pub use self::checksum::{
    CheckClass, Checksum, DiskAddress, RunningChecksum, SegmentContext, compare,
};
pub use self::chunk::{CHUNK_HEADER_BYTES, CHUNK_PREFIX, Chunk, ChunkKind};
pub use self::damage::{Damage, RecordName};
pub use self::entry::{Entry, EntryContent, Location};
pub use self::fact_entry::FactEntry;
pub use self::footer::{
    FOOTER_ENTRY_BYTES_MAX, FOOTER_TRAILER_BYTES, FooterDigest, FooterEntries, FooterEntry,
    FooterTrailer, FooterWriter, footer_bytes_max,
};
pub use self::footer_block::{FOOTER_BLOCK_BYTES, FOOTER_BLOCK_HEADER_BYTES, FooterBlock};
pub use self::footer_reader::FooterReader;
pub use self::group::{
    FRAME_HEADER_BYTES, FrameHeader, GROUP_HEADER_BYTES, GROUP_OVERHEAD_BYTES, GROUP_TRAILER_BYTES,
    GroupHeader,
};
pub use self::group_builder::{BuiltGroup, GroupBuilder, Placed};
pub use self::group_view::{GroupView, ScannedRecord, find_group_header, salvage};
pub use self::malformed::Malformed;
pub use self::manifest::{
    MANIFEST_PREFIX, Manifest, ManifestSegment, REMOTE_SEGMENT_PREFIX, RemoteSegment,
};
pub use self::object_meta::{ObjectFlags, ObjectMeta};
pub use self::origin::{LsnRanges, Origin};
pub use self::record::{
    HEAD_BYTES_MAX, HEAD_COMMON_BYTES, Record, RecordContent, RecordOp, block_count,
};
pub use self::record_kind::RecordKind;
pub use self::remote_file::{REMOTE_FILE, decode_remote_file, encode_remote_file};
pub use self::remote_mark::{REMOTE_MARK, RemoteMark};
pub use self::remote_reference::{REFERENCE_BYTES, REFERENCE_SUFFIX, RemoteReference};
pub use self::retained::{RETAINED_SEGMENT_BYTES, RetainedSegment};
pub use self::scrub_result::ScrubResult;
pub use self::segment_header::{
    Predecessor, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_COPY_BYTES, SegmentHeader,
};
pub use self::segment_id::{
    BIG_FOLDER, BIG_FOLDER_SEGMENTS, COMPACTED_FOLDER, LOG_FOLDER, SEGMENT_SUFFIX, SegmentClass,
    SegmentId, big_folder_number,
};
pub use self::segment_usage::{SEGMENT_USAGE_BYTES, SegmentUsage};
pub use self::store_file::{STORE_FILE, STORE_FILE_BYTES, StoreFile};
pub use self::usage::{USAGE_BYTES, Usage};

/// Format version that this code writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;
/// Feature bits that this code supports; a file with any other bit is rejected.
pub const FEATURES_KNOWN: u32 = 0;

/// Rejects every version except [`FORMAT_VERSION`].
fn check_version(version: u32) -> Result<(), Malformed> {
    if version == FORMAT_VERSION { Ok(()) } else { Err(Malformed::Version(version)) }
}

/// Rejects unknown feature bits.
fn check_features(features: u32) -> Result<(), Malformed> {
    if features & !FEATURES_KNOWN == 0 { Ok(()) } else { Err(Malformed::Features(features)) }
}

const _: () = assert!(usize::BITS >= 32, "lengths that are a u32 on disk are held as usize");
