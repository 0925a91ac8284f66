//! The last backup that was made whole: when, and where to.
//!
//! Never here: making one.

use engine::{Batch, FactName};
use serde::{Deserialize, Serialize};

use super::record::{Stored, decode, encode};
use super::{Catalog, CatalogError};

const FACT: &str = "last-backup";

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastBackup {
    pub at_ms: u64,
    /// The folder.
    pub to: String,
    /// The last record that is in it.
    pub last_lsn: u64,
    /// Places of damage in what was copied.
    pub damage_count: u64,
}

impl Stored for LastBackup {
    const VERSION: u32 = 1;
}

impl Catalog {
    /// Notes a backup.
    pub fn note_backup(&self, backup: &LastBackup) -> Result<(), CatalogError> {
        let fact = FactName::parse(FACT)?;
        let value = encode(&fact, backup)?;
        self.0.store.commit(Batch::new().put_fact(fact, value))?;
        Ok(())
    }

    /// The last backup, if there was one.
    pub fn last_backup(&self) -> Result<Option<LastBackup>, CatalogError> {
        let fact = FactName::parse(FACT)?;
        self.0.store.fact(&fact)?.map(|value| decode(&fact, &value)).transpose()
    }
}
