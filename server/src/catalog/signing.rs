//! The keys that sign presigned uploads, and what is remembered of tokens that were used.
//!
//! A key is made at the first start and lives in the store; every thirty days another takes its place. What an older
//! one signed stays good until it expires. That a token was used is one fact, put in the batch of its objects: it says
//! so until some time after the token would have expired anyway.
//! Promises: a token is used up together with the upload that it was for, or not at all, across races and crashes.
//! Never here: what a token says, and who may have one.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use engine::{Batch, FactName, NameError, Precondition};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use super::id::AccountId;
use super::presign::{Grant, SECRET_BYTES, TokenId, USED_PREFIX};
use super::record::{Stored, encode};
use super::{Catalog, CatalogError, base32};
use crate::limits;

/// The fact names of keys that sign start with this.
pub(super) const PREFIX: &str = "signing-key/";

/// A key that signs.
#[derive(Clone)]
pub(super) struct SigningKey {
    pub(super) number: u32,
    secret: [u8; SECRET_BYTES],
    created_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSigningKey {
    secret: String,
    created_ms: u64,
}

impl Stored for StoredSigningKey {
    const VERSION: u32 = 1;
}

impl SigningKey {
    pub(super) fn from_stored(number: &str, stored: StoredSigningKey) -> Result<Self, String> {
        let secret = base32::decode(&stored.secret).and_then(|secret| secret.try_into().ok());
        Ok(Self {
            number: number.parse().map_err(|_| "its name does not end in a number")?,
            secret: secret.ok_or("its secret is not 32 bytes long")?,
            created_ms: stored.created_ms,
        })
    }

    fn stored(&self) -> StoredSigningKey {
        StoredSigningKey { secret: base32::encode(&self.secret), created_ms: self.created_ms }
    }

    fn fact(&self) -> Result<FactName, NameError> {
        FactName::parse(&format!("{PREFIX}{:010}", self.number))
    }

    /// Kept apart from the signatures of grants by what precedes the text.
    fn device_mac(&self, signed: &str) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        Some(mac.chain_update(b"device\0").chain_update(signed))
    }
}

/// Nothing of a secret is printed, not even by accident.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.number)
    }
}

impl Catalog {
    /// Issues the id of a new grant.
    pub fn new_token_id(&self) -> TokenId {
        TokenId::issue(&*self.0.entropy)
    }

    /// The text that carries a grant. `None` while there is no key to sign with, because none could be stored.
    pub fn sign(&self, grant: &Grant) -> Option<String> {
        let tables = self.tables();
        let (number, key) = tables.signing_keys.last_key_value()?;
        Some(grant.signed(*number, &key.secret))
    }

    /// The grant that a text carries, when it was signed here. It may be expired, used up or worth nothing any more.
    pub fn grant(&self, text: &str) -> Option<Grant> {
        let tables = self.tables();
        let secret_of = |number| tables.signing_keys.get(&number).map(|key| key.secret);
        Grant::verified(text, secret_of)
    }

    /// The text by which a device is known again on which an account has signed in. `None` while there is no key.
    pub fn device_token(&self, account: &AccountId, id: Uuid) -> Option<String> {
        let tables = self.tables();
        let (number, key) = tables.signing_keys.last_key_value()?;
        let signed = format!("{number}.{account}.{}", id.simple());
        let mac = base32::encode(&key.device_mac(&signed)?.finalize().into_bytes());
        Some(format!("{signed}.{mac}"))
    }

    /// The id of the device that a text names, when the text was signed here for the account.
    pub fn known_device(&self, text: &str, account: &AccountId) -> Option<String> {
        let (signed, mac) = text.rsplit_once('.')?;
        let (number, rest) = signed.split_once('.')?;
        let (named, id) = rest.split_once('.')?;
        let tables = self.tables();
        let key = tables.signing_keys.get(&number.parse().ok()?)?;
        key.device_mac(signed)?.verify_slice(&base32::decode(mac)?).ok()?;
        (named == account.to_string()).then(|| id.to_owned())
    }

    /// Whether the token was used.
    pub fn is_used(&self, grant: &Grant) -> Result<bool, CatalogError> {
        Ok(self.0.store.fact(&grant.used_fact()?)?.is_some())
    }

    /// A batch that uses the token up, and fails when it is used already. The objects go into the same batch.
    pub fn using_up(grant: &Grant) -> Result<Batch, CatalogError> {
        let fact = grant.used_fact()?;
        let batch = Batch::new().require(Precondition::FactAbsent(fact.clone()));
        Ok(batch.put_fact(fact, Bytes::from_static(b"{}")))
    }

    /// Makes a key that signs where there is none, or where the last one has signed for long enough; forgets those
    /// whose last signature has expired long ago.
    pub fn renew_signing_keys(&self) -> Result<(), CatalogError> {
        let _changing = self.change();
        let now_ms = self.0.clock.unix_ms();
        let keys: Vec<SigningKey> = self.tables().signing_keys.values().cloned().collect();
        let mut batch = Batch::new();
        // A key has signed nothing since the next one was made.
        let followed = keys.iter().zip(keys.iter().skip(1));
        let is_over =
            |next: &SigningKey| is_past(next.created_ms, limits::SIGNING_KEY_REST, now_ms);
        let over: Vec<&SigningKey> =
            followed.filter(|(_, next)| is_over(next)).map(|(key, _)| key).collect();
        for key in &over {
            batch = batch.delete_fact(key.fact()?);
        }
        let next = match keys.last() {
            Some(last) if !is_past(last.created_ms, limits::SIGNING_KEY_LIFE, now_ms) => None,
            last => {
                let mut secret = [0; SECRET_BYTES];
                self.0.entropy.fill(&mut secret);
                let number = last.map_or(0, |last| last.number) + 1;
                Some(SigningKey { number, secret, created_ms: now_ms })
            }
        };
        if let Some(key) = &next {
            let fact = key.fact()?;
            batch = batch.put_fact(fact.clone(), encode(&fact, &key.stored())?);
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.0.store.commit(batch)?;
        self.show(|tables| {
            for key in over {
                tables.signing_keys.remove(&key.number);
            }
            tables.signing_keys.extend(next.map(|key| (key.number, key)));
        });
        Ok(())
    }

    /// Forgets tokens that were used and have long expired, at most [`limits::USED_TOKENS_SWEPT_MAX`] of them; answers
    /// how many.
    pub fn sweep_used_tokens(&self) -> Result<usize, CatalogError> {
        let now_ms = self.0.clock.unix_ms();
        let oldest = self.0.store.facts(USED_PREFIX, None, limits::USED_TOKENS_SWEPT_MAX)?;
        let is_over = |fact: &FactName| {
            let rest = fact.as_str().strip_prefix(USED_PREFIX);
            let expires_ms = rest.and_then(|rest| rest.split('/').next()?.parse().ok());
            expires_ms.is_some_and(|at| is_past(at, limits::USED_TOKEN_KEPT, now_ms))
        };
        let over = oldest.into_iter().map(|(fact, _)| fact).filter(is_over);
        let (batch, count) = over
            .fold((Batch::new(), 0), |(batch, count), fact| (batch.delete_fact(fact), count + 1));
        if count > 0 {
            self.0.store.commit(batch)?;
        }
        Ok(count)
    }
}

fn is_past(since_ms: u64, time: Duration, now_ms: u64) -> bool {
    let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    now_ms >= since_ms.saturating_add(time_ms)
}
