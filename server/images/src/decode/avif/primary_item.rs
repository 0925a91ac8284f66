//! Resolves the primary image: size, orientation, colour, tiles, alpha.
//!
//! Guarantees: never panics.
//! Non-goals: decoding.

use super::box_reader::BoxReader;
use super::container::Container;
use crate::error::Error;
use crate::limits::PROFILE_BYTES_MAX;
use crate::orientation::Orientation;

/// Auxiliary types of alpha items.
const ALPHA: [&[u8]; 2] =
    [b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", b"urn:mpeg:hevc:2015:auxid:1"];

/// Primary image to be decoded.
#[derive(Debug)]
pub(super) struct PrimaryImage<'a> {
    pub(super) colour: CodedImage,
    pub(super) alpha: Option<CodedImage>,
    /// Whether the colours are premultiplied by alpha.
    pub(super) is_premultiplied: bool,
    pub(super) orientation: Orientation,
    /// ICC profile.
    pub(super) profile: Option<&'a [u8]>,
    /// Colour coding of the container; `None` if only the bitstream has it.
    pub(super) coding: Option<ColorCoding>,
}

/// Image coded as one item, or as a grid of equal tiles, of which those on the right and bottom may extend beyond
/// it.
#[derive(Debug)]
pub(super) struct CodedImage {
    pub(super) sides: (u32, u32),
    /// Items, row by row.
    pub(super) tiles: Vec<u32>,
    pub(super) columns: u32,
    pub(super) tile_sides: (u32, u32),
}

/// Colour coding: code points of ITU-T H.273.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColorCoding {
    pub(super) primaries: u8,
    pub(super) transfer: u8,
    pub(super) matrix: u8,
    /// Whether samples use the full range.
    pub(super) is_full: bool,
}

impl CodedImage {
    /// Returns the tiles with their upper left corners.
    pub(super) fn placed(&self) -> impl Iterator<Item = ((u32, u32), u32)> {
        let (width, height) = self.tile_sides;
        (0_u32..)
            .zip(&self.tiles)
            .map(move |(at, item)| ((at % self.columns * width, at / self.columns * height), *item))
    }
}

impl<'a> PrimaryImage<'a> {
    pub(super) fn from_container(container: &Container<'a>) -> Result<Self, Error> {
        let primary = container.primary();
        let colour = coded(container, primary)?;
        let mut shown = Self {
            colour,
            alpha: None,
            is_premultiplied: false,
            orientation: Orientation::default(),
            profile: None,
            coding: None,
        };
        let (mut quarters, mut mirror) = (0, None);
        for property in container.properties(primary)? {
            let mut body = property.body;
            match &property.kind {
                b"irot" => quarters = body.u8()? & 3,
                b"imir" => mirror = Some(body.u8()? & 1),
                b"colr" => shown.read_colour(body)?,
                _ => {}
            }
        }
        shown.orientation = Orientation::from_exif_tag(tag(quarters, mirror));
        if let Some(alpha) = alpha_of(container, primary)? {
            let coded = coded(container, alpha)?;
            if coded.sides != shown.colour.sides {
                return Err(Error::undecodable("alpha dimensions differ"));
            }
            shown.is_premultiplied = container.referred_by(primary, *b"prem").contains(&alpha);
            shown.alpha = Some(coded);
        }
        Ok(shown)
    }

    fn read_colour(&mut self, mut body: BoxReader<'a>) -> Result<(), Error> {
        match &body.kind()? {
            b"nclx" if self.coding.is_none() => {
                // There are no code points above 255.
                let mut point = || Ok(u8::try_from(body.u16()?).unwrap_or(u8::MAX));
                let (primaries, transfer, matrix) = (point()?, point()?, point()?);
                let is_full = body.u8()? & 0x80 != 0;
                self.coding = Some(ColorCoding { primaries, transfer, matrix, is_full });
            }
            b"prof" | b"rICC" if self.profile.is_none() => {
                self.profile = Some(body.rest()).filter(|icc| icc.len() <= PROFILE_BYTES_MAX);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the Exif orientation of a counter-clockwise rotation by quarter turns, followed by an exchange of top and
/// bottom (0) or left and right (1): ISO/IEC 23008-12, 6.5.10 and 6.5.12.
fn tag(quarters: u8, mirror: Option<u8>) -> u8 {
    match (quarters, mirror) {
        (1, None) => 8,
        (2, None) => 3,
        (3, None) => 6,
        (_, None) => 1,
        (0, Some(1)) | (2, Some(0)) => 2,
        (0, Some(_)) | (2, Some(_)) => 4,
        (1, Some(0)) | (3, Some(1)) => 5,
        (_, Some(_)) => 7,
    }
}

/// Returns the first auxiliary item of an item that is its alpha.
fn alpha_of(container: &Container<'_>, item: u32) -> Result<Option<u32>, Error> {
    for auxiliary in container.referring_to(item, *b"auxl") {
        for property in container.properties(auxiliary)? {
            let mut body = property.body;
            if property.kind == *b"auxC" {
                body.version_and_flags()?;
                let name = body.rest().split(|byte| *byte == 0).next().unwrap_or_default();
                if ALPHA.contains(&name) {
                    return Ok(Some(auxiliary));
                }
            }
        }
    }
    Ok(None)
}

fn coded(container: &Container<'_>, item: u32) -> Result<CodedImage, Error> {
    let sides = sides_of(container, item)?;
    match &container.kind(item)? {
        b"av01" => Ok(CodedImage { sides, tiles: vec![item], columns: 1, tile_sides: sides }),
        b"grid" => grid(container, item, sides),
        kind => Err(Error::Undecodable(format!("unsupported coding {}", kind.escape_ascii()))),
    }
}

fn sides_of(container: &Container<'_>, item: u32) -> Result<(u32, u32), Error> {
    let properties = container.properties(item)?;
    let sides = properties.iter().find(|property| property.kind == *b"ispe");
    let mut body = sides.ok_or_else(|| Error::undecodable("missing dimensions"))?.body;
    body.version_and_flags()?;
    Ok((body.u32()?, body.u32()?))
}

/// Parses a grid item: ISO/IEC 23008-12, 6.6.2.3.
fn grid(container: &Container<'_>, item: u32, sides: (u32, u32)) -> Result<CodedImage, Error> {
    let data = container.data(item)?;
    let mut fields = BoxReader::new(&data);
    let (version, flags) = (fields.u8()?, fields.u8()?);
    let (rows, columns) = (u32::from(fields.u8()?) + 1, u32::from(fields.u8()?) + 1);
    let mut side = || fields.short_or_long(flags & 1 != 0);
    let declared = (side()?, side()?);
    let tiles = container.referred_by(item, *b"dimg").to_vec();
    let broken = || Error::undecodable("tiles do not cover the image");
    let first = *tiles.first().ok_or_else(broken)?;
    if version != 0
        || declared != sides
        || tiles.len() as u64 != u64::from(rows) * u64::from(columns)
    {
        return Err(broken());
    }
    let tile_sides = sides_of(container, first)?;
    // Every tile is at least partially visible, and together they cover the picture.
    let covers = |tile: u32, count: u32, side: u32| {
        let (tile, count, side) = (u64::from(tile), u64::from(count), u64::from(side));
        tile * (count - 1) < side && side <= tile * count
    };
    if !covers(tile_sides.0, columns, sides.0) || !covers(tile_sides.1, rows, sides.1) {
        return Err(broken());
    }
    for tile in &tiles {
        if container.kind(*tile)? != *b"av01" || sides_of(container, *tile)? != tile_sides {
            return Err(broken());
        }
    }
    Ok(CodedImage { sides, tiles, columns, tile_sides })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{PixelBuffer, PixelLayout};

    /// Rotates the picture `ab/cd/ef` counter-clockwise, a quarter turn at a time.
    #[test]
    fn rotation_and_mirror_map_to_exif_orientations() {
        for quarters in 0..4 {
            for mirror in [None, Some(0), Some(1)] {
                let mut expected =
                    PixelBuffer::new((2, 3), PixelLayout::Grey, b"abcdef".to_vec(), None).unwrap();
                for _ in 0..quarters {
                    expected = Orientation::from_exif_tag(8).apply(expected);
                }
                match mirror {
                    Some(0) => expected = Orientation::from_exif_tag(4).apply(expected),
                    Some(_) => expected = Orientation::from_exif_tag(2).apply(expected),
                    None => {}
                }
                let stored =
                    PixelBuffer::new((2, 3), PixelLayout::Grey, b"abcdef".to_vec(), None).unwrap();
                let seen = Orientation::from_exif_tag(tag(quarters, mirror)).apply(stored);
                assert_eq!(seen, expected, "{quarters} {mirror:?}");
            }
        }
    }
}
