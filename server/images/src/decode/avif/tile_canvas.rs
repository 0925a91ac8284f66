//! Assembles the tiles of an AVIF grid.

use super::av1::Frame;
use super::primary_item::ColorCoding;
use super::yuv_to_rgb::YuvConverter;
use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Picture whose tiles are being decoded.
pub(super) struct TileAssembler {
    sides: (u32, u32),
    layout: PixelLayout,
    samples: Vec<u8>,
}

impl TileAssembler {
    pub(super) fn new(sides: (u32, u32), layout: PixelLayout) -> Self {
        let length = sides.0 as usize * sides.1 as usize * layout.channels();
        Self { sides, layout, samples: vec![0; length] }
    }

    /// Writes the colours of a tile at its upper left corner.
    pub(super) fn put_colour(
        &mut self,
        frame: &Frame,
        coding: ColorCoding,
        corner: (u32, u32),
    ) -> Result<(), Error> {
        let is_grey = matches!(self.layout, PixelLayout::Grey | PixelLayout::GreyAlpha);
        if is_grey != frame.is_grey() {
            return Err(Error::undecodable("some tiles are monochrome"));
        }
        let (channels, colours) = (self.layout.channels(), if is_grey { 1 } else { 3 });
        let mut rows = YuvConverter::new(frame, coding)?;
        let mut row = vec![0; frame.sides.0 as usize * colours];
        for (y, to) in self.rows_under(corner, frame.sides) {
            if is_grey {
                rows.grey(y, &mut row)
            } else {
                rows.rgb(y, &mut row)
            }
            for (to, from) in to.chunks_exact_mut(channels).zip(row.chunks_exact(colours)) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = *from;
                }
            }
        }
        Ok(())
    }

    /// Writes the luma of an alpha tile at its upper left corner.
    pub(super) fn put_alpha(&mut self, frame: &Frame, corner: (u32, u32)) -> Result<(), Error> {
        let channels = self.layout.channels();
        let mut rows =
            YuvConverter::new(frame, ColorCoding { matrix: UNSPECIFIED, ..frame.coding })?;
        let mut row = vec![0; frame.sides.0 as usize];
        for (y, to) in self.rows_under(corner, frame.sides) {
            rows.grey(y, &mut row);
            for (to, alpha) in to.chunks_exact_mut(channels).zip(&row) {
                if let Some(last) = to.last_mut() {
                    *last = *alpha;
                }
            }
        }
        Ok(())
    }

    /// Converts premultiplied colours to straight alpha.
    pub(super) fn divide_by_alpha(&mut self) {
        for pixel in self.samples.chunks_exact_mut(self.layout.channels()) {
            if let Some((alpha, colours)) = pixel.split_last_mut()
                && *alpha > 0
            {
                let alpha = u32::from(*alpha);
                for value in colours {
                    *value = ((u32::from(*value) * 255 + alpha / 2) / alpha).min(255) as u8;
                }
            }
        }
    }

    pub(super) fn finish(self, profile: Option<Vec<u8>>) -> Result<PixelBuffer, Error> {
        PixelBuffer::new(self.sides, self.layout, self.samples, profile)
    }

    /// Returns the rows covered by a tile, from its left edge on, with their numbers in the tile.
    fn rows_under(
        &mut self,
        (left, top): (u32, u32),
        (width, height): (u32, u32),
    ) -> impl Iterator<Item = (u32, &mut [u8])> {
        let channels = self.layout.channels();
        let row_bytes = (self.sides.0 as usize * channels).max(1);
        let from = left as usize * channels;
        let to = from + (self.sides.0.saturating_sub(left).min(width)) as usize * channels;
        let rows = self.samples.chunks_exact_mut(row_bytes).skip(top as usize);
        let rows = rows.map(move |row| row.get_mut(from..to).unwrap_or_default());
        (0..height).zip(rows)
    }
}

/// Unspecified matrix code point, for pictures where it does not matter.
const UNSPECIFIED: u8 = 2;
