//! Parses application segments: JFIF, Adobe, Exif orientation, ICC profile.
//!
//! Guarantees: never fails; broken segments are ignored.

use std::ops::Range;

use super::markers::{Segment, code};

const EXIF: &[u8] = b"Exif\0\0";
const PROFILE: &[u8] = b"ICC_PROFILE\0";
const ADOBE: &[u8] = b"Adobe";
const JFIF: &[u8] = b"JFIF\0";
const ORIENTATION_TAG: u16 = 274;
const SHORT: u16 = 3;

/// Metadata found so far.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub(super) is_jfif: bool,
    /// Last byte of the Adobe segment: 0 for RGB, 1 for YCbCr.
    pub(super) adobe_transform: Option<u8>,
    pub(super) orientation: u8,
    pub(super) exif: Option<Range<usize>>,
    /// Parts of the ICC profile: number, total number, and range in the file. At most 255.
    parts: Vec<(u8, u8, Range<usize>)>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            is_jfif: false,
            adobe_transform: None,
            orientation: 1,
            exif: None,
            parts: Vec::new(),
        }
    }
}

impl Metadata {
    /// Parses one application segment.
    pub(super) fn read(&mut self, segment: &Segment<'_>) {
        let end = segment.payload_at + segment.payload.len();
        let behind = |name: &[u8]| segment.payload.strip_prefix(name);
        match segment.marker {
            code::APP0 => self.is_jfif |= behind(JFIF).is_some(),
            code::APP1 if self.exif.is_none() => {
                if let Some(tiff) = behind(EXIF) {
                    self.orientation = exif_orientation(tiff).unwrap_or(1);
                    self.exif = Some(end - tiff.len()..end);
                }
            }
            code::APP2 if self.parts.len() < usize::from(u8::MAX) => {
                if let Some([number, count, part @ ..]) = behind(PROFILE) {
                    self.parts.push((*number, *count, end - part.len()..end));
                }
            }
            code::APP14 => {
                // Version, two flag fields, transform.
                if let Some([_, _, _, _, _, _, transform, ..]) = behind(ADOBE) {
                    self.adobe_transform = Some(*transform);
                }
            }
            _ => {}
        }
    }

    /// Returns the profile if each of its parts exists once and its size is within the limit.
    pub(super) fn profile(&self, bytes: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let (_, count, _) = self.parts.first()?;
        let length: usize = self.parts.iter().map(|(_, _, part)| part.len()).sum();
        if self.parts.len() != usize::from(*count) || length > bytes_max {
            return None;
        }
        let mut profile = Vec::with_capacity(length);
        for number in 1..=*count {
            let (_, _, part) =
                self.parts.iter().find(|part| (part.0, part.1) == (number, *count))?;
            profile.extend_from_slice(bytes.get(part.clone())?);
        }
        Some(profile)
    }
}

/// Returns the orientation in the first directory of Exif data, from its byte order on: 1 to 8.
pub fn exif_orientation(tiff: &[u8]) -> Option<u8> {
    let little = match tiff.first_chunk()? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| -> Option<u16> {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let (first, second) = (short(4)?, short(6)?);
    let (low, high) = if little { (first, second) } else { (second, first) };
    let directory = usize::from(high) << 16 | usize::from(low);
    let entries = usize::from(short(directory)?);
    let tag_at = (0..entries)
        .map(|entry| directory + 2 + 12 * entry)
        .take_while(|at| at + 12 <= tiff.len())
        .find(|at| short(*at) == Some(ORIENTATION_TAG) && short(at + 2) == Some(SHORT))?;
    u8::try_from(short(tag_at + 8)?).ok().filter(|value| (1..=8).contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiff(little: bool, value: u16) -> Vec<u8> {
        let short = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
        let mut bytes = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
        let offset: [u8; 4] = if little { 10_u32.to_le_bytes() } else { 10_u32.to_be_bytes() };
        bytes.extend(offset);
        bytes.extend([0, 0]);
        bytes.extend(short(2));
        bytes.extend([1; 12]);
        bytes.extend([short(ORIENTATION_TAG), short(SHORT)].concat());
        bytes.extend(if little { 1_u32.to_le_bytes() } else { 1_u32.to_be_bytes() });
        bytes.extend([short(value), [0, 0]].concat());
        bytes
    }

    #[test]
    fn exif_orientation_is_read_in_both_byte_orders() {
        for little in [true, false] {
            for value in 1..=8 {
                assert_eq!(exif_orientation(&tiff(little, value)), Some(value as u8));
            }
            for value in [0, 9, 256, u16::MAX] {
                assert_eq!(exif_orientation(&tiff(little, value)), None);
            }
            let whole = tiff(little, 6);
            for end in 0..whole.len() {
                assert_eq!(exif_orientation(&whole[..end]), None, "cut off at {end}");
            }
        }
        assert_eq!(exif_orientation(b"II*\0\xff\xff\xff\xff"), None);
    }

    fn with_parts(parts: &[(u8, u8)]) -> Metadata {
        let parts = parts.iter().map(|(number, count)| {
            let at = usize::from(*number) * 2;
            (*number, *count, at..at + 2)
        });
        Metadata { parts: parts.collect(), ..Metadata::default() }
    }

    #[test]
    fn icc_segments_are_joined_by_sequence_number() {
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7];
        let profile = |parts: &[(u8, u8)], bytes_max| with_parts(parts).profile(&bytes, bytes_max);
        assert_eq!(profile(&[(1, 1)], 2), Some(vec![2, 3]));
        assert_eq!(profile(&[(3, 3), (1, 3), (2, 3)], 6), Some(vec![2, 3, 4, 5, 6, 7]));
        assert_eq!(profile(&[(3, 3), (1, 3), (2, 3)], 5), None, "over the limit");
        assert_eq!(profile(&[(1, 2)], 9), None, "one is missing");
        assert_eq!(profile(&[(1, 2), (1, 2)], 9), None, "one is there twice");
        assert_eq!(profile(&[(1, 2), (2, 3)], 9), None, "two counts");
        assert_eq!(profile(&[(0, 1)], 9), None, "no number");
        assert_eq!(profile(&[], 9), None);
    }
}
