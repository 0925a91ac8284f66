//! Decodes the frames of a GIF.
//!
//! The behaviour is that of browsers: a disposed frame becomes transparent, whatever the background colour; pixels
//! outside of the canvas, whose size the first frame determines, are ignored; disposal 4 is treated as 3; and a
//! frame without a colour table is transparent. A frame is drawn during decompression, so no memory is allocated for
//! it, whatever its stated size. If its data ends early, the rest is transparent.
//!
//! A broken frame is the last one. The first frame is then shown as far as it was decoded, a later one not at all.

use gif::streaming_decoder::{Block, Decoded, OutputBuffer, StreamingDecoder};
use gif::{DecodeOptions, DisposalMethod, Frame};

use super::canvas::{Area, CLEAR, Canvas, Pixel};
use super::frame_source::FrameReader;
use super::gif_blocks::{GifBlocks, GifSummary};
use super::loop_count::LoopCount;
use crate::Stop;
use crate::error::{Error, LimitKind};
use crate::limits::{FRAMES_PIXELS_MAX, PROFILE_BYTES_MAX};

/// Maximum number of pixels decompressed per file. Frames inside their canvas have at most half as many.
const UNPACKED_MAX: u64 = 2 * FRAMES_PIXELS_MAX;
/// Number of pixels decompressed at once. The library loses data if a buffer is so short that the codes already read
/// fill it: 64 bits of codes, each of at most 4,096 pixels.
const PIECE_PIXELS: usize = 1 << 16;

pub(super) struct GifReader<'a> {
    blocks: GifBlockDecoder<'a>,
    /// Headers of the remaining frames.
    headers: GifBlocks<'a>,
    palette: Option<Vec<u8>>,
    plays: LoopCount,
    profile: Option<Vec<u8>>,
    canvas: Canvas,
    disposal: Disposal,
    piece: Vec<u8>,
    unpacked: u64,
    has_shown: bool,
    is_over: bool,
}

/// Disposal of a frame after its duration.
enum Disposal {
    Keep,
    Background(Area),
    Previous(Area, Vec<Pixel>),
}

impl<'a> GifReader<'a> {
    pub(super) fn new(bytes: &'a [u8], sides: (u32, u32)) -> Result<Self, Error> {
        let head = DecodeOptions::new().read_info(bytes).map_err(Error::undecodable)?;
        let profile = head.icc_profile().filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
        Ok(Self {
            blocks: GifBlockDecoder { decoder: StreamingDecoder::new(), rest: bytes },
            palette: head.global_palette().map(<[u8]>::to_vec),
            plays: LoopCount::of_gif_repetitions(GifSummary::read(bytes)?.repetitions),
            headers: GifBlocks::new(bytes)?,
            profile: profile.map(<[u8]>::to_vec),
            canvas: Canvas::new(sides),
            disposal: Disposal::Keep,
            piece: vec![0; PIECE_PIXELS],
            unpacked: 0,
            has_shown: false,
            is_over: false,
        })
    }

    /// Draws a frame whose header was read, up to the end of its data.
    fn draw(&mut self, brush: &mut FramePainter, stop: Stop<'_>) -> Result<(), Error> {
        loop {
            if stop() {
                return Err(Error::Cancelled);
            }
            let unpacked = match self.blocks.next(&mut self.piece)? {
                Decoded::BytesDecoded(count) => count.get(),
                Decoded::DataEnd => return Ok(()),
                _ => return Err(Error::undecodable("frame without image data")),
            };
            self.unpacked += unpacked as u64;
            if self.unpacked > UNPACKED_MAX {
                return Err(Error::TooLarge(LimitKind::Frames));
            }
            brush.draw(&mut self.canvas, &self.piece[..unpacked]);
        }
    }
}

impl FrameReader for GifReader<'_> {
    fn next(&mut self, stop: Stop<'_>) -> Result<Option<u32>, Error> {
        match std::mem::replace(&mut self.disposal, Disposal::Keep) {
            Disposal::Keep => {}
            Disposal::Background(area) => self.canvas.clear(area),
            Disposal::Previous(area, kept) => self.canvas.restore(area, &kept),
        }
        if self.is_over {
            return Ok(None);
        }
        let header = self.blocks.next_frame().map(|frame| {
            let palette = frame.palette.as_ref().or(self.palette.as_ref());
            let brush = FramePainter::new(frame, palette.map_or(&[], Vec::as_slice), &self.canvas);
            (brush, frame.dispose, u32::from(frame.delay) * 10)
        });
        let (mut brush, disposal, delay_ms) = match header {
            Ok(header) => header,
            Err(error) => {
                self.is_over = true;
                return if self.has_shown { Ok(None) } else { Err(error) };
            }
        };
        let stored = self.headers.next();
        self.disposal = match (disposal, stored.map(|header| header.disposal)) {
            (DisposalMethod::Background, _) => Disposal::Background(brush.area),
            (DisposalMethod::Previous, _) | (_, Some(4)) => {
                Disposal::Previous(brush.area, self.canvas.snapshot(brush.area))
            }
            (DisposalMethod::Any | DisposalMethod::Keep, _) => Disposal::Keep,
        };
        let drawn = match stored {
            Some(header) if header.is_empty => self.blocks.end_empty_frame(),
            _ => self.draw(&mut brush, stop),
        };
        match drawn {
            Ok(()) => {}
            Err(Error::Undecodable(_)) if brush.is_done() => self.is_over = true,
            Err(Error::Undecodable(_)) if self.has_shown => {
                self.is_over = true;
                return Ok(None);
            }
            Err(Error::Undecodable(_)) if brush.has_begun => self.is_over = true,
            Err(error) => return Err(error),
        }
        self.has_shown = true;
        Ok(Some(delay_ms))
    }

    fn canvas(&self) -> &Canvas {
        &self.canvas
    }

    fn take_changed(&mut self) -> Option<Area> {
        self.canvas.take_changed()
    }

    fn plays(&self) -> LoopCount {
        self.plays
    }

    fn profile(&self) -> Option<&[u8]> {
        self.profile.as_deref()
    }
}

/// File, block by block.
struct GifBlockDecoder<'a> {
    decoder: StreamingDecoder,
    rest: &'a [u8],
}

impl GifBlockDecoder<'_> {
    /// Decodes the next item; pixels are written to `piece` if it is not empty.
    fn next(&mut self, piece: &mut [u8]) -> Result<Decoded, Error> {
        while !self.rest.is_empty() {
            let mut into = match piece.is_empty() {
                true => OutputBuffer::None,
                false => OutputBuffer::Slice(piece),
            };
            let (read, decoded) =
                self.decoder.update(self.rest, &mut into).map_err(Error::undecodable)?;
            self.rest = self.rest.get(read..).unwrap_or_default();
            if !matches!(decoded, Decoded::Nothing) {
                return Ok(decoded);
            }
        }
        Err(Error::undecodable("unexpected end of file"))
    }

    /// Ends a frame without pixels. The library has read the end of its data as the length of a first sub-block, and
    /// expects another end.
    fn end_empty_frame(&mut self) -> Result<(), Error> {
        let rest = std::mem::replace(&mut self.rest, &[0]);
        let ended = self.next(&mut []);
        self.rest = rest;
        match ended? {
            Decoded::DataEnd => Ok(()),
            _ => Err(Error::undecodable("frame without image data")),
        }
    }

    /// Returns the header of the next frame. Must not be called after an error, including the end of the file.
    fn next_frame(&mut self) -> Result<&Frame<'static>, Error> {
        loop {
            match self.next(&mut [])? {
                Decoded::FrameMetadata(_) => return Ok(self.decoder.current_frame()),
                Decoded::BlockStart(Block::Trailer) => {
                    return Err(Error::undecodable("no frames"));
                }
                _ => {}
            }
        }
    }
}

/// Draws the pixels of a frame in storage order.
struct FramePainter {
    /// Visible area of the frame on the canvas.
    area: Area,
    width: usize,
    rows: std::vec::IntoIter<usize>,
    /// Current row, and the number of its pixels drawn.
    row: Option<usize>,
    column: usize,
    colours: [Pixel; 256],
    has_begun: bool,
}

impl FramePainter {
    fn new(frame: &Frame<'_>, palette: &[u8], canvas: &Canvas) -> Self {
        let [left, top, width, height] =
            [frame.left, frame.top, frame.width, frame.height].map(u32::from);
        let mut colours = [CLEAR; 256];
        for (colour, [r, g, b]) in colours.iter_mut().zip(palette.as_chunks::<3>().0) {
            *colour = [*r, *g, *b, 255];
        }
        if let Some(index) = frame.transparent {
            colours[usize::from(index)] = CLEAR;
        }
        let height = if width == 0 { 0 } else { height as usize };
        let mut rows = rows_of(height, frame.interlaced).into_iter();
        Self {
            area: canvas.clip(left, top, width, frame.height.into()),
            width: width as usize,
            row: rows.next(),
            rows,
            column: 0,
            colours,
            has_begun: false,
        }
    }

    /// Draws the next pixels; pixels after the end of the frame are skipped.
    fn draw(&mut self, canvas: &mut Canvas, mut indices: &[u8]) {
        while let Some(row) = self.row.filter(|_| !indices.is_empty()) {
            self.has_begun = true;
            let here = indices.len().min(self.width - self.column);
            let (now, later) = indices.split_at(here);
            if row < self.area.height {
                let left = self.column.min(self.area.width);
                let width = now.len().min(self.area.width - left);
                let top = self.area.top + row;
                let line = Area { left: self.area.left + left, top, width, height: 1 };
                // An unchanged row need not be resized again.
                let colours = now.iter().map(|index| self.colours[usize::from(*index)]);
                let is_changed = canvas
                    .rows(line)
                    .flatten()
                    .zip(colours.clone())
                    .any(|(pixel, colour)| colour != CLEAR && *pixel != colour);
                if is_changed {
                    let pixels = canvas.rows_mut(line).flatten();
                    for (pixel, colour) in pixels.zip(colours).filter(|(_, over)| *over != CLEAR) {
                        *pixel = colour;
                    }
                }
            }
            self.column += here;
            if self.column == self.width {
                self.column = 0;
                self.row = self.rows.next();
            }
            indices = later;
        }
    }

    fn is_done(&self) -> bool {
        self.row.is_none()
    }
}

/// Returns the rows of a frame in storage order: GIF89a, appendix E.
fn rows_of(height: usize, is_interlaced: bool) -> Vec<usize> {
    let passes: &[(usize, usize)] =
        if is_interlaced { &[(0, 8), (4, 8), (2, 4), (1, 2)] } else { &[(0, 1)] };
    passes.iter().flat_map(|(first, step)| (*first..height).step_by(*step)).collect()
}
