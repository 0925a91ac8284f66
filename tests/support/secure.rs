//! TLS for tests: a certificate authority made for one test, its certificates, and clients that trust it alone.
//!
//! Non-goals: the traffic over a connection.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use listener::tls::{TlsConfigCell, TlsIdentity};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Reply;

/// Subject name of every certificate of the tests.
pub const NAME: &str = "localhost";
/// Timeout for every wait of a test.
const SOON: Duration = Duration::from_secs(15);

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
pub struct Pair {
    pub certificates: String,
    pub key: String,
}

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Now,
    /// Expired.
    Before,
}

/// A connection of HTTP/2.
pub struct Http2 {
    pub sender: SendRequest<Bytes>,
    /// Completes when the connection ends.
    pub driver: JoinHandle<Result<(), h2::Error>>,
}

impl Authority {
    /// Creates an authority.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().expect("a key is made");
        Self(CertifiedIssuer::self_signed(params, key).expect("it vouches for itself"))
    }

    /// Issues another certificate for [`NAME`].
    pub fn pair(&self, holds: Holds) -> Pair {
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
        if holds == Holds::Before {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().expect("a key is made");
        let own = params.signed_by(&key, &self.0).expect("it is vouched for");
        Pair { certificates: own.pem() + &self.pem(), key: key.serialize_pem() }
    }

    /// Returns the authority's own certificate.
    pub fn pem(&self) -> String {
        self.0.as_ref().pem()
    }

    /// Returns the TLS configuration of a listening server.
    pub fn server(&self) -> Arc<TlsConfigCell> {
        Arc::new(TlsConfigCell::new(&self.pair(Holds::Now).identity()))
    }

    /// Opens a TLS connection that offers these ALPN protocols.
    pub async fn connect(
        &self,
        address: SocketAddr,
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.as_ref().der().clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("TLS is there");
        let mut client = builder.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(client)).connect(name, stream).await
    }

    /// Opens an HTTP/2 connection.
    pub async fn http2(&self, address: SocketAddr) -> Http2 {
        self.http2_with(address, &h2::client::Builder::new()).await
    }

    /// Opens an HTTP/2 connection with the given settings.
    pub async fn http2_with(&self, address: SocketAddr, builder: &h2::client::Builder) -> Http2 {
        let io = self.connect(address, &[b"h2"]).await.expect("TLS is agreed on");
        assert_eq!(io.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) = builder.handshake(io).await.expect("HTTP/2 is spoken");
        Http2 { sender, driver: tokio::spawn(connection) }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    pub fn identity(&self) -> TlsIdentity {
        TlsIdentity::parse(self.certificates.as_bytes(), self.key.as_bytes()).expect("it is a pair")
    }

    /// Writes both as files, each replaced atomically, and the key readable by its owner alone.
    pub fn write(&self, certificates: &Path, key: &Path) {
        use std::os::unix::fs::PermissionsExt;
        for (path, text, mode) in
            [(certificates, &self.certificates, 0o644), (key, &self.key, 0o600)]
        {
            let temporary = path.with_extension("new");
            std::fs::write(&temporary, text).expect("a file can be written");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&temporary, mode).expect("it is ours");
            std::fs::rename(&temporary, path).expect("it is in place");
        }
    }
}

impl Http2 {
    /// Builds a request without its body.
    pub fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(format!("https://{NAME}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("the request is well-formed")
    }

    /// Sends a request and waits for its complete response.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, h2::Error> {
        self.send_request(Self::request(method, path, headers), body).await
    }

    pub async fn send_request(
        &self,
        request: Request<()>,
        body: Bytes,
    ) -> Result<Reply, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut stream) = sender.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            // A server that rejects early reads no more of it.
            let _ = stream.send_data(body, true);
        }
        let answer = tokio::time::timeout(SOON, answer).await.expect("an answer comes")?;
        let (head, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        while let Some(piece) = tokio::time::timeout(SOON, body.data()).await.expect("it goes on") {
            let piece = piece?;
            let _ = body.flow_control().release_capacity(piece.len());
            bytes.extend_from_slice(&piece);
        }
        Ok(Reply { status: head.status, headers: head.headers, body: bytes.into() })
    }

    pub async fn get(&self, path: &str) -> Result<Reply, h2::Error> {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }
}
