//! Streaming parser for the files of a multipart form.
//!
//! Reads `multipart/form-data` as real clients write it: with the boundary only in the body, with any field name, with
//! names in UTF-8, Latin-1, percent escapes or RFC 8187, with invalid media types. A part is a file if it has a file
//! name or a type that is not text; every other part is skipped. Guarantees: memory is bounded by one chunk of the body
//! and the headers of one part; a truncated form is an error, never a short file. Non-goals: storing the files.

mod part_head;
mod parts;

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{HeaderValue, StatusCode};
use http_body::Body;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub use self::part_head::PartHead;

use self::part_head::parse_boundary;
use self::parts::Parts;
use crate::content_type::essence;
use crate::error::ApiError;
use crate::limits;
use crate::request_body::{BodyLimits, RequestBody};

/// Files of a form, in order.
pub struct FormFiles {
    parts: Parts,
    file_count: usize,
    field_count: usize,
}

/// File of a form. Unread bytes are skipped when the next file is read.
pub struct MultipartFile<'f> {
    form: &'f mut FormFiles,
    head: PartHead,
    first: Option<Bytes>,
}

impl PartialSchema for FormFiles {
    fn schema() -> RefOr<Schema> {
        let file = ObjectBuilder::new()
            .schema_type(Type::String)
            .content_media_type("application/octet-stream");
        let files = ArrayBuilder::new()
            .items(file)
            .min_items(Some(1))
            .max_items(Some(limits::FORM_FILES_MAX));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(
                "Multipart form with files. File fields may have any name; other fields are ignored.",
            ))
            .property_names(Some(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some("^[^\\u0000-\\u001f\\u007f]*$")),
            ))
            .property("file", files)
            .required("file")
            .into()
    }
}

impl ToSchema for FormFiles {}

impl FormFiles {
    /// Starts reading the form of a request: 415 if it is not a form, 413 if its declared length is too large.
    pub async fn open<B>(headers: &HeaderMap, body: B, limits: BodyLimits) -> Result<Self, ApiError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: fmt::Display,
    {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let content_type = String::from_utf8_lossy(content_type);
        if !essence(&content_type).eq_ignore_ascii_case("multipart/form-data") {
            return Err(ApiError::not_multipart());
        }
        let mut body = RequestBody::new(headers, body, limits)?;
        let mut read = Bytes::new();
        let boundary = match parse_boundary(&content_type) {
            Some(boundary) => boundary,
            None => first_line_boundary(&mut body, &mut read).await?,
        };
        let parts = Parts::new(Box::pin(body), &read, &boundary);
        Ok(Self { parts, file_count: 0, field_count: 0 })
    }

    /// Returns the next file; `None` at the end of the form.
    pub async fn next_file(&mut self) -> Result<Option<MultipartFile<'_>>, ApiError> {
        while let Some(head) = self.parts.next().await? {
            if !head.is_file() {
                self.skip_field().await?;
                continue;
            }
            // A browser sends an empty part with an empty name where no file was selected.
            let first = self.parts.chunk().await?;
            if first.is_none() && head.file_name.as_deref() == Some("") {
                continue;
            }
            self.file_count += 1;
            if self.file_count > limits::FORM_FILES_MAX {
                let message = format!(
                    "Too many files: a form may contain at most {}",
                    limits::FORM_FILES_MAX
                );
                return Err(ApiError::new(StatusCode::BAD_REQUEST, "too_many_files", message));
            }
            return Ok(Some(MultipartFile { form: self, head, first }));
        }
        Ok(None)
    }

    /// Reads the head of the next part, a file or a field; `None` at the end of the form.
    pub async fn next_part(&mut self) -> Result<Option<PartHead>, ApiError> {
        self.field_count += 1;
        if self.field_count > limits::FORM_FIELDS_MAX {
            return Err(bad_form("The form has too many fields"));
        }
        self.parts.next().await
    }

    /// Returns the next bytes of the part whose head was read last; `None` at its end.
    pub async fn part_chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        self.parts.chunk().await
    }

    /// Skips the remaining fields, so that a truncated form is an error.
    pub async fn skip_to_end(&mut self) -> Result<(), ApiError> {
        while self.parts.next().await?.is_some() {
            self.skip_field().await?;
        }
        Ok(())
    }

    /// Skips a text field, within the limits of a form.
    async fn skip_field(&mut self) -> Result<(), ApiError> {
        self.field_count += 1;
        if self.field_count > limits::FORM_FIELDS_MAX {
            return Err(bad_form("The form has too many fields"));
        }
        let mut bytes = 0;
        while let Some(chunk) = self.parts.chunk().await? {
            bytes += chunk.len() as u64;
            if bytes > limits::FORM_FIELD_BYTES_MAX {
                return Err(bad_form("A text field of the form is too large"));
            }
        }
        Ok(())
    }
}

impl MultipartFile<'_> {
    /// Returns the file name that the client sent, decoded but not sanitized.
    pub fn file_name(&self) -> Option<&str> {
        self.head.file_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Returns the media type that the client declared, verbatim.
    pub fn declared_type(&self) -> Option<&str> {
        self.head.declared_type.as_deref()
    }

    /// Returns the next bytes of the file; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.form.parts.chunk().await,
        }
    }
}

/// Finds the boundary in the first line of the body: some clients overwrite the header that carries it.
async fn first_line_boundary<B>(
    body: &mut RequestBody<B>,
    read: &mut Bytes,
) -> Result<String, ApiError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    let line_bytes_max = limits::FORM_BOUNDARY_BYTES_MAX + "----\r\n".len();
    let mut start = BytesMut::new();
    let mut is_complete = false;
    loop {
        if let Some(end) = start.windows(2).position(|pair| pair == b"\r\n") {
            let line = start.get(..end).and_then(|line| line.strip_prefix(b"--")).unwrap_or(&[]);
            let is_alone = start.len() == end + 2;
            let line = match line.strip_suffix(b"--") {
                // A form without parts is only the closing boundary; or more data follows.
                Some(boundary) if is_alone && is_complete => boundary,
                Some(_) if is_alone => &[],
                _ => line,
            };
            if !line.is_empty() || !is_alone || is_complete {
                let boundary = std::str::from_utf8(line).ok().filter(|it| is_boundary(it));
                let boundary = boundary.map(str::to_owned).ok_or_else(no_boundary);
                *read = start.freeze();
                return boundary;
            }
        } else if start.len() > line_bytes_max || (is_complete && !start.is_empty()) {
            return Err(no_boundary());
        } else if is_complete {
            return Err(ApiError::no_file());
        }
        match body.chunk().await? {
            Some(chunk) => start.extend_from_slice(&chunk),
            None => is_complete = true,
        }
    }
}

fn is_boundary(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b);
    (1..=limits::FORM_BOUNDARY_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn no_boundary() -> ApiError {
    bad_form("The form has no boundary, neither in its Content-Type nor in its first line")
}

fn bad_form(message: &'static str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "bad_form", message)
}

fn incomplete() -> ApiError {
    let message = "The form ends before its last boundary";
    ApiError::new(StatusCode::BAD_REQUEST, "incomplete_body", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body::Frame;

    use crate::request_body::scripted::{Scripted, Step};

    const WINDOW: Duration = Duration::from_millis(60);

    fn headers(content_type: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
        headers
    }

    fn limits(bytes_max: u64) -> BodyLimits {
        BodyLimits { bytes_max, window: WINDOW, window_bytes_min: 100 }
    }

    /// File name, declared type and content of a file.
    type Seen = (Option<String>, Option<String>, Vec<u8>);

    async fn read(
        content_type: &str,
        body: Scripted,
        bytes_max: u64,
    ) -> Result<Vec<Seen>, ApiError> {
        let mut form = FormFiles::open(&headers(content_type), body, limits(bytes_max)).await?;
        let mut seen = Vec::new();
        while let Some(mut file) = form.next_file().await? {
            let mut content = Vec::new();
            while let Some(chunk) = file.chunk().await? {
                content.extend_from_slice(&chunk);
            }
            let text = |value: Option<&str>| value.map(str::to_owned);
            seen.push((text(file.file_name()), text(file.declared_type()), content));
        }
        Ok(seen)
    }

    async fn read_all(content_type: &str, body: &[u8]) -> Result<Vec<Seen>, ApiError> {
        let whole = read(content_type, Scripted::pieces(body, body.len().max(1)), 1 << 20).await;
        for piece_bytes in [1, 2, 7, 64] {
            let pieces = read(content_type, Scripted::pieces(body, piece_bytes), 1 << 20).await;
            let codes =
                (whole.as_ref().map_err(ApiError::code), pieces.as_ref().map_err(ApiError::code));
            assert_eq!(codes.0, codes.1, "in pieces of {piece_bytes}");
        }
        whole
    }

    fn part(boundary: &str, head: &str, content: &str) -> String {
        format!("--{boundary}\r\n{head}\r\n\r\n{content}\r\n")
    }

    const NAMED: &str = "multipart/form-data; boundary=xyz";

    #[tokio::test]
    async fn files_of_any_field_are_taken_and_text_fields_are_read_over() {
        let body = [
            part("xyz", "Content-Disposition: form-data; name=\"metadata\"", "{}"),
            part("xyz", "content-disposition: form-data; name=\"file\"; filename=\"a.png\"", "one"),
            part("xyz", "Content-Disposition: form-data; name=\"filename\"", "recording"),
            part(
                "xyz",
                "Content-Disposition: form-data; name=\"files[]\"; filename=\"blob\"\r\n\
                 Content-Type: video/webm;codecs=vp8,opus",
                "two\r\n--xy\r\n",
            ),
            part(
                "xyz",
                "Content-Disposition: form-data; name=\"gks_image\"\r\nContent-Type: image/png",
                "",
            ),
            "--xyz--".to_owned(),
        ];
        let seen = read_all(NAMED, body.concat().as_bytes()).await.unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            seen,
            [
                (text("a.png"), None, b"one".to_vec()),
                (text("blob"), text("video/webm;codecs=vp8,opus"), b"two\r\n--xy\r\n".to_vec()),
                (None, text("image/png"), Vec::new()),
            ]
        );
    }

    #[tokio::test]
    async fn multipart_line_beginning_with_boundary_is_content() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        let padding = " ".repeat(limits::FORM_PADDING_BYTES_MAX + 1);
        let longer = [
            "\r\n--xyz2\r\n",
            "\r\n--xyz\r",
            "\r\n--xyz-\r\n",
            "\r\n--xyz--2\r\n",
            "\r\n--xyz \t2\r\n",
            "\r\n--xyz\n",
            &*format!("\r\n--xyz{padding}\r\n"),
        ];
        for content in longer.map(|line| format!("one{line}two")) {
            let body = format!("{}--xyz--\r\n", part("xyz", head, &content));
            let seen = read_all(NAMED, body.as_bytes()).await.unwrap();
            assert_eq!(seen[0].2, content.as_bytes(), "{content:?}");
        }
        for end in
            ["--xyz--", "--xyz--\r", "--xyz--\n", "--xyz-- \t\r\nepilogue", "--xyz--\r\n--xyz\r\n"]
        {
            let body = format!("preamble\r\n--xyz2\r\n{}{end}", part("xyz", head, "one"));
            let seen = read_all(NAMED, body.as_bytes()).await.unwrap();
            assert_eq!((seen.len(), &*seen[0].2), (1, &b"one"[..]), "{end:?}");
        }
        let unnamed = "--xyz\r\n\r\nno headers\r\n--xyz--";
        assert_eq!(read_all(NAMED, unnamed.as_bytes()).await.unwrap(), []);
    }

    #[tokio::test]
    async fn boundary_is_detected_from_the_first_line() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        for boundary in ["----WebKitFormBoundaryabc", "x", "odd--", &*"y".repeat(70)] {
            let body = format!("{}--{boundary}--", part(boundary, head, "one"));
            let seen = read_all("multipart/form-data", body.as_bytes()).await.unwrap();
            assert_eq!(seen.len(), 1, "{boundary}");
            assert_eq!(seen[0].2, b"one");
        }
        for odd in ["no boundary\r\n", "--\r\n", "--a\u{e4}\r\n", "--x", &*"-".repeat(200)] {
            let refusal = read_all("multipart/form-data", odd.as_bytes()).await.unwrap_err();
            assert_eq!(refusal.code(), "bad_form", "{odd}");
        }
        assert_eq!(read_all("multipart/form-data", b"").await.unwrap_err().code(), "no_file");
    }

    #[tokio::test]
    async fn form_without_a_file_yields_none() {
        let empty_input = "Content-Disposition: form-data; name=\"file\"; filename=\"\"\r\n\
            Content-Type: application/octet-stream";
        for body in [
            "--xyz--\r\n".to_owned(),
            format!("{}--xyz--\r\n", part("xyz", empty_input, "")),
            format!(
                "{}--xyz--\r\n",
                part("xyz", "Content-Disposition: form-data; name=\"a\"", "b")
            ),
        ] {
            assert_eq!(read_all(NAMED, body.as_bytes()).await.unwrap(), [], "{body}");
            assert_eq!(
                read_all("multipart/form-data", body.as_bytes()).await.unwrap(),
                [],
                "{body}"
            );
        }
    }

    #[tokio::test]
    async fn unread_file_part_is_skipped() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        let large = "x".repeat(100_000);
        let body = format!("{}{}--xyz--", part("xyz", head, &large), part("xyz", head, "two"));
        let body = Scripted::pieces(body.as_bytes(), 1_000);
        let mut form = FormFiles::open(&headers(NAMED), body, limits(1 << 20)).await.unwrap();
        assert!(form.next_file().await.unwrap().is_some());
        let mut second = form.next_file().await.unwrap().unwrap();
        assert_eq!(second.chunk().await.unwrap().as_deref(), Some(&b"two"[..]));
        drop(second);
        assert!(form.next_file().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn small_parts_do_not_buffer_the_next_body() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        let small = part("xyz", head, "one").repeat(50);
        let body = format!("{small}{}--xyz--", part("xyz", head, &"x".repeat(200_000)));
        let left = Arc::new(AtomicU64::new(body.len() as u64));
        let body = Counted { body: Scripted::pieces(body.as_bytes(), 1_000), left: left.clone() };
        let mut form = FormFiles::open(&headers(NAMED), body, limits(1 << 20)).await.unwrap();
        for _ in 0..50 {
            form.next_file().await.unwrap().unwrap();
        }
        assert!(left.load(Ordering::Relaxed) > 198_000, "{left:?}");
    }

    /// Body that reports how many of its chunks are unread.
    struct Counted {
        body: Scripted,
        left: Arc<AtomicU64>,
    }

    impl Body for Counted {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
            let bytes = frame.iter().flatten().filter_map(|frame| frame.data_ref()).map(Bytes::len);
            self.left.fetch_sub(bytes.sum::<usize>() as u64, Ordering::Relaxed);
            Poll::Ready(frame)
        }
    }

    #[tokio::test]
    async fn non_multipart_body_is_rejected() {
        for content_type in
            ["text/plain", "application/json", "multipart/mixed; boundary=a", "x", ""]
        {
            let refusal = read_all(content_type, b"--a--").await.unwrap_err();
            assert_eq!(
                (refusal.status().as_u16(), refusal.code()),
                (415, "unsupported_media_type")
            );
        }
    }

    #[tokio::test]
    async fn truncated_form_is_an_error() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        let whole = format!("{}--xyz--", part("xyz", head, "content"));
        for end in 6..whole.len() - 2 {
            let refusal = read_all(NAMED, &whole.as_bytes()[..end]).await.unwrap_err();
            assert_eq!(
                (refusal.status().as_u16(), refusal.code()),
                (400, "incomplete_body"),
                "{end}"
            );
        }
        let broken = Scripted::pieces(&whole.as_bytes()[..80], 80).then(Step::Break);
        assert_eq!(read(NAMED, broken, 1 << 20).await.unwrap_err().code(), "incomplete_body");
        let stalled = Scripted::pieces(&whole.as_bytes()[..80], 80).then(Step::Stall);
        assert_eq!(read(NAMED, stalled, 1 << 20).await.unwrap_err().status(), 408);
    }

    #[tokio::test]
    async fn oversized_form_is_rejected_while_streaming() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
        let body = format!("{}--xyz--", part("xyz", head, &"x".repeat(1_000)));
        let refusal = read(NAMED, Scripted::pieces(body.as_bytes(), 100), 500).await.unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.code()), (413, "file_too_large"));
    }

    #[tokio::test]
    async fn heads_fields_and_files_have_bounds() {
        let field = part("xyz", "Content-Disposition: form-data; name=\"a\"", "b");
        let file = part("xyz", "Content-Disposition: form-data; name=\"a\"; filename=\"b\"", "c");
        let large_field =
            part("xyz", "Content-Disposition: form-data; name=\"a\"", &"x".repeat(70_000));
        let long_head = part("xyz", &format!("X: {}", "y".repeat(200_000)), "c");
        let preamble = "z".repeat(200_000);
        for (body, code) in [
            (field.repeat(100), None),
            (field.repeat(101), Some("bad_form")),
            (file.repeat(100), None),
            (file.repeat(101), Some("too_many_files")),
            (large_field, Some("bad_form")),
            (long_head, Some("bad_form")),
            (preamble, Some("bad_form")),
        ] {
            let body = format!("{body}--xyz--");
            for piece_bytes in [1_000, 60_000] {
                let seen =
                    read(NAMED, Scripted::pieces(body.as_bytes(), piece_bytes), 1 << 20).await;
                assert_eq!(seen.err().map(|refusal| refusal.code()), code, "{}", &body[..60]);
            }
        }
    }
}
