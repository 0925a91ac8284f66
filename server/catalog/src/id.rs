//! Record ids: 16 random letters and digits, with a type for each kind of record.
//!
//! Non-goals: existence of the record.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use engine::FactName;
use engine::name::NameError;
use engine::rng::Rng;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::base32;

/// Permanent id of a record; not secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id<K>(Arc<str>, PhantomData<K>);

/// Kind of record that an id names.
pub trait IdKind {
    /// Prefix of the fact names of such records; the id follows.
    const PREFIX: &'static str;
}

/// Declares the ids of each kind of record, with their marker and the prefix of their fact names.
macro_rules! id_kinds {
    ($($(#[$doc:meta])* $id:ident $kind:ident $prefix:literal;)*) => {
        $(
            $(#[$doc])*
            pub type $id = Id<$kind>;

            #[doc = concat!("Marker of [`", stringify!($id), "`].")]
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub enum $kind {}

            impl IdKind for $kind {
                const PREFIX: &'static str = $prefix;
            }
        )*
    };
}

id_kinds! {
    /// Id of an account.
    AccountId OfAccount "account/";
    /// Id of an API key.
    ApiKeyId OfApiKey "apikey/";
    /// Id of an organisation.
    OrganisationId OfOrganisation "organisation/";
    /// Id of a webhook.
    WebhookId OfWebhook "webhook/";
    /// Id of a session; distinct from its secret.
    SessionId OfSession "session/";
    /// Id of a job.
    JobId OfJob "job/";
    /// Id of a shared link; distinct from its secret.
    SharedLinkId OfSharedLink "link/";
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

    /// Returns the id of a record whose name is not set yet; see [`Record::named`](super::record::Record::named).
    pub(super) fn unnamed() -> Self {
        Self("".into(), PhantomData)
    }
}

impl<K: IdKind> Id<K> {
    pub(super) fn fact(&self) -> Result<FactName, NameError> {
        self.fact_at(K::PREFIX)
    }

    /// Returns the fact of another record about the same subject.
    pub(super) fn fact_at(&self, prefix: &str) -> Result<FactName, NameError> {
        FactName::parse(&format!("{prefix}{self}"))
    }

    /// Parses the id in a fact name or a record.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let kind = K::PREFIX.trim_end_matches('/');
        Self::parse(text).ok_or_else(|| format!("invalid {kind} id {text:?}"))
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de, K: IdKind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::read(&String::deserialize(from)?).map_err(D::Error::custom)
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
