//! Encoding of the server's facts: JSON in an envelope with the version of the record.
//!
//! Guarantees: `decode` is the inverse of `encode`; a record of a newer version, or an invalid one, is an error that
//! names the fact. Non-goals: meaning of records.

use bytes::Bytes;
use engine::FactName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::CatalogError;
use super::change::split;

/// Record in memory, which has a stored form.
pub(super) trait Record: Sized {
    type Stored: CatalogRecord;

    /// Returns the stored form.
    fn stored(&self) -> Self::Stored;

    /// Restores the record from the name that follows the prefix of its fact, and its stored form.
    fn from_stored(name: &str, stored: Self::Stored) -> Result<Self, String>;
}

/// Record in its stored form.
pub(super) trait CatalogRecord: Serialize + DeserializeOwned {
    /// Version that this build writes and reads.
    const VERSION: u32 = 1;
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<R> {
    version: u32,
    record: R,
}

/// Parsed first: only this part has the same form in every version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

pub(super) fn encode<R: CatalogRecord>(fact: &FactName, record: &R) -> Result<Bytes, CatalogError> {
    let envelope = Envelope { version: R::VERSION, record };
    let text = serde_json::to_vec(&envelope).map_err(|error| corrupt_record(fact, &error))?;
    Ok(Bytes::from(text))
}

pub(super) fn decode<R: CatalogRecord>(fact: &FactName, bytes: &[u8]) -> Result<R, CatalogError> {
    let Version { version } =
        serde_json::from_slice(bytes).map_err(|error| corrupt_record(fact, &error))?;
    if version != R::VERSION {
        return Err(CatalogError::CorruptRecord {
            fact: fact.clone(),
            why: format!(
                "record version {version} is not supported; this build reads version {}",
                R::VERSION
            ),
        });
    }
    let envelope: Envelope<R> =
        serde_json::from_slice(bytes).map_err(|error| corrupt_record(fact, &error))?;
    Ok(envelope.record)
}

/// Decodes the record of a fact.
pub(super) fn read<R: Record>(fact: &FactName, bytes: &[u8]) -> Result<R, CatalogError> {
    let record = R::from_stored(split(fact).1, decode(fact, bytes)?);
    record.map_err(|why| corrupt_record(fact, &why))
}

pub(super) fn corrupt_record(fact: &FactName, why: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::CorruptRecord { fact: fact.clone(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Note {
        text: String,
    }

    impl CatalogRecord for Note {
        const VERSION: u32 = 2;
    }

    #[test]
    fn record_round_trips_and_corruption_names_it() {
        let fact = FactName::parse("note/a").unwrap();
        let note = Note { text: "hello".into() };
        let bytes = encode(&fact, &note).unwrap();
        assert_eq!(&bytes[..], br#"{"version":2,"record":{"text":"hello"}}"#);
        assert_eq!(decode::<Note>(&fact, &bytes).unwrap(), note);
        for bad in [
            &br#"{"version":3,"record":{"text":"hello"}}"#[..],
            br#"{"version":2,"record":{"text":"hello","more":1}}"#,
            br#"{"version":2}"#,
            b"",
            b"\xff",
        ] {
            let error = decode::<Note>(&fact, bad).unwrap_err();
            assert!(error.to_string().contains("note/a"), "{error}");
        }
    }
}
