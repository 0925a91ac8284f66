//! State of the store and its disk, for the operator's storage page.
//!
//! Guarantees: the reply is bounded, however many segments there are: large objects, each of which has a segment of its
//! own, are summarised. Nothing is written. Non-goals: counting and selection, which the engine does.

use catalog::{Catalog, CatalogError};
use engine::Store;
use engine::compaction::CompactionRules;
use engine::damage::{Damage, RecordName, SegmentClass};
use engine::stats::{DiskStats, SegmentStats, StoreStats};
use protocol::time_format::iso_time;
use serde::Serialize;
use utoipa::ToSchema;

use super::stats::class_view;
use super::{HealthView, RetainedView, SegmentKindView};
use crate::limits::STORAGE_SEGMENTS_MAX;

/// Disk usage and health of the store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageView {
    health: HealthView,
    /// Disk space; `null` if unknown.
    #[schema(required)]
    disk: Option<DiskView>,
    #[schema(required)]
    index: Option<IndexView>,
    /// Totals of each segment kind.
    kinds: Vec<SegmentKindUsageView>,
    /// Segments of small files, those with the most dead bytes first; at most 500.
    segments: Vec<StorageSegmentView>,
    /// Whether there are more segments than listed.
    segments_truncated: bool,
    /// Deleted large files in the undelete window, not included in `kinds`.
    retained: RetainedView,
    /// Time since which all data has been verified; `null` if some data was never verified.
    #[schema(required)]
    verified_since: Option<String>,
    #[schema(required)]
    last_backup: Option<LastBackupView>,
    damage_count: u64,
    /// First corrupt locations.
    damage: Vec<DamagedView>,
    /// Estimated effect of a compaction.
    compaction: EstimateView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DiskView {
    total_bytes: u64,
    free_bytes: u64,
    /// Reserved free space in bytes; with less free space, uploads are rejected.
    reserve_bytes: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct IndexView {
    bytes: u64,
    /// Changes in memory and in the log that are not yet in the index file.
    waiting_changes: u64,
    /// Whether the index is corrupt; the next start rebuilds it.
    condemned: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SegmentKindUsageView {
    kind: SegmentKindView,
    segments: u64,
    live_bytes: u64,
    dead_bytes: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StorageSegmentView {
    id: u64,
    kind: SegmentKindView,
    bytes: u64,
    live_bytes: u64,
    dead_bytes: u64,
    /// Number of live records.
    objects: u64,
    /// Whether the segment is sealed, so that nothing is appended to it.
    sealed: bool,
    #[schema(required)]
    verified_at: Option<String>,
    damage_count: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastBackupView {
    at: String,
    to: String,
    damage_count: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DamagedView {
    /// Bucket of the corrupt file; `null` if unknown, or if no file is affected.
    #[schema(required)]
    bucket_name: Option<String>,
    #[schema(required)]
    path: Option<String>,
    /// Segment file.
    file: String,
    offset: u64,
    what: String,
    what_to_do: String,
    found_at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EstimateView {
    /// Reclaimable bytes, including retained files.
    would_free: u64,
    would_copy: u64,
    /// Number of segments to be replaced.
    segments: u64,
}

/// Returns the current state.
pub fn storage(store: &Store, catalog: &Catalog) -> Result<StorageView, CatalogError> {
    let stats = store.stats()?;
    let disk = store.disk_stats()?;
    let rules = CompactionRules { store_dead_percent_min: 0, ..CompactionRules::LOW_SPACE };
    let selection = store.select_compaction(rules)?;
    let backup = catalog.last_backup()?;
    let shared = stats.segments.iter().filter(|it| it.class != SegmentClass::Big);
    let mut shared: Vec<&SegmentStats> = shared.collect();
    shared.sort_by_key(|it| (std::cmp::Reverse(it.dead_bytes), it.id));
    let segments_truncated = shared.len() > STORAGE_SEGMENTS_MAX;
    shared.truncate(STORAGE_SEGMENTS_MAX);
    Ok(StorageView {
        health: HealthView::of(&store.health()),
        disk: disk.map(|it| DiskView {
            total_bytes: it.total_bytes,
            free_bytes: it.free_bytes,
            reserve_bytes: it.reserve_bytes,
        }),
        index: disk.map(|it| index_view(&it, &stats)),
        kinds: kinds(&stats),
        segments: shared.into_iter().map(segment_view).collect(),
        segments_truncated,
        retained: RetainedView::of(&stats.retained),
        verified_since: stats.verified_since_ms.map(iso_time),
        last_backup: backup.map(|it| LastBackupView {
            at: iso_time(it.at_ms),
            to: it.to,
            damage_count: it.damage_count,
        }),
        damage_count: stats.damage.count(),
        damage: stats.damage.places.iter().map(damaged_view).collect(),
        compaction: EstimateView {
            would_free: selection.freed_bytes().saturating_add(selection.retained_bytes),
            would_copy: selection.live_bytes(),
            segments: selection.steps.iter().map(|step| step.inputs.len() as u64).sum(),
        },
    })
}

fn index_view(disk: &DiskStats, stats: &StoreStats) -> IndexView {
    IndexView {
        bytes: disk.index_bytes,
        waiting_changes: stats.overlay_changes as u64,
        condemned: stats.index_is_corrupt,
    }
}

fn kinds(stats: &StoreStats) -> Vec<SegmentKindUsageView> {
    let classes = [
        (SegmentKindView::Log, stats.log),
        (SegmentKindView::Compacted, stats.compacted),
        (SegmentKindView::Big, stats.big),
    ];
    let view = |(kind, class): (SegmentKindView, engine::stats::ClassStats)| SegmentKindUsageView {
        kind,
        segments: class.segments,
        live_bytes: class.live_bytes,
        dead_bytes: class.record_bytes.saturating_sub(class.live_bytes),
    };
    classes.map(view).into()
}

fn segment_view(stats: &SegmentStats) -> StorageSegmentView {
    StorageSegmentView {
        id: stats.id.get(),
        kind: class_view(stats.class),
        bytes: stats.record_bytes,
        live_bytes: stats.live_bytes,
        dead_bytes: stats.dead_bytes,
        objects: stats.live_count,
        sealed: !stats.is_unsealed,
        verified_at: stats.verified_ms.map(iso_time),
        damage_count: stats.damage,
    }
}

fn damaged_view(damage: &Damage) -> DamagedView {
    let object = match &damage.name {
        Some(RecordName::Object(name)) => Some(name),
        _ => None,
    };
    let what_to_do = match (&damage.name, object) {
        (_, Some(_)) => {
            "Upload the file again, restore an earlier version, or restore it from a backup. \
            Deleting the file also clears the report."
        }
        (Some(_), None) => {
            "It is a record of the service itself: stop the server, run trug fsck --deep, and take \
             the store from a backup if that names settings that are lost."
        }
        (None, _) => {
            "Stop the server and run trug fsck --deep to find the affected records; --repair \
            repairs the rest."
        }
    };
    DamagedView {
        bucket_name: object.map(|name| name.bucket.to_string()),
        path: object.map(|name| name.key.to_string()),
        file: damage.file(),
        offset: damage.offset,
        what: damage.reason.to_string(),
        what_to_do: what_to_do.to_owned(),
        found_at: iso_time(damage.found_ms),
    }
}
