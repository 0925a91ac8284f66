//! URL list: one URL per line, optionally followed by the key of its file.
//!
//! Empty lines and those that start with `#` are comments. Without a key, a file has the decoded path of its URL as its
//! key. Guarantees: a line of any length takes bounded memory; a stalled pipe is distinguished from the end. Non-goals:
//! requests.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use percent_encoding::percent_decode_str;
use protocol::destination::OutboundUrl;

use crate::archive::limits::IMPORT_LINE_BYTES_MAX;

/// URL list that is being read.
pub(super) struct UrlList<R> {
    input: BufReader<R>,
    /// Partial line.
    line: Vec<u8>,
    number: u64,
    has_ended: bool,
}

/// Next item of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UrlListEntry {
    Url {
        name: Vec<u8>,
        address: OutboundUrl,
        key: Vec<u8>,
    },
    Refused {
        name: Vec<u8>,
        why: String,
    },
    /// No data available yet.
    Pending,
    End,
}

impl<R: Read> UrlList<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), number: 0, has_ended: false }
    }

    /// Returns the next URL.
    pub(super) fn next(&mut self) -> io::Result<UrlListEntry> {
        loop {
            if !self.read_line()? {
                return Ok(UrlListEntry::Pending);
            }
            if self.has_ended && self.line.is_empty() {
                return Ok(UrlListEntry::End);
            }
            self.number += 1;
            let line = std::mem::take(&mut self.line);
            let line = match self.number {
                1 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
                _ => &line,
            };
            let line = line.trim_ascii();
            if !line.is_empty() && !line.starts_with(b"#") {
                return Ok(self.read(line));
            }
        }
    }

    /// Reads to the end of a line, or of the list. Returns false if no data is available yet.
    fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let read = match self.input.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            let (part, used) = match end {
                Some(end) => (read.get(..end).unwrap_or_default(), end + 1),
                None => (read, read.len()),
            };
            // One byte beyond the limit marks the line as too long.
            let room = (IMPORT_LINE_BYTES_MAX + 1).saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            self.has_ended = read.is_empty();
            self.input.consume(used);
            if end.is_some() || self.has_ended {
                return Ok(true);
            }
        }
    }

    fn read(&self, line: &[u8]) -> UrlListEntry {
        let split = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (address, key) = line.split_at(split);
        // The query may contain a secret.
        let shown = address.split(|byte| *byte == b'?').next().unwrap_or_default();
        let name = [format!("line {}, ", self.number).as_bytes(), shown].concat();
        if line.len() > IMPORT_LINE_BYTES_MAX {
            return UrlListEntry::Refused { name, why: "the line is too long".to_owned() };
        }
        let parsed = str::from_utf8(address).map_err(|_| "is not UTF-8".to_owned());
        let parsed = parsed.and_then(|it| OutboundUrl::parse(it).map_err(|why| why.to_string()));
        let address = match parsed {
            Ok(address) => address,
            Err(why) => return UrlListEntry::Refused { name, why: format!("the URL {why}") },
        };
        let key = match key.trim_ascii() {
            b"" => {
                let path = address.path().path().trim_start_matches('/');
                percent_decode_str(path).collect()
            }
            key => key.to_vec(),
        };
        if key.is_empty() {
            let why = "the URL names no file: add a key after it".to_owned();
            return UrlListEntry::Refused { name, why };
        }
        UrlListEntry::Url { name, address, key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that yields a byte at a time, and would block in between.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            match self.1 {
                true => Err(ErrorKind::WouldBlock.into()),
                false => self.0.read(buffer.get_mut(..1).unwrap_or_default()),
            }
        }
    }

    /// Collects names, with keys or reasons.
    fn all(source: impl Read) -> Vec<(String, String)> {
        let mut list = UrlList::new(source);
        let mut all = Vec::new();
        loop {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            all.push(match list.next().unwrap() {
                UrlListEntry::Url { name, key, .. } => (text(name), text(key)),
                UrlListEntry::Refused { name, why } => (text(name), why),
                UrlListEntry::Pending => continue,
                UrlListEntry::End => return all,
            });
        }
    }

    #[test]
    fn url_list_line_has_a_url_and_optional_key() {
        let list = "\u{feff}# from the old site\r\n\r\nhttps://a.example/x%20y/z.jpg?sig=secret\r\n\
                    \t http://a.example/b.jpg \t c d.jpg \n  # more\nftp://a/x\nhttp://a.example/\n\
                    http://a.example/last";
        let expected = [
            ("line 3, https://a.example/x%20y/z.jpg", "x y/z.jpg"),
            ("line 4, http://a.example/b.jpg", "c d.jpg"),
            ("line 6, ftp://a/x", "the URL must start with http:// or https://"),
            ("line 7, http://a.example/", "the URL names no file: add a key after it"),
            ("line 8, http://a.example/last", "last"),
        ];
        let expected = expected.map(|(name, other)| (name.to_owned(), other.to_owned()));
        assert_eq!(all(list.as_bytes()), expected);
        assert_eq!(all(Slow(list.as_bytes(), false)), expected);
        assert_eq!(all(&b""[..]), []);
        assert_eq!(all(&b"\n"[..]), []);
    }

    #[test]
    fn overlong_url_list_line_is_rejected() {
        let long = io::repeat(b'x').take(10 * IMPORT_LINE_BYTES_MAX as u64);
        let mut list = UrlList::new(long.chain(&b"\nhttp://a.example/x"[..]));
        let UrlListEntry::Refused { why, .. } = list.next().unwrap() else { panic!("it is taken") };
        assert_eq!(why, "the line is too long");
        assert!(list.line.capacity() <= 2 * IMPORT_LINE_BYTES_MAX, "{}", list.line.capacity());
        assert!(matches!(list.next().unwrap(), UrlListEntry::Url { .. }));
        assert_eq!(list.next().unwrap(), UrlListEntry::End);
        assert!(matches!(all(&b"\xff\xfe"[..]).as_slice(), [(_, why)] if why.contains("UTF-8")));
    }
}
