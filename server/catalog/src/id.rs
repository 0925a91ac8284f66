//! Record ids: 16 random letters and digits, with a type for each kind of record.
//!
//! Non-goals: existence of the record.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use engine::FactName;
use engine::name::NameError;
use engine::rng::Rng;

use super::base32;

/// Permanent id of a record; not secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id<K>(Arc<str>, PhantomData<K>);

/// Id of an account.
pub type AccountId = Id<OfAccount>;
/// Id of an API key.
pub type ApiKeyId = Id<OfApiKey>;
/// Id of an organisation.
pub type OrganisationId = Id<OfOrganisation>;

/// Id of a webhook.
pub type WebhookId = Id<OfWebhook>;
/// Id of a session; distinct from its secret.
pub type SessionId = Id<OfSession>;

/// Id of a job.
pub type JobId = Id<OfJob>;

/// Kind of record that an id names.
pub trait IdKind {
    /// Prefix of the fact names of such records; the id follows.
    const PREFIX: &'static str;
}

/// Marker of account ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfAccount {}

/// Marker of API key ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfApiKey {}

/// Marker of organisation ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfOrganisation {}

/// Marker of webhook ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfWebhook {}

/// Marker of job ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfJob {}

/// Marker of session ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfSession {}

impl IdKind for OfAccount {
    const PREFIX: &'static str = "account/";
}

impl IdKind for OfApiKey {
    const PREFIX: &'static str = "apikey/";
}

impl IdKind for OfOrganisation {
    const PREFIX: &'static str = "organisation/";
}

impl IdKind for OfJob {
    const PREFIX: &'static str = "job/";
}

impl IdKind for OfWebhook {
    const PREFIX: &'static str = "webhook/";
}

impl IdKind for OfSession {
    const PREFIX: &'static str = "session/";
}

/// 80 bits: collisions are not to be expected, and ids cannot be guessed.
const ID_BYTES: usize = 10;
const ID_CHARS: usize = 16;

impl<K> Id<K> {
    pub(super) fn issue(rng: &dyn Rng) -> Self {
        let mut bytes = [0; ID_BYTES];
        rng.fill(&mut bytes);
        Self(base32::encode(&bytes).into(), PhantomData)
    }

    /// Parses an id; the record need not exist.
    pub fn parse(id: &str) -> Option<Self> {
        (id.len() == ID_CHARS && base32::is_valid(id)).then(|| Self(id.into(), PhantomData))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<K: IdKind> Id<K> {
    pub(super) fn fact(&self) -> Result<FactName, NameError> {
        FactName::parse(&format!("{}{self}", K::PREFIX))
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use engine::rng::SeededRng;

    use super::*;

    #[test]
    fn id_round_trips_and_invalid_text_is_rejected() {
        let id = AccountId::issue(&SeededRng::new(1));
        assert_eq!(id.as_str().len(), ID_CHARS);
        assert_eq!(AccountId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(id.fact().unwrap().as_str(), format!("account/{id}"));
        for bad in
            ["", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaa0", "AAAAAAAAAAAAAAAA"]
        {
            assert_eq!(ApiKeyId::parse(bad), None, "{bad}");
        }
    }
}
