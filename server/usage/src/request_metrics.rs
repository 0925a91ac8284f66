//! Metrics of requests, connections and rejections.

use std::fmt;

use crate::exposition::{HistogramUnit, MetricWriter};
use crate::operation::Operation;
use crate::registry::{ListenerKind, OperationSnapshot, STATUS_CLASSES, ServerCounters};
use crate::rejection::{AuthFailure, Limited};

/// Encodes the metrics.
pub fn encode(counters: &ServerCounters, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let answers = Operation::ALL.map(|operation| counters.operation_snapshot(operation));
    let by_status = answers.iter().flat_map(|it: &OperationSnapshot| {
        let classes = STATUS_CLASSES.into_iter().zip(it.classes);
        classes.map(move |(class, count)| ([("op", it.operation.name()), ("status", class)], count))
    });
    sheet.counters("http_requests", "HTTP requests, by operation and status class.", by_status)?;
    sheet.histograms(
        "http_request_duration_seconds",
        "Time from request head to response head, including receipt of uploaded bodies.",
        HistogramUnit::Microseconds,
        answers.into_iter().map(|it| ([("op", it.operation.name())], it.took_us)),
    )?;
    let (bytes_in, bytes_out) = counters.bytes();
    sheet.counters(
        "http_bytes",
        "Request body bytes received (`in`) and response body bytes sent (`out`).",
        [([("dir", "in")], bytes_in), ([("dir", "out")], bytes_out)],
    )?;
    connections(counters, sheet)?;
    certificate(counters, sheet)?;
    sheet.gauge("uploads_inflight", "Upload requests in flight.", counters.uploads() as f64)?;
    sheet.counters(
        "ratelimited",
        "Requests rejected with 429, by exceeded limit.",
        Limited::ALL.map(|why| ([("reason", why.name())], counters.limited(why))),
    )?;
    sheet.counters(
        "auth_failures",
        "Requests rejected by authentication or authorization, by reason.",
        AuthFailure::ALL.map(|kind| ([("kind", kind.name())], counters.auth_failures(kind))),
    )
}

fn certificate(counters: &ServerCounters, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let certificate = &counters.certificate;
    sheet.gauge(
        "tls_certificate_expiry_timestamp_seconds",
        "Expiry of the TLS certificate in use, in Unix seconds; absent without TLS.",
        certificate.expiry_ms().map(|end_ms| end_ms as f64 / 1e3),
    )?;
    sheet.counter(
        "acme_failures",
        "Failed ACME certificate orders (`acme_domains`).",
        certificate.failures.get(),
    )
}

fn connections(counters: &ServerCounters, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let counts = |entrance: ListenerKind| {
        let counts = counters.connections(entrance);
        ([("listener", entrance.name())], counts)
    };
    let all = || ListenerKind::ALL.into_iter().map(counts);
    sheet.gauges(
        "http_connections",
        "Open connections, by listener.",
        all().map(|(labels, counts)| (labels, counts.open() as f64)),
    )?;
    sheet.counters(
        "http_connections_accepted",
        "Accepted connections, by listener.",
        all().map(|(labels, counts)| (labels, counts.accepted.get())),
    )?;
    sheet.counters(
        "http_connections_refused",
        "Connections closed on accept by the per-IP limit (`connections_per_address_max`).",
        all().map(|(labels, counts)| (labels, counts.refused.get())),
    )
}
