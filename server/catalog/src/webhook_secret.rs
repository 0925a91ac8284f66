//! Webhook secret and signatures.
//!
//! Follows Standard Webhooks (github.com/standard-webhooks/standard-webhooks, "Signature scheme"): the secret is 32
//! random bytes, written `whsec_` and base64; the signed text is `<id>.<seconds>.<body>`, with HMAC-SHA256. Guarantees:
//! the secret is never printed by accident. Unlike that of an API key, it is stored in plain form, since it signs.
//!
//! Own code: `standardwebhooks` 1.0 signs only UTF-8 bodies and adds 25 kB: another base64, another HMAC, and `time`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::rng::Rng;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::stored_text::StoredText;

const SECRET_BYTES: usize = 32;
const PREFIX: &str = "whsec_";

/// Secret shared with the receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret([u8; SECRET_BYTES]);

impl WebhookSecret {
    pub(super) fn issue(rng: &dyn Rng) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        rng.fill(&mut bytes);
        Self(bytes)
    }

    /// Returns the secret as its owner holds it.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0))
    }

    /// Returns the value of `webhook-signature` for a message that is sent at this second.
    pub fn signature(&self, id: &str, unix_seconds: u64, body: &[u8]) -> Option<String> {
        // HMAC accepts keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{id}.{unix_seconds}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl StoredText for WebhookSecret {
    fn to_text(&self) -> String {
        self.text()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let bytes = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| "invalid webhook secret".to_owned())
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_signature_matches_known_vector() {
        // Computed with Python: hmac.new(bytes(range(32)), b"msg_1.1614265330.{}", "sha256").
        let secret = WebhookSecret(std::array::from_fn(|index| index as u8));
        let text = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(
            (secret.text().as_str(), WebhookSecret::from_text(text)),
            (text, Ok(secret.clone()))
        );
        let signature = secret.signature("msg_1", 1_614_265_330, b"{}").unwrap();
        assert_eq!(signature, "v1,ATSItIDsNRS9QdKP9XOi7h6JK2iXVz31FeOLrDMxCpU=");
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
        for bad in ["", "whsec_", "whsec_AAECAwQ=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
        {
            assert!(WebhookSecret::from_text(bad).is_err(), "{bad}");
        }
    }
}
