//! Reads ISO BMFF boxes and big-endian fields (ISO/IEC 14496-12, 4.2).
//!
//! Guarantees: never panics; missing data is an error.

use crate::error::Error;

/// Remaining bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxReader<'a>(&'a [u8]);

/// Box: its type and content.
pub(super) struct IsoBox<'a> {
    pub(super) kind: [u8; 4],
    pub(super) body: BoxReader<'a>,
}

impl<'a> BoxReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| Error::undecodable("unexpected end of data"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a number of at most eight bytes; zero for a length of zero.
    pub(super) fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        let taken = self.take(bytes.min(8))?;
        Ok(taken.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.number(4)? as u32)
    }

    /// Reads a four-character code.
    pub(super) fn kind(&mut self) -> Result<[u8; 4], Error> {
        Ok(self.u32()?.to_be_bytes())
    }

    /// Reads a number of 16 bits in early versions of a box, of 32 in later ones.
    pub(super) fn short_or_long(&mut self, is_long: bool) -> Result<u32, Error> {
        if is_long { self.u32() } else { Ok(self.u16()?.into()) }
    }

    /// Reads version and flags at the start of a full box.
    pub(super) fn version_and_flags(&mut self) -> Result<(u8, u32), Error> {
        let both = self.u32()?;
        Ok(((both >> 24) as u8, both & 0x00ff_ffff))
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads the next box; `None` at the end.
    pub(super) fn next_box(&mut self) -> Result<Option<IsoBox<'a>>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let whole = self.0.len() as u64;
        let (short, kind) = (self.u32()?, self.kind()?);
        let (length, head) = match short {
            0 => (whole, 8),
            1 => (self.number(8)?, 16),
            length => (length.into(), 8),
        };
        let broken = || Error::undecodable("box without a length");
        let body = length.checked_sub(head).ok_or_else(broken)?;
        let body = self.take(usize::try_from(body).map_err(Error::undecodable)?)?;
        Ok(Some(IsoBox { kind, body: Self(body) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_boxes_are_read() {
        let bytes = b"\0\0\0\x0aabcdXY\0\0\0\x01efgh\0\0\0\0\0\0\0\x11Z\0\0\0\0ijklrest";
        let mut fields = BoxReader::new(bytes);
        let mut found = Vec::new();
        while let Some(IsoBox { kind, body }) = fields.next_box().unwrap() {
            found.push((kind, body.rest()));
        }
        let expected: [([u8; 4], &[u8]); 3] =
            [(*b"abcd", b"XY"), (*b"efgh", b"Z"), (*b"ijkl", b"rest")];
        assert_eq!(found, expected);
    }

    #[test]
    fn invalid_box_sizes_are_rejected() {
        for bytes in
            [&b"\0\0\0\x0aabcdX"[..], b"\0\0\0\x07abcd", b"\0\0\0\x01abcd\0\0\0\0", b"\0\0"]
        {
            assert!(BoxReader::new(bytes).next_box().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn numbers_are_big_endian() {
        let mut fields = BoxReader::new(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(fields.u16().unwrap(), 0x0102);
        assert_eq!(fields.number(0).unwrap(), 0);
        assert_eq!(fields.version_and_flags().unwrap(), (3, 0x0004_0506));
        assert!(fields.u16().is_err());
        assert_eq!(fields.rest(), [7]);
    }
}
