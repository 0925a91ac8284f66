//! Index values: what decodes under a key encodes to the same bytes, and does not decode under any other key.
//!
//! The first two bytes of the input choose the kind of the value and the length of its key; the rest is key and value.
//! Random bytes hardly ever have a valid check, so each value is tried as it is, and once more with a valid check.

use engine::format::{
    AppliedPosition, Checksum, Damage, Entry, FactEntry, ScrubResult, SegmentId, SegmentUsage,
    Usage,
};

/// Decodes a value and encodes it again; none where it is rejected.
type Again = fn(&[u8], &[u8]) -> Option<Vec<u8>>;

/// Every kind of value. Kinds with few keys, none of which resembles another, are not bound to their key.
const VALUES: [Again; 7] = [
    |key, value| Entry::decode(key, value).ok().map(|entry| entry.encode(key)),
    |key, value| FactEntry::decode(key, value).ok().map(|entry| entry.encode(key)),
    |key, value| {
        let segment = SegmentId::new(u64::from_le_bytes(key.try_into().ok()?))?;
        ScrubResult::decode(segment, value).ok().map(|result| result.encode(segment))
    },
    |key, value| {
        let (segment, offset) = key.split_first_chunk()?;
        let segment = SegmentId::new(u64::from_le_bytes(*segment))?;
        let offset = u64::from_le_bytes(offset.try_into().ok()?);
        Damage::decode(segment, offset, value).ok().map(|damage| damage.encode())
    },
    |key, value| unbound(key, SegmentUsage::decode(value).ok()?.encode()),
    |key, value| unbound(key, Usage::decode(value).ok()?.encode()),
    |key, value| unbound(key, AppliedPosition::decode(value).ok()?.encode()),
];

fn unbound(key: &[u8], again: Vec<u8>) -> Option<Vec<u8>> {
    key.is_empty().then_some(again)
}

/// Checks the property.
pub fn run(input: &[u8]) {
    let Some(([kind, key_bytes], rest)) = input.split_first_chunk::<2>() else { return };
    let (key, value) = rest.split_at(usize::from(*key_bytes).min(rest.len()));
    let again = VALUES[usize::from(*kind) % VALUES.len()];
    check(again, key, value);
    check(again, key, &sealed(key, value));
}

fn check(again: Again, key: &[u8], value: &[u8]) {
    let Some(encoded) = again(key, value) else { return };
    assert_eq!(encoded, value, "decoded, and encoded to something else");
    for at in 0..value.len() {
        let mut changed = value.to_vec();
        changed[at] ^= 1;
        assert_eq!(again(key, &changed), None, "byte {at} was changed and nobody noticed");
    }
    for at in 0..key.len() {
        let mut other = key.to_vec();
        other[at] ^= 1;
        assert_eq!(again(&other, value), None, "read under another key");
    }
}

/// Returns the value with a valid check.
fn sealed(key: &[u8], value: &[u8]) -> Vec<u8> {
    let check = Checksum::of_parts(&[key, value]);
    [value, &check.0.to_le_bytes()].concat()
}
