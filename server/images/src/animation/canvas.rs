//! Canvas on which the frames of an animation are composited.

use crate::error::Error;
use crate::picture::{PixelBuffer, PixelLayout};

/// Red, green, blue and alpha; alpha 0 is transparent.
pub(crate) type Pixel = [u8; 4];

/// Transparent pixel, as this crate writes it.
pub(crate) const CLEAR: Pixel = [0; 4];

/// Rows of pixels, initially transparent.
#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Pixel>,
    /// Area drawn on since the last call of `take_changed`.
    changed: Option<Area>,
}

impl PartialEq for Canvas {
    /// Returns whether both canvases look the same.
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.height) == (other.width, other.height) && self.pixels == other.pixels
    }
}

/// Area of a canvas in pixels, always inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Canvas {
    pub(super) fn new((width, height): (u32, u32)) -> Self {
        let (width, height) = (width as usize, height as usize);
        Self { width, height, pixels: vec![CLEAR; width * height], changed: None }
    }

    /// Creates a canvas with this picture.
    pub(super) fn from_pixels(picture: PixelBuffer) -> Self {
        let (width, height) = (picture.width as usize, picture.height as usize);
        let PixelBuffer { layout, samples, .. } = picture.into_rgb();
        let pixels = match layout {
            PixelLayout::Rgba => samples.as_chunks::<4>().0.to_vec(),
            _ => samples.as_chunks::<3>().0.iter().map(|[r, g, b]| [*r, *g, *b, 255]).collect(),
        };
        Self { width, height, pixels, changed: None }
    }

    /// Returns the content, without alpha if it is opaque.
    pub(super) fn to_pixels(&self, profile: Option<Vec<u8>>) -> Result<PixelBuffer, Error> {
        let whole = self.full_area();
        Ok(PixelBuffer { profile, ..self.part(whole)? })
    }

    /// Returns the content of an area, without alpha if it is opaque.
    pub(super) fn part(&self, area: Area) -> Result<PixelBuffer, Error> {
        let sides = (area.width as u32, area.height as u32);
        let pixels = || self.rows(area).flatten();
        let (layout, samples) = if pixels().all(|pixel| pixel[3] == 255) {
            let mut samples = Vec::with_capacity(area.pixels() * 3);
            samples.extend(pixels().flat_map(|[r, g, b, _]| [*r, *g, *b]));
            (PixelLayout::Rgb, samples)
        } else {
            let mut samples = Vec::with_capacity(area.pixels() * 4);
            self.rows(area).for_each(|row| samples.extend_from_slice(row.as_flattened()));
            (PixelLayout::Rgba, samples)
        };
        PixelBuffer::new(sides, layout, samples, None)
    }

    /// Returns the area of the whole canvas.
    pub(super) fn full_area(&self) -> Area {
        Area { left: 0, top: 0, width: self.width, height: self.height }
    }

    /// Returns the part of a rectangle that is inside the canvas, which may be empty.
    pub(super) fn clip(&self, left: u32, top: u32, width: u32, height: u32) -> Area {
        let from = |start: u32, end: usize| (start as usize).min(end);
        let to = |start: u32, length: u32, end: usize| {
            usize::try_from(u64::from(start) + u64::from(length)).map_or(end, |at| at.min(end))
        };
        let (left_at, top_at) = (from(left, self.width), from(top, self.height));
        Area {
            left: left_at,
            top: top_at,
            width: to(left, width, self.width) - left_at,
            height: to(top, height, self.height) - top_at,
        }
    }

    /// Returns the rows of an area.
    pub(super) fn rows(&self, area: Area) -> impl DoubleEndedIterator<Item = &[Pixel]> + Clone {
        let rows = &self.pixels[area.top * self.width..][..area.height * self.width];
        rows.chunks_exact(self.width.max(1)).map(move |row| &row[area.left..][..area.width])
    }

    /// Returns the mutable rows of an area.
    pub(super) fn rows_mut(&mut self, area: Area) -> impl Iterator<Item = &mut [Pixel]> {
        self.changed = Some(self.changed.map_or(area, |changed| changed.with(area)));
        let rows = &mut self.pixels[area.top * self.width..][..area.height * self.width];
        rows.chunks_exact_mut(self.width.max(1)).map(move |row| &mut row[area.left..][..area.width])
    }

    /// Returns all pixels, mutable.
    pub(super) fn pixels_mut(&mut self) -> &mut [Pixel] {
        self.changed = Some(self.full_area());
        &mut self.pixels
    }

    /// Returns the smallest area that contains all changes since the last call.
    pub(super) fn take_changed(&mut self) -> Option<Area> {
        self.changed.take()
    }

    /// Replaces an area by a picture of the same size.
    pub(super) fn draw(&mut self, area: Area, picture: PixelBuffer) {
        let part = Self::from_pixels(picture);
        self.restore(area, &part.pixels);
    }

    pub(super) fn clear(&mut self, area: Area) {
        self.rows_mut(area).for_each(|row| row.fill(CLEAR));
    }

    /// Copies an area for [`Canvas::restore`].
    pub(super) fn snapshot(&self, area: Area) -> Vec<Pixel> {
        self.rows(area).flatten().copied().collect()
    }

    pub(super) fn restore(&mut self, area: Area, kept: &[Pixel]) {
        let kept = kept.chunks_exact(area.width.max(1));
        self.rows_mut(area).zip(kept).for_each(|(row, kept)| row.copy_from_slice(kept));
    }

    /// Returns the smallest area outside of which all pixels are equal to those of another canvas of the same size.
    pub(super) fn changed_to(&self, other: &Self) -> Option<Area> {
        self.area_where(other, |pixel, other| pixel != other)
    }

    /// Returns the smallest area with all pixels that are opaque here and transparent in another canvas of the same
    /// size.
    pub(super) fn newly_cleared_area(&self, other: &Self) -> Option<Area> {
        self.area_where(other, |pixel, other| pixel[3] != 0 && other[3] == 0)
    }

    fn area_where(&self, other: &Self, is_in: impl Fn(&Pixel, &Pixel) -> bool) -> Option<Area> {
        let mut found: Option<Area> = None;
        let rows = self.rows(self.full_area()).zip(other.rows(other.full_area()));
        for (top, (row, other)) in rows.enumerate().filter(|(_, (row, other))| row != other) {
            let pairs = || row.iter().zip(other);
            let Some(left) = pairs().position(|(pixel, other)| is_in(pixel, other)) else {
                continue;
            };
            let right = pairs().rposition(|(pixel, other)| is_in(pixel, other)).unwrap_or(left);
            let area = Area { left, top, width: right + 1 - left, height: 1 };
            found = Some(found.map_or(area, |found| found.with(area)));
        }
        found
    }
}

impl Area {
    /// Returns the area of a canvas of this size.
    pub(super) fn of((width, height): (u32, u32)) -> Self {
        Self { left: 0, top: 0, width: width as usize, height: height as usize }
    }

    /// Returns the number of pixels.
    pub(super) fn pixels(self) -> usize {
        self.width * self.height
    }

    /// Returns the smallest area that contains both.
    pub(super) fn with(self, other: Self) -> Self {
        let (left, top) = (self.left.min(other.left), self.top.min(other.top));
        let right = (self.left + self.width).max(other.left + other.width);
        let bottom = (self.top + self.height).max(other.top + other.height);
        Self { left, top, width: right - left, height: bottom - top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(left: usize, top: usize, width: usize, height: usize) -> Area {
        Area { left, top, width, height }
    }

    #[test]
    fn area_is_clipped_to_the_canvas() {
        let canvas = Canvas::new((10, 8));
        assert_eq!(canvas.clip(2, 3, 4, 5), area(2, 3, 4, 5));
        assert_eq!(canvas.clip(8, 7, 9, 9), area(8, 7, 2, 1));
        assert_eq!(canvas.clip(0, 0, u32::MAX, u32::MAX), canvas.full_area());
        assert_eq!(canvas.clip(50, 1, 4, 2).pixels(), 0);
        assert_eq!(canvas.rows(canvas.clip(50, 50, 4, 2)).count(), 0);
    }

    #[test]
    fn snapshot_is_restored() {
        let mut canvas = Canvas::new((4, 3));
        let part = area(1, 1, 2, 2);
        canvas.rows_mut(part).for_each(|row| row.fill([1, 2, 3, 255]));
        let before = canvas.clone();
        let kept = canvas.snapshot(part);
        canvas.clear(part);
        assert_eq!(canvas, Canvas::new((4, 3)));
        canvas.restore(part, &kept);
        assert_eq!(canvas, before);
    }

    #[test]
    fn changed_area_is_reported_once() {
        let mut canvas = Canvas::new((6, 5));
        assert_eq!(canvas.take_changed(), None);
        canvas.clear(area(1, 1, 2, 1));
        canvas.rows_mut(area(4, 3, 1, 2)).for_each(|row| row.fill(CLEAR));
        assert_eq!(canvas.take_changed(), Some(area(1, 1, 4, 4)));
        assert_eq!(canvas.take_changed(), None);
        canvas.pixels_mut();
        assert_eq!(canvas.take_changed(), Some(canvas.full_area()));
    }

    #[test]
    fn changed_area_is_the_bounding_box() {
        let before = Canvas::new((6, 5));
        let mut after = before.clone();
        assert_eq!(before.changed_to(&after), None);
        after.rows_mut(area(1, 1, 1, 1)).for_each(|row| row.fill([9, 9, 9, 255]));
        after.rows_mut(area(4, 3, 1, 1)).for_each(|row| row.fill([9, 9, 9, 255]));
        assert_eq!(before.changed_to(&after), Some(area(1, 1, 4, 3)));
        assert_eq!(before.newly_cleared_area(&after), None);
        assert_eq!(after.newly_cleared_area(&before), Some(area(1, 1, 4, 3)));
    }

    #[test]
    fn opaque_area_has_no_alpha_channel() {
        let mut canvas = Canvas::new((2, 1));
        canvas.pixels_mut()[0] = [1, 2, 3, 255];
        let picture = canvas.to_pixels(None).unwrap();
        assert_eq!(
            (picture.layout, &*picture.samples),
            (PixelLayout::Rgba, &[1, 2, 3, 255, 0, 0, 0, 0][..])
        );
        let part = canvas.part(area(0, 0, 1, 1)).unwrap();
        assert_eq!((part.layout, &*part.samples), (PixelLayout::Rgb, &[1, 2, 3][..]));
        assert_eq!(Canvas::from_pixels(picture), canvas);
    }
}
