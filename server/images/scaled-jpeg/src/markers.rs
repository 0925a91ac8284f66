//! Iterates over marker segments (T.81, B.1).
//!
//! Guarantees: every step advances; bytes that belong to no segment are skipped, as in every decoder.
//! Non-goals: the content of segments.

use super::error::Error;

/// Marker codes, the byte after `FF` (T.81, table B.1).
pub(super) mod code {
    pub(crate) const TEM: u8 = 0x01;
    pub(crate) const SOF0: u8 = 0xc0;
    pub(crate) const SOF2: u8 = 0xc2;
    pub(crate) const SOF15: u8 = 0xcf;
    pub(crate) const DHT: u8 = 0xc4;
    pub(crate) const JPG: u8 = 0xc8;
    pub(crate) const DAC: u8 = 0xcc;
    pub(crate) const RST0: u8 = 0xd0;
    pub(crate) const RST7: u8 = 0xd7;
    pub(crate) const EOI: u8 = 0xd9;
    pub(crate) const SOS: u8 = 0xda;
    pub(crate) const DQT: u8 = 0xdb;
    pub(crate) const DRI: u8 = 0xdd;
    pub(crate) const DHP: u8 = 0xde;
    pub(crate) const EXP: u8 = 0xdf;
    pub(crate) const APP0: u8 = 0xe0;
    pub(crate) const APP1: u8 = 0xe1;
    pub(crate) const APP2: u8 = 0xe2;
    pub(crate) const APP14: u8 = 0xee;
}

/// Marker with its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) marker: u8,
    /// Offset of the marker in the file.
    pub(super) at: usize,
    /// Data after the length; empty for standalone markers.
    pub(super) payload: &'a [u8],
    /// Offset of the data in the file.
    pub(super) payload_at: usize,
}

/// Iterator over segments from an offset on.
#[derive(Clone, Debug)]
pub(super) struct Segments<'a> {
    bytes: &'a [u8],
    /// Offset from which the next segment is searched.
    pub(super) at: usize,
}

impl Segment<'_> {
    /// Returns an error for a violation of the format in this segment.
    pub(super) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { what, at: self.at }
    }
}

impl<'a> Segments<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns the next segment; [`Error::Short`] if the file ends before it does.
    pub(super) fn next(&mut self) -> Result<Segment<'a>, Error> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += memchr::memchr(0xff, rest).ok_or(Error::UnexpectedEof)?;
            match self.bytes.get(self.at + 1).ok_or(Error::UnexpectedEof)? {
                // FF may be a fill byte before another; FF 00 is data.
                0xff => self.at += 1,
                0x00 => self.at += 2,
                marker => return self.segment(*marker),
            }
        }
    }

    fn segment(&mut self, marker: u8) -> Result<Segment<'a>, Error> {
        let at = self.at;
        let payload_at = at + 4;
        if matches!(marker, code::TEM | code::RST0..=code::EOI) {
            self.at = at + 2;
            return Ok(Segment { marker, at, payload: &[], payload_at: at + 2 });
        }
        let rest = self.bytes.get(at + 2..).unwrap_or_default();
        let length =
            usize::from(u16::from_be_bytes(*rest.first_chunk().ok_or(Error::UnexpectedEof)?));
        if length < 2 {
            return Err(Error::Malformed { what: "a segment shorter than its length", at });
        }
        let payload = rest.get(2..length).ok_or(Error::UnexpectedEof)?;
        self.at = at + 2 + length;
        Ok(Segment { marker, at, payload, payload_at })
    }
}

/// Returns the end of entropy-coded data that begins at `at`: the next marker other than restarts, or the end of the
/// file.
pub(super) fn end_of_scan(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr(0xff, rest) else { return bytes.len() };
        at += found;
        match bytes.get(at + 1) {
            Some(0x00 | code::RST0..=code::RST7) => at += 2,
            Some(0xff) => at += 1,
            Some(_) => return at,
            None => return bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_behind_fill_bytes_and_strays() {
        let bytes =
            [0xff, 0xd8, 0xff, 0xff, 0xff, 0xe0, 0, 4, 7, 8, 9, 0xff, 0, 0xff, 0xda, 0, 2, 1, 0xff];
        let mut segments = Segments::new(&bytes, 0);
        assert_eq!(segments.next().unwrap().marker, 0xd8);
        let app = segments.next().unwrap();
        assert_eq!((app.marker, app.at, app.payload, app.payload_at), (0xe0, 4, &[7, 8][..], 8));
        let scan = segments.next().unwrap();
        assert_eq!((scan.marker, scan.at, scan.payload), (code::SOS, 13, &[][..]));
        assert_eq!(segments.next().unwrap_err(), Error::UnexpectedEof);
    }

    #[test]
    fn invalid_segment_lengths_are_rejected() {
        let next = |bytes: &[u8]| Segments::new(bytes, 0).next().map(|segment| segment.marker);
        assert_eq!(next(&[0xff, 0xe0, 0, 3]), Err(Error::UnexpectedEof));
        assert_eq!(next(&[0xff, 0xe0, 0]), Err(Error::UnexpectedEof));
        assert!(matches!(next(&[0xff, 0xe0, 0, 1]), Err(Error::Malformed { at: 0, .. })));
        assert_eq!(next(&[0xff, 0xe0, 0, 3, 1]), Ok(0xe0));
    }

    #[test]
    fn scan_ends_at_non_restart_marker() {
        let end = |bytes: &[u8]| end_of_scan(bytes, 0);
        assert_eq!(end(&[1, 0xff, 0, 2, 0xff, 0xd3, 3, 0xff, 0xff, 0xda]), 8);
        assert_eq!(end(&[1, 0xff, 0, 0xff]), 4);
        assert_eq!(end(&[]), 0);
    }
}
