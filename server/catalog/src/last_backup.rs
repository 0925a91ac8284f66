//! Record of the last complete backup: time and destination.
//!
//! Non-goals: the backup.

use engine::FactName;
use serde::{Deserialize, Serialize};

use super::record::{Record, decode};
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

impl Record for LastBackup {}

impl Catalog {
    /// Records a backup.
    pub fn record_backup(&self, backup: &LastBackup) -> Result<(), CatalogError> {
        let mut change = self.begin();
        change.put(FactName::parse(FACT)?, backup)?;
        change.commit()
    }

    /// Returns the last backup, if any.
    pub fn last_backup(&self) -> Result<Option<LastBackup>, CatalogError> {
        let fact = FactName::parse(FACT)?;
        self.state.store.fact(&fact)?.map(|value| decode(&fact, &value)).transpose()
    }
}
