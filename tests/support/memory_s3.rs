//! S3 service in memory, on a file server, with faults: one bucket `pics`, addressed by path.
//!
//! Non-goals: signatures; multipart uploads; pages of listings.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

use crate::{File, FileHost, RequestedFile};

/// Fault of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3Fault {
    None,
    /// Accepts `If-None-Match` and ignores it.
    IgnoresConditions,
    /// Returns whole objects for ranges.
    IgnoresRanges,
}

type Objects = BTreeMap<String, Vec<u8>>;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const MODIFIED_XML: &str = "1994-11-06T08:49:37.000Z";

/// Starts a service.
pub fn memory_s3(fault: S3Fault) -> FileHost {
    let objects: Mutex<Objects> = Mutex::default();
    FileHost::start(move |request| answer(request, &objects, fault))
}

/// Starts a service without faults on a listener. `reject` may answer a request instead.
pub fn memory_s3_on(
    listener: TcpListener,
    reject: impl Fn(&RequestedFile) -> Option<File> + Send + Sync + 'static,
) -> FileHost {
    let objects: Mutex<Objects> = Mutex::default();
    FileHost::start_on(listener, move |request| {
        reject(request).unwrap_or_else(|| answer(request, &objects, S3Fault::None))
    })
}

fn answer(request: &RequestedFile, objects: &Mutex<Objects>, fault: S3Fault) -> File {
    let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let Some(key) = path.strip_prefix("/pics").map(|rest| rest.trim_start_matches('/')) else {
        return error(404, "NoSuchBucket");
    };
    match &*request.method {
        "GET" if query.contains("list-type=2") => listing(&objects, query),
        "PUT" => {
            let must_be_new = request.header("if-none-match") == "*";
            if must_be_new && fault != S3Fault::IgnoresConditions && objects.contains_key(key) {
                return error(412, "PreconditionFailed");
            }
            objects.insert(key.to_owned(), request.body.clone());
            File::of("").with("etag", "\"1\"")
        }
        "DELETE" => {
            objects.remove(key);
            File::of("").with_status(204)
        }
        _ => match objects.get(key) {
            Some(body) => object(request, body, fault),
            None => error(404, "NoSuchKey"),
        },
    }
}

/// Builds a response with an error in the XML of S3.
pub fn error(status: u16, code: &str) -> File {
    File::of(format!("<Error><Code>{code}</Code></Error>")).with_status(status)
}

fn object(request: &RequestedFile, body: &[u8], fault: S3Fault) -> File {
    let length = body.len();
    let range = request.header("range").strip_prefix("bytes=").and_then(|range| {
        let (from, to) = range.split_once('-')?;
        match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) => Some(from..(to + 1).min(length)),
            (Err(_), Ok(suffix)) => Some(length.saturating_sub(suffix)..length),
            _ => None,
        }
    });
    let file = match range.filter(|_| fault != S3Fault::IgnoresRanges) {
        Some(range) if range.start >= length => return error(416, "InvalidRange"),
        Some(range) => {
            let content_range = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            File::of(&body[range]).with_status(206).with("content-range", &content_range)
        }
        None if request.method == "HEAD" => {
            File::of("").with("Content-Length", &length.to_string())
        }
        None => File::of(body),
    };
    file.with("etag", "\"1\"").with("last-modified", MODIFIED)
}

fn listing(objects: &Objects, query: &str) -> File {
    let value = |name: &str| {
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        pair.unwrap_or_default().replace("%2F", "/").replace("%7E", "~")
    };
    let (prefix, after) = (value("prefix"), value("start-after"));
    let mut xml = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (key, body) in objects {
        if key.starts_with(&prefix) && *key > after {
            let bytes = body.len();
            xml.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>{MODIFIED_XML}</LastModified>\
                 <ETag>&quot;1&quot;</ETag><Size>{bytes}</Size></Contents>"
            ));
        }
    }
    File::of(xml + "</ListBucketResult>")
}
