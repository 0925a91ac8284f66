//! RIFF container of WebP, by Google's "WebP Container Specification".
//!
//! A chunk consists of a four-character code, the little-endian 32-bit length of its data, the data, and a zero byte
//! after an odd length. The file is one chunk, `RIFF`, whose data is `WEBP` and further chunks.

use crate::error::Error;

/// Four-character code of a chunk.
pub(super) type Name = [u8; 4];

/// Iterator over chunks. An incomplete chunk at the end is ignored.
pub(super) struct Chunks<'a>(&'a [u8]);

impl<'a> Chunks<'a> {
    /// Iterates over the chunks in these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Iterates over the chunks of a file, which may be shorter than it states.
    pub(super) fn in_file(file: &'a [u8]) -> Result<Self, Error> {
        match file {
            [b'R', b'I', b'F', b'F', a, b, c, d, b'W', b'E', b'B', b'P', chunks @ ..] => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]).saturating_sub(4) as usize;
                Ok(Self(chunks.get(..length).unwrap_or(chunks)))
            }
            _ => Err(Error::undecodable("not a WebP file")),
        }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = (Name, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.0.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest.get(bytes.len() % 2..).unwrap_or_default();
        Some((*name, bytes))
    }
}

/// Appends a chunk.
pub(super) fn push(to: &mut Vec<u8>, name: Name, bytes: &[u8]) -> Result<(), Error> {
    to.extend_from_slice(&name);
    to.extend_from_slice(&u32::try_from(bytes.len()).map_err(Error::failed)?.to_le_bytes());
    to.extend_from_slice(bytes);
    to.resize(to.len() + bytes.len() % 2, 0);
    Ok(())
}

/// Length of the file header before the first chunk.
pub(super) const FILE_HEAD_BYTES: usize = 12;
/// Length of a chunk header.
pub(super) const CHUNK_HEAD_BYTES: usize = 8;

/// Builds a file with these chunks.
pub(super) fn file(chunks: &[u8]) -> Result<Vec<u8>, Error> {
    let mut file = start_file(FILE_HEAD_BYTES + chunks.len());
    file.extend_from_slice(chunks);
    finish_file(file)
}

/// Begins a file, to which chunks are appended, with reserved space for `room` bytes.
pub(super) fn start_file(room: usize) -> Vec<u8> {
    let mut file = Vec::with_capacity(room);
    file.extend_from_slice(b"RIFF\0\0\0\0WEBP");
    file
}

/// Finishes a file by setting its length.
pub(super) fn finish_file(mut file: Vec<u8>) -> Result<Vec<u8>, Error> {
    let length = file.len().saturating_sub(CHUNK_HEAD_BYTES);
    let length = u32::try_from(length).map_err(Error::failed)?;
    if let Some(place) = file.get_mut(4..CHUNK_HEAD_BYTES) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(file)
}

/// Decodes a little-endian 24-bit number.
pub(super) fn u24([a, b, c]: [u8; 3]) -> u32 {
    u32::from_le_bytes([a, b, c, 0])
}

/// Encodes a little-endian 24-bit number; larger ones are clamped.
pub(super) fn to_u24(number: usize) -> [u8; 3] {
    let [a, b, c, _] = (number.min(0xff_ffff) as u32).to_le_bytes();
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn riff_chunks_round_trip() {
        let mut chunks = Vec::new();
        push(&mut chunks, *b"ODD ", &[1, 2, 3]).unwrap();
        push(&mut chunks, *b"NONE", &[]).unwrap();
        push(&mut chunks, *b"EVEN", &[4, 5]).unwrap();
        let file = file(&chunks).unwrap();
        assert_eq!(file.len(), 12 + 12 + 8 + 10);
        let read: Vec<_> = Chunks::in_file(&file).unwrap().collect();
        let expected: [(Name, &[u8]); 3] =
            [(*b"ODD ", &[1, 2, 3]), (*b"NONE", &[]), (*b"EVEN", &[4, 5])];
        assert_eq!(read, expected);
        assert_eq!(Chunks::in_file(&file[..file.len() - 1]).unwrap().count(), 2);
        assert!(Chunks::in_file(&file[..11]).is_err());
    }

    #[test]
    fn numbers_of_24_bits() {
        assert_eq!(to_u24(0x01_0203), [3, 2, 1]);
        assert_eq!(u24([3, 2, 1]), 0x01_0203);
        assert_eq!(u24(to_u24(usize::MAX)), 0xff_ffff);
    }
}
