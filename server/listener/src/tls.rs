//! TLS identity of the server: certificate chain and key, and the pair in current use.
//!
//! Guarantees: a certificate and key that do not match are rejected; TLS 1.2 and 1.3, without early data; a connection
//! keeps the pair that it started with. Non-goals: reading files; connections.

#[cfg(feature = "acme")]
mod alpn_challenge;
mod validity;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WantsServerCert;
use rustls::{ConfigBuilder, InconsistentKeys, ServerConfig};

#[cfg(feature = "acme")]
pub use self::alpn_challenge::{ACME_TLS_ALPN, AlpnChallenges, ChallengeError};
use self::validity::Validity;

/// ALPN name of HTTP/2.
pub const HTTP2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1.
pub const HTTP1: &[u8] = b"http/1.1";

/// Certificate chain, and the key of its first certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    chain: Arc<[CertificateDer<'static>]>,
    key: Arc<PrivateKeyDer<'static>>,
    config: Arc<ServerConfig>,
    validity: Option<Validity>,
}

/// Reason why a certificate chain and key are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// The certificates are invalid.
    Certificates(String),
    /// The key is invalid.
    Key(String),
}

/// Pair for new connections, replaceable at any time.
pub struct TlsConfigCell(ArcSwap<ServerConfig>);

impl TlsIdentity {
    /// Parses a chain, the server's own certificate first, and its key (PKCS #8, PKCS #1 or SEC 1), both in PEM.
    pub fn parse(certificates: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let bad_chain = |why: &dyn fmt::Display| CertificateError::Certificates(why.to_string());
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|why| bad_chain(&why))?;
        let Some(own) = chain.first() else {
            return Err(bad_chain(&"it contains no certificate"));
        };
        let validity = Validity::from_der(own);
        let bad_key = |why: &dyn fmt::Display| CertificateError::Key(why.to_string());
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| match why {
            pem::Error::NoItemsFound => bad_key(&"it contains no private key, or an encrypted one"),
            why => bad_key(&why),
        })?;
        let builder = builder().map_err(|why| bad_key(&why))?;
        let mut config =
            builder.with_single_cert(chain.clone(), key.clone_key()).map_err(|why| match why {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    bad_key(&"it does not match the first certificate")
                }
                rustls::Error::InvalidCertificate(_) => bad_chain(&why),
                why => bad_key(&why),
            })?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(|why| bad_key(&why))?;
        let (chain, key, config) = (chain.into(), Arc::new(key), Arc::new(config));
        Ok(Self { chain, key, config, validity })
    }

    /// Returns a warning about the validity period of the certificate, if any.
    pub fn warning(&self, now_ms: u64) -> Option<String> {
        self.validity.as_ref()?.warning(now_ms)
    }

    /// Returns the renewal time: a third of the lifetime before the end.
    #[cfg(feature = "acme")]
    pub(crate) fn renewal_ms(&self) -> u64 {
        self.validity.as_ref().map_or(0, Validity::renewal_ms)
    }

    /// Returns the end of the certificate's validity, in milliseconds since 1970.
    pub fn not_after_ms(&self) -> Option<u64> {
        self.validity.as_ref().map(Validity::not_after_ms)
    }

    /// Returns the end of the certificate's validity, formatted for display.
    pub fn not_after_text(&self) -> Option<String> {
        self.validity.as_ref().map(Validity::end)
    }
}

impl PartialEq for TlsIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key == other.key
    }
}

impl Eq for TlsIdentity {}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

impl TlsConfigCell {
    /// Creates the holder with a pair.
    pub fn new(identity: &TlsIdentity) -> Self {
        Self(ArcSwap::new(identity.config.clone()))
    }

    /// Replaces the pair for new connections; existing connections keep theirs.
    pub fn replace(&self, identity: &TlsIdentity) {
        self.0.store(identity.config.clone());
    }

    /// Returns the configuration for the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.load_full()
    }
}

/// Returns a builder for TLS 1.2 and 1.3 without client certificates.
fn builder() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    Ok(builder.with_safe_default_protocol_versions()?.with_no_client_auth())
}

impl fmt::Debug for TlsConfigCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConfigCell")
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificates(why) | Self::Key(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CertificateError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatched_certificate_and_key_are_rejected() {
        let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let locked =
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for bad in
            [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n"]
        {
            let refused = TlsIdentity::parse(bad, key).unwrap_err();
            assert!(matches!(refused, CertificateError::Certificates(_)), "{refused:?}");
        }
        for bad in [&b""[..], b"hello", key, locked] {
            let refused = TlsIdentity::parse(certificate, bad).unwrap_err();
            assert!(matches!(refused, CertificateError::Key(_)), "{refused:?}");
        }
    }
}
