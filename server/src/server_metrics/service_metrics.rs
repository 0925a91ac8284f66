//! Metrics of images, searches, jobs, webhooks and accounts.

use std::fmt;

use service::limits::IMAGE_JOBS_QUEUED_MAX;
use service::state::AppState;
use usage::exposition::{HistogramUnit, MetricWriter};
use usage::registry::{JobKind, JobOutcome};

use super::ServerMetrics;

pub(super) fn encode(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    images(&ours.app, sheet)?;
    searches(ours, sheet)?;
    jobs(&ours.app, sheet)?;
    webhooks(&ours.app, sheet)?;
    let catalog = &ours.app.catalog;
    let mut count = |name: &str, about: &str, count: usize| sheet.gauge(name, about, count as f64);
    count("accounts", "Registered accounts.", catalog.accounts().all().len())?;
    count("buckets", "Existing buckets.", catalog.buckets().all().len())?;
    count("api_keys", "Issued API keys, including revoked ones.", catalog.api_keys().all().len())?;
    let unfinished = catalog.staging().totals();
    sheet.gauge("unfinished_uploads", "Unfinished uploads.", unfinished.uploads as f64)?;
    sheet.gauge(
        "unfinished_upload_bytes",
        "Bytes received by unfinished uploads.",
        unfinished.bytes as f64,
    )
}

fn images(app: &AppState, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let images = app.variants.read();
    let render_pool = images.render_pool;
    sheet.gauges(
        "image_jobs",
        "Image jobs, queued (`waiting`) and running.",
        [
            ([("state", "waiting")], render_pool.waiting as f64),
            ([("state", "running")], render_pool.running as f64),
        ],
    )?;
    sheet.gauge(
        "image_jobs_waiting_max",
        "Queue limit of image jobs; jobs beyond it are rejected with 503.",
        IMAGE_JOBS_QUEUED_MAX as f64,
    )?;
    sheet.counters(
        "image_jobs_ended",
        "Finished image jobs, by result: `done`, `busy` (queue full) or `panicked`.",
        [
            ([("end", "done")], render_pool.done),
            ([("end", "busy")], render_pool.busy),
            ([("end", "panicked")], render_pool.panicked),
        ],
    )?;
    sheet.histogram(
        "image_work_seconds",
        "Render time per image.",
        HistogramUnit::Microseconds,
        images.work_us,
    )?;
    sheet.gauge(
        "image_memory_bytes",
        "Estimated memory of running image jobs.",
        render_pool.memory_bytes as f64,
    )?;
    sheet.gauge(
        "image_memory_max_bytes",
        "Memory limit of image jobs (`image_memory_bytes`).",
        render_pool.memory_bytes_max as f64,
    )?;
    sheet.counter("image_cache_hits", "Variant cache hits.", images.hits)?;
    sheet.counter("image_cache_misses", "Variant cache misses.", images.misses)?;
    sheet.gauge(
        "image_cache_variants",
        "Cached image variants and compressed files.",
        images.cached as f64,
    )?;
    sheet.gauge(
        "image_cache_bytes",
        "Bytes of cached image variants and compressed files.",
        images.cached_bytes as f64,
    )
}

fn searches(ours: &ServerMetrics, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let names = ours.app.name_search.stats();
    sheet.gauge("searches_waiting", "Queued searches.", ours.app.searches.waiting() as f64)?;
    sheet.gauge(
        "search_names",
        "Object names in the name cache for searches.",
        names.names as f64,
    )?;
    sheet.gauge(
        "search_names_bytes",
        "Memory used by the name cache for searches in bytes.",
        names.bytes as f64,
    )
}

fn jobs(app: &AppState, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let mut waiting = [0_u64; JobKind::ALL.len()];
    let mut running = [0_u64; JobKind::ALL.len()];
    for job in app.catalog.jobs().all() {
        let Some(kind) = JobKind::named(job.work.kind()) else { continue };
        if app.jobs.running.get(&job.id).is_some() {
            running[kind as usize] += 1;
        } else if job.state.is_active() {
            waiting[kind as usize] += 1;
        }
    }
    let rows = JobKind::ALL.into_iter().flat_map(|kind| {
        let states = [("waiting", waiting[kind as usize]), ("running", running[kind as usize])];
        states.map(|(state, count)| ([("kind", kind.name()), ("state", state)], count as f64))
    });
    sheet.gauges("jobs", "Queued and running jobs, by kind and state.", rows)?;
    let rows = JobKind::ALL.into_iter().flat_map(|kind| {
        JobOutcome::ALL.map(|outcome| {
            let labels = [("kind", kind.name()), ("end", outcome.name())];
            (labels, app.jobs.counters.jobs_ended(kind, outcome))
        })
    });
    sheet.counters("jobs_ended", "Finished jobs, by kind and result.", rows)
}

fn webhooks(app: &AppState, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let totals = app.catalog.deliveries().totals();
    let counters = &app.jobs.counters;
    sheet.gauge("webhooks", "Configured webhooks.", totals.webhooks as f64)?;
    sheet.gauge(
        "webhooks_sending",
        "Webhooks with a delivery in progress.",
        totals.leases as f64,
    )?;
    sheet.gauges(
        "webhook_events",
        "Webhook events, by state: `pending`; `retrying` (part of `pending`, after a failed attempt); `dead` (dead letters).",
        [
            ([("state", "pending")], totals.events.pending as f64),
            ([("state", "retrying")], totals.events.retrying as f64),
            ([("state", "dead")], totals.events.dead as f64),
        ],
    )?;
    sheet.counters(
        "webhook_deliveries",
        "Webhook delivery attempts, by outcome.",
        [
            ([("outcome", "delivered")], counters.webhooks_delivered.get()),
            ([("outcome", "failed")], counters.webhooks_failed.get()),
        ],
    )?;
    let names = [
        ("webhook_dead_lettered", "Webhook events moved to the dead-letter queue."),
        (
            "webhook_given_up",
            "Deprecated name of `trug_webhook_dead_lettered_total`; removed in version 0.2.",
        ),
    ];
    for (name, about) in names {
        sheet.counter(name, about, counters.webhooks_given_up.get())?;
    }
    sheet.counter(
        "webhook_dropped",
        "Webhook events dropped because a queue was full.",
        totals.dropped,
    )
}
