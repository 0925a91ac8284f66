//! Metrics of the store and its disk.

use std::fmt;

use engine::Health;
use engine::stats::{ClassStats, StoreStats};
use usage::exposition::{HistogramUnit, Labels, MetricWriter};

use super::ServerMetrics;

pub(super) fn encode(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    state(ours, sheet)?;
    commits(ours, sheet)?;
    contents(ours, sheet)?;
    work(ours, sheet)?;
    disk(ours, sheet)
}

fn state(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let health = ours.app.store.health();
    let states = [
        ("writable", matches!(health, Health::Writable)),
        ("full", matches!(health, Health::Full { .. })),
        ("read_only", matches!(health, Health::ReadOnly(_))),
    ];
    sheet.gauges(
        "store_state",
        "Store state (1 for the current one): `writable`; `full` rejects new bodies; `read_only` rejects all writes.",
        states.map(|(state, is_so)| ([("state", state)], f64::from(u8::from(is_so)))),
    )?;
    sheet.gauge(
        "damage",
        "Known corrupt regions.",
        of_stats(ours, |stats| stats.damage.count()),
    )?;
    sheet.gauge(
        "recovery_damage",
        "Corrupt regions found by recovery at the last start.",
        ours.store.open_damage_count as f64,
    )?;
    sheet.gauge(
        "recovery_replayed_records",
        "Log records replayed into the index at the last start.",
        ours.store.replayed_records as f64,
    )
}

fn commits(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let store = &ours.store;
    sheet.histogram(
        "fsync_seconds",
        "Duration of successful log fsync calls, one per commit group.",
        HistogramUnit::Microseconds,
        store.sync_duration_us.clone(),
    )?;
    sheet.histogram(
        "group_records",
        "Records per commit group.",
        HistogramUnit::Raw,
        store.group_records.clone(),
    )?;
    sheet.histogram(
        "group_bytes",
        "Bytes per commit group.",
        HistogramUnit::Raw,
        store.group_bytes.clone(),
    )?;
    sheet.gauge(
        "commit_queue_batches",
        "Batches queued for the next commit group.",
        of_stats(ours, |stats| stats.queued_batches as u64),
    )?;
    sheet.gauge(
        "upload_memory_bytes",
        "Memory held by uploads in progress.",
        of_stats(ours, |stats| stats.upload_memory_bytes),
    )?;
    sheet.gauge(
        "overlay_changes",
        "Index changes not yet checkpointed to disk.",
        of_stats(ours, |stats| stats.overlay_changes as u64),
    )?;
    sheet.histogram(
        "checkpoint_seconds",
        "Duration of index checkpoints.",
        HistogramUnit::Microseconds,
        store.checkpoint_duration_us.clone(),
    )?;
    sheet.counter(
        "checkpoint_failures",
        "Failed index checkpoints, including out-of-space.",
        store.checkpoints_failed,
    )
}

fn contents(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let mut plain = |name: &str, about: &str, value: fn(&StoreStats) -> u64| {
        sheet.gauge(name, about, of_stats(ours, value))
    };
    plain("objects", "Stored objects, without thumbnails and variants.", |stats| stats.objects)?;
    plain(
        "object_bytes",
        "Content bytes of stored objects, without thumbnails and variants.",
        |stats| stats.object_bytes,
    )?;
    plain("derived_objects", "Stored thumbnails, image variants and compressed files.", |stats| {
        stats.derived_objects
    })?;
    plain(
        "derived_bytes",
        "Bytes of stored thumbnails, image variants and compressed files.",
        |stats| stats.derived_bytes,
    )?;
    plain(
        "storage_retained_bytes",
        "Bytes of deleted or replaced large objects in the undelete window.",
        |stats| stats.retained.bytes,
    )?;
    plain("storage_mapped_segments", "Memory-mapped segments.", |stats| {
        stats.mapped_segments as u64
    })?;
    let names = [
        (
            "index_rebuild_pending",
            "1 if the index is corrupt and is rebuilt from the log at the next start; no data is lost.",
        ),
        (
            "index_condemned",
            "Deprecated name of `trug_index_rebuild_pending`; removed in version 0.2.",
        ),
    ];
    for (name, about) in names {
        plain(name, about, |stats| u64::from(stats.index_is_corrupt))?;
    }
    sheet.gauges(
        "storage_segments",
        "Segment files, by kind.",
        of_classes(ours, |it| it.segments),
    )?;
    sheet.gauges(
        "storage_segment_bytes",
        "Record bytes in segments, by kind.",
        of_classes(ours, |it| it.record_bytes),
    )?;
    sheet.gauges(
        "storage_live_bytes",
        "Live record bytes, by segment kind.",
        of_classes(ours, |it| it.live_bytes),
    )?;
    sheet.gauges(
        "storage_dead_bytes",
        "Dead record bytes, reclaimable by compaction, by segment kind.",
        of_classes(ours, |it| it.record_bytes.saturating_sub(it.live_bytes)),
    )
}

fn work(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let store = &ours.store;
    sheet.counter("compaction_runs", "Compaction runs that did work.", store.compactions)?;
    sheet.counter(
        "compaction_copied_bytes",
        "Bytes copied by compaction.",
        store.compacted_bytes,
    )?;
    let names = [
        ("compaction_reclaimed_bytes", "Disk bytes reclaimed by compaction."),
        (
            "compaction_given_back_bytes",
            "Deprecated name of `trug_compaction_reclaimed_bytes_total`; removed in version 0.2.",
        ),
    ];
    for (name, about) in names {
        sheet.counter(name, about, store.reclaimed_bytes)?;
    }
    sheet.counter(
        "scrub_read_bytes",
        "Bytes read and verified by scrubbing.",
        store.scrubbed_bytes,
    )?;
    sheet.counter(
        "scrub_segments",
        "Segments fully verified by scrubbing.",
        store.scrubbed_segments,
    )?;
    sheet.gauge(
        "scrub_oldest_timestamp_seconds",
        "Last verification (or write) time of the least recently scrubbed segment, in Unix seconds; updated every 10 minutes.",
        store.scrub_oldest_ms.map(seconds),
    )?;
    sheet.gauge(
        "scrub_period_seconds",
        "Scrub period (`scrub_days`).",
        ours.app.config().scrub.as_ref().map(|scrub| scrub.period.as_secs_f64()),
    )?;
    let backup = ours.backup.as_ref();
    sheet.gauge(
        "backup_last_timestamp_seconds",
        "Completion time of the last successful backup, in Unix seconds.",
        backup.map(|backup| seconds(backup.at_ms)),
    )?;
    sheet.gauge(
        "backup_last_damage",
        "Corrupt regions copied by the last backup.",
        backup.map(|backup| backup.damage_count as f64),
    )
}

fn disk(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let disk = ours.disk.as_ref();
    sheet.gauge(
        "disk_total_bytes",
        "Capacity of the store's filesystem.",
        disk.map(|disk| disk.total_bytes as f64),
    )?;
    sheet.gauge(
        "disk_free_bytes",
        "Free bytes on the store's filesystem.",
        disk.map(|disk| disk.free_bytes as f64),
    )?;
    sheet.gauge(
        "disk_reserve_bytes",
        "Free bytes reserved from uploads (`reserve_bytes`).",
        disk.map(|disk| disk.reserve_bytes as f64),
    )?;
    sheet.gauge("index_bytes", "Size of the index file.", disk.map(|disk| disk.index_bytes as f64))
}

fn of_stats(ours: &ServerMetrics, value: impl Fn(&StoreStats) -> u64) -> Option<f64> {
    ours.stats.as_ref().map(|stats| value(stats) as f64)
}

fn of_classes(ours: &ServerMetrics, value: fn(&ClassStats) -> u64) -> Vec<(Labels<1>, f64)> {
    let Some(stats) = &ours.stats else { return Vec::new() };
    let classes = [("log", &stats.log), ("compacted", &stats.compacted), ("big", &stats.big)];
    classes.map(|(class, stats)| ([("kind", class)], value(stats) as f64)).into()
}

fn seconds(unix_ms: u64) -> f64 {
    unix_ms as f64 / 1e3
}
