//! Signing keys of presigned uploads, and records of used tokens.
//!
//! A key is generated at the first start and stored; it is rotated every thirty days. Signatures of an older key stay
//! valid until they expire. A used token is one fact, stored in the batch of its objects until some time after the
//! token would have expired anyway. Guarantees: a token is used up together with its upload, or not at all, across
//! races and crashes. Non-goals: content of tokens, and authorization.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use engine::name::NameError;
use engine::{Batch, FactName, Precondition};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use super::change::{Table, split};
use super::grant::{Grant, SECRET_BYTES, TokenId, USED_PREFIX};
use super::id::AccountId;
use super::record::{Record, decode};
use super::{CatalogError, SharedLink, Tokens, base32};
use crate::limits;

/// Prefix of the fact names of signing keys.
pub(super) const PREFIX: &str = "signing-key/";
/// Purposes of signed texts.
const DEVICE: &str = "device";
const UNLOCK: &str = "unlock";

/// Signing keys by number; the last one signs.
#[derive(Debug, Default)]
pub(super) struct SigningKeyTable(BTreeMap<u32, SigningKey>);

/// Signing key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SigningKey {
    #[serde(skip)]
    pub(super) number: u32,
    #[serde(with = "base32")]
    secret: [u8; SECRET_BYTES],
    created_ms: u64,
}

impl Record for SigningKey {
    fn named(self, name: &str) -> Result<Self, String> {
        let number = name.parse().map_err(|_| "its name does not end in a number")?;
        Ok(Self { number, ..self })
    }
}

impl SigningKey {
    fn fact(&self) -> Result<FactName, NameError> {
        FactName::parse(&format!("{PREFIX}{:010}", self.number))
    }

    /// Returns the MAC of a text for a purpose, which separates these signatures from each other and from grants.
    fn mac(&self, purpose: &str, signed: &str) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        Some(mac.chain_update(purpose).chain_update(b"\0").chain_update(signed))
    }
}

/// Prints nothing, so that a key is never logged by accident.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.number)
    }
}

impl Grant {
    /// Returns a batch that uses the token up, and fails if it is already used. The objects are added to the same
    /// batch.
    pub fn redeem(&self) -> Result<Batch, CatalogError> {
        let fact = self.used_fact()?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        Ok(batch.put_fact(fact, Bytes::from_static(b"{}")))
    }
}

impl Table for SigningKeyTable {
    const PREFIXES: &'static [&'static str] = &[PREFIX];

    fn apply(&mut self, fact: &FactName, value: Option<&[u8]>) -> Result<(), CatalogError> {
        if let Some(value) = value {
            let key: SigningKey = decode(fact, value)?;
            self.0.insert(key.number, key);
        } else if let Ok(number) = split(fact).1.parse() {
            self.0.remove(&number);
        }
        Ok(())
    }
}

impl Tokens<'_> {
    /// Issues the id of a new grant.
    pub fn new_id(&self) -> TokenId {
        TokenId::issue(&*self.0.state.rng)
    }

    /// Signs a grant. `None` while there is no key, because none could be stored.
    pub fn sign(&self, grant: &Grant) -> Option<String> {
        let keys = self.0.state.signing_keys.read();
        let (number, key) = keys.0.last_key_value()?;
        Some(grant.sign(*number, &key.secret))
    }

    /// Returns the grant of a text that was signed here. It may be expired, used up or no longer authorized.
    pub fn verify(&self, text: &str) -> Option<Grant> {
        let keys = self.0.state.signing_keys.read();
        let secret_of = |number| keys.0.get(&number).map(|key| key.secret);
        Grant::verify(text, secret_of)
    }

    /// Returns the token of a device on which an account has signed in. `None` while there is no key.
    pub fn device_token(&self, account: &AccountId, id: Uuid) -> Option<String> {
        self.sign_text(DEVICE, &format!("{account}.{}", id.simple()))
    }

    /// Returns the id of the device that a text names, if the text was signed here for the account.
    pub fn known_device(&self, text: &str, account: &AccountId) -> Option<String> {
        let signed = self.verify_text(DEVICE, text)?;
        let (named, id) = signed.split_once('.')?;
        (named == account.to_string()).then(|| id.to_owned())
    }

    /// Returns the token of a browser in which the password of a shared link was entered, valid until a time. `None`
    /// while there is no key.
    pub fn unlock_token(&self, link: &SharedLink, expires_ms: u64) -> Option<String> {
        let (id, version) = (&link.id, link.password_changed_ms);
        self.sign_text(UNLOCK, &format!("{id}.{version}.{expires_ms}"))
    }

    /// Returns whether a text is such a token of a link, and still valid.
    pub fn unlocks(&self, text: &str, link: &SharedLink) -> bool {
        let is_valid = |signed: &str| {
            let (named, expires_ms) = signed.rsplit_once('.')?;
            let expires_ms: u64 = expires_ms.parse().ok()?;
            let is_it = named == format!("{}.{}", link.id, link.password_changed_ms);
            Some(is_it && self.0.now_ms() < expires_ms)
        };
        self.verify_text(UNLOCK, text).and_then(is_valid).unwrap_or(false)
    }

    fn sign_text(&self, purpose: &str, text: &str) -> Option<String> {
        let keys = self.0.state.signing_keys.read();
        let (number, key) = keys.0.last_key_value()?;
        let signed = format!("{number}.{text}");
        let mac = base32::encode(&key.mac(purpose, &signed)?.finalize().into_bytes());
        Some(format!("{signed}.{mac}"))
    }

    /// Returns the text that was signed here for a purpose.
    fn verify_text<'t>(&self, purpose: &str, text: &'t str) -> Option<&'t str> {
        let (signed, mac) = text.rsplit_once('.')?;
        let (number, text) = signed.split_once('.')?;
        let keys = self.0.state.signing_keys.read();
        let key = keys.0.get(&number.parse().ok()?)?;
        key.mac(purpose, signed)?.verify_slice(&base32::decode(mac)?).ok()?;
        Some(text)
    }

    /// Returns whether the token was used.
    pub fn is_redeemed(&self, grant: &Grant) -> Result<bool, CatalogError> {
        Ok(self.0.state.store.fact(&grant.used_fact()?)?.is_some())
    }

    /// Generates a signing key if there is none, or if the last one is due for rotation; deletes those whose last
    /// signature expired long ago.
    pub fn renew_keys(&self) -> Result<(), CatalogError> {
        let mut change = self.0.begin();
        let now_ms = self.0.now_ms();
        let keys: Vec<SigningKey> = self.0.state.signing_keys.read().0.values().cloned().collect();
        // A key signs nothing after its successor is created.
        let followed = keys.iter().zip(keys.iter().skip(1));
        let is_over =
            |next: &SigningKey| is_past(next.created_ms, limits::SIGNING_KEY_GRACE_PERIOD, now_ms);
        for (key, _) in followed.filter(|(_, next)| is_over(next)) {
            change.delete(key.fact()?);
        }
        let last = keys.last();
        let is_due =
            |last: &SigningKey| is_past(last.created_ms, limits::SIGNING_KEY_LIFETIME, now_ms);
        if last.is_none_or(is_due) {
            let mut secret = [0; SECRET_BYTES];
            self.0.state.rng.fill(&mut secret);
            let number = last.map_or(0, |last| last.number) + 1;
            let key = SigningKey { number, secret, created_ms: now_ms };
            change.put(key.fact()?, &key)?;
        }
        change.commit_any()
    }

    /// Deletes used tokens that expired long ago, at most [`limits::USED_TOKENS_SWEPT_MAX`]; returns their number.
    pub fn sweep(&self) -> Result<usize, CatalogError> {
        let now_ms = self.0.now_ms();
        let oldest = self.0.state.store.facts(USED_PREFIX, None, limits::USED_TOKENS_SWEPT_MAX)?;
        let is_over = |fact: &FactName| {
            let rest = fact.as_str().strip_prefix(USED_PREFIX);
            let expires_ms = rest.and_then(|rest| rest.split('/').next()?.parse().ok());
            expires_ms.is_some_and(|at| is_past(at, limits::USED_TOKEN_RETENTION, now_ms))
        };
        let over = oldest.into_iter().map(|(fact, _)| fact).filter(is_over);
        let (batch, count) = over
            .fold((Batch::new(), 0), |(batch, count), fact| (batch.delete_fact(fact), count + 1));
        if count > 0 {
            self.0.state.store.commit(batch)?;
        }
        Ok(count)
    }
}

fn is_past(since_ms: u64, time: Duration, now_ms: u64) -> bool {
    now_ms >= since_ms.saturating_add(limits::millis(time))
}
