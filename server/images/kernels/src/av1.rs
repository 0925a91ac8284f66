//! AV1 encoding of one picture by rav1e (pure Rust, here without assembler).

use rav1e::prelude::{
    BlockSize, ChromaSampling, ColorDescription, ColorPrimaries, Config, Context, EncoderConfig,
    EncoderStatus, Frame, MatrixCoefficients, PartitionRange, PixelRange, SceneDetectionSpeed,
    SpeedSettings, TransferCharacteristics, Tune,
};

/// Picture of eight bits per sample, full range BT.601, row by row without gaps.
pub struct Planes<'a> {
    /// Width and height in pixels, 1 to 65,536.
    pub sides: (usize, usize),
    /// Luma, one sample per pixel.
    pub luma: &'a [u8],
    /// Chroma of a colour picture.
    pub chroma: Chroma<'a>,
}

/// Chroma planes, blue and red differences.
#[derive(Clone, Copy)]
pub enum Chroma<'a> {
    /// Grey.
    None,
    /// Half the width and half the height, rounded up.
    Half(&'a [u8], &'a [u8]),
    /// One sample per pixel.
    Full(&'a [u8], &'a [u8]),
}

/// Width and height of a plane, and its samples; a grey picture has none in the chroma planes.
pub type Plane<'a> = ((usize, usize), Option<&'a [u8]>);

impl<'a> Planes<'a> {
    /// Returns luma, blue differences and red differences.
    pub fn sized(&self) -> [Plane<'a>; 3] {
        let half = (self.sides.0.div_ceil(2), self.sides.1.div_ceil(2));
        let (sides, blue, red) = match self.chroma {
            Chroma::None => (half, None, None),
            Chroma::Half(blue, red) => (half, Some(blue), Some(red)),
            Chroma::Full(blue, red) => (self.sides, Some(blue), Some(red)),
        };
        [(self.sides, Some(self.luma)), (sides, blue), (sides, red)]
    }
}

/// Encodes a picture: sequence header and frame, without temporal delimiter.
///
/// `quantiser` is 0, the finest, to 255.
///
/// # Errors
///
/// Returns the encoder's message, or that a plane has another length than `sides` require.
#[inline(never)]
pub fn encode_av1(planes: &Planes<'_>, quantiser: u8) -> Result<Vec<u8>, String> {
    let config = Config::new().with_encoder_config(encoder_config(planes, quantiser));
    // Eight bits only: for other depths all of rav1e would be compiled again.
    let mut context: Context<u8> = config.new_context().map_err(|error| error.to_string())?;
    let mut frame = context.new_frame();
    fill(&mut frame, planes)?;
    context.send_frame(frame).map_err(|error| error.to_string())?;
    context.flush();
    let mut code = Vec::new();
    loop {
        match context.receive_packet() {
            Ok(packet) => code.extend(packet.data),
            Err(EncoderStatus::Encoded) => {}
            Err(EncoderStatus::LimitReached) => return Ok(code),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn encoder_config(planes: &Planes<'_>, quantiser: u8) -> EncoderConfig {
    let mut speed = SpeedSettings::from_preset(10);
    // Larger blocks are a tenth faster, for half a point of SSIMULACRA2 and a thirtieth of the bytes; smaller ones are
    // slower and larger.
    let block = BlockSize::BLOCK_16X16;
    speed.partition.partition_range = PartitionRange::new(block, block);
    // Without effect on the score at this speed, for a third of the time again.
    speed.cdef = false;
    // There are no other frames.
    speed.scene_detection_mode = SceneDetectionSpeed::None;
    speed.rdo_lookahead_frames = 1;
    let (width, height) = planes.sides;
    EncoderConfig {
        width,
        height,
        still_picture: true,
        chroma_sampling: match planes.chroma {
            Chroma::None => ChromaSampling::Cs400,
            Chroma::Half(..) => ChromaSampling::Cs420,
            Chroma::Full(..) => ChromaSampling::Cs444,
        },
        pixel_range: PixelRange::Full,
        color_description: Some(ColorDescription {
            color_primaries: ColorPrimaries::BT709,
            transfer_characteristics: TransferCharacteristics::SRGB,
            matrix_coefficients: MatrixCoefficients::BT601,
        }),
        quantizer: quantiser.into(),
        // Distortion is measured after the transform: a quarter less time than with `Psychovisual`, and a better score.
        tune: Tune::Psnr,
        speed_settings: speed,
        ..EncoderConfig::default()
    }
}

/// Copies the samples to a frame.
fn fill(frame: &mut Frame<u8>, planes: &Planes<'_>) -> Result<(), String> {
    for (plane, (sides, samples)) in frame.planes.iter_mut().zip(planes.sized()) {
        let Some(samples) = samples else { continue };
        if samples.len() != sides.0 * sides.1 {
            return Err(format!("{} samples instead of {} x {}", samples.len(), sides.0, sides.1));
        }
        plane.copy_from_raw_u8(samples, sides.0, 1);
    }
    Ok(())
}
