//! The backup, for the operator.
//!
//! Never here: copying, which the engine does.

use std::path::Path;
use std::sync::Arc;

use engine::{BackupReport, Error, RealDisk, Store, Watch};
use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, CatalogError, LastBackup};

/// What a backup did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedUpView {
    /// The folder.
    pub to: String,
    pub copied_files: u64,
    pub copied_bytes: u64,
    /// Files that were there already.
    pub kept_files: u64,
    pub kept_bytes: u64,
    /// Files that the store has no more.
    pub removed_files: u64,
    /// The last record that is in the backup.
    pub last_lsn: u64,
    pub duration_ms: u64,
    /// Places of damage in what was copied.
    pub damage_count: u64,
    /// The first of them.
    pub damage: Vec<String>,
}

/// Makes the folder a backup of the store, or brings the one there up to date.
pub(super) fn back_up(
    store: &Store,
    catalog: &Catalog,
    to: &Path,
    watch: &mut Watch<'_>,
) -> Result<BackedUpView, CatalogError> {
    let shown = to.display();
    if !to.is_absolute() {
        return Err(CatalogError::Refused(format!("{shown} is not an absolute path")));
    }
    let disk = RealDisk::open(to)
        .map_err(|error| CatalogError::Refused(format!("cannot write to {shown}: {error}")))?;
    let report = store.backup(&(Arc::new(disk) as _), watch).map_err(|error| match error {
        Error::NotAStore(why) => CatalogError::Refused(format!("{shown}: {why}")),
        Error::InUse(_) => CatalogError::Refused(format!("{shown}: {error}")),
        other => other.into(),
    })?;
    let BackupReport {
        copied_files,
        copied_bytes,
        kept_files,
        kept_bytes,
        removed_files,
        last_lsn,
        damage,
        damage_count,
        duration_ms,
    } = report;
    let last =
        LastBackup { at_ms: catalog.now_ms(), to: shown.to_string(), last_lsn, damage_count };
    // The backup is whole, whether or not that can be noted.
    if let Err(error) = catalog.note_backup(&last) {
        tracing::warn!(%error, "backup complete; failed to record it as the last backup");
    }
    Ok(BackedUpView {
        to: shown.to_string(),
        copied_files,
        copied_bytes,
        kept_files,
        kept_bytes,
        removed_files,
        last_lsn,
        duration_ms,
        damage_count,
        damage: damage.iter().map(ToString::to_string).collect(),
    })
}
