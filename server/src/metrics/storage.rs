//! The store and its disk.

use std::fmt;

use engine::{ClassStats, Health, StoreStats};

use super::Ours;
use super::sheet::{Labels, Measured, Sheet};

pub(super) fn tell(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    state(ours, sheet)?;
    commits(ours, sheet)?;
    holdings(ours, sheet)?;
    work(ours, sheet)?;
    disk(ours, sheet)
}

fn state(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    let health = ours.app.store.health();
    let states = [
        ("writable", matches!(health, Health::Writable)),
        ("full", matches!(health, Health::Full { .. })),
        ("read_only", matches!(health, Health::ReadOnly(_))),
    ];
    sheet.gauges(
        "store_state",
        "1 for what the store takes: `writable` everything, `full` deletions, `read_only` nothing.",
        states.map(|(state, is_so)| ([("state", state)], f64::from(u8::from(is_so)))),
    )?;
    sheet.gauge(
        "damage",
        "Places that are known where stored bytes are not what was written.",
        of_stats(ours, |stats| stats.damage.count()),
    )?;
    sheet.gauge(
        "recovery_damage",
        "Places of damage that the last start met.",
        ours.store.damage_at_opening as f64,
    )?;
    sheet.gauge(
        "recovery_replayed_records",
        "Records that the last start applied to the index again, as after a crash.",
        ours.store.replayed_records as f64,
    )
}

fn commits(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    let store = &ours.store;
    sheet.histogram(
        "fsync_seconds",
        "How long the log was synced, once for each group of uploads, deletions and the like.",
        Measured::Microseconds,
        store.syncs_us.clone(),
    )?;
    sheet.histogram(
        "group_records",
        "Records of one group.",
        Measured::Plainly,
        store.group_records.clone(),
    )?;
    sheet.histogram(
        "group_bytes",
        "Bytes of one group.",
        Measured::Plainly,
        store.group_bytes.clone(),
    )?;
    sheet.gauge(
        "commit_queue_batches",
        "Batches that wait for the next group.",
        of_stats(ours, |stats| stats.queued_batches as u64),
    )?;
    sheet.gauge(
        "upload_memory_bytes",
        "Memory that files on their way in take.",
        of_stats(ours, |stats| stats.upload_memory_bytes),
    )?;
    sheet.gauge(
        "overlay_changes",
        "Changes that are in memory and in the log, and not in the index on the disk yet.",
        of_stats(ours, |stats| stats.overlay_changes as u64),
    )?;
    sheet.histogram(
        "checkpoint_seconds",
        "How long these were written to the index.",
        Measured::Microseconds,
        store.checkpoints_us.clone(),
    )?;
    sheet.counter(
        "checkpoint_failures",
        "Times that this failed, for want of room as well.",
        store.checkpoints_failed,
    )
}

fn holdings(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    let mut plain = |name: &str, about: &str, value: fn(&StoreStats) -> u64| {
        sheet.gauge(name, about, of_stats(ours, value))
    };
    plain("objects", "Files that are stored.", |stats| stats.objects)?;
    plain("object_bytes", "Their bytes.", |stats| stats.object_bytes)?;
    plain("derived_objects", "Thumbnails and variants of pictures that are stored.", |stats| {
        stats.derived_objects
    })?;
    plain("derived_bytes", "Their bytes.", |stats| stats.derived_bytes)?;
    plain(
        "storage_retained_bytes",
        "Bytes of large files that are gone and can come back.",
        |stats| stats.retained.bytes,
    )?;
    plain("storage_mapped_segments", "Segments that are mapped into memory.", |stats| {
        stats.mapped_segments as u64
    })?;
    plain(
        "index_condemned",
        "1 where the index was found to be damaged: the next start makes it anew, and nothing is lost.",
        |stats| u64::from(stats.index_is_condemned),
    )?;
    sheet.gauges("storage_segments", "Segments, by kind.", of_classes(ours, |it| it.segments))?;
    sheet.gauges(
        "storage_segment_bytes",
        "Bytes of the records in them.",
        of_classes(ours, |it| it.record_bytes),
    )?;
    sheet.gauges(
        "storage_live_bytes",
        "Bytes of these that are wanted.",
        of_classes(ours, |it| it.live_bytes),
    )?;
    sheet.gauges(
        "storage_dead_bytes",
        "Bytes of these that are not, and that compaction gives back.",
        of_classes(ours, |it| it.record_bytes.saturating_sub(it.live_bytes)),
    )
}

fn work(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    let store = &ours.store;
    sheet.counter(
        "compaction_runs",
        "Compactions that found something to do.",
        store.compactions,
    )?;
    sheet.counter(
        "compaction_copied_bytes",
        "Bytes that compactions copied.",
        store.compacted_bytes,
    )?;
    sheet.counter(
        "compaction_given_back_bytes",
        "Bytes of the disk that compactions gave back.",
        store.given_back_bytes,
    )?;
    sheet.counter(
        "scrub_read_bytes",
        "Bytes that were read again to check them.",
        store.scrubbed_bytes,
    )?;
    sheet.counter(
        "scrub_segments",
        "Segments that were read to their end for that.",
        store.scrubbed_segments,
    )?;
    sheet.gauge(
        "scrub_oldest_timestamp_seconds",
        "When that was checked, or written, which waits longest to be checked; looked up every ten minutes.",
        store.scrub_oldest_ms.map(seconds),
    )?;
    sheet.gauge(
        "scrub_period_seconds",
        "In what time everything is to be checked once (`scrub_days`).",
        ours.app.config().scrub.as_ref().map(|scrub| scrub.period.as_secs_f64()),
    )?;
    let backup = ours.backup.as_ref();
    sheet.gauge(
        "backup_last_timestamp_seconds",
        "When the last backup was made that is whole.",
        backup.map(|backup| seconds(backup.at_ms)),
    )?;
    sheet.gauge(
        "backup_last_damage",
        "Places of damage that it copied.",
        backup.map(|backup| backup.damage_count as f64),
    )
}

fn disk(ours: &Ours, sheet: &mut Sheet<'_>) -> fmt::Result {
    let disk = ours.disk.as_ref();
    sheet.gauge(
        "disk_total_bytes",
        "Bytes that the disk of the store takes.",
        disk.map(|disk| disk.total_bytes as f64),
    )?;
    sheet.gauge(
        "disk_free_bytes",
        "Bytes of it that are free.",
        disk.map(|disk| disk.free_bytes as f64),
    )?;
    sheet.gauge(
        "disk_reserve_bytes",
        "Bytes of it that uploads may not take (`reserve_bytes`).",
        disk.map(|disk| disk.reserve_bytes as f64),
    )?;
    sheet.gauge("index_bytes", "Bytes of the index.", disk.map(|disk| disk.index_bytes as f64))
}

fn of_stats(ours: &Ours, value: impl Fn(&StoreStats) -> u64) -> Option<f64> {
    ours.stats.as_ref().map(|stats| value(stats) as f64)
}

fn of_classes(ours: &Ours, value: fn(&ClassStats) -> u64) -> Vec<(Labels<1>, f64)> {
    let Some(stats) = &ours.stats else { return Vec::new() };
    let classes = [("log", &stats.log), ("compacted", &stats.compacted), ("big", &stats.big)];
    classes.map(|(class, stats)| ([("kind", class)], value(stats) as f64)).into()
}

fn seconds(unix_ms: u64) -> f64 {
    unix_ms as f64 / 1e3
}
