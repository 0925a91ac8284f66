//! Encoding of the server's facts: JSON in an envelope with the version of the record.
//!
//! Guarantees: `decode` is the inverse of `encode`; a record of a newer version, or an invalid one, is an error that
//! names the fact. Non-goals: meaning of records.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use engine::FactName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::CatalogError;
use super::change::split;

/// Record of the server, which is its own stored form.
pub(super) trait Record: Serialize + DeserializeOwned + PartialEq {
    /// Version that this build writes and reads.
    const VERSION: u32 = 1;

    /// Completes a decoded record by the name of its fact, without the prefix, and checks it.
    fn named(self, _name: &str) -> Result<Self, String> {
        Ok(self)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<R> {
    version: u32,
    record: R,
}

/// Part that has the same form in every version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

pub(super) fn encode<R: Record>(fact: &FactName, record: &R) -> Result<Bytes, CatalogError> {
    let envelope = Envelope { version: R::VERSION, record };
    let text = serde_json::to_vec(&envelope).map_err(|error| corrupt_record(fact, &error))?;
    Ok(Bytes::from(text))
}

pub(super) fn decode<R: Record>(fact: &FactName, bytes: &[u8]) -> Result<R, CatalogError> {
    let parsed: Result<Envelope<R>, _> = serde_json::from_slice(bytes);
    let version = match &parsed {
        Ok(envelope) => Ok(envelope.version),
        // A record of another version may have another form.
        Err(_) => serde_json::from_slice(bytes).map(|it: Version| it.version),
    };
    let version = version.map_err(|error| corrupt_record(fact, &error))?;
    if version != R::VERSION {
        return Err(CatalogError::CorruptRecord {
            fact: fact.clone(),
            why: format!(
                "record version {version} is not supported; this build reads version {}",
                R::VERSION
            ),
        });
    }
    let envelope = parsed.map_err(|error| corrupt_record(fact, &error))?;
    envelope.record.named(split(fact).1).map_err(|why| corrupt_record(fact, &why))
}

pub(super) fn corrupt_record(fact: &FactName, why: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::CorruptRecord { fact: fact.clone(), why: why.to_string() }
}
