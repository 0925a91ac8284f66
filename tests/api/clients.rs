//! Real clients: each test sends the bytes of a client and reads the response fields that the client reads. Clients 2
//! and 4, one file each.
//!
//! The bytes of curl, python-requests, node-fetch, axios and Node were recorded; those of the others follow their
//! source. Requests are written here as text: a line break is CRLF on the wire, and text in angle brackets is filled
//! in.

mod axios;
mod body_cam;
mod browser;
mod curl;
mod fxserver;
mod gksphone;
mod lb_phone;
mod node;
mod node_fetch;
mod npwd;
mod python_requests;
mod qbx_properties;
mod screencapture;
mod screenshot_basic;
mod sharex;
mod tus_js;
mod wasabi;
mod zipline;

use listener::options::ConnectionOptions;
use serde_json::Value;
use tests::wire::{Listening, Wire};
use tests::world::PUBLIC_URL;
use tests::{Client, Reply, World};

const WEBP: &[u8] = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const WEBM: &[u8] = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\x82\x84webm";
const OGG: &[u8] =
    b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\x02\x03\x04\0\0\0\0\x05\x06\x07\x08\x01\x13OpusHead\x01";

/// A listening service with the bucket `photos` and the phone's bucket `phone`, and a key to both.
struct Service {
    world: World,
    client: Client,
    listening: Listening,
}

/// Separator before the body of a request.
const BODY: &str = "\n\n";

impl Service {
    async fn start() -> Self {
        let (world, client) = World::with_bucket(1);
        world.phone_bucket("ann", "phone");
        let listening = world.listen(ConnectionOptions::new()).await;
        Self { world, client, listening }
    }

    /// Sends a request on a connection of its own: `<key>`, `<length>` of the body, and `<content>` are filled in.
    async fn request(&self, request: &str, content: &[u8]) -> Reply {
        let mut wire = self.listening.send("").await;
        self.request_on(&mut wire, request, content).await
    }

    /// Sends a request on an existing connection.
    async fn request_on(&self, wire: &mut Wire, request: &str, content: &[u8]) -> Reply {
        wire.write(self.filled(request, content)).await;
        if request.starts_with("HEAD ") {
            wire.read_response_to_head().await
        } else {
            wire.read_response().await
        }
    }

    /// Sends an upload that must be answered with exactly 200, and checks the content at the link in the response.
    /// Returns the key.
    async fn upload(&self, request: &str, content: &[u8], read: &str, kind: &str) -> String {
        let reply = self.request(request, content).await;
        assert_eq!(reply.status, 200, "{request}: {}", reply.text());
        assert_eq!(reply.header("content-type"), "application/json", "{request}");
        assert_eq!(reply.header("access-control-allow-origin"), "*", "{request}");
        let reply = reply.json();
        self.check_link(field(&reply, read), content, kind).await;
        reply["key"].as_str().unwrap().to_owned()
    }

    /// Checks that the link delivers the content to anonymous clients, with its type.
    async fn check_link(&self, link: &Value, content: &[u8], kind: &str) {
        let link = link.as_str().unwrap_or_else(|| panic!("no link: {link}"));
        let path = link.strip_prefix(PUBLIC_URL).unwrap_or_else(|| panic!("not ours: {link}"));
        let stored = self.world.anonymous().get(path).await;
        assert_eq!(stored.status, 200, "{link}: {}", stored.text());
        assert_eq!(stored.body, content, "{link}");
        assert_eq!(stored.header("content-type"), kind, "{link}");
    }

    /// Returns the bytes of a request.
    fn filled(&self, request: &str, content: &[u8]) -> Vec<u8> {
        let (head, body) = request.split_once(BODY).expect("a request has a head");
        let body = match body.split_once("<content>") {
            Some((before, after)) => [&lines(before), content, &lines(after)].concat(),
            None => lines(body),
        };
        let head =
            head.replace("<key>", self.client.key()).replace("<length>", &body.len().to_string());
        [lines(&head), b"\r\n\r\n".to_vec(), body].concat()
    }
}

/// Returns the text with CRLF line breaks.
fn lines(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

/// Returns a field of a response, such as `data.0.url` or `files[0].url`.
fn field<'a>(answer: &'a Value, path: &str) -> &'a Value {
    let path = path.replace('[', ".").replace(']', "");
    path.split('.').fold(answer, |value, name| match name.parse::<usize>() {
        Ok(at) => &value[at],
        Err(_) => &value[name],
    })
}
