//! Framing of bodies in AWS chunks (`aws-chunked`), before `s3s` parses it.
//!
//! `s3s` buffers each chunk whole, and a client may send an entire file as one. Unsigned chunks are therefore split
//! here as they arrive; a signed chunk must be buffered, and is limited in size. Guarantees: memory is bounded by one
//! read of the connection; a signed chunk longer than [`SIGNED_CHUNK_BYTES_MAX`] is rejected before it is read.
//! Non-goals: signatures, trailers and the total length.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};

/// Longest signed chunk: sixteen times what the largest clients send.
const SIGNED_CHUNK_BYTES_MAX: u64 = 2 * 1_024 * 1_024;
/// Longest line before a chunk.
const LINE_BYTES_MAX: usize = 1_024;

/// Signing mode of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkSigning {
    Signed,
    Unsigned,
}

/// Body with bounded chunks.
pub(super) struct AwsChunkedBody<B> {
    body: B,
    chunks: ChunkSigning,
    state: ChunkState,
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the line before a chunk.
    Line,
    /// In the data of a chunk, with this many bytes left.
    Data(u64),
    /// In the line end of a chunk, with this many bytes left.
    End(usize),
    /// After the last chunk.
    Trailers,
}

/// Invalid framing of a body.
#[derive(Debug)]
pub(super) enum AwsChunkedError<E> {
    Broken(E),
    Line,
    TooLarge,
}

impl<E: fmt::Display> fmt::Display for AwsChunkedError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => why.fmt(f),
            Self::Line => f.write_str("a chunk does not begin with its length"),
            Self::TooLarge => write!(f, "a signed chunk has over {SIGNED_CHUNK_BYTES_MAX} bytes"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for AwsChunkedError<E> {}

impl<B> AwsChunkedBody<B> {
    pub(super) fn new(body: B, chunks: ChunkSigning) -> Self {
        Self { body, chunks, state: ChunkState::Line, line: Vec::new() }
    }

    /// Returns the output for a piece of input.
    fn take<E>(&mut self, mut piece: Bytes) -> Result<Bytes, AwsChunkedError<E>> {
        if self.state == ChunkState::Trailers {
            return Ok(piece);
        }
        let mut out = BytesMut::with_capacity(piece.len() + 64);
        while piece.has_remaining() {
            match self.state {
                ChunkState::Line => self.take_line(&mut piece, &mut out)?,
                ChunkState::Data(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                    let data = piece.split_to(length);
                    let left = left - length as u64;
                    if self.chunks == ChunkSigning::Unsigned {
                        out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
                        out.extend_from_slice(&data);
                        out.extend_from_slice(b"\r\n");
                    } else {
                        out.extend_from_slice(&data);
                    }
                    self.state =
                        if left == 0 { ChunkState::End(2) } else { ChunkState::Data(left) };
                }
                ChunkState::End(left) => {
                    let length = left.min(piece.len());
                    let end = piece.split_to(length);
                    if *end != b"\r\n"[2 - left..2 - left + length] {
                        return Err(AwsChunkedError::Line);
                    }
                    if self.chunks == ChunkSigning::Signed {
                        out.extend_from_slice(&end);
                    }
                    self.state = if left == length {
                        ChunkState::Line
                    } else {
                        ChunkState::End(left - length)
                    };
                }
                ChunkState::Trailers => out.extend_from_slice(&piece.split_to(piece.len())),
            }
        }
        Ok(out.freeze())
    }

    fn take_line<E>(
        &mut self,
        piece: &mut Bytes,
        out: &mut BytesMut,
    ) -> Result<(), AwsChunkedError<E>> {
        let length = piece.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        self.line.extend_from_slice(&piece.split_to(length.unwrap_or(piece.len())));
        if self.line.len() > LINE_BYTES_MAX {
            return Err(AwsChunkedError::Line);
        }
        if length.is_none() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        let bytes = length_of(&line).ok_or(AwsChunkedError::Line)?;
        if self.chunks == ChunkSigning::Signed && bytes > SIGNED_CHUNK_BYTES_MAX {
            return Err(AwsChunkedError::TooLarge);
        }
        if self.chunks == ChunkSigning::Signed || bytes == 0 {
            out.extend_from_slice(&line);
        }
        self.state = if bytes == 0 { ChunkState::Trailers } else { ChunkState::Data(bytes) };
        Ok(())
    }
}

/// Parses the length in the line before a chunk: `10000\r\n`, or `10000;chunk-signature=...\r\n`.
fn length_of(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let digits = line.split(';').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}

impl<B> Body for AwsChunkedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = AwsChunkedError<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(why)) => return Poll::Ready(Some(Err(AwsChunkedError::Broken(why)))),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    match self.take(data) {
                        // No output from this piece yet.
                        Ok(out) if out.is_empty() => {}
                        taken => return Poll::Ready(Some(taken.map(Frame::data))),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(chunks: ChunkSigning, sent: &[u8], piece_bytes: usize) -> Result<Vec<u8>, String> {
        let mut framed = AwsChunkedBody::new((), chunks);
        let mut out = Vec::new();
        for piece in sent.chunks(piece_bytes) {
            let taken = framed.take::<String>(Bytes::copy_from_slice(piece));
            out.extend_from_slice(&taken.map_err(|why| why.to_string())?);
        }
        Ok(out)
    }

    /// Splits framed input into chunk data and trailers.
    fn read(mut framed: &[u8]) -> (Vec<u8>, Vec<u8>, usize) {
        let (mut data, mut longest) = (Vec::new(), 0);
        loop {
            let end = framed.windows(2).position(|it| it == b"\r\n").unwrap() + 2;
            let length = length_of(&framed[..end]).unwrap() as usize;
            longest = longest.max(length);
            framed = &framed[end..];
            if length == 0 {
                return (data, framed.to_vec(), longest);
            }
            data.extend_from_slice(&framed[..length]);
            assert_eq!(&framed[length..length + 2], b"\r\n");
            framed = &framed[length + 2..];
        }
    }

    #[test]
    fn unsigned_chunk_is_streamed() {
        let body: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        let mut sent = format!("{:x}\r\n", 99_000).into_bytes();
        sent.extend_from_slice(&body[..99_000]);
        sent.extend_from_slice(b"\r\n3e8\r\n");
        sent.extend_from_slice(&body[99_000..]);
        sent.extend_from_slice(b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
        for piece_bytes in [1, 2, 3, 1_000, 4_096, 1_000_000] {
            let out = framed(ChunkSigning::Unsigned, &sent, piece_bytes).unwrap();
            let (data, trailers, longest) = read(&out);
            assert_eq!(data, body, "{piece_bytes}");
            assert_eq!(trailers, b"x-amz-checksum-crc32:AAAAAA==\r\n\r\n", "{piece_bytes}");
            assert!(longest <= piece_bytes, "{longest} of {piece_bytes}");
        }
    }

    #[test]
    fn signed_chunk_data_is_unchanged() {
        let sent = b"3;chunk-signature=abc\r\nabc\r\n0;chunk-signature=def\r\n\r\n";
        for piece_bytes in [1, 5, 1_000] {
            assert_eq!(framed(ChunkSigning::Signed, sent, piece_bytes).unwrap(), sent);
        }
    }

    #[test]
    fn oversized_aws_chunk_is_rejected() {
        let why = framed(ChunkSigning::Signed, b"200001;chunk-signature=abc\r\n", 9).unwrap_err();
        assert!(why.contains("signed chunk"), "{why}");
        assert!(framed(ChunkSigning::Signed, b"200000;chunk-signature=abc\r\nx", 9).is_ok());
    }

    #[test]
    fn malformed_aws_chunk_is_rejected() {
        let long = [b'0'; 2_000];
        let bad: [&[u8]; 7] = [
            b"\r\n",
            b"x\r\n",
            b"-1\r\n",
            b"3\nabc",
            b"3\r\nabcd\r\n",
            b"10000000000000000\r\n",
            &long,
        ];
        for sent in bad {
            assert!(framed(ChunkSigning::Unsigned, sent, 3).is_err(), "{sent:?}");
        }
    }
}
