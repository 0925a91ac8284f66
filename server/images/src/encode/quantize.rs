//! Palette quantisation and dithering for GIF.

use std::collections::HashMap;

use palette::{Oklab, Srgb};
use quantette::PaletteSize;
use quantette::color_map::IndexedColorMap;
use quantette::color_space::{oklab_to_srgb8, srgb8_to_oklab};
use quantette::wu::{BinnerF32x3, WuF32x3};

use crate::Stop;
use crate::error::Error;

/// Minimum alpha of opaque pixels; all others are transparent, because GIF has no partial transparency.
pub(crate) const OPAQUE_FROM: u8 = 128;

/// Share of the quantisation error that is diffused to the neighbours. The full error makes flat areas noisy.
const DIFFUSED: f32 = 7.0 / 8.0;

/// Picture of palette indices.
#[derive(Debug)]
pub(crate) struct PalettedImage {
    /// Red, green and blue of each palette entry.
    pub(crate) palette: Vec<u8>,
    /// Palette index of each pixel.
    pub(crate) indices: Vec<u8>,
    /// Index of the transparent entry.
    pub(crate) clear: Option<u8>,
}

/// Dithering method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dither {
    /// Nearest colour: in an animation, noise that changes with each frame looks worse than banding, and is larger.
    None,
    /// Floyd-Steinberg error diffusion.
    Diffusion,
}

impl PalettedImage {
    /// Adds a transparent palette entry. There must be room for it.
    pub(crate) fn with_clear(mut self) -> Self {
        if self.clear.is_none() {
            self.clear = Some((self.palette.len() / 3) as u8);
            self.palette.extend_from_slice(&[0; 3]);
        }
        self
    }
}

/// Reduces rows of pixels to at most `most` colours, 2 to 256, including transparency. A picture with no more
/// colours is unchanged.
///
/// # Errors
///
/// [`Error::Cancelled`], and [`Error::Failed`] for more pixels than memory holds.
pub(crate) fn quantize(
    pixels: &[[u8; 4]],
    width: usize,
    most: u16,
    dither: Dither,
    stop: Stop<'_>,
) -> Result<PalettedImage, Error> {
    let has_clear = pixels.iter().any(|pixel| !is_opaque(pixel));
    let most = usize::from(most.clamp(2, 256)) - usize::from(has_clear);
    let mut indexed = match exact(pixels, most) {
        Some(indexed) => indexed,
        None => nearest(pixels, width, most, dither, stop)?,
    };
    if !has_clear {
        return Ok(indexed);
    }
    indexed = indexed.with_clear();
    let opaque = pixels.iter().map(is_opaque);
    for (index, _) in indexed.indices.iter_mut().zip(opaque).filter(|(_, opaque)| !opaque) {
        *index = indexed.clear.unwrap_or_default();
    }
    Ok(indexed)
}

fn is_opaque(pixel: &[u8; 4]) -> bool {
    pixel[3] >= OPAQUE_FROM
}

/// Returns an exact palette if there are at most `most` colours.
fn exact(pixels: &[[u8; 4]], most: usize) -> Option<PalettedImage> {
    let mut numbers: HashMap<[u8; 3], u8> = HashMap::with_capacity(most);
    let mut palette = Vec::with_capacity(most * 3);
    let mut indices = Vec::with_capacity(pixels.len());
    let mut last = None;
    for pixel in pixels {
        let [r, g, b, _] = *pixel;
        let index = match last {
            _ if !is_opaque(pixel) => 0,
            Some((colour, index)) if colour == [r, g, b] => index,
            _ => match numbers.get(&[r, g, b]) {
                Some(index) => *index,
                None if numbers.len() == most => return None,
                None => {
                    let index = numbers.len() as u8;
                    numbers.insert([r, g, b], index);
                    palette.extend_from_slice(&[r, g, b]);
                    index
                }
            },
        };
        if is_opaque(pixel) {
            last = Some(([r, g, b], index));
        }
        indices.push(index);
    }
    Some(PalettedImage { palette, indices, clear: None })
}

/// Builds a palette with Wu's method in Oklab, and maps each pixel to its nearest entry.
fn nearest(
    pixels: &[[u8; 4]],
    width: usize,
    most: usize,
    dither: Dither,
    stop: Stop<'_>,
) -> Result<PalettedImage, Error> {
    let size = PaletteSize::try_from(most).map_err(Error::failed)?;
    let map = {
        let opaque: Vec<Srgb<u8>> =
            pixels.iter().filter(|pixel| is_opaque(pixel)).map(srgb).collect();
        let wu = WuF32x3::run_slice(&srgb8_to_oklab(&opaque), BinnerF32x3::oklab_from_srgb8());
        wu.map_err(Error::failed)?.color_map(size)
    };
    let mut indices = Vec::with_capacity(pixels.len());
    let mut errors = Errors::new(width);
    for row in pixels.chunks(width.max(1)) {
        if stop() {
            return Err(Error::Cancelled);
        }
        let colours = srgb8_to_oklab(&row.iter().map(srgb).collect::<Vec<_>>());
        match dither {
            Dither::None => indices.extend(map.map_to_indices(&colours)),
            Dither::Diffusion => {
                let start = indices.len();
                indices.resize(start + row.len(), 0);
                errors.diffuse(&map, row, &colours, &mut indices[start..]);
            }
        }
    }
    let palette = oklab_to_srgb8(map.palette().as_slice());
    let palette = palette.iter().flat_map(|colour| [colour.red, colour.green, colour.blue]);
    Ok(PalettedImage { palette: palette.collect(), indices, clear: None })
}

fn srgb([r, g, b, _]: &[u8; 4]) -> Srgb<u8> {
    Srgb::new(*r, *g, *b)
}

/// Diffused errors of the current and the next row, with one more position at both ends.
struct Errors {
    row: Vec<[f32; 3]>,
    next: Vec<[f32; 3]>,
    is_backwards: bool,
}

impl Errors {
    fn new(width: usize) -> Self {
        let row = vec![[0.0; 3]; width + 2];
        Self { next: row.clone(), row, is_backwards: false }
    }

    /// Selects the colours of a row. Transparent pixels neither receive nor diffuse errors.
    fn diffuse<M>(&mut self, map: &M, row: &[[u8; 4]], colours: &[Oklab], indices: &mut [u8])
    where
        M: IndexedColorMap<Oklab, Output = Oklab>,
    {
        let palette = map.palette().as_slice();
        for step in 0..row.len() {
            // Alternate rows are processed backwards, so that errors do not drift to one side.
            let x = if self.is_backwards { row.len() - 1 - step } else { step };
            if !is_opaque(&row[x]) {
                continue;
            }
            let owed = self.row[x + 1];
            let Oklab { l, a, b, .. } = colours[x];
            let wanted = [l + owed[0], a + owed[1], b + owed[2]];
            let index = map.palette_index(&Oklab::new(wanted[0], wanted[1], wanted[2]));
            indices[x] = index;
            let Oklab { l, a, b, .. } = palette[usize::from(index)];
            let error = [wanted[0] - l, wanted[1] - a, wanted[2] - b].map(|part| part * DIFFUSED);
            let (ahead, behind) = if self.is_backwards { (x, x + 2) } else { (x + 2, x) };
            add(&mut self.row[ahead], error, 7.0 / 16.0);
            add(&mut self.next[behind], error, 3.0 / 16.0);
            add(&mut self.next[x + 1], error, 5.0 / 16.0);
            add(&mut self.next[ahead], error, 1.0 / 16.0);
        }
        std::mem::swap(&mut self.row, &mut self.next);
        self.next.fill([0.0; 3]);
        self.is_backwards = !self.is_backwards;
    }
}

fn add(to: &mut [f32; 3], error: [f32; 3], part: f32) {
    to.iter_mut().zip(error).for_each(|(to, error)| *to += error * part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(pixels: &[[u8; 4]], width: usize, most: u16, dither: Dither) -> PalettedImage {
        let indexed = quantize(pixels, width, most, dither, &|| false).unwrap();
        assert_eq!(indexed.indices.len(), pixels.len());
        assert!(indexed.palette.len() / 3 <= usize::from(most), "{}", indexed.palette.len());
        let colours = indexed.palette.len() / 3;
        assert!(indexed.indices.iter().all(|index| usize::from(*index) < colours));
        indexed
    }

    fn colour(indexed: &PalettedImage, at: usize) -> Option<[u8; 3]> {
        let index = indexed.indices[at];
        let colour = indexed.palette.as_chunks::<3>().0[usize::from(index)];
        (indexed.clear != Some(index)).then_some(colour)
    }

    /// Returns an area of many colours, transparent in every fifth column if requested.
    fn plane(has_clear: bool) -> Vec<[u8; 4]> {
        let pixel = |at: usize| {
            let (x, y) = ((at % 64) as u8, (at / 64) as u8);
            [x * 4, y * 4, 128, if has_clear && x.is_multiple_of(5) { 127 } else { 255 }]
        };
        (0..64 * 64).map(pixel).collect()
    }

    #[test]
    fn small_palettes_are_lossless() {
        let mut pixels: Vec<[u8; 4]> = (0..=254).map(|grey| [grey, grey, 254, 255]).collect();
        pixels.push([0, 0, 0, 0]);
        for dither in [Dither::None, Dither::Diffusion] {
            let indexed = reduced(&pixels, 16, 256, dither);
            for (at, pixel) in pixels.iter().enumerate() {
                let [r, g, b, a] = *pixel;
                assert_eq!(colour(&indexed, at), (a > 0).then_some([r, g, b]), "{at}");
            }
        }
        pixels[255] = [9, 0, 0, 255];
        let indexed = reduced(&pixels, 16, 256, Dither::None);
        assert_eq!(
            (indexed.palette.len(), indexed.clear),
            (768, None),
            "no room, and no need, for clear"
        );
    }

    #[test]
    fn many_colours_become_so_many() {
        for most in [2, 3, 16, 255, 256, 999] {
            for has_clear in [false, true] {
                for dither in [Dither::None, Dither::Diffusion] {
                    let pixels = plane(has_clear);
                    let indexed = reduced(&pixels, 64, most.min(256), dither);
                    assert_eq!(indexed.clear.is_some(), has_clear);
                    for (at, pixel) in pixels.iter().enumerate() {
                        assert_eq!(colour(&indexed, at).is_some(), pixel[3] >= 128);
                    }
                }
            }
        }
    }

    #[test]
    fn transparent_image_has_a_single_palette_entry() {
        let indexed = reduced(&[[1, 2, 3, 127]; 4], 2, 256, Dither::Diffusion);
        assert_eq!((&*indexed.indices, indexed.clear), (&[0; 4][..], Some(0)));
    }

    #[test]
    fn dithering_preserves_the_mean_color() {
        let grey = |at: u16| (at % 64 * 4) as u8;
        let pixels: Vec<[u8; 4]> =
            (0..64 * 64).map(|at| [grey(at), grey(at), grey(at), 255]).collect();
        let mean = |dither| {
            let indexed = reduced(&pixels, 64, 4, dither);
            // Distances of the means of 8 by 8 blocks, except for those at the edges, which have no colour beyond
            // theirs.
            let blocks = (0..64).filter(|block| (2..6).contains(&(block % 8))).map(|block| {
                let at = |k: usize| (block / 8 * 8 + k / 8) * 64 + block % 8 * 8 + k % 8;
                let is: i32 = (0..64).map(|k| i32::from(colour(&indexed, at(k)).unwrap()[0])).sum();
                let was: i32 = (0..64).map(|k| i32::from(pixels[at(k)][0])).sum();
                (is - was).abs()
            });
            blocks.sum::<i32>()
        };
        let (flat, diffused) = (mean(Dither::None), mean(Dither::Diffusion));
        assert!(diffused * 3 < flat, "{diffused} against {flat}");
    }

    #[test]
    fn quantization_is_cancellable() {
        let stopped = quantize(&plane(false), 64, 16, Dither::None, &|| true);
        assert_eq!(stopped.unwrap_err(), Error::Cancelled);
    }
}
