//! Parses everything before the first scan.

use std::ops::Range;

use super::Limits;
use super::error::{Error, Unsupported};
use super::frame::Frame;
use super::markers::{Segment, Segments, code};
use super::metadata::Metadata;
use super::tables::Tables;

/// Header of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Columns as stored, before the orientation is applied: 1 to 65,535.
    pub width: u32,
    /// Rows as stored.
    pub height: u32,
    /// Whether it is progressive (SOF2).
    pub progressive: bool,
    /// Colour space of the components.
    pub colour: ColorModel,
    /// Horizontal and vertical sampling factors of each component, in file order; (1, 1) for grey.
    pub sampling: Vec<(u8, u8)>,
    /// Exif orientation (tag 274) of the stored picture: 1 to 8; 1 if there is none.
    pub orientation: u8,
    /// Range of the Exif data in the file, from its byte order on.
    pub exif: Option<Range<usize>>,
    /// Assembled ICC profile; `None` if there is none, if parts are missing, or if it exceeds the limit.
    pub profile: Option<Vec<u8>>,
    /// Whether JFIF, the Adobe segment and the component names all give the same [`Header::colour`].
    pub colour_is_undisputed: bool,
    /// Number of components in the first scan.
    pub(super) first_components: usize,
    pub(super) frame: Frame,
}

impl Header {
    /// Returns whether each component has a scan of its own, without being progressive.
    pub fn is_in_parts(&self) -> bool {
        !self.progressive && self.first_components < self.sampling.len()
    }
}

/// Colour space of the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorModel {
    /// One component.
    Grey,
    /// Luma and two colour differences, full range, by ITU-R BT.601, as in JFIF.
    YCbCr,
    /// Red, green and blue.
    Rgb,
    /// Inverted cyan, magenta, yellow and black, as written by Adobe: 255 is no ink.
    Cmyk,
    /// Luma and two colour differences of inverted cyan, magenta and yellow; then black, as in [`ColorModel::Cmyk`].
    Ycck,
}

/// File parsed up to its first scan.
#[derive(Debug)]
pub(super) struct ParsedHead {
    pub(super) header: Header,
    pub(super) tables: Tables,
    /// Offset of the first SOS.
    pub(super) scan_at: usize,
}

/// Parses a file up to its first scan.
pub(super) fn open(bytes: &[u8], limits: &Limits) -> Result<ParsedHead, Error> {
    if !bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        return Err(Error::NotJpeg);
    }
    let mut segments = Segments::new(bytes, 2);
    let (mut tables, mut metadata, mut frame) = (Tables::default(), Metadata::default(), None);
    loop {
        let segment = segments.next()?;
        match segment.marker {
            code::SOS => {
                let frame: Frame =
                    frame.ok_or(segment.malformed("a scan before the frame header"))?;
                let first = segment.payload.first().copied().unwrap_or(0);
                let header = header(bytes, frame, first, &metadata, limits);
                return Ok(ParsedHead { header, tables, scan_at: segment.at });
            }
            marker if Frame::is_start_of_frame(marker) => {
                if frame.is_some() {
                    return Err(segment.malformed("a second frame header"));
                }
                frame = Some(Frame::read(&segment, limits)?);
            }
            code::APP0..=0xef => metadata.read(&segment),
            code::EOI => return Err(segment.malformed("a picture that ends before its scans")),
            _ => read_between(&segment, &mut tables)?,
        }
    }
}

/// Parses a segment that may precede any scan. Irrelevant ones are skipped.
pub(super) fn read_between(segment: &Segment<'_>, tables: &mut Tables) -> Result<(), Error> {
    match segment.marker {
        code::DHP | code::EXP => Err(Error::Unsupported(Unsupported::Hierarchical)),
        code::DAC => Err(Error::Unsupported(Unsupported::Arithmetic)),
        _ => tables.read(segment),
    }
}

fn header(
    bytes: &[u8],
    frame: Frame,
    first_components: u8,
    metadata: &Metadata,
    limits: &Limits,
) -> Header {
    let factor = |factor: usize| u8::try_from(factor).unwrap_or(1);
    Header {
        width: frame.width,
        height: frame.height,
        progressive: frame.progressive,
        colour: colour(&frame, metadata),
        colour_is_undisputed: is_undisputed(&frame, metadata),
        sampling: frame.components.iter().map(|c| (factor(c.across), factor(c.down))).collect(),
        orientation: metadata.orientation,
        exif: metadata.exif.clone(),
        profile: metadata.profile(bytes, limits.profile_bytes_max),
        first_components: first_components.into(),
        frame,
    }
}

/// Determines the colour space: JFIF has YCbCr only; then the Adobe segment decides, where unknown transforms count
/// as YCbCr; then the component names. Four components are inks, whatever JFIF says.
fn colour(frame: &Frame, metadata: &Metadata) -> ColorModel {
    let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
    match (&*ids, metadata.is_jfif, metadata.adobe_transform) {
        ([_], _, _) => ColorModel::Grey,
        ([_, _, _, _], _, None | Some(0)) => ColorModel::Cmyk,
        ([_, _, _, _], _, Some(_)) => ColorModel::Ycck,
        (_, true, _) => ColorModel::YCbCr,
        (_, false, Some(0)) => ColorModel::Rgb,
        (_, false, Some(_)) => ColorModel::YCbCr,
        (b"RGB", false, None) => ColorModel::Rgb,
        (_, false, None) => ColorModel::YCbCr,
    }
}

fn is_undisputed(frame: &Frame, metadata: &Metadata) -> bool {
    match *frame.components {
        [_] => true,
        [a, b, c] => {
            metadata.adobe_transform.is_none_or(|it| it == 1) && [a.id, b.id, c.id] != *b"RGB"
        }
        _ => false,
    }
}
