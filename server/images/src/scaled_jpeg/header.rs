//! Everything before the first scan.

use std::ops::Range;

use super::error::{Error, Unsupported};
use super::frame::Frame;
use super::limits::Limits;
use super::markers::{Segment, Segments, code};
use super::metadata::Metadata;
use super::tables::Tables;

/// What a file says about itself before its first scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Columns as stored, before the orientation is applied: 1 to 65,535.
    pub width: u32,
    /// Rows as stored.
    pub height: u32,
    /// Whether it is progressive (SOF2).
    pub progressive: bool,
    /// What the components mean.
    pub colour: Colour,
    /// Sampling factors of each component, horizontal and vertical, in the order of the file; (1, 1) of grey.
    pub sampling: Vec<(u8, u8)>,
    /// How to turn the stored picture, as Exif's tag 274 has it: 1 to 8; 1 where there is none.
    pub orientation: u8,
    /// Where the Exif data lies in the file, from its byte order on.
    pub exif: Option<Range<usize>>,
    /// The colour profile put together; none where there is none, where parts of it are missing, and where it is larger
    /// than the limit.
    pub profile: Option<Vec<u8>>,
    /// Components in the first scan.
    pub(super) first_components: usize,
    pub(super) frame: Frame,
}

impl Header {
    /// Whether components come in scans of their own, one after the other, without being progressive.
    pub fn is_in_parts(&self) -> bool {
        !self.progressive && self.first_components < self.sampling.len()
    }
}

/// What the components of a picture mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// One component.
    Grey,
    /// Luma and two differences, full range, by ITU-R BT.601, as JFIF has it.
    YCbCr,
    /// Red, green and blue.
    Rgb,
}

/// A file read up to its first scan.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) header: Header,
    pub(super) tables: Tables,
    /// Offset of the first SOS.
    pub(super) scan_at: usize,
}

/// Reads a file up to its first scan.
pub(super) fn open(bytes: &[u8], limits: &Limits) -> Result<Opened, Error> {
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
                return Ok(Opened { header, tables, scan_at: segment.at });
            }
            marker if Frame::begins(marker) => {
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

/// What Adobe's segment before the first scan says of the colours of any JPEG, also one that is not decoded here: 0 for
/// none but those that the components are, 1 for YCbCr, 2 for YCCK.
pub fn adobe_transform(bytes: &[u8]) -> Option<u8> {
    let mut segments = Segments::new(bytes, 2);
    let mut metadata = Metadata::default();
    while let Ok(segment) = segments.next() {
        match segment.marker {
            code::SOS | code::EOI => break,
            code::APP14 => metadata.read(&segment),
            _ => {}
        }
    }
    metadata.adobe_transform
}

/// Whether components of any JPEG, also one that is not decoded here, come in scans of their own while some of them are
/// subsampled, and it is not progressive.
pub fn is_subsampled_in_parts(bytes: &[u8]) -> bool {
    let mut segments = Segments::new(bytes, 2);
    let (mut components, mut is_subsampled) = (0, false);
    while let Ok(segment) = segments.next() {
        match (segment.marker, segment.payload) {
            (code::SOS, [in_scan, ..]) => return is_subsampled && *in_scan < components,
            (code::SOS | code::EOI | code::SOF2, _) => break,
            (marker, [_, _, _, _, _, count, specifications @ ..]) if Frame::begins(marker) => {
                components = *count;
                is_subsampled = specifications.chunks(3).any(|it| it.get(1) != Some(&0x11));
            }
            _ => {}
        }
    }
    false
}

/// Reads a segment that may stand before any scan. What has no meaning here is passed over.
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
        sampling: frame.components.iter().map(|c| (factor(c.across), factor(c.down))).collect(),
        orientation: metadata.orientation,
        exif: metadata.exif.clone(),
        profile: metadata.profile(bytes, limits.profile_bytes_max),
        first_components: first_components.into(),
        frame,
    }
}

/// JFIF has YCbCr only; then Adobe's segment says; then the names of the components.
fn colour(frame: &Frame, metadata: &Metadata) -> Colour {
    let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
    match (&*ids, metadata.is_jfif, metadata.adobe_transform) {
        ([_], _, _) => Colour::Grey,
        (_, true, _) => Colour::YCbCr,
        (_, false, Some(0)) => Colour::Rgb,
        (_, false, Some(_)) => Colour::YCbCr,
        (b"RGB", false, None) => Colour::Rgb,
        (_, false, None) => Colour::YCbCr,
    }
}
