//! Record of the last complete backup: time and destination.
//!
//! Non-goals: the backup.

use engine::{Batch, FactName};
use serde::{Deserialize, Serialize};

use super::record::{CatalogRecord, decode, encode};
use super::{Catalog, CatalogError};

const FACT: &str = "last-backup";

/// Completed backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastBackup {
    pub at_ms: u64,
    /// Destination folder.
    pub to: String,
    /// LSN of the last record in the backup.
    pub last_lsn: u64,
    /// Number of corrupt locations in the copied data.
    pub damage_count: u64,
}

impl CatalogRecord for LastBackup {
    const VERSION: u32 = 1;
}

impl Catalog {
    /// Records a backup.
    pub fn record_backup(&self, backup: &LastBackup) -> Result<(), CatalogError> {
        let fact = FactName::parse(FACT)?;
        let value = encode(&fact, backup)?;
        self.0.store.commit(Batch::new().put_fact(fact, value))?;
        Ok(())
    }

    /// Returns the last backup, if any.
    pub fn last_backup(&self) -> Result<Option<LastBackup>, CatalogError> {
        let fact = FactName::parse(FACT)?;
        self.0.store.fact(&fact)?.map(|value| decode(&fact, &value)).transpose()
    }
}
