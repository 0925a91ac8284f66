//! Groups: the builder writes what the format specifies, and nothing else is read back.
//!
//! The input is a group of records of every kind, without gaps in their numbers or, as in a compacted segment, with
//! gaps between the frames. Three properties. A second writer in this file, which follows `FORMAT.md` and not the
//! builder, writes the same bytes, and the walk reads them back as given. Where that writer falsifies one number, with
//! every checksum valid, the group is rejected, or it is read as a group that the builder would write identically. A
//! group with one changed byte is rejected, or its bodies are, and every record salvaged from it was written.
use bytes::Bytes;
use engine::format::{
    Checksum, FRAME_HEADER_BYTES, FrameHeader, GROUP_HEADER_BYTES, GroupBuilder, GroupHeader,
    GroupView, ObjectFlags, ObjectMeta, Record, RecordContent, RecordOp, ScannedRecord,
    SegmentContext, SegmentId, find_group_header, salvage,
};
use engine::limits::{BLOCK_BYTES, COMPACTION_SEGMENTS_MAX};
use engine::name::{BucketName, FactName, ObjectKey, ObjectName};

use crate::choice_sequence::ChoiceSequence;

/// Offset of the group in bytes.
const OFFSET: u64 = 4_096;
/// Number of its first record.
const FIRST_LSN: u64 = 100;
/// Maximum number of records: larger groups would take longer without covering more.
const RECORDS_MAX: usize = 48;
/// Body lengths: within a piece, at its edge, and of two blocks.
const BODY_BYTES: [usize; 8] = [0, 1, 7, 200, 4_096, 4_097, BLOCK_BYTES, BLOCK_BYTES + 9];

/// A record without a place yet, and its body.
pub(crate) type Unplaced = (RecordOp, Vec<Bytes>);

/// Checks the properties.
pub fn run(input: &[u8]) {
    let Some(context) = context() else { return };
    let mut choices = ChoiceSequence::new(input);
    let (at, flip) = (usize::from(choices.pair()), choices.byte().max(1));
    let lie = Lie { field: choices.below(10), at: choices.below(8), by: u32::from(choices.pair()) };
    let gap = choices.below(3) as u64;
    let frames = frames(&mut choices);

    let bytes = build(&frames, gap, context);
    let honest = Lie { by: 0, ..lie };
    assert_eq!(forge(&frames, gap, honest, context), bytes, "two writers, two groups");
    check_round_trip(&bytes, &frames, gap, context);

    let forged = forge(&frames, gap, lie, context);
    let place = context.at(OFFSET);
    for view in [GroupView::decode(&forged, place), GroupView::decode_compacted(&forged, place)] {
        let Ok(view) = view else { continue };
        let read = view.header().group_bytes as usize;
        // The builder leaves no gaps within a frame; a reader of a compacted segment does not depend on that.
        if let Some(again) = rebuild(&view, context) {
            assert_eq!(again, forged[..read], "read, and not what is written");
        }
    }
    check_change_is_detected(bytes, at, flip, context);
}

pub(crate) fn context() -> Option<SegmentContext> {
    SegmentId::new(1).map(|segment| SegmentContext { salt: 0x5EED, segment })
}

fn builder(context: SegmentContext) -> GroupBuilder {
    GroupBuilder::new(context, OFFSET, 9, FIRST_LSN, FIRST_LSN - 1, Checksum(7))
}

fn build(frames: &[Vec<Unplaced>], gap: u64, context: SegmentContext) -> Vec<u8> {
    let mut builder = builder(context);
    let mut lsn = FIRST_LSN;
    for frame in frames {
        builder.skip_to(lsn);
        builder.frame(frame);
        lsn += frame.len() as u64 + gap;
    }
    let built = builder.finish();
    let bytes = built.pieces.concat();
    assert_eq!(bytes.len() as u64, built.bytes);
    bytes
}

fn check_round_trip(bytes: &[u8], frames: &[Vec<Unplaced>], gap: u64, context: SegmentContext) {
    let place = context.at(OFFSET);
    let view = GroupView::decode_compacted(bytes, place).expect("a built group is a group");
    let is_gapless = gap == 0 || frames.len() < 2;
    assert_eq!(GroupView::decode(bytes, place).is_ok(), is_gapless, "gaps in the log");
    assert_eq!(view.verify_bodies(), Ok(()));
    let records =
        frames.iter().zip(0..).flat_map(|(frame, at)| frame.iter().map(move |it| (it, at)));
    assert_eq!(view.records().len(), records.clone().count());
    for (scanned, ((what, body), frame)) in view.records().zip(records) {
        assert_eq!((&unbound(scanned), scanned.frame), (what, frame));
        assert_eq!(scanned.body, body.concat());
    }
    assert_eq!(find_group_header(bytes, context, OFFSET), Some((OFFSET, *view.header())));
    assert_eq!(salvage(bytes, place), view.into_records());
}

fn check_change_is_detected(mut bytes: Vec<u8>, at: usize, flip: u8, context: SegmentContext) {
    let place = context.at(OFFSET);
    let written = bytes.clone();
    let written = salvage(&written, place);
    let at = at % bytes.len();
    bytes[at] ^= flip;
    let view = GroupView::decode_compacted(&bytes, place);
    let passes = view.is_ok_and(|view| view.verify_bodies().is_ok());
    assert!(!passes, "byte {at} was changed and nobody noticed");
    for found in salvage(&bytes, place) {
        let known = written.iter().find(|written| written.address == found.address);
        assert_eq!(known.map(|known| known.head), Some(found.head), "salvaged, and never written");
    }
}

/// A falsified number and its difference; 0 leaves it correct.
#[derive(Clone, Copy, Debug)]
struct Lie {
    field: usize,
    /// Index of the frame or record that the number belongs to.
    at: usize,
    by: u32,
}

/// Writes a group as the format specifies, with one falsified number and every checksum valid.
fn forge(frames: &[Vec<Unplaced>], gap: u64, lie: Lie, context: SegmentContext) -> Vec<u8> {
    let forged = |field: usize, is_meant: bool, number: usize| {
        let number = u32::try_from(number).expect("numbers of a small group");
        if lie.field == field && is_meant { number.wrapping_add(lie.by) } else { number }
    };
    let mut group = vec![0; GROUP_HEADER_BYTES];
    let mut heads = Vec::new();
    let (mut lsn, mut records) = (FIRST_LSN, 0);
    for (at, frame) in frames.iter().enumerate() {
        let here = |group: &Vec<u8>| context.at(OFFSET + group.len() as u64);
        let of_record = |(what, _): &Unplaced| what.head_bytes() + what.body_bytes() as usize;
        let frame_bytes = FRAME_HEADER_BYTES + frame.iter().map(of_record).sum::<usize>();
        let is_meant = at == lie.at % frames.len();
        let header = FrameHeader {
            frame_bytes: forged(0, is_meant, frame_bytes),
            record_count: forged(1, is_meant, frame.len()),
        };
        let start = group.len();
        header.encode(here(&group), &mut group);
        heads.extend_from_slice(&group[start..]);
        for (what, body) in frame {
            let place = here(&group);
            let mut what = what.clone();
            what.bind(place.plus(what.head_bytes() as u64));
            let is_meant = lie.field == 2 && records == lie.at;
            let number = if is_meant { lsn.wrapping_add(lie.by.into()) } else { lsn };
            let start = group.len();
            Record { lsn: number, op: what }.encode(place, &mut group);
            heads.extend_from_slice(&group[start..]);
            body.iter().for_each(|piece| group.extend_from_slice(piece));
            (lsn, records) = (lsn + 1, records + 1);
        }
        lsn += gap;
    }
    if lie.field == 3 {
        group.resize(group.len() + lie.by as usize % 64, 0);
    }
    let trailer = Checksum::of(&heads).bind(context.at(OFFSET + group.len() as u64));
    group.extend_from_slice(&trailer.0.to_le_bytes());
    let header = GroupHeader {
        number: 9,
        first_lsn: u64::from(forged(4, true, FIRST_LSN as usize)),
        durable_lsn: u64::from(forged(5, true, FIRST_LSN as usize - 1)),
        group_bytes: forged(6, true, group.len()),
        record_count: forged(7, true, records),
        frame_count: forged(8, true, frames.len()),
        previous: Checksum(7),
    };
    group[..GROUP_HEADER_BYTES].copy_from_slice(&header.encode(context.at(OFFSET)));
    group
}

/// Builds the group again from what was read; none where a number is skipped within a frame.
fn rebuild(view: &GroupView<'_>, context: SegmentContext) -> Option<Vec<u8>> {
    let GroupHeader { number, first_lsn, durable_lsn, previous, .. } = *view.header();
    let mut builder = GroupBuilder::new(context, OFFSET, number, first_lsn, durable_lsn, previous);
    let records: Vec<&ScannedRecord<'_>> = view.records().collect();
    for frame in records.chunk_by(|one, next| one.frame == next.frame) {
        let unplaced =
            |it: &&ScannedRecord<'_>| (unbound(it), vec![Bytes::copy_from_slice(it.body)]);
        let lsn = |it: &&ScannedRecord<'_>| it.record.lsn;
        let first = frame.first().map(lsn)?;
        if !frame.iter().map(lsn).eq((first..).take(frame.len())) {
            return None;
        }
        builder.skip_to(first);
        builder.frame(&frame.iter().map(unplaced).collect::<Vec<_>>());
    }
    Some(builder.finish().pieces.concat())
}

/// Returns the content of a record, with its block checksums unbound from their offsets.
fn unbound(scanned: &ScannedRecord<'_>) -> RecordOp {
    let mut what = scanned.record.op.clone();
    what.bind(scanned.address.plus(scanned.head_bytes as u64));
    what
}

/// Chooses the frames of one group; none make a watermark.
pub(crate) fn frames(choices: &mut ChoiceSequence<'_>) -> Vec<Vec<Unplaced>> {
    let mut frames: Vec<Vec<Unplaced>> = Vec::new();
    let mut records = 0;
    while !choices.is_exhausted() && records < RECORDS_MAX {
        let kind = choices.byte();
        let record = record(kind % 9, choices);
        match frames.last_mut() {
            Some(frame) if kind < 128 => frame.push(record),
            _ => frames.push(vec![record]),
        }
        records += 1;
    }
    frames
}

/// Chooses a record of a kind, with names, times and bodies from the input.
fn record(kind: u8, choices: &mut ChoiceSequence<'_>) -> Unplaced {
    let name = |choices: &mut ChoiceSequence<'_>| {
        let key = ObjectKey::parse(&choices.short_text()).or_else(|_| ObjectKey::parse("a/key"));
        let bucket = BucketName::parse("any").expect("this names a bucket");
        ObjectName::new(bucket, key.expect("this is a key"))
    };
    let fact = |choices: &mut ChoiceSequence<'_>| {
        let name = FactName::parse(&choices.short_text()).or_else(|_| FactName::parse("a/fact"));
        name.expect("this names a fact")
    };
    match kind {
        0 | 1 => {
            let name = name(choices);
            let (body, checks) = body(choices);
            let content = RecordContent::Inline { bytes: body.len() as u64, blocks: checks };
            (RecordOp::Put { name, meta: meta(choices), content }, vec![body])
        }
        2 | 7 => {
            let name = name(choices);
            let (segment, bytes) = (segment(choices.pair()), u64::from(choices.pair()));
            let big = RecordContent::Big { bytes, segment };
            let content = if kind == 2 { big } else { RecordContent::Lost { bytes } };
            (RecordOp::Put { name, meta: meta(choices), content }, Vec::new())
        }
        3 => (RecordOp::Delete { name: name(choices), deleted_ms: choices.number() }, Vec::new()),
        4 => {
            let name = fact(choices);
            let value = Bytes::copy_from_slice(choices.short_bytes());
            let (bytes, check) = (value.len() as u32, Checksum::of(&value));
            (RecordOp::PutFact { name, bytes, check }, vec![value])
        }
        5 => (RecordOp::DeleteFact { name: fact(choices) }, Vec::new()),
        6 => {
            let mut segments = |least: usize| -> Vec<SegmentId> {
                let ids = choices.short_bytes().iter().map(|id| segment((*id).into()));
                let one = std::iter::repeat_n(segment(0), least);
                one.chain(ids).take(COMPACTION_SEGMENTS_MAX).collect()
            };
            (RecordOp::Compaction { outputs: segments(0), inputs: segments(1) }, Vec::new())
        }
        _ => {
            let segment = segment(choices.pair());
            (RecordOp::HolePunch { segment, bytes: choices.number() }, Vec::new())
        }
    }
}

fn segment(number: u16) -> SegmentId {
    SegmentId::new(1 + u64::from(number)).expect("a small number")
}

fn body(choices: &mut ChoiceSequence<'_>) -> (Bytes, Vec<Checksum>) {
    let (bytes, fill) = (choices.one_of(&BODY_BYTES), choices.short_bytes());
    let filled = fill.iter().chain([&0xa5]).copied().cycle().take(bytes);
    let body: Bytes = filled.collect::<Vec<u8>>().into();
    let checks = body.chunks(BLOCK_BYTES).map(Checksum::of).collect();
    (body, checks)
}

fn meta(choices: &mut ChoiceSequence<'_>) -> ObjectMeta {
    ObjectMeta {
        content_type: choices.one_of(&["", "image/png", "text/plain; charset=utf-8"]).to_owned(),
        hash: [choices.byte(); 32],
        created_ms: choices.number(),
        modified_ms: choices.number(),
        flags: ObjectFlags { derived: choices.byte() % 2 == 1 },
        attributes: choices.short_bytes().to_vec(),
    }
}
