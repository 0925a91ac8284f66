//! Resizes frames, limited to the area that changed.
//!
//! In a screen recording little changes between frames. A resized pixel depends only on source pixels within the
//! reach of the resizer, so only pixels near a change are resized again.

use super::canvas::{Area, Canvas};
use crate::error::Error;
use crate::orientation::Orientation;
use crate::picture::PixelBuffer;
use crate::profile::ToSrgb;
use crate::resize;

/// View of the frames of a file.
pub(crate) struct View {
    /// Visible part as stored: left, top, width, height in pixels.
    pub(crate) cut: [f64; 4],
    /// Width and height after resizing, before orientation.
    pub(crate) sides: (u32, u32),
    /// Orientation that is then applied.
    pub(crate) orientation: Orientation,
}

pub(super) struct FrameScaler<'a> {
    view: &'a View,
    /// Conversion from the colour profile of all frames.
    colours: ToSrgb,
    /// Last resized frame, before orientation.
    canvas: Option<Canvas>,
}

impl<'a> FrameScaler<'a> {
    pub(super) fn new(view: &'a View, profile: Option<&[u8]>) -> Self {
        Self { view, colours: ToSrgb::new(profile), canvas: None }
    }

    /// Resizes the next frame; outside of `changed` it equals the previous one.
    pub(super) fn next(&mut self, whole: &Canvas, changed: Option<Area>) -> Result<Canvas, Error> {
        let canvas = match (self.canvas.take(), changed) {
            (None, _) => {
                let all = Area::of(self.view.sides);
                let mut canvas = Canvas::new(self.view.sides);
                canvas.draw(all, self.part(whole, whole.full_area(), all)?);
                canvas
            }
            (Some(canvas), None) => canvas,
            (Some(mut canvas), Some(changed)) => {
                let axis = |start, length| Axis::new(self.view, start, length);
                let across = axis(0, whole.full_area().width);
                let down = axis(1, whole.full_area().height);
                let (left, width) = across.outputs_affected_by(changed.left, changed.width);
                let (top, height) = down.outputs_affected_by(changed.top, changed.height);
                let area = Area { left, top, width, height };
                if area.pixels() > 0 {
                    let (left, width) = across.needed_for(left, width);
                    let (top, height) = down.needed_for(top, height);
                    let needed = Area { left, top, width, height };
                    canvas.draw(area, self.part(whole, needed, area)?);
                }
                canvas
            }
        };
        let turned = match self.view.orientation == Orientation::default() {
            true => canvas.clone(),
            false => Canvas::from_pixels(self.view.orientation.apply(canvas.to_pixels(None)?)),
        };
        self.canvas = Some(canvas);
        Ok(turned)
    }

    /// Resizes an area of the output from the area of the source that it depends on.
    fn part(&mut self, whole: &Canvas, needed: Area, area: Area) -> Result<PixelBuffer, Error> {
        let [left, top, across, down] = self.view.cut;
        let step = (across / f64::from(self.view.sides.0), down / f64::from(self.view.sides.1));
        let cut = [
            left + area.left as f64 * step.0 - needed.left as f64,
            top + area.top as f64 * step.1 - needed.top as f64,
            area.width as f64 * step.0,
            area.height as f64 * step.1,
        ];
        let sides = (area.width as u32, area.height as u32);
        self.colours.convert(resize::resize_pixels(whole.part(needed)?, sides, cut)?)
    }
}

/// Columns or rows of source and output.
struct Axis {
    /// Start of the visible part in the source, and source pixels per output pixel.
    start: f64,
    step: f64,
    /// Reach of the resizer from the middle of a pixel, plus one pixel.
    reach: f64,
    /// Numbers of source and output pixels.
    large: usize,
    small: usize,
}

impl Axis {
    fn new(view: &View, axis: usize, large: usize) -> Self {
        let small = [view.sides.0, view.sides.1][axis] as usize;
        let step = view.cut[axis + 2] / small as f64;
        let reach = kernels::KERNEL_RADIUS * step.max(1.0) + 1.0;
        Self { start: view.cut[axis], step, reach, large, small }
    }

    /// Returns first and number of the output pixels that depend on some source pixels.
    fn outputs_affected_by(&self, first: usize, count: usize) -> (usize, usize) {
        let at = |place: f64| (place - self.start) / self.step;
        let from = at(first as f64 - self.reach).floor() - 1.0;
        let to = at((first + count) as f64 + self.reach).ceil() + 1.0;
        within(from, to, self.small)
    }

    /// Returns first and number of the source pixels that some output pixels depend on.
    fn needed_for(&self, first: usize, count: usize) -> (usize, usize) {
        let at = |place: usize| self.start + place as f64 * self.step;
        let from = (at(first) - self.reach).floor();
        let to = (at(first + count) + self.reach).ceil();
        within(from, to, self.large)
    }
}

/// Clips a range of positions to a length, as first and number.
fn within(from: f64, to: f64, length: usize) -> (usize, usize) {
    let first = (from.max(0.0) as usize).min(length);
    let end = (to.max(0.0) as usize).min(length);
    (first, end.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::canvas::Pixel;

    /// Fills an area with pseudo-random pixels; some are transparent if it has alpha.
    fn noise(canvas: &mut Canvas, area: Area, seed: u32, has_alpha: bool) {
        let mut state = seed;
        for pixel in canvas.rows_mut(area).flatten() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [r, g, b, a] = state.to_le_bytes();
            *pixel = [r, g, b, if has_alpha { a } else { 255 }] as Pixel;
        }
    }

    fn views() -> Vec<View> {
        let view =
            |cut, sides, tag| View { cut, sides, orientation: Orientation::from_exif_tag(tag) };
        vec![
            view([0.0, 0.0, 90.0, 70.0], (30, 23), 1),
            view([10.5, 0.0, 62.0, 70.0], (31, 35), 1),
            view([0.0, 0.0, 90.0, 70.0], (90, 70), 1),
            view([0.0, 3.25, 90.0, 60.0], (7, 50), 6),
        ]
    }

    #[test]
    fn incremental_resize_equals_full_resize() {
        let areas =
            [(0, 0, 5, 5), (40, 30, 1, 1), (80, 60, 10, 10), (0, 20, 90, 3), (0, 0, 90, 70)];
        for (view, has_alpha) in views().iter().flat_map(|view| [(view, false), (view, true)]) {
            let mut whole = Canvas::new((90, 70));
            noise(&mut whole, Area::of((90, 70)), 1, has_alpha);
            let mut parts = FrameScaler::new(view, None);
            let changed = whole.take_changed();
            parts.next(&whole, changed).unwrap();
            for (seed, (left, top, width, height)) in (2..).zip(areas) {
                noise(&mut whole, Area { left, top, width, height }, seed, has_alpha);
                let changed = whole.take_changed();
                let found = parts.next(&whole, changed).unwrap();
                let expected = FrameScaler::new(view, None).next(&whole, None).unwrap();
                let pixels = |canvas: &Canvas| canvas.snapshot(canvas.full_area());
                let (found, expected) = (pixels(&found), pixels(&expected));
                for (found, expected) in found.iter().zip(&expected) {
                    // Weights are rounded; the colour of almost transparent pixels matters little.
                    let margin = if expected[3] < 128 { 12 } else { 2 };
                    let far = found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max();
                    assert!(far <= Some(margin), "{found:?} {expected:?} {:?}", view.sides);
                }
            }
        }
    }

    #[test]
    fn unchanged_areas_are_not_resampled() {
        let view = &views()[0];
        let mut whole = Canvas::new((90, 70));
        let mut parts = FrameScaler::new(view, None);
        let first = parts.next(&whole, None).unwrap();
        // The change is not reported.
        noise(&mut whole, Area::of((90, 70)), 1, false);
        assert!(parts.next(&whole, None).unwrap() == first);
        let corner = Area { left: 0, top: 0, width: 1, height: 1 };
        let second = parts.next(&whole, Some(corner)).unwrap();
        let changed = first.changed_to(&second).unwrap();
        assert!(changed.width < 8 && changed.height < 8, "{changed:?}");
    }
}
