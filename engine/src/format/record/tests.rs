//! Unit tests of the record head.

use proptest::prelude::*;

use super::*;
use crate::format::testing::{every_byte_counts, place};

fn name() -> ObjectName {
    ObjectName::new(
        BucketName::parse("photos").unwrap(),
        ObjectKey::parse("2024/sommer/möwe.jpg").unwrap(),
    )
}

fn meta() -> ObjectMeta {
    ObjectMeta {
        content_type: "image/jpeg".to_owned(),
        hash: [0xb3; 32],
        created_ms: 1_700_000_000_001,
        modified_ms: 1_700_000_000_002,
        flags: ObjectFlags { derived: true },
        attributes: vec![1, 0, 255],
    }
}

fn one_of_each() -> [Record; 8] {
    let fact = || FactName::parse("token/abc").unwrap();
    let big = Content::Big { bytes: 5_000_000, segment: SegmentId::new(3).unwrap() };
    let inline = Content::Inline {
        bytes: limits::BLOCK_BYTES as u64 + 1,
        blocks: vec![Checksum(1), Checksum(2)],
    };
    [
        What::Put { name: name(), meta: meta(), content: inline },
        What::Put { name: name(), meta: meta(), content: big },
        What::Delete { name: name(), deleted_ms: 4 },
        What::Fact { name: fact(), bytes: 9, check: Checksum(5) },
        What::FactGone { name: fact() },
        What::Compacted { outputs: segments(&[9]), inputs: segments(&[2, 7]) },
        What::Put { name: name(), meta: meta(), content: Content::Lost { bytes: 77 } },
        What::Punched { segment: SegmentId::new(3).unwrap(), bytes: 4_096 },
    ]
    .map(|what| Record { lsn: 0x0102_0304_0506_0708, what })
}

fn segments(ids: &[u64]) -> Vec<SegmentId> {
    ids.iter().map(|id| SegmentId::new(*id).unwrap()).collect()
}

fn encoded(record: &Record, place: Place) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(place, &mut out);
    out
}

#[test]
fn every_kind_survives_its_bytes_and_every_byte_counts() {
    for (kind, record) in (1..).zip(one_of_each()) {
        let bytes = encoded(&record, place(5_000));
        assert_eq!(bytes.len(), record.head_bytes());
        assert_eq!(bytes[4], kind);
        assert_eq!(Record::decode(&bytes, place(5_000)), Ok((record.clone(), bytes.len())));
        every_byte_counts(&bytes, |bytes| Record::decode(bytes, place(5_000)).is_ok());
    }
}

#[test]
fn a_head_is_good_at_its_place_only_and_may_be_followed_by_anything() {
    for record in one_of_each() {
        let mut bytes = encoded(&record, place(5_000));
        let head_bytes = bytes.len();
        bytes.extend_from_slice(b"a body, or the next record");
        assert_eq!(Record::decode(&bytes, place(5_000)), Ok((record, head_bytes)));
        assert_eq!(Record::decode(&bytes, place(5_001)), Err(Malformed::Checksum));
    }
}

/// Changes a head and recomputes its checksum, so that only the format rules can reject it.
fn forged(record: &Record, forge: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Malformed> {
    let mut bytes = encoded(record, place(0));
    forge(&mut bytes);
    let head_bytes = u16::try_from(bytes.len()).unwrap();
    bytes[6..8].copy_from_slice(&head_bytes.to_le_bytes());
    let checksum = Checksum::of(&bytes[4..]).at(place(0));
    overwrite_u32(&mut bytes, 0, checksum.0);
    Record::decode(&bytes, place(0)).map(|(_, head_bytes)| head_bytes)
}

#[test]
fn heads_that_break_a_rule_are_refused_for_that_rule() {
    let [object, big, tombstone, fact, gone, compacted, lost, punched] = one_of_each();
    assert_eq!(forged(&object, |_| {}), Ok(object.head_bytes()));
    assert_eq!(forged(&object, |b| b[4] = 9), Err(Malformed::Kind(9)));
    assert_eq!(forged(&compacted, |b| b[18] = 0), Err(Malformed::Count));
    assert_eq!(forged(&compacted, |b| b[18] = 1), Err(Malformed::Trailing));
    assert_eq!(forged(&compacted, |b| b[18] = 9), Err(Malformed::Short));
    assert_eq!(forged(&compacted, |b| b[24] = 0), Err(Malformed::Place));
    assert_eq!(forged(&compacted, |b| b[20] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&lost, |b| b[24] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&punched, |b| b[16] = 0), Err(Malformed::Place));
    assert_eq!(forged(&object, |b| b[5] = 3), Err(Malformed::Reserved));
    assert_eq!(forged(&tombstone, |b| b[5] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&object, |b| b[16..24].fill(0xff)), Err(Malformed::Length));
    assert_eq!(forged(&object, |b| b[18] = 2), Err(Malformed::Count));
    assert_eq!(forged(&object, |b| b[24] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&big, |b| b[24] = 0), Err(Malformed::Place));
    assert_eq!(forged(&object, |b| b[86] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&object, |b| b.push(0)), Err(Malformed::Trailing));
    assert_eq!(forged(&object, |b| b.truncate(90)), Err(Malformed::Short));
    let upper = Malformed::Name(crate::name::NameError::BucketCharacter);
    assert_eq!(forged(&object, |b| b[88] = b'P'), Err(upper));
    assert_eq!(forged(&tombstone, |b| b[28 + 6 + 13] = 0xff), Err(Malformed::Text));
    assert_eq!(forged(&fact, |b| b[19] = 1), Err(Malformed::Length));
    assert_eq!(forged(&gone, |b| b[18] = 1), Err(Malformed::Reserved));
}

#[test]
fn a_length_beyond_every_head_is_refused_before_anything_is_read() {
    let mut bytes = vec![0xff; 70_000];
    assert_eq!(Record::decode(&bytes, place(0)), Err(Malformed::Length));
    bytes[6..8].copy_from_slice(&15_u16.to_le_bytes());
    assert_eq!(Record::decode(&bytes, place(0)), Err(Malformed::Length));
}

#[test]
fn bounds_that_the_types_do_not_keep_are_checked() {
    let put = |meta, content| What::Put { name: name(), meta, content };
    let none = || Content::Inline { bytes: 0, blocks: Vec::new() };
    assert_eq!(put(meta(), none()).check(), Ok(()));
    let long_type = ObjectMeta { content_type: "x".repeat(256), ..meta() };
    assert_eq!(put(long_type, none()).check(), Err(Malformed::Length));
    let long_attributes = ObjectMeta { attributes: vec![0; 6_145], ..meta() };
    assert_eq!(put(long_attributes, none()).check(), Err(Malformed::Length));
    let unchecked = Content::Inline { bytes: 1, blocks: Vec::new() };
    assert_eq!(put(meta(), unchecked).check(), Err(Malformed::Count));
}

#[test]
fn the_longest_head_fits() {
    let blocks = limits::INLINE_BYTES_CEILING / limits::BLOCK_BYTES;
    let name = ObjectName::new(
        BucketName::parse(&"b".repeat(limits::BUCKET_NAME_BYTES_MAX)).unwrap(),
        ObjectKey::parse(&"k".repeat(limits::KEY_BYTES_MAX)).unwrap(),
    );
    let meta = ObjectMeta {
        content_type: "t".repeat(limits::CONTENT_TYPE_BYTES_MAX),
        attributes: vec![7; limits::ATTRIBUTES_BYTES_MAX],
        ..meta()
    };
    let bytes = limits::INLINE_BYTES_CEILING as u64;
    let content = Content::Inline { bytes, blocks: vec![Checksum(9); blocks] };
    let record = Record { lsn: u64::MAX, what: What::Put { name, meta, content } };
    assert_eq!(record.head_bytes(), HEAD_BYTES_MAX);
    let head = encoded(&record, place(0));
    assert_eq!(Record::decode(&head, place(0)), Ok((record, HEAD_BYTES_MAX)));
}

proptest! {
    #[test]
    fn any_object_survives_its_bytes(
        lsn: u64,
        key in "[a-zäöü日 ._-]{1,40}z(/[a-z]{1,9}){0,4}/?",
        content_type in ".{0,40}",
        times: (u64, u64),
        derived: bool,
        hash: [u8; 32],
        attributes in proptest::collection::vec(any::<u8>(), 0..100),
        bytes in 0..limits::INLINE_BYTES_CEILING as u64,
        offset: u64,
    ) {
        let (created_ms, modified_ms) = times;
        let bucket = BucketName::parse("any").unwrap();
        let name = ObjectName::new(bucket, ObjectKey::parse(&key).unwrap());
        let flags = ObjectFlags { derived };
        let meta =
            ObjectMeta { content_type, hash, created_ms, modified_ms, flags, attributes };
        let blocks = (0..block_count(bytes) as u32).map(Checksum).collect();
        let content = Content::Inline { bytes, blocks };
        let record = Record { lsn, what: What::Put { name, meta, content } };
        let head = encoded(&record, place(offset));
        prop_assert_eq!(Record::decode(&head, place(offset)), Ok((record, head.len())));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(mut bytes: Vec<u8>, kind in 0..10_u8) {
        let _ = Record::decode(&bytes, place(0));
        if bytes.len() >= HEAD_COMMON_BYTES {
            bytes[4] = kind;
            bytes[5] = 0;
            let head_bytes = u16::try_from(bytes.len()).unwrap();
            bytes[6..8].copy_from_slice(&head_bytes.to_le_bytes());
            let checksum = Checksum::of(&bytes[4..]).at(place(0));
            overwrite_u32(&mut bytes, 0, checksum.0);
            if let Ok((record, _)) = Record::decode(&bytes, place(0)) {
                prop_assert_eq!(encoded(&record, place(0)), bytes);
            }
        }
    }
}
