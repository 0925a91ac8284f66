//! Metrics of replication to a remote store. Without one they have no values.

use std::fmt;

use engine::remote::RemoteCall;
use engine::replication::{ReplicationState, ReplicationStatus, TierStatus};
use usage::exposition::MetricWriter;

pub(super) fn encode(
    status: Option<&ReplicationStatus>,
    sheet: &mut MetricWriter<'_>,
) -> fmt::Result {
    state(status, sheet)?;
    progress(status, sheet)?;
    tier(status.and_then(|status| status.tier.as_ref()), sheet)?;
    let rows = status.into_iter().flat_map(|status| {
        RemoteCall::ALL.into_iter().flat_map(|call| {
            let [succeeded, failed] = status.requests.of(call);
            [("succeeded", succeeded), ("failed", failed)]
                .map(|(result, count)| ([("call", call.name()), ("result", result)], count))
        })
    });
    sheet.counters("remote_requests", "Requests to the remote store, by call and result.", rows)
}

fn state(status: Option<&ReplicationStatus>, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    sheet.gauge(
        "remote_up",
        "1 if the last request to the remote store succeeded.",
        status.map(|status| {
            let is_connecting = status.state == ReplicationState::Connecting;
            f64::from(u8::from(status.last_error.is_none() && !is_connecting))
        }),
    )?;
    let states = status.into_iter().flat_map(|status| {
        [
            ("connecting", matches!(status.state, ReplicationState::Connecting)),
            ("primary", matches!(status.state, ReplicationState::Primary)),
            ("fenced", matches!(status.state, ReplicationState::Fenced(_))),
        ]
    });
    sheet.gauges(
        "remote_state",
        "State of replication (1 for the current one): `connecting` until the remote store was reached; `primary`; `fenced` ships nothing, since another process is the primary.",
        states.map(|(state, is_so)| ([("state", state)], f64::from(u8::from(is_so)))),
    )?;
    sheet.gauge(
        "remote_epoch",
        "Epoch of this process in the remote store; 0 if it is not the primary.",
        status.map(|status| status.epoch as f64),
    )?;
    let properties = status.and_then(|status| status.properties.as_ref());
    sheet.gauge(
        "remote_creates_atomically",
        "1 if the remote store creates objects atomically, so that two primaries are detected; absent until observed.",
        properties.map(|properties| f64::from(u8::from(properties.creates_atomically))),
    )
}

fn progress(status: Option<&ReplicationStatus>, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let mut plain = |name: &str, about: &str, value: fn(&ReplicationStatus) -> f64| {
        sheet.gauge(name, about, status.map(value))
    };
    plain("remote_chunk", "Number of the last chunk in the remote store.", |it| it.chunk as f64)?;
    plain(
        "remote_unshipped_bytes",
        "Log bytes that are not in the remote store, at least those of the newest segment.",
        |it| it.unshipped_bytes as f64,
    )?;
    plain(
        "remote_lag_seconds",
        "Age of the oldest write that is not in the remote store.",
        |it| it.lag_ms as f64 / 1e3,
    )?;
    plain("remote_waiting_segments", "Segments that wait for their upload.", |it| {
        it.waiting_segments as f64
    })?;
    plain(
        "remote_upload_complete",
        "1 if the data from before replication began is in the remote store.",
        |it| f64::from(u8::from(it.is_complete)),
    )?;
    sheet.gauge(
        "remote_last_manifest_timestamp_seconds",
        "Time of the last manifest, in Unix seconds; absent if there is none.",
        status.and_then(|status| status.last_manifest_ms).map(|ms| ms as f64 / 1e3),
    )
}

fn tier(status: Option<&TierStatus>, sheet: &mut MetricWriter<'_>) -> fmt::Result {
    let places = status.into_iter().flat_map(|tier| {
        [("local", tier.local_bytes), ("cache", tier.cached_bytes), ("remote", tier.remote_bytes)]
    });
    sheet.gauges(
        "tier_bytes",
        "Bytes of segments by place: `local`, on this machine; `cache`, fetched parts of others; `remote`, only in the remote store. Absent without `local_cache_bytes`.",
        places.map(|(place, bytes)| ([("place", place)], bytes as f64)),
    )?;
    let counters = |value: fn(&TierStatus) -> u64| status.map(|tier| ([], value(tier)));
    sheet.counters(
        "tier_fetches",
        "Requests of reads to the remote store.",
        counters(|tier| tier.fetches),
    )?;
    sheet.counters(
        "tier_fetched_bytes",
        "Bytes that reads fetched from the remote store.",
        counters(|tier| tier.fetched_bytes),
    )?;
    sheet.counters(
        "tier_evictions",
        "Segments removed from this machine because the remote store has them.",
        counters(|tier| tier.evictions),
    )
}
