//! Certificate verification of `trug health`.
//!
//! A server found by its settings runs on the same machine and is addressed by an IP address, which no certificate
//! contains; nothing secret is sent, and only the health is read, so any certificate is accepted. A server addressed
//! by `--url` must present a valid certificate.

use std::sync::Arc;

use outbound::trust_anchors::{TrustAnchorError, TrustAnchors};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// Certificates that are accepted.
pub(super) enum Trust {
    /// Any certificate.
    AnyCertificate,
    /// Certificates issued by a trusted authority.
    Vouched(TrustAnchors),
}

impl Trust {
    /// Returns a TLS 1.2 and 1.3 client configuration with this policy.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, TrustAnchorError> {
        match self {
            Self::Vouched(roots) => roots.client(),
            Self::AnyCertificate => {
                let mut client = ClientConfig::clone(&*TrustAnchors::default().client()?);
                let anybody = AcceptAnyCertificate(ring::default_provider());
                client.dangerous().set_certificate_verifier(Arc::new(anybody));
                Ok(Arc::new(client))
            }
        }
    }
}

/// Verifier that accepts any certificate whose private key the server has.
#[derive(Debug)]
struct AcceptAnyCertificate(CryptoProvider);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
