//! Multipart forms: chunking of the body has no effect on the result, and written forms are parsed back.
//!
//! The first bytes of the input choose the chunks. Three properties. Any body, read in chunks of any size, gives the
//! same files and the same error as when read at once, and no more bytes than it has. A form written from the input's
//! parts gives exactly its files, unless it has too many text fields. While it is read, no more of the body is consumed
//! than one chunk beyond the bytes handed out, plus what precedes the next file.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use protocol::limits::{FORM_FIELDS_MAX, FORM_FILES_MAX};
use protocol::multipart::FormFiles;
use protocol::request_body::BodyLimits;

use crate::choice_sequence::ChoiceSequence;

/// Boundary of the written forms; arbitrary bodies are parsed with it, too.
const BOUNDARY: &str = "xyz";
/// Polls allowed per input byte: a form that takes more counts as a hang.
const POLLS_MAX: usize = 64;

/// Checks the properties.
pub fn run(input: &[u8]) {
    let mut choices = ChoiceSequence::new(input);
    let named = choices.byte().is_multiple_of(2);
    let pieces: Vec<usize> = (0..4).map(|_| 1 + choices.below(41)).collect();
    any_body(choices.clone().remaining(), &pieces, named);
    written(&mut choices, &pieces, named);
}

/// One file: its name, its declared type, its content.
type File = (Option<String>, Option<String>, Vec<u8>);

/// Files of a form, or the error code.
type Outcome = Result<Vec<File>, &'static str>;

fn any_body(body: &[u8], pieces: &[usize], named: bool) {
    let whole = read(body, &[body.len().max(1)], named, |_, _, _| {});
    assert_eq!(read(body, pieces, named, |_, _, _| {}), whole, "in pieces of {pieces:?}");
    if let Ok(files) = whole {
        assert!(files.len() <= FORM_FILES_MAX);
        let bytes: usize = files.iter().map(|(_, _, content)| content.len()).sum();
        assert!(bytes <= body.len());
    }
}

fn written(choices: &mut ChoiceSequence<'_>, pieces: &[usize], named: bool) {
    let mut body = Vec::new();
    let mut files: Vec<File> = Vec::new();
    // Offset of each file's content in the body.
    let mut starts = Vec::new();
    let mut fields = 0;
    while !choices.is_exhausted() && files.len() < FORM_FILES_MAX / 4 {
        let shape = choices.byte();
        let name = choices.one_of(&["a.png", "b c", "\u{65e5}\u{672c}.webp", "q%22", "x"]);
        let end = format!("\r\n--{BOUNDARY}");
        let content = choices.short_bytes().repeat(1 + usize::from(shape) / 32);
        if content.windows(end.len()).any(|window| window == end.as_bytes()) {
            continue;
        }
        body.extend_from_slice(format!("--{BOUNDARY}\r\n").as_bytes());
        let is_file = !shape.is_multiple_of(4);
        let mut head = "Content-Disposition: form-data; name=\"f\"".to_owned();
        if is_file {
            head += &format!("; filename=\"{name}\"");
        }
        let kind = (shape % 4 == 3).then_some("image/png");
        if let Some(kind) = kind {
            head += &format!("\r\nContent-Type: {kind}");
        }
        body.extend_from_slice(format!("{head}\r\n\r\n").as_bytes());
        if is_file {
            starts.push(body.len());
            let name = name.replace("%22", "\"");
            files.push((Some(name), kind.map(str::to_owned), content.clone()));
        } else {
            fields += 1;
        }
        body.extend_from_slice(&content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    let piece_max = pieces.iter().max().copied().unwrap_or(1);
    let seen = read(&body, pieces, named, |file, bytes, taken| {
        // A possible start of the boundary is held back, together with the chunk that follows.
        let ahead_max = piece_max + 2 * (BOUNDARY.len() + 8);
        let handed_out = starts[file] + bytes;
        assert!(taken <= handed_out + ahead_max, "{taken} of the body for {handed_out}");
    });
    let is_refused = fields > FORM_FIELDS_MAX;
    assert_eq!(seen, if is_refused { Err("bad_form") } else { Ok(files) });
}

/// Reads a form; `watch` receives the number of the file, the bytes of it handed out, and the bytes of the body
/// consumed so far.
fn read(
    body: &[u8],
    pieces: &[usize],
    named: bool,
    watch: impl Fn(usize, usize, usize),
) -> Outcome {
    let taken = SharedCount::default();
    let mut headers = HeaderMap::new();
    let kind = if named { "multipart/form-data; boundary=xyz" } else { "multipart/form-data" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let polls_max = 100 + POLLS_MAX * body.len();
    let body = Pieces::of(body, pieces, &taken);
    let mut files: Vec<File> = Vec::new();
    let done = finish(polls_max, async {
        let mut form = FormFiles::open(&headers, body, BodyLimits::new(1 << 20)).await?;
        while let Some(mut file) = form.next_file().await? {
            let text = |value: Option<&str>| value.map(str::to_owned);
            let number = files.len();
            files.push((text(file.file_name()), text(file.declared_type()), Vec::new()));
            while let Some(chunk) = file.chunk().await? {
                assert!(!chunk.is_empty(), "a piece of nothing");
                files[number].2.extend_from_slice(&chunk);
                watch(number, files[number].2.len(), taken.load(Ordering::Relaxed));
            }
        }
        Ok::<(), protocol::error::ApiError>(())
    });
    match done {
        Ok(()) => Ok(files),
        Err(refusal) => {
            assert!(refusal.status().is_client_error(), "{refusal:?}");
            Err(refusal.code())
        }
    }
}

/// Polls to completion: the future waits for nothing but its own next step.
fn finish<T>(polls_max: usize, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls_max {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("no end after {polls_max} polls")
}

/// Shared counter; the form requires a body that is `Send`.
type SharedCount = Arc<AtomicUsize>;

/// A body that arrives in chunks and counts the consumed bytes.
struct Pieces {
    left: VecDeque<Bytes>,
    taken: SharedCount,
}

impl Pieces {
    fn of(body: &[u8], pieces: &[usize], taken: &SharedCount) -> Self {
        let mut rest = body;
        let mut left = VecDeque::new();
        for piece in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at((*piece).min(rest.len()));
            left.push_back(Bytes::copy_from_slice(piece));
            rest = behind;
        }
        Self { left, taken: taken.clone() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.pop_front();
        if let Some(piece) = &piece {
            self.taken.fetch_add(piece.len(), Ordering::Relaxed);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}
