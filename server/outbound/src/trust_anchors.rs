//! Trusted certification authorities for outbound TLS connections.
//!
//! Mozilla's list, compiled in, and those that the operator adds. Compiled in, because the list of the machine may be
//! missing where nothing is installed; it ages with the binary. Non-goals: reading files; connections.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Certification authorities in addition to Mozilla's. Invalid certificates are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustAnchors(Vec<CertificateDer<'static>>);

/// Reason why a text contains no authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchorError(String);

impl TrustAnchors {
    /// Parses certificates in PEM, at least one.
    pub fn parse(pem: &[u8]) -> Result<Self, TrustAnchorError> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|why| TrustAnchorError(why.to_string()))?;
        if certificates.is_empty() {
            return Err(TrustAnchorError("it contains no certificate".into()));
        }
        for certificate in &certificates {
            let added = RootCertStore::empty().add(certificate.clone());
            added.map_err(|why| TrustAnchorError(why.to_string()))?;
        }
        Ok(Self(certificates))
    }

    /// Returns a client configuration for TLS 1.2 and 1.3 that trusts these authorities.
    pub fn client(&self) -> Result<Arc<ClientConfig>, TrustAnchorError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(self.0.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|why| TrustAnchorError(why.to_string()))?;
        let mut client = builder.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(client))
    }
}

impl fmt::Display for TrustAnchorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TrustAnchorError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_without_certificate_is_rejected() {
        for bad in [
            &b""[..],
            b"hello",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            b"-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n",
        ] {
            assert!(TrustAnchors::parse(bad).is_err());
        }
        assert_eq!(TrustAnchors::default().client().unwrap().alpn_protocols, [b"http/1.1"]);
    }
}
