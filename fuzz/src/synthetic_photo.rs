//! Synthetic photographs from a seed: JPEG files encoded from them, and their decoding by another decoder.
//!
//! Guarantees: the same seed gives the same picture. Non-goals: what is compared, and the tolerance.

pub use jpeg_encoder::SamplingFactor;
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// A picture of interleaved red, green and blue.
#[derive(Clone, Debug)]
pub struct SyntheticPhoto {
    pub width: u16,
    pub height: u16,
    pub rgb: Vec<u8>,
}

/// JPEG encoding options.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    pub sampling: SamplingFactor,
    /// Whether the picture has a single component.
    pub is_grey: bool,
    /// Number of scans for each component of a progressive file; none for baseline.
    pub progressive: Option<u8>,
    /// MCUs between restart markers; 0 for none.
    pub restart_interval: u16,
    /// Quality from 1 to 100.
    pub quality: u8,
    pub tables: Tables,
}

impl Encoding {
    /// Baseline of quality 90, chroma at half the size, without restart markers.
    pub const PLAIN: Self = Self {
        sampling: SamplingFactor::R_4_2_0,
        is_grey: false,
        progressive: None,
        restart_interval: 0,
        quality: 90,
        tables: Tables::Usual,
    };
}

/// Huffman tables of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Standard tables of T.81, annex K. A baseline file has one scan of all components.
    Usual,
    /// Optimized tables, where there are no restart markers. A baseline file has a scan for each component.
    Own,
}

/// A file decoded at its full size by `zune-jpeg`.
#[derive(Clone, Debug)]
pub struct Full {
    pub width: usize,
    pub height: usize,
    /// Samples of each component, all of full size, interleaved.
    pub samples: Vec<u8>,
    pub components: usize,
}

impl SyntheticPhoto {
    /// Generates soft light, slowly changing colours, objects with edges, and a fine texture on part of it.
    pub fn new(seed: u64, width: u16, height: u16) -> Self {
        let phase = (seed % 1_000) as f32 * 0.37;
        let (mut rgb, mut noise) = (Vec::new(), Noise(seed | 1));
        for y in 0..height {
            let v = f32::from(y) / 64.0;
            for x in 0..width {
                let u = f32::from(x) / 64.0;
                let light = 120.0 + 70.0 * (0.9 * u + 0.5 * v + phase).sin();
                let warmth = 40.0 * (0.7 * v - 0.4 * u + phase).cos();
                let thing = ((u - 0.8).fract() - 0.5).hypot((v + 0.2).fract() - 0.4) < 0.3;
                let stripe = (1.3 * u + 2.1 * v).fract() < 0.2;
                let (red, green, blue) = match (thing, stripe) {
                    (true, _) => (70.0, -10.0, -40.0),
                    (false, true) => (-35.0, 20.0, 50.0),
                    (false, false) => (0.0, 0.0, 0.0),
                };
                let grain = if thing { noise.next() * 14.0 } else { noise.next() * 3.0 };
                let weave = (38.0 * u + 9.0 * v).sin() * (29.0 * v - 5.0 * u).sin();
                let dye = 22.0 * (17.0 * u).sin() * (15.0 * v + 3.0 * u).cos();
                let (all, warmth) = (light + grain + 16.0 * weave, warmth + dye);
                rgb.extend([
                    (all + warmth + red) as u8,
                    (all + green) as u8,
                    (all - warmth + blue) as u8,
                ]);
            }
        }
        Self { width, height, rgb }
    }

    /// Encodes the picture. Subsampled chroma is averaged, as cameras do.
    ///
    /// # Panics
    ///
    /// When the encoder fails, as it does for a picture without pixels.
    pub fn jpeg(&self, encoding: &Encoding) -> Vec<u8> {
        encode(&self.rgb, (self.width, self.height), ColorType::Rgb, encoding)
    }

    /// Encodes the picture as red, green and blue components, declared by Adobe's segment.
    ///
    /// # Panics
    ///
    /// As [`SyntheticPhoto::jpeg`].
    pub fn jpeg_of_rgb(&self, encoding: &Encoding) -> Vec<u8> {
        let file = encode(&self.rgb, (self.width, self.height), ColorType::Ycbcr, encoding);
        // The encoder starts with a JFIF segment of 18 bytes, which would contradict that.
        assert_eq!(file[2..4], [0xff, 0xe0], "a JFIF segment");
        let adobe = b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0";
        [adobe, &file[20..]].concat()
    }
}

fn encode(bytes: &[u8], size: (u16, u16), colours: ColorType, encoding: &Encoding) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, encoding.quality);
    encoder.set_sampling_factor(encoding.sampling);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.set_restart_interval(encoding.restart_interval);
    encoder.set_optimized_huffman_tables(
        encoding.tables == Tables::Own && encoding.restart_interval == 0,
    );
    if let Some(scans) = encoding.progressive {
        encoder.set_progressive_scans(scans);
    }
    let encoded = if encoding.is_grey {
        let green: Vec<u8> = bytes.chunks_exact(3).map(|pixel| pixel[1]).collect();
        encoder.encode(&green, size.0, size.1, ColorType::Luma)
    } else {
        encoder.encode(bytes, size.0, size.1, colours)
    };
    encoded.expect("a picture with pixels");
    file
}

impl Full {
    /// Decodes a file to its own components. None where the other decoder rejects it.
    pub fn decode(file: &[u8]) -> Option<Self> {
        Self::decode_as(file, ColorSpace::YCbCr)
    }

    /// Decodes a file to red, green and blue.
    pub fn decode_rgb(file: &[u8]) -> Option<Self> {
        Self::decode_as(file, ColorSpace::RGB)
    }

    /// Returns the width and height of a file. None where the other decoder rejects its headers.
    pub fn sides(file: &[u8]) -> Option<(usize, usize)> {
        let options = DecoderOptions::default().set_strict_mode(true);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder.decode_headers().ok()?;
        decoder.dimensions()
    }

    fn decode_as(file: &[u8], colours: ColorSpace) -> Option<Self> {
        let options = DecoderOptions::default().set_strict_mode(true);
        let options = options.set_max_width(16_384).set_max_height(16_384);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder.decode_headers().ok()?;
        let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
        let colours = if grey { ColorSpace::Luma } else { colours };
        let mut decoder = JpegDecoder::new_with_options(
            ZCursor::new(file),
            options.jpeg_set_out_colorspace(colours),
        );
        let samples = decoder.decode().ok()?;
        let info = decoder.info()?;
        let (width, height) = (usize::from(info.width), usize::from(info.height));
        Some(Self { width, height, samples, components: if grey { 1 } else { 3 } })
    }

    /// Scales one component to another size, which may end within a sample: each sample is the mean of the area that it
    /// covers.
    pub fn reduced(&self, component: usize, covered: (f64, f64)) -> Vec<Vec<f64>> {
        let columns = areas(self.width, covered.0);
        let rows = areas(self.height, covered.1);
        let column_sums: Vec<Vec<f64>> = (0..self.height)
            .map(|y| {
                let sample = |x: usize| {
                    f64::from(self.samples[(y * self.width + x) * self.components + component])
                };
                columns.iter().map(|area| mean(area, sample)).collect()
            })
            .collect();
        rows.iter()
            .map(|area| (0..columns.len()).map(|x| mean(area, |y| column_sums[y][x])).collect())
            .collect()
    }
}

/// Returns, for each sample of a shorter side, the samples of the longer side that it covers, with their weights.
fn areas(length: usize, covered: f64) -> Vec<Vec<(usize, f64)>> {
    let step = length as f64 / covered;
    (0..covered.ceil() as usize)
        .map(|place| {
            let (start, end) =
                (place as f64 * step, ((place + 1) as f64 * step).min(length as f64));
            (start as usize..length)
                .map(|at| (at, end.min((at + 1) as f64) - start.max(at as f64)))
                .take_while(|(_, share)| *share > 0.0)
                .collect()
        })
        .collect()
}

fn mean(area: &[(usize, f64)], sample: impl Fn(usize) -> f64) -> f64 {
    let shares: f64 = area.iter().map(|(_, share)| share).sum();
    area.iter().map(|(at, share)| sample(*at) * share).sum::<f64>() / shares
}

/// Pseudo-random sequence of a plain recurrence: -1 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}
