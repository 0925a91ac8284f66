//! Record heads: any bytes decode or are rejected, and what decodes encodes to the same bytes.
//!
//! Random bytes rarely have a valid checksum, so each input is tried as it is and once more as a head with a valid
//! length and checksum, because the rules under test apply after the checksum.

use engine::format::{Checksum, DiskAddress, HEAD_BYTES_MAX, Record, SegmentId};

/// Checks the property.
pub fn run(input: &[u8]) {
    let Some(segment) = SegmentId::new(1) else { return };
    let place = DiskAddress { salt: 0x5EED, segment, offset: 4_096 };
    check(input, place);

    let mut head = input.get(..input.len().min(HEAD_BYTES_MAX)).unwrap_or_default().to_vec();
    let length = u16::try_from(head.len()).unwrap_or(u16::MAX);
    if let Some(field) = head.get_mut(6..8) {
        field.copy_from_slice(&length.to_le_bytes());
        let checksum = Checksum::of(head.get(4..).unwrap_or_default()).bind(place);
        if let Some(field) = head.get_mut(..4) {
            field.copy_from_slice(&checksum.0.to_le_bytes());
        }
        check(&head, place);
    }
}

fn check(bytes: &[u8], place: DiskAddress) {
    let Ok((record, head_bytes)) = Record::decode(bytes, place) else { return };
    let mut again = Vec::new();
    record.encode(place, &mut again);
    assert_eq!(bytes.get(..head_bytes), Some(again.as_slice()), "another head for {record:?}");
    assert_eq!(record.head_bytes(), head_bytes);
    assert_eq!(record.op.check(), Ok(()), "a decoded record keeps its bounds");
    // The bytes after the head are not its body, unless by chance; the lookup must be safe all the same.
    let body = bytes.get(head_bytes..).unwrap_or_default();
    let verified = record.verify_body(place, body);
    assert!(verified.is_err() || body.len() as u64 == record.body_bytes());
}
