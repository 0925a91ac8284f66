//! Backup, for the operator.
//!
//! Non-goals: copying, which the engine does.

use std::path::Path;
use std::sync::Arc;

use engine::backup::BackupReport;
use engine::progress::ProgressCallback;
use engine::{Error, RealDisk, Store};
use serde::{Deserialize, Serialize};

use catalog::{Catalog, CatalogError, LastBackup};

/// Result of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedUpView {
    /// Destination folder.
    pub to: String,
    pub copied_files: u64,
    pub copied_bytes: u64,
    /// Files that were already in the backup.
    pub kept_files: u64,
    pub kept_bytes: u64,
    /// Files deleted from the backup, which the store no longer has.
    pub removed_files: u64,
    /// LSN of the last record in the backup.
    pub last_lsn: u64,
    pub duration_ms: u64,
    /// Number of corrupt locations in the copied data.
    pub damage_count: u64,
    /// First corrupt locations.
    pub damage: Vec<String>,
}

/// Creates a backup of the store in a folder, or updates an existing one.
pub(super) fn back_up(
    store: &Store,
    catalog: &Catalog,
    to: &Path,
    watch: &mut ProgressCallback<'_>,
) -> Result<BackedUpView, CatalogError> {
    let shown = to.display();
    if !to.is_absolute() {
        return Err(CatalogError::InvalidRequest(format!("{shown} is not an absolute path")));
    }
    let disk = RealDisk::open(to).map_err(|error| {
        CatalogError::InvalidRequest(format!("cannot write to {shown}: {error}"))
    })?;
    let report = store.backup(&(Arc::new(disk) as _), watch).map_err(|error| match error {
        Error::NotAStore(why) => CatalogError::InvalidRequest(format!("{shown}: {why}")),
        Error::InUse(_) => CatalogError::InvalidRequest(format!("{shown}: {error}")),
        other => other.into(),
    })?;
    let BackupReport {
        copied_files,
        copied_bytes,
        unchanged_files: kept_files,
        unchanged_bytes: kept_bytes,
        removed_files,
        last_lsn,
        damage,
        damage_count,
        duration_ms,
    } = report;
    let last =
        LastBackup { at_ms: catalog.now_ms(), to: shown.to_string(), last_lsn, damage_count };
    // The backup is complete, even if that cannot be recorded.
    if let Err(error) = catalog.record_backup(&last) {
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
