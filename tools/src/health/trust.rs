//! Whom `trug health` believes that it speaks with.
//!
//! Whoever asks a server by its settings asks on the machine that it runs on, by a number that no certificate names;
//! nothing that is secret is sent, and nothing is believed but that it is well. Whoever is asked by a name must prove
//! that it is theirs.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use server::roots::{BadRoots, ExtraRoots};

/// Who is believed.
pub(super) enum Trust {
    /// Whoever answers.
    Anybody,
    /// Those whom an authority vouches for.
    Vouched(ExtraRoots),
}

impl Trust {
    /// TLS 1.2 and 1.3 towards those who are believed.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, BadRoots> {
        match self {
            Self::Vouched(roots) => roots.client(),
            Self::Anybody => {
                let mut client = ClientConfig::clone(&*ExtraRoots::default().client()?);
                let anybody = Anybody(ring::default_provider());
                client.dangerous().set_certificate_verifier(Arc::new(anybody));
                Ok(Arc::new(client))
            }
        }
    }
}

/// Takes any certificate whose key the other side has.
#[derive(Debug)]
struct Anybody(CryptoProvider);

impl ServerCertVerifier for Anybody {
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
