//! Requests for objects, in the protocol of each server.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::trug::{self, BUCKET};
use tests::signed::{RequestSigner, amz_date};

/// Maximum number of names in a page of a listing.
pub(crate) const PAGE: usize = 1_000;
/// Age of a signer at which its time is renewed: servers accept 15 minutes.
const SIGNER_AGE_MAX: Duration = Duration::from_secs(300);

/// First and last byte of a range.
pub(crate) type ByteRange = (u64, u64);

/// Protocol of a server for objects. All methods return heads of requests on keep-alive connections.
pub(crate) trait ObjectApi {
    /// Returns the bytes of the request body of a put before and after the content.
    fn frame(&self) -> (&'static str, &'static str) {
        ("", "")
    }

    /// Returns the put of an object, with a request body of so many bytes.
    fn put(&self, name: &str, body_bytes: usize) -> String;

    /// Returns the GET of an object, or of a range of it.
    fn get(&self, name: &str, range: Option<ByteRange>) -> String;

    /// Returns the GET of a page of the names in a folder, after a name in it; `None` if the server has no pages.
    fn list(&self, folder: &str, after: &str) -> Option<String>;
}

/// Plain HTTP: PUT and GET of paths, with the same header in all requests of a kind.
pub(crate) struct PlainApi {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    /// Path of the folder of all objects.
    pub(crate) path: String,
    /// Credential, as a whole header line with its end; empty if there is none. GETs of objects have none.
    pub(crate) credential: String,
    /// Whether the folder lists its names as a container of Swift does.
    pub(crate) lists: bool,
}

impl ObjectApi for PlainApi {
    fn put(&self, name: &str, body_bytes: usize) -> String {
        let Self { address, path, credential, .. } = self;
        format!(
            "PUT {path}/{name} HTTP/1.1\r\nHost: {address}\r\n{credential}\
             Content-Length: {body_bytes}\r\n\r\n"
        )
    }

    fn get(&self, name: &str, range: Option<ByteRange>) -> String {
        get(self.address, &format!("{}/{name}", self.path), &range_header(range))
    }

    fn list(&self, folder: &str, after: &str) -> Option<String> {
        let path = format!(
            "{}?format=json&limit={PAGE}&prefix={folder}/&marker={folder}/{after}",
            self.path
        );
        self.lists.then(|| get(self.address, &path, &self.credential))
    }
}

/// HTTP API of trug: uploads as forms, GETs of a public bucket without a key.
pub(crate) struct TrugApi {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    /// API key.
    pub(crate) key: String,
}

impl ObjectApi for TrugApi {
    fn frame(&self) -> (&'static str, &'static str) {
        trug::FORM
    }

    fn put(&self, name: &str, body_bytes: usize) -> String {
        trug::form_head(self.address, &format!("/{BUCKET}/{name}"), &self.key, body_bytes)
    }

    fn get(&self, name: &str, range: Option<ByteRange>) -> String {
        get(self.address, &format!("/{BUCKET}/{name}"), &range_header(range))
    }

    fn list(&self, folder: &str, after: &str) -> Option<String> {
        let path = format!(
            "/api/list-objects?bucketName={BUCKET}&prefix={folder}/&startAfter={folder}/{after}\
             &maxKeys={PAGE}"
        );
        let key = format!("Authorization: Bearer {}\r\n", self.key);
        Some(get(self.address, &path, &key))
    }
}

/// S3, signed with Version 4, payloads unsigned. Buckets are in the path.
pub(crate) struct S3Api {
    address: SocketAddr,
    host: String,
    credentials: [String; 2],
    region: &'static str,
    signer: RefCell<(Instant, RequestSigner)>,
}

impl S3Api {
    /// Creates the API with the ID of a key and its secret.
    pub(crate) fn new(address: SocketAddr, credentials: [String; 2], region: &'static str) -> Self {
        let signer = RefCell::new((Instant::now(), signer(&credentials, region)));
        Self { address, host: address.to_string(), credentials, region, signer }
    }

    fn request(&self, method: &str, path: &str, more: &str) -> String {
        let mut signer = self.signer.borrow_mut();
        if signer.0.elapsed() > SIGNER_AGE_MAX {
            *signer = (Instant::now(), self::signer(&self.credentials, self.region));
        }
        let added = signer.1.headers(method, path, &[("host", &self.host)]);
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{more}", self.address);
        for (name, value) in added {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

impl ObjectApi for S3Api {
    fn put(&self, name: &str, body_bytes: usize) -> String {
        let length = format!("Content-Length: {body_bytes}\r\n");
        self.request("PUT", &format!("/{BUCKET}/{name}"), &length)
    }

    fn get(&self, name: &str, range: Option<ByteRange>) -> String {
        self.request("GET", &format!("/{BUCKET}/{name}"), &range_header(range))
    }

    fn list(&self, folder: &str, after: &str) -> Option<String> {
        let path = format!(
            "/{BUCKET}?list-type=2&max-keys={PAGE}&prefix={folder}%2F\
             &start-after={folder}%2F{after}"
        );
        Some(self.request("GET", &path, ""))
    }
}

fn signer([id, secret]: &[String; 2], region: &str) -> RequestSigner {
    RequestSigner::new(id, secret, region, &amz_date())
}

/// Returns a GET with these further header lines.
pub(crate) fn get(address: SocketAddr, path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n")
}

fn range_header(range: Option<ByteRange>) -> String {
    range.map_or_else(String::new, |(first, last)| format!("Range: bytes={first}-{last}\r\n"))
}

/// Returns a script for `wrk` that sends these requests in turn.
pub(crate) fn script(requests: &[String]) -> String {
    let literals: Vec<String> = requests.iter().map(|it| format!("{it:?}")).collect();
    format!(
        "local requests = {{\n{}\n}}\n\
         local number = 0\n\
         request = function()\n\
         \x20 number = number % #requests + 1\n\
         \x20 return requests[number]\n\
         end\n",
        literals.join(",\n")
    )
}
