//! Layout of a store's files, found with the engine's own decoders: the owner of a flipped byte.

use std::ops::Range;

use engine::ObjectName;
use engine::disk::sim::SimDisk;
use engine::format::{
    GROUP_HEADER_BYTES, GroupView, RecordKind, RecordOp, SEGMENT_HEADER_BYTES, SegmentHeader,
};

/// A group of a log segment.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Range of the group in the file.
    pub(crate) bytes: Range<usize>,
    /// Records of the group: head and body, and the object that they are about, if any.
    pub(crate) records: Vec<Piece>,
}

/// A record in its file.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: RecordKind,
    pub(crate) object: Option<ObjectName>,
    pub(crate) lsn: u64,
    pub(crate) head: Range<usize>,
    pub(crate) body: Range<usize>,
}

/// Returns the groups of a log segment, in order.
pub(crate) fn groups(disk: &SimDisk, path: &str) -> Vec<Group> {
    let bytes = disk.bytes(path);
    let page = bytes.get(..SEGMENT_HEADER_BYTES).unwrap_or_default();
    let Ok(header) = SegmentHeader::decode_page(page) else { return Vec::new() };
    let mut groups = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= GROUP_HEADER_BYTES) {
        let Ok(view) = GroupView::decode(rest, header.context().at(at as u64)) else { break };
        let end = at + view.header().group_bytes as usize;
        let records = view.records().map(|scanned| {
            let start = usize::try_from(scanned.address.offset).unwrap_or(usize::MAX);
            let body = start + scanned.head_bytes;
            let (kind, object) = match &scanned.record.op {
                RecordOp::Put { name, .. } => (RecordKind::Object, Some(name.clone())),
                RecordOp::Delete { name, .. } => (RecordKind::Tombstone, Some(name.clone())),
                RecordOp::PutFact { .. } => (RecordKind::Fact, None),
                RecordOp::DeleteFact { .. } => (RecordKind::FactTombstone, None),
                RecordOp::Compaction { .. } => (RecordKind::Compaction, None),
                RecordOp::HolePunch { .. } => (RecordKind::HolePunch, None),
            };
            let lsn = scanned.record.lsn;
            Piece { kind, object, lsn, head: start..body, body: body..body + scanned.body.len() }
        });
        groups.push(Group { bytes: at..end, records: records.collect() });
        at = end;
    }
    groups
}

/// Flips one bit of one byte, as bit rot does: in memory and on the platter.
pub(crate) fn flip(disk: &SimDisk, path: &str, offset: usize) {
    let byte = disk.bytes(path).get(offset).copied().unwrap_or(0);
    disk.overwrite(path, offset as u64, &[byte ^ (1 << (offset % 8))]);
}
