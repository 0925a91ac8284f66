//! Requests, connections, and what was refused.

use std::fmt;

use super::sheet::{Measured, Sheet};
use crate::measures::{AnswersReading, AuthFailure, CLASSES, Entrance, Limited, Operation};
use crate::state::AppState;

pub(super) fn tell(app: &AppState, sheet: &mut Sheet<'_>) -> fmt::Result {
    let measures = &app.measures;
    let answers = Operation::ALL.map(|operation| measures.answers(operation));
    let by_status = answers.iter().flat_map(|it: &AnswersReading| {
        let classes = CLASSES.into_iter().zip(it.classes);
        classes.map(move |(class, count)| ([("op", it.operation.name()), ("status", class)], count))
    });
    sheet.counters(
        "http_requests",
        "Requests that were answered, by what they are and by the status of the answer.",
        by_status,
    )?;
    sheet.histograms(
        "http_request_duration_seconds",
        "From a request's head to the head of its answer; what brings a file has come by then.",
        Measured::Microseconds,
        answers.into_iter().map(|it| ([("op", it.operation.name())], it.took_us)),
    )?;
    let (bytes_in, bytes_out) = measures.bytes();
    sheet.counters(
        "http_bytes",
        "Bytes of bodies of requests, which come in, and of answers, which go out.",
        [([("dir", "in")], bytes_in), ([("dir", "out")], bytes_out)],
    )?;
    connections(app, sheet)?;
    certificate(app, sheet)?;
    sheet.gauge(
        "uploads_inflight",
        "Requests at this moment that bring a file or a part of one.",
        measures.uploads() as f64,
    )?;
    sheet.counters(
        "ratelimited",
        "Requests that were answered with 429, by what was used up.",
        Limited::ALL.map(|why| ([("reason", why.name())], measures.limited(why))),
    )?;
    sheet.counters(
        "auth_failures",
        "Requests that were refused for who sent them, by what was wrong.",
        AuthFailure::ALL.map(|kind| ([("kind", kind.name())], measures.auth_failures(kind))),
    )
}

fn certificate(app: &AppState, sheet: &mut Sheet<'_>) -> fmt::Result {
    let certificate = &app.measures.certificate;
    sheet.gauge(
        "tls_certificate_expiry_timestamp_seconds",
        "When the certificate ends with which TLS is spoken, wherever it comes from; not told without one.",
        certificate.end_ms().map(|end_ms| end_ms as f64 / 1e3),
    )?;
    sheet.counter(
        "acme_failures",
        "Times that an authority was asked for a certificate and none came (`acme_domains`).",
        certificate.failures.get(),
    )
}

fn connections(app: &AppState, sheet: &mut Sheet<'_>) -> fmt::Result {
    let counts = |entrance: Entrance| {
        let counts = app.measures.connections(entrance);
        ([("listener", entrance.name())], counts)
    };
    let all = || Entrance::ALL.into_iter().map(counts);
    sheet.gauges(
        "http_connections",
        "Connections that are open.",
        all().map(|(labels, counts)| (labels, counts.open() as f64)),
    )?;
    sheet.counters(
        "http_connections_accepted",
        "Connections that were let in.",
        all().map(|(labels, counts)| (labels, counts.accepted.get())),
    )?;
    sheet.counters(
        "http_connections_refused",
        "Connections that were ended at once, as their address had its share.",
        all().map(|(labels, counts)| (labels, counts.refused.get())),
    )
}
