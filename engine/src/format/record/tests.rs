//! Unit tests of the record head.

use proptest::prelude::*;

use super::*;
use crate::format::testing::{assert_every_byte_is_checked, test_address};

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

fn one_record_of_each_kind() -> [Record; 8] {
    let fact = || FactName::parse("token/abc").unwrap();
    let big = RecordContent::Big { bytes: 5_000_000, segment: SegmentId::new(3).unwrap() };
    let inline = RecordContent::Inline {
        bytes: limits::BLOCK_BYTES as u64 + 1,
        blocks: vec![Checksum(1), Checksum(2)],
    };
    [
        RecordOp::Put { name: name(), meta: meta(), content: inline },
        RecordOp::Put { name: name(), meta: meta(), content: big },
        RecordOp::Delete { name: name(), deleted_ms: 4 },
        RecordOp::PutFact { name: fact(), bytes: 9, check: Checksum(5) },
        RecordOp::DeleteFact { name: fact() },
        RecordOp::Compaction { outputs: segments(&[9]), inputs: segments(&[2, 7]) },
        RecordOp::Put { name: name(), meta: meta(), content: RecordContent::Lost { bytes: 77 } },
        RecordOp::HolePunch { segment: SegmentId::new(3).unwrap(), bytes: 4_096 },
    ]
    .map(|what| Record { lsn: 0x0102_0304_0506_0708, op: what })
}

fn segments(ids: &[u64]) -> Vec<SegmentId> {
    ids.iter().map(|id| SegmentId::new(*id).unwrap()).collect()
}

fn encoded(record: &Record, place: DiskAddress) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(place, &mut out);
    out
}

#[test]
fn record_kinds_round_trip_and_detect_any_byte_change() {
    for (kind, record) in (1..).zip(one_record_of_each_kind()) {
        let bytes = encoded(&record, test_address(5_000));
        assert_eq!(bytes.len(), record.head_bytes());
        assert_eq!(bytes[4], kind);
        assert_eq!(Record::decode(&bytes, test_address(5_000)), Ok((record.clone(), bytes.len())));
        assert_every_byte_is_checked(&bytes, |bytes| {
            Record::decode(bytes, test_address(5_000)).is_ok()
        });
    }
}

#[test]
fn record_head_is_bound_to_its_address() {
    for record in one_record_of_each_kind() {
        let mut bytes = encoded(&record, test_address(5_000));
        let head_bytes = bytes.len();
        bytes.extend_from_slice(b"a body, or the next record");
        assert_eq!(Record::decode(&bytes, test_address(5_000)), Ok((record, head_bytes)));
        assert_eq!(Record::decode(&bytes, test_address(5_001)), Err(Malformed::Checksum));
    }
}

/// Changes a head and recomputes its checksum, so that only the format rules can reject it.
fn forged(record: &Record, forge: impl FnOnce(&mut Vec<u8>)) -> Result<usize, Malformed> {
    let mut bytes = encoded(record, test_address(0));
    forge(&mut bytes);
    let head_bytes = u16::try_from(bytes.len()).unwrap();
    bytes[6..8].copy_from_slice(&head_bytes.to_le_bytes());
    let checksum = Checksum::of(&bytes[4..]).bind(test_address(0));
    overwrite_u32(&mut bytes, 0, checksum.0);
    Record::decode(&bytes, test_address(0)).map(|(_, head_bytes)| head_bytes)
}

#[test]
fn invalid_record_heads_are_rejected_with_their_reason() {
    let [object, big, tombstone, fact, gone, compacted, lost, punched] = one_record_of_each_kind();
    assert_eq!(forged(&object, |_| {}), Ok(object.head_bytes()));
    assert_eq!(forged(&object, |b| b[4] = 9), Err(Malformed::Kind(9)));
    assert_eq!(forged(&compacted, |b| b[18] = 0), Err(Malformed::Count));
    assert_eq!(forged(&compacted, |b| b[18] = 1), Err(Malformed::Trailing));
    assert_eq!(forged(&compacted, |b| b[18] = 9), Err(Malformed::Short));
    assert_eq!(forged(&compacted, |b| b[24] = 0), Err(Malformed::Misplaced));
    assert_eq!(forged(&compacted, |b| b[20] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&lost, |b| b[24] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&punched, |b| b[16] = 0), Err(Malformed::Misplaced));
    assert_eq!(forged(&object, |b| b[5] = 3), Err(Malformed::Reserved));
    assert_eq!(forged(&tombstone, |b| b[5] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&object, |b| b[16..24].fill(0xff)), Err(Malformed::Length));
    assert_eq!(forged(&object, |b| b[18] = 2), Err(Malformed::Count));
    assert_eq!(forged(&object, |b| b[24] = 1), Err(Malformed::Reserved));
    assert_eq!(forged(&big, |b| b[24] = 0), Err(Malformed::Misplaced));
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
fn oversized_record_length_is_rejected_before_reading() {
    let mut bytes = vec![0xff; 70_000];
    assert_eq!(Record::decode(&bytes, test_address(0)), Err(Malformed::Length));
    bytes[6..8].copy_from_slice(&15_u16.to_le_bytes());
    assert_eq!(Record::decode(&bytes, test_address(0)), Err(Malformed::Length));
}

#[test]
fn record_bounds_beyond_the_types_are_checked() {
    let put = |meta, content| RecordOp::Put { name: name(), meta, content };
    let none = || RecordContent::Inline { bytes: 0, blocks: Vec::new() };
    assert_eq!(put(meta(), none()).check(), Ok(()));
    let long_type = ObjectMeta { content_type: "x".repeat(256), ..meta() };
    assert_eq!(put(long_type, none()).check(), Err(Malformed::Length));
    let long_attributes = ObjectMeta { attributes: vec![0; 6_145], ..meta() };
    assert_eq!(put(long_attributes, none()).check(), Err(Malformed::Length));
    let unchecked = RecordContent::Inline { bytes: 1, blocks: Vec::new() };
    assert_eq!(put(meta(), unchecked).check(), Err(Malformed::Count));
}

#[test]
fn longest_record_head_fits() {
    let blocks = limits::INLINE_BYTES_SETTING_MAX / limits::BLOCK_BYTES;
    let name = ObjectName::new(
        BucketName::parse(&"b".repeat(limits::BUCKET_NAME_BYTES_MAX)).unwrap(),
        ObjectKey::parse(&"k".repeat(limits::KEY_BYTES_MAX)).unwrap(),
    );
    let meta = ObjectMeta {
        content_type: "t".repeat(limits::CONTENT_TYPE_BYTES_MAX),
        attributes: vec![7; limits::ATTRIBUTES_BYTES_MAX],
        ..meta()
    };
    let bytes = limits::INLINE_BYTES_SETTING_MAX as u64;
    let content = RecordContent::Inline { bytes, blocks: vec![Checksum(9); blocks] };
    let record = Record { lsn: u64::MAX, op: RecordOp::Put { name, meta, content } };
    assert_eq!(record.head_bytes(), HEAD_BYTES_MAX);
    let head = encoded(&record, test_address(0));
    assert_eq!(Record::decode(&head, test_address(0)), Ok((record, HEAD_BYTES_MAX)));
}

proptest! {
    #[test]
    fn any_object_record_round_trips(
        lsn: u64,
        key in "[a-zäöü日 ._-]{1,40}z(/[a-z]{1,9}){0,4}/?",
        content_type in ".{0,40}",
        times: (u64, u64),
        derived: bool,
        hash: [u8; 32],
        attributes in proptest::collection::vec(any::<u8>(), 0..100),
        bytes in 0..limits::INLINE_BYTES_SETTING_MAX as u64,
        offset: u64,
    ) {
        let (created_ms, modified_ms) = times;
        let bucket = BucketName::parse("any").unwrap();
        let name = ObjectName::new(bucket, ObjectKey::parse(&key).unwrap());
        let flags = ObjectFlags { derived };
        let meta =
            ObjectMeta { content_type, hash, created_ms, modified_ms, flags, attributes };
        let blocks = (0..block_count(bytes) as u32).map(Checksum).collect();
        let content = RecordContent::Inline { bytes, blocks };
        let record = Record { lsn, op: RecordOp::Put { name, meta, content } };
        let head = encoded(&record, test_address(offset));
        prop_assert_eq!(Record::decode(&head, test_address(offset)), Ok((record, head.len())));
    }

    #[test]
    fn arbitrary_bytes_decode_as_record_or_are_rejected(mut bytes: Vec<u8>, kind in 0..10_u8) {
        let _ = Record::decode(&bytes, test_address(0));
        if bytes.len() >= HEAD_COMMON_BYTES {
            bytes[4] = kind;
            bytes[5] = 0;
            let head_bytes = u16::try_from(bytes.len()).unwrap();
            bytes[6..8].copy_from_slice(&head_bytes.to_le_bytes());
            let checksum = Checksum::of(&bytes[4..]).bind(test_address(0));
            overwrite_u32(&mut bytes, 0, checksum.0);
            if let Ok((record, _)) = Record::decode(&bytes, test_address(0)) {
                prop_assert_eq!(encoded(&record, test_address(0)), bytes);
            }
        }
    }
}
