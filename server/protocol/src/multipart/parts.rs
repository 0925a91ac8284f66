//! Streaming splitter of multipart bodies into parts (RFC 2046 section 5.1.1).
//!
//! A delimiter is a line of its own: two hyphens, the boundary, and nothing else but padding. A line that only begins
//! with the boundary is content (`multer` 3.1 ends the part there, and reads ahead without a bound). Guarantees:
//! content is copied only where a chunk of the body ends in what may be a delimiter; at most one chunk is read ahead;
//! preamble, padding and header blocks are bounded; the result does not depend on how the body is split into chunks.
//! Non-goals: meaning of headers, and which parts are files.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use memchr::memmem::{self, Finder};

use super::part_head::PartHead;
use super::{bad_form, incomplete};
use crate::error::ApiError;
use crate::limits;
use crate::request_body::BodyError;

/// Request body with its limits applied.
pub(super) type FormBody = Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send>>;

/// Maximum chunks of the body that are read after the last delimiter: the end of chunked framing, or some line ends.
const EPILOGUE_PIECES_MAX: usize = 4;

/// Reader of the parts, in order.
pub(super) struct Parts {
    body: FormBody,
    is_body_complete: bool,
    /// Bytes that were read but not returned yet.
    buffer: Bytes,
    /// CRLF, two hyphens and the boundary.
    delimiter: Finder<'static>,
    position: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Preamble,
    /// At the CRLF that ends a delimiter.
    Head,
    Content,
    Epilogue,
}

/// Kind of a line that begins with the boundary.
enum Line {
    /// A delimiter, of this many bytes without the CRLF at its end.
    Delimiter(usize),
    CloseDelimiter,
    Content,
    Undecided,
}

impl Parts {
    /// Creates a reader of a body whose first bytes, in `buffer`, were already read.
    pub(super) fn new(body: FormBody, buffer: &[u8], boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}");
        Self {
            body,
            is_body_complete: false,
            // The first delimiter may be the first line of the body: no CRLF precedes it.
            buffer: [b"\r\n", buffer].concat().into(),
            delimiter: Finder::new(&delimiter).into_owned(),
            position: Position::Preamble,
        }
    }

    /// Skips the rest of the current part and reads the headers of the next; `None` after the last part.
    pub(super) async fn next(&mut self) -> Result<Option<PartHead>, ApiError> {
        let is_preamble = self.position == Position::Preamble;
        let mut skipped_bytes = 0;
        while let Some(skipped) = self.chunk().await? {
            skipped_bytes += skipped.len();
            if is_preamble && skipped_bytes > limits::FORM_PART_HEAD_BYTES_MAX {
                return Err(bad_form("The text before the first part of the form is too long"));
            }
        }
        if self.position == Position::Epilogue {
            self.skip_epilogue().await;
            return Ok(None);
        }
        let head = self.head().await?;
        self.position = Position::Content;
        Ok(Some(head))
    }

    /// Returns the next bytes of the current part, never empty; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        while matches!(self.position, Position::Preamble | Position::Content) {
            let content_bytes = match self.delimiter.find(&self.buffer) {
                Some(0) => match self.line() {
                    Line::Delimiter(bytes) => {
                        drop(self.buffer.split_to(bytes));
                        self.position = Position::Head;
                        continue;
                    }
                    Line::CloseDelimiter => {
                        self.position = Position::Epilogue;
                        continue;
                    }
                    Line::Content => self.delimiter.needle().len(),
                    Line::Undecided => 0,
                },
                Some(at) => at,
                None => self.buffer.len() - self.partial_delimiter_bytes(),
            };
            if content_bytes > 0 {
                return Ok(Some(self.buffer.split_to(content_bytes)));
            }
            self.fill().await?;
        }
        Ok(None)
    }

    /// Classifies the line whose CRLF the buffer starts with.
    fn line(&self) -> Line {
        let after = self.buffer.get(self.delimiter.needle().len()..).unwrap_or(&[]);
        if matches!(after, b"" | b"-") {
            return Line::Undecided;
        }
        let (after, is_close) = match after.strip_prefix(b"--") {
            Some(after) => (after, true),
            None => (after, false),
        };
        let padding = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if padding > limits::FORM_PADDING_BYTES_MAX {
            return Line::Content;
        }
        match after.get(padding..).unwrap_or(&[]) {
            [b'\r', b'\n', ..] if !is_close => {
                Line::Delimiter(self.delimiter.needle().len() + padding)
            }
            // Some clients end the body with a lone LF.
            [b'\r', b'\n', ..] | [b'\n', ..] if is_close => Line::CloseDelimiter,
            [] | [b'\r'] if is_close && self.is_body_complete => Line::CloseDelimiter,
            [] | [b'\r'] => Line::Undecided,
            _ => Line::Content,
        }
    }

    /// Returns how many bytes at the end of the buffer may be the start of a delimiter.
    fn partial_delimiter_bytes(&self) -> usize {
        let delimiter = self.delimiter.needle();
        let tail = self.buffer.get((self.buffer.len() + 1).saturating_sub(delimiter.len())..);
        let tail = tail.unwrap_or(&self.buffer);
        let start = memchr::memrchr(b'\r', tail).unwrap_or(tail.len());
        let tail = tail.get(start..).unwrap_or(&[]);
        if delimiter.starts_with(tail) { tail.len() } else { 0 }
    }

    /// Reads the header block: the CRLF that ends the delimiter, header lines, and an empty line.
    async fn head(&mut self) -> Result<PartHead, ApiError> {
        let mut searched = 0;
        loop {
            let within = self.buffer.get(..limits::FORM_PART_HEAD_BYTES_MAX);
            let within = within.unwrap_or(&self.buffer);
            if let Some(at) = memmem::find(within.get(searched..).unwrap_or(&[]), b"\r\n\r\n") {
                let block = self.buffer.split_to(searched + at + 4);
                return parse_head(block.get(2..).unwrap_or(&[]));
            }
            if within.len() == limits::FORM_PART_HEAD_BYTES_MAX {
                return Err(bad_form("The headers of a part of the form are too long"));
            }
            searched = within.len().saturating_sub(3);
            self.fill().await?;
        }
    }

    /// Reads what has arrived after the last delimiter, so that the connection can be reused; does not wait for more.
    /// The connection provides buffered data when this task yields.
    async fn skip_epilogue(&mut self) {
        for _ in 0..EPILOGUE_PIECES_MAX {
            let polled = poll_fn(|cx| Poll::Ready(self.body.as_mut().poll_frame(cx))).await;
            match polled {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None | Some(Err(_))) => return,
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    }

    /// Reads one more chunk of the body.
    async fn fill(&mut self) -> Result<(), ApiError> {
        if self.is_body_complete {
            return Err(incomplete());
        }
        match self.body.frame().await {
            None => self.is_body_complete = true,
            Some(frame) => {
                // Trailers carry no data and are ignored.
                let data = frame?.into_data().unwrap_or_default();
                if self.buffer.is_empty() {
                    self.buffer = data;
                } else {
                    let before = mem::take(&mut self.buffer).try_into_mut();
                    let mut joined = before.unwrap_or_else(|shared| BytesMut::from(&*shared));
                    joined.extend_from_slice(&data);
                    self.buffer = joined.freeze();
                }
            }
        }
        Ok(())
    }
}

fn parse_head(block: &[u8]) -> Result<PartHead, ApiError> {
    let mut headers = [httparse::EMPTY_HEADER; limits::FORM_PART_HEADERS_MAX];
    let parsed = httparse::parse_headers(block, &mut headers);
    let Ok(httparse::Status::Complete((_, headers))) = parsed else {
        return Err(bad_form("Malformed headers of a form part"));
    };
    let value_of = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| header.value)
    };
    Ok(PartHead::read(value_of("content-disposition"), value_of("content-type")))
}
