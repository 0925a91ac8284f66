//! Parses the blocks of a GIF without decompressing pixels: GIF89a, sections 17 to 27.
//!
//! The library `gif` 0.14.2 ignores some of them: the loop count after the first frame or under the name ANIMEXTS1.0
//! (its `read_application_extension`), disposal 4 (its `DisposalMethod::from_u8`), and frames without pixels (its
//! `LzwInit` reads the following bytes as their length).
//!
//! Guarantees: fails only if the file is not a GIF; a truncated or broken file has the blocks before the damage.
//! Each byte is read once.

use crate::error::Error;

const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2c;
const GRAPHIC_CONTROL: u8 = 0xf9;
const APPLICATION: u8 = 0xff;
/// Valid LZW code sizes in bits: GIF89a, appendix F.
const CODE_SIZES: std::ops::RangeInclusive<u8> = 1..=11;

/// Frames of a file in order, and the data of the blocks between them.
pub(super) struct GifBlocks<'a> {
    rest: &'a [u8],
    /// Width and height of the logical screen.
    screen: (u32, u32),
    /// Repetitions according to the last block that states them: 0 for infinite.
    repetitions: Option<u16>,
    disposal: u8,
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Right and lower edge of the frame on the screen.
    end: (u32, u32),
    /// Disposal method, as stored: 0 to 7.
    pub(super) disposal: u8,
    /// Whether the frame has no pixels.
    pub(super) is_empty: bool,
}

/// Summary of all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GifSummary {
    /// Size of the screen, extended to the right and lower edge of the first frame, as in browsers.
    pub(crate) sides: (u32, u32),
    pub(crate) frames: u32,
    /// Repetitions: 0 for infinite; `None` if it plays once.
    pub(super) repetitions: Option<u16>,
}

impl GifSummary {
    /// Parses all blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Undecodable`] of a file without a header, or without frames.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut blocks = GifBlocks::new(bytes)?;
        let first = blocks.next().ok_or_else(|| Error::undecodable("no frames"))?;
        let (width, height) = blocks.screen;
        let sides = (width.max(first.end.0), height.max(first.end.1));
        let frames = 1 + blocks.by_ref().count() as u32;
        Ok(Self { sides, frames, repetitions: blocks.repetitions })
    }
}

impl<'a> GifBlocks<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"));
        let Some([w0, w1, h0, h1, flags, _, _, rest @ ..]) = header else {
            return Err(Error::undecodable("missing GIF header"));
        };
        Ok(Self {
            rest: rest.get(palette_bytes(*flags)..).unwrap_or_default(),
            screen: (number([*w0, *w1]), number([*h0, *h1])),
            repetitions: None,
            disposal: 0,
        })
    }

    /// Parses an extension after its introducer byte.
    fn extension(&mut self) -> Option<()> {
        let (label, rest) = self.rest.split_first()?;
        self.rest = rest;
        let mut is_looping = false;
        let mut is_first = true;
        while let Some(data) = self.sub_block()? {
            match (*label, data) {
                (GRAPHIC_CONTROL, [flags, ..]) if is_first => self.disposal = flags >> 2 & 7,
                (APPLICATION, b"NETSCAPE2.0" | b"ANIMEXTS1.0") if is_first => is_looping = true,
                (APPLICATION, [kind, low, high, ..]) if is_looping && kind & 7 == 1 => {
                    self.repetitions = Some(u16::from_le_bytes([*low, *high]));
                }
                _ => {}
            }
            is_first = false;
        }
        Some(())
    }

    /// Parses a frame after its separator byte; `None` if the file ends before its pixels.
    fn frame(&mut self) -> Option<FrameHeader> {
        let (header, rest) = self.rest.split_first_chunk::<9>()?;
        let [l0, l1, t0, t1, w0, w1, h0, h1, flags] = *header;
        let rest = rest.get(palette_bytes(flags)..)?;
        // The library starts a frame with the length of its first sub-block of pixels.
        let [code_size, data @ ..] = rest else { return None };
        if !CODE_SIZES.contains(code_size) || data.is_empty() {
            return None;
        }
        self.rest = data;
        let end = (number([l0, l1]) + number([w0, w1]), number([t0, t1]) + number([h0, h1]));
        let disposal = std::mem::take(&mut self.disposal);
        let frame = FrameHeader { end, disposal, is_empty: data.starts_with(&[0]) };
        // A frame counts once it begins, complete or not.
        while matches!(self.sub_block(), Some(Some(_))) {}
        Some(frame)
    }

    /// Returns the bytes of the next sub-block; the inner `None` is the end of the block, the outer one the end of
    /// the file.
    fn sub_block(&mut self) -> Option<Option<&'a [u8]>> {
        let block = self
            .rest
            .split_first()
            .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
        let Some((data, rest)) = block else {
            self.rest = &[];
            return None;
        };
        self.rest = rest;
        Some(Some(data).filter(|data| !data.is_empty()))
    }
}

impl Iterator for GifBlocks<'_> {
    type Item = FrameHeader;

    fn next(&mut self) -> Option<FrameHeader> {
        loop {
            let (kind, rest) = self.rest.split_first()?;
            self.rest = rest;
            let read = match *kind {
                EXTENSION => self.extension().map(|()| None),
                IMAGE => self.frame().map(Some),
                _ => None,
            };
            match read {
                Some(None) => {}
                Some(frame) => return frame,
                None => {
                    self.rest = &[];
                    return None;
                }
            }
        }
    }
}

/// Returns the length of a colour table from its flags; 0 if there is none.
fn palette_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << (1 + (flags & 7)) }
}

fn number(bytes: [u8; 2]) -> u32 {
    u16::from_le_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"GIF89a\x04\0\x03\0\0\0\0";
    const FRAME: &[u8] = b"\x2c\x01\0\x01\0\x02\0\x05\0\0\x02\x01\x44\0";

    fn loops(name: &[u8; 11], count: u8) -> Vec<u8> {
        [b"\x21\xff\x0b", &name[..], &[3, 1, count, 0, 0]].concat()
    }

    fn summary(blocks: &[&[u8]]) -> Option<GifSummary> {
        GifSummary::read(&[HEADER, &blocks.concat()].concat()).ok()
    }

    #[test]
    fn gif_first_frame_enlarges_the_screen() {
        let found = summary(&[FRAME, b";"]).unwrap();
        assert_eq!(found, GifSummary { sides: (4, 6), frames: 1, repetitions: None });
        let large = b"\x2c\0\0\0\0\x09\0\x09\0\0\x02\0";
        assert_eq!(summary(&[FRAME, large, b";"]).unwrap().sides, (4, 6), "a later one does not");
        assert_eq!(summary(&[b";"]), None);
        assert_eq!(GifSummary::read(b"GIF89a"), Err(Error::undecodable("missing GIF header")));
    }

    #[test]
    fn gif_repetitions_are_read_anywhere_by_both_names() {
        let (early, late) = (loops(b"NETSCAPE2.0", 3), loops(b"ANIMEXTS1.0", 0));
        let repetitions = |blocks: &[&[u8]]| summary(blocks).unwrap().repetitions;
        assert_eq!(repetitions(&[&early, FRAME, FRAME]), Some(3));
        assert_eq!(repetitions(&[FRAME, &late, FRAME]), Some(0));
        assert_eq!(repetitions(&[&late, FRAME, &early]), Some(3), "the last one holds");
        assert_eq!(repetitions(&[&loops(b"SOMETHING 1", 3), FRAME]), None);
        let buffer = b"\x21\xff\x0bNETSCAPE2.0\x05\x02\0\0\0\0\x03\x01\x07\0\0";
        assert_eq!(repetitions(&[buffer, FRAME]), Some(7), "behind another piece");
    }

    #[test]
    fn gif_disposal_belongs_to_the_next_frame() {
        let control = |disposal: u8| [b"\x21\xf9\x04", &[disposal << 2, 0, 0, 0, 0][..]].concat();
        let file = [HEADER, &control(4), FRAME, FRAME, &control(7), b"\x21\xfe\0", FRAME].concat();
        let disposals: Vec<u8> = GifBlocks::new(&file).unwrap().map(|it| it.disposal).collect();
        assert_eq!(disposals, [4, 0, 7]);
    }

    #[test]
    fn truncated_gif_keeps_complete_frames() {
        let file = [HEADER, &loops(b"NETSCAPE2.0", 1), FRAME, FRAME, b";"].concat();
        let mut before = 0;
        for end in 0..file.len() {
            let frames = GifSummary::read(&file[..end]).map_or(0, |summary| summary.frames);
            assert!(frames >= before && frames <= 2, "{frames} at {end}");
            before = frames;
        }
        assert_eq!(before, 2);
    }
}
