//! Compaction on request.

use catalog::{Catalog, CatalogError};
use engine::Store;
use engine::compaction::{CompactionReport, CompactionRules};
use engine::progress::ProgressCallback;

/// Returns the rules of a requested run, which does not wait for a dead percentage of the whole store.
pub fn requested_rules(dead_percent_min: u8) -> CompactionRules {
    CompactionRules { store_dead_percent_min: 0, segment_dead_percent_min: dead_percent_min }
}

/// Compacts segments with at least this percentage of dead bytes, and adds an entry to the audit log. Blocks on the
/// disk. `bytes_per_second_max` limits the copy rate.
pub fn compact(
    store: &Store,
    catalog: &Catalog,
    dead_percent_min: u8,
    bytes_per_second_max: Option<u64>,
    watch: &mut ProgressCallback<'_>,
) -> Result<CompactionReport, CatalogError> {
    // If the store rejects writes, the space that the compaction reclaims is needed all the more.
    match catalog.audit().record_compaction(dead_percent_min) {
        Ok(()) | Err(CatalogError::Store(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(store.compact(requested_rules(dead_percent_min), bytes_per_second_max, watch)?)
}
