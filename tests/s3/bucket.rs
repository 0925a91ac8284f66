//! A server with a private bucket `photos`, and a connection whose requests are signed by a key of its owner.

use std::process::Command;

use tests::commands::run;
use tests::{Response, SignedConnection};

use crate::place::{Keys, Place};

pub(crate) fn signed(place: &Place) -> SignedConnection {
    let (id, secret) = (&place.keys.id, &place.keys.secret);
    SignedConnection::connect(place.server.address(), id, secret).unwrap()
}

pub(crate) struct Bucket {
    pub(crate) place: Place,
    connection: SignedConnection,
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let place = Place::new();
        let connection = signed(&place);
        Self { place, connection }
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        self.connection.send(method, address, headers, body.as_bytes()).unwrap()
    }

    pub(crate) fn get(&mut self, address: &str, headers: &[(&str, &str)]) -> Response {
        self.send("GET", address, headers, "")
    }

    pub(crate) fn put(&mut self, address: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let answer = self.send("PUT", address, headers, body);
        assert_eq!(answer.status, 200, "PUT {address} {headers:?}: {}", answer.text());
        answer
    }

    /// Sends a `GET` request without a signature.
    pub(crate) fn anonymous(&self, address: &str) -> Response {
        self.place.server.get(address)
    }

    /// Returns a connection whose requests are signed by another key of the owner, created with these arguments.
    pub(crate) fn with_key(&self, arguments: &[&str]) -> SignedConnection {
        let keys = Keys::make(&self.place.data, arguments);
        SignedConnection::connect(self.place.server.address(), &keys.id, &keys.secret).unwrap()
    }

    /// Returns status and code of a rejection.
    pub(crate) fn refusal(
        &mut self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
    ) -> (u16, String) {
        let body = if method == "PUT" { "other" } else { "" };
        outcome(&self.send(method, address, headers, body))
    }
}

/// Returns the content of the first element of this name.
pub(crate) fn element(answer: &Response, name: &str) -> Option<String> {
    let body = answer.text();
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    Some(rest.split_once('<')?.0.to_owned())
}

/// Returns the status, and the code of a rejection.
pub(crate) fn outcome(answer: &Response) -> (u16, String) {
    (answer.status, element(answer, "Code").unwrap_or_default())
}

/// Returns the id of the version that a response is about.
pub(crate) fn version_of(answer: &Response) -> String {
    let id = answer.header("x-amz-version-id").to_owned();
    assert!(!id.is_empty(), "{} {}", answer.status, answer.text());
    id
}

/// Returns the time in so many seconds, as in XML.
pub(crate) fn time_in(seconds: u64) -> String {
    let date = format!("-d+{seconds} seconds");
    run(Command::new("date").args(["-u", &date, "+%Y-%m-%dT%H:%M:%SZ"])).stdout.trim().to_owned()
}

pub(crate) fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Uploads parts with this content; returns the address and the body of the request that completes the upload.
pub(crate) fn upload_parts(
    bucket: &mut Bucket,
    address: &str,
    parts: &[&str],
    more: &[(&str, &str)],
) -> (String, String) {
    let begun = bucket.send("POST", &format!("{address}?uploads"), more, "");
    let id = element(&begun, "UploadId").unwrap();
    let mut body = "<CompleteMultipartUpload>".to_owned();
    for (at, part) in parts.iter().enumerate() {
        let number = at + 1;
        let part = bucket.put(&format!("{address}?partNumber={number}&uploadId={id}"), &[], part);
        let etag = part.header("etag");
        body += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
    }
    body += "</CompleteMultipartUpload>";
    (format!("{address}?uploadId={id}"), body)
}
