//! TLS-ALPN-01 challenge certificates (RFC 8737): for each name a certificate that is served only to the certification
//! authority's validation.
//!
//! Guarantees: a client without the ACME protocol never gets a challenge certificate. Non-goals: the challenges.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{HTTP1, HTTP2, TlsConfigCell, TlsIdentity, builder};

/// ALPN protocol of the validation. Nothing else is spoken on such a connection.
pub const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// Challenge certificates by name.
#[derive(Clone, Debug, Default)]
pub struct AlpnChallenges(HashMap<String, Arc<CertifiedKey>>);

/// Error of creating a challenge certificate.
#[derive(Debug)]
pub struct ChallengeError(String);

/// Certificate resolver with challenge certificates.
#[derive(Debug)]
struct ChallengeResolver {
    certificate: Option<Arc<CertifiedKey>>,
    proofs: AlpnChallenges,
}

impl AlpnChallenges {
    /// Adds a challenge certificate for a name, in lower case, with the digest of the key authorization.
    pub fn add(&mut self, name: &str, digest: &[u8]) -> Result<(), ChallengeError> {
        let mut params =
            CertificateParams::new(vec![name.to_owned()]).map_err(ChallengeError::of)?;
        params.distinguished_name = DistinguishedName::new();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate().map_err(ChallengeError::of)?;
        let proof = params.self_signed(&key).map_err(ChallengeError::of)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        self.0.insert(name.to_owned(), certified(&[proof.der().clone()], &key)?);
        Ok(())
    }
}

impl TlsConfigCell {
    /// Creates the holder without a certificate: no connection is accepted.
    pub fn without_identity() -> Result<Self, ChallengeError> {
        Ok(Self(arc_swap::ArcSwap::new(server_config(None, AlpnChallenges::default())?)))
    }

    /// Serves the challenge certificates to validations, and this pair to all other clients.
    pub fn with_challenges(
        &self,
        own: Option<&TlsIdentity>,
        proofs: &AlpnChallenges,
    ) -> Result<(), ChallengeError> {
        self.0.store(server_config(own, proofs.clone())?);
        Ok(())
    }
}

fn server_config(
    own: Option<&TlsIdentity>,
    proofs: AlpnChallenges,
) -> Result<Arc<ServerConfig>, ChallengeError> {
    let own = own.map(|own| certified(&own.chain, &own.key)).transpose()?;
    let builder = builder().map_err(ChallengeError::of)?;
    let mut config =
        builder.with_cert_resolver(Arc::new(ChallengeResolver { certificate: own, proofs }));
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec(), ACME_TLS_ALPN.to_vec()];
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(ChallengeError::of)?;
    Ok(Arc::new(config))
}

fn certified(
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, ChallengeError> {
    let key = rustls::crypto::ring::sign::any_supported_type(key).map_err(ChallengeError::of)?;
    // Skips the usability check: the critical extension of a challenge certificate is unknown to the library.
    Ok(Arc::new(CertifiedKey::new(chain.to_vec(), key)))
}

impl ResolvesServerCert for ChallengeResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.alpn().is_some_and(|asked| asked.eq([ACME_TLS_ALPN])) {
            return self.proofs.0.get(&hello.server_name()?.to_ascii_lowercase()).cloned();
        }
        self.certificate.clone()
    }
}

impl ChallengeError {
    fn of(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for ChallengeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChallengeError {}

#[cfg(test)]
mod tests {
    use rustls::client::danger::HandshakeSignatureValid;
    use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{
        ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConnection,
        SignatureScheme,
    };

    use super::*;

    #[derive(Debug)]
    struct Anybody;

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
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            rustls::crypto::ring::default_provider()
                .signature_verification_algorithms
                .supported_schemes()
        }
    }

    /// Returns the certificate served for this SNI name and these ALPN protocols.
    fn seen(tls: &TlsConfigCell, name: &str, protocols: &[&[u8]]) -> Option<Vec<u8>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().dangerous();
        let mut config =
            builder.with_custom_certificate_verifier(Arc::new(Anybody)).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut server = ServerConnection::new(tls.config()).unwrap();
        while client.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut &bytes[..]).unwrap();
            server.process_new_packets().ok()?;
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut &bytes[..]).unwrap();
            client.process_new_packets().ok()?;
        }
        client.peer_certificates().map(|chain| chain[0].to_vec())
    }

    #[test]
    fn alpn_challenge_is_selected_by_sni() {
        let tls = TlsConfigCell::without_identity().unwrap();
        assert_eq!(seen(&tls, "a.example", &[HTTP2, HTTP1]), None);
        let (digest, mut proofs) = ([7; 32], AlpnChallenges::default());
        proofs.add("a.example", &digest).unwrap();
        tls.with_challenges(None, &proofs).unwrap();
        let proof = seen(&tls, "A.example", &[ACME_TLS_ALPN]).unwrap();
        // RFC 8737 section 3: id-pe-acmeIdentifier, critical, an octet string in an octet string.
        let extension =
            [&[6, 8, 0x2b, 6, 1, 5, 5, 7, 1, 31, 1, 1, 0xff, 4, 34, 4, 32][..], &digest[..]];
        assert!(proof.windows(49).any(|bytes| bytes == extension.concat()));
        for (name, protocols) in [
            ("b.example", &[ACME_TLS_ALPN][..]),
            ("a.example", &[HTTP2, ACME_TLS_ALPN]),
            ("a.example", &[HTTP1]),
            ("a.example", &[]),
        ] {
            assert_eq!(seen(&tls, name, protocols), None, "{name}");
        }

        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let own = own.self_signed(&key).unwrap();
        let identity = TlsIdentity::parse(own.pem().as_bytes(), key.serialize_pem().as_bytes());
        tls.with_challenges(Some(&identity.unwrap()), &proofs).unwrap();
        assert_eq!(seen(&tls, "a.example", &[HTTP2, HTTP1]).unwrap(), own.der().to_vec());
        assert_eq!(seen(&tls, "a.example", &[]).unwrap(), own.der().to_vec());
        assert_eq!(seen(&tls, "a.example", &[ACME_TLS_ALPN]).unwrap(), proof);
    }
}
