//! A client that signs requests as S3 clients do and exposes raw responses: statuses and headers that SDKs hide.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::commands::run;
use crate::{Connection, Response};

/// A connection whose requests are signed with Version 4, over all of their headers.
pub struct SignedConnection {
    connection: Connection,
    address: SocketAddr,
    host: String,
    key_id: String,
    secret: String,
    region: String,
}

impl SignedConnection {
    pub fn connect(address: SocketAddr, key_id: &str, secret: &str) -> std::io::Result<Self> {
        Ok(Self {
            connection: Connection::connect(address)?,
            address,
            host: address.to_string(),
            key_id: key_id.to_owned(),
            secret: secret.to_owned(),
            region: "us-east-1".to_owned(),
        })
    }

    /// Returns the same connection; its requests use this host.
    #[must_use]
    pub fn with_host(self, host: &str) -> Self {
        let connection = self.connection.with_host(host);
        Self { connection, host: host.to_owned(), ..self }
    }

    /// Returns the same connection; its requests are signed for this region.
    #[must_use]
    pub fn with_region(self, region: &str) -> Self {
        Self { region: region.to_owned(), ..self }
    }

    /// Sends a request; the path is escaped, and the query is also sorted by name.
    pub fn send(
        &mut self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        let signer = RequestSigner::new(&self.key_id, &self.secret, &self.region, &amz_date());
        let mut all = headers.to_vec();
        all.push(("host", &self.host));
        let added = signer.headers(method, address, &all);
        // The connection sends the host itself.
        all.pop();
        all.extend(added.iter().map(|(name, value)| (*name, &**value)));
        let answer = self.connection.send(method, address, &all, body)?;
        if answer.header("connection") == "close" {
            self.connection = Connection::connect(self.address)?.with_host(&self.host);
        }
        Ok(answer)
    }
}

/// Signs requests with Version 4 for one time: a request is valid for 15 minutes.
pub struct RequestSigner {
    key_id: String,
    key: Vec<u8>,
    scope: String,
    time: String,
}

impl RequestSigner {
    /// Creates the signer of these credentials; the time is that of `x-amz-date`.
    pub fn new(key_id: &str, secret: &str, region: &str, time: &str) -> Self {
        let date = &time[..8];
        let first = format!("AWS4{secret}").into_bytes();
        let key =
            [date, region, "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part));
        let scope = format!("{date}/{region}/s3/aws4_request");
        Self { key_id: key_id.to_owned(), key, scope, time: time.to_owned() }
    }

    /// Returns the headers to add to a request: time, unsigned payload, and the signature over these and the given
    /// headers, of which `host` must be one. The path is escaped, and the query is also sorted by name.
    pub fn headers(
        &self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
    ) -> [(&'static str, String); 3] {
        let mut all = headers.to_vec();
        all.extend([("x-amz-date", &*self.time), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")]);
        let authorization = self.authorization(method, address, all);
        [
            ("x-amz-date", self.time.clone()),
            ("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned()),
            ("authorization", authorization),
        ]
    }

    fn authorization(&self, method: &str, address: &str, mut headers: Vec<(&str, &str)>) -> String {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let query: Vec<_> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
            .collect();
        headers.sort_unstable();
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let (names, query) = (names.join(";"), query.join("&"));
        let mut canonical = format!("{method}\n{path}\n{query}\n");
        for (name, value) in &headers {
            let _ = writeln!(canonical, "{name}:{value}");
        }
        let _ = write!(canonical, "\n{names}\nUNSIGNED-PAYLOAD");
        let (time, scope, id) = (&self.time, &self.scope, &self.key_id);
        let hash = hex(&Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
        let signature = hex(&mac(&self.key, &to_sign));
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a policy document of a form in base64, and its signature.
pub fn signed_policy(secret: &str, date: &str, document: &str) -> (String, String) {
    let policy = STANDARD.encode(document);
    let first = format!("AWS4{secret}").into_bytes();
    let key =
        [date, "us-east-1", "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &policy));
    (policy, signature)
}

/// Returns a policy document of a form in base64, and its signature by Signature Version 2.
pub fn policy_signed_by_v2(secret: &str, document: &str) -> (String, String) {
    let policy = STANDARD.encode(document);
    let mut mac =
        Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(policy.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    (policy, signature)
}

/// Returns the current time as in `x-amz-date`.
pub fn amz_date() -> String {
    let time = run(Command::new("date").args(["-u", "+%Y%m%dT%H%M%SZ"])).stdout;
    time.trim().to_owned()
}
