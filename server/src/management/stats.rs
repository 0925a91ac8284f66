//! Store statistics and health, for the operator.
//!
//! Non-goals: counting.

use engine::damage::{Damage, DamageList, SegmentClass};
use engine::progress::ProgressCallback;
use engine::stats::{ClassStats, RetainedStats, SegmentStats, StoreStats};
use engine::{Health, Store};
use protocol::time_format::iso_time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use catalog::{Catalog, CatalogError};

/// Store statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsView {
    pub accounts: u64,
    pub buckets: u64,
    pub api_keys: u64,
    pub objects: u64,
    pub object_bytes: u64,
    /// Derived objects such as thumbnails, not counted above.
    pub derived_objects: u64,
    pub derived_bytes: u64,
    /// Segments of the log.
    pub log: SegmentsView,
    /// Segments written by compaction.
    pub compacted: SegmentsView,
    /// Segments of one large object each.
    pub big: SegmentsView,
    /// Retained large files, which can be restored.
    #[serde(default)]
    pub retained: RetainedView,
    /// Time of the oldest verification; absent while some data was never verified.
    pub verified_since: Option<String>,
    pub damage: DamageView,
    pub health: HealthView,
    /// Reason why the store is read-only, if it is.
    pub read_only: Option<String>,
    /// Set while the disk is too full for uploads.
    pub full: Option<FullView>,
    /// Each segment, if requested.
    pub segments: Option<Vec<SegmentView>>,
}

/// Store health: which writes are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthView {
    #[default]
    Writable,
    Full,
    ReadOnly,
}

impl HealthView {
    pub(super) fn of(health: &Health) -> Self {
        match health {
            Health::Writable => Self::Writable,
            Health::Full { .. } => Self::Full,
            Health::ReadOnly(_) => Self::ReadOnly,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullView {
    pub free_bytes: u64,
    /// Reserved free space.
    pub reserve_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentsView {
    pub segments: u64,
    pub live_bytes: u64,
    pub dead_bytes: u64,
}

/// Deleted large files in the undelete window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetainedView {
    pub files: u64,
    /// Disk space of retained files in bytes; reclaimed early when space runs low.
    pub bytes: u64,
    /// Expiry time of the first retained file; `null` if there is none.
    #[schema(required)]
    pub next_release_at: Option<String>,
}

impl RetainedView {
    pub(super) fn of(stats: &RetainedStats) -> Self {
        let RetainedStats { segments, bytes, next_release_ms } = *stats;
        Self { files: segments, bytes, next_release_at: next_release_ms.map(iso_time) }
    }
}

/// Segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentView {
    pub id: u64,
    pub class: SegmentKindView,
    pub live_bytes: u64,
    pub dead_bytes: u64,
    /// Time of the last full verification.
    pub verified_at: Option<String>,
    pub damage_count: u64,
}

/// Segment kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SegmentKindView {
    Log,
    Compacted,
    Big,
}

/// Detected corruption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageView {
    pub count: u64,
    /// First corrupt locations.
    pub places: Vec<PlaceView>,
}

/// Location of stored bytes that are corrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceView {
    pub file: String,
    pub offset: u64,
    /// Owner of the bytes, if known: bucket and path, or a record of the server.
    pub name: Option<String>,
    pub why: String,
    pub found_at: String,
}

/// Result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScrubbedView {
    pub segments: u64,
    pub bytes: u64,
    pub damage: DamageView,
}

/// Returns the statistics, with each segment if requested.
pub(super) fn stats(
    store: &Store,
    catalog: &Catalog,
    each_segment: bool,
) -> Result<StatsView, CatalogError> {
    let stats = store.stats()?;
    let (health, read_only, full) = match store.health() {
        Health::Writable => (HealthView::Writable, None, None),
        Health::Full { free_bytes, reserve_bytes } => {
            (HealthView::Full, None, Some(FullView { free_bytes, reserve_bytes }))
        }
        Health::ReadOnly(reason) => (HealthView::ReadOnly, Some(reason.to_string()), None),
    };
    let StoreStats { objects, object_bytes, derived_objects, derived_bytes, .. } = stats;
    Ok(StatsView {
        accounts: catalog.accounts().all().len() as u64,
        buckets: catalog.buckets().all().len() as u64,
        api_keys: catalog.api_keys().all().len() as u64,
        objects,
        object_bytes,
        derived_objects,
        derived_bytes,
        log: segments_view(stats.log),
        compacted: segments_view(stats.compacted),
        big: segments_view(stats.big),
        retained: RetainedView::of(&stats.retained),
        verified_since: stats.verified_since_ms.map(iso_time),
        damage: damage_view(&stats.damage),
        health,
        read_only,
        full,
        segments: each_segment.then(|| stats.segments.iter().map(segment_view).collect()),
    })
}

/// Reads and verifies all stored data.
pub(super) fn scrub(
    store: &Store,
    watch: &mut ProgressCallback<'_>,
) -> Result<ScrubbedView, CatalogError> {
    let report = store.scrub(watch)?;
    Ok(ScrubbedView {
        segments: report.segments,
        bytes: report.bytes,
        damage: damage_view(&report.damage),
    })
}

fn segments_view(stats: ClassStats) -> SegmentsView {
    SegmentsView {
        segments: stats.segments,
        live_bytes: stats.live_bytes,
        dead_bytes: stats.record_bytes.saturating_sub(stats.live_bytes),
    }
}

fn segment_view(stats: &SegmentStats) -> SegmentView {
    SegmentView {
        id: stats.id.get(),
        class: class_view(stats.class),
        live_bytes: stats.live_bytes,
        dead_bytes: stats.dead_bytes,
        verified_at: stats.verified_ms.map(iso_time),
        damage_count: stats.damage,
    }
}

pub(super) fn class_view(class: SegmentClass) -> SegmentKindView {
    match class {
        SegmentClass::Log => SegmentKindView::Log,
        SegmentClass::Compacted => SegmentKindView::Compacted,
        SegmentClass::Big => SegmentKindView::Big,
    }
}

fn damage_view(damage: &DamageList) -> DamageView {
    let place = |damage: &Damage| PlaceView {
        file: damage.file(),
        offset: damage.offset,
        name: damage.name.as_ref().map(ToString::to_string),
        why: damage.reason.to_string(),
        found_at: iso_time(damage.found_ms),
    };
    DamageView { count: damage.count(), places: damage.places.iter().map(place).collect() }
}
