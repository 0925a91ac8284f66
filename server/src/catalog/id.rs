//! The ids of records: 16 letters and digits, made by chance, of a type of their own for each kind of record.
//!
//! Never here: whether there is such a record.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use engine::{Entropy, FactName, NameError};

use super::base32;

/// Names a record for ever; not secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id<K>(Arc<str>, PhantomData<K>);

/// The id of an account.
pub type AccountId = Id<OfAccount>;
/// The id of an API key.
pub type ApiKeyId = Id<OfApiKey>;
/// The id of an organisation.
pub type OrganisationId = Id<OfOrganisation>;

/// The id of a webhook.
pub type WebhookId = Id<OfWebhook>;
/// The id of a session; its secret is something else.
pub type SessionId = Id<OfSession>;

/// The id of a job.
pub type JobId = Id<OfJob>;

/// What ids of one kind name.
pub trait Kind {
    /// The fact names of such records start with this; the id follows.
    const PREFIX: &'static str;
}

/// Marks the id of an account.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfAccount {}

/// Marks the id of an API key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfApiKey {}

/// Marks the id of an organisation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfOrganisation {}

/// Marks the id of a webhook.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfWebhook {}

/// Marks the id of a job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfJob {}

/// Marks the id of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OfSession {}

impl Kind for OfAccount {
    const PREFIX: &'static str = "account/";
}

impl Kind for OfApiKey {
    const PREFIX: &'static str = "apikey/";
}

impl Kind for OfOrganisation {
    const PREFIX: &'static str = "organisation/";
}

impl Kind for OfJob {
    const PREFIX: &'static str = "job/";
}

impl Kind for OfWebhook {
    const PREFIX: &'static str = "webhook/";
}

impl Kind for OfSession {
    const PREFIX: &'static str = "session/";
}

/// 80 bits: two alike are not to be expected, and none is guessed.
const ID_BYTES: usize = 10;
const ID_CHARS: usize = 16;

impl<K> Id<K> {
    pub(super) fn issue(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; ID_BYTES];
        entropy.fill(&mut bytes);
        Self(base32::encode(&bytes).into(), PhantomData)
    }

    /// Checks the form of an id; says nothing about whether there is such a record.
    pub fn parse(id: &str) -> Option<Self> {
        (id.len() == ID_CHARS && base32::is(id)).then(|| Self(id.into(), PhantomData))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<K: Kind> Id<K> {
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
    use engine::SeededEntropy;

    use super::*;

    #[test]
    fn an_id_is_read_back_and_anything_else_is_none() {
        let id = AccountId::issue(&SeededEntropy::new(1));
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
