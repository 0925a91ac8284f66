//! State of replication to the remote store, for the operator.
//!
//! Non-goals: replication, which the engine does.

use engine::remote::RemoteCall;
use engine::replication::{RemoteAck, ReplicationState, ReplicationStatus};
use protocol::time_format::iso_time;
use serde::Serialize;
use utoipa::ToSchema;

/// Replication to the remote store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationView {
    /// URL of the remote store, as configured; `null` if unknown.
    #[schema(required)]
    url: Option<String>,
    state: ReplicationStateView,
    /// Reason for the state `fenced`, otherwise error of the last request; `null` if it succeeded.
    #[schema(required)]
    error: Option<String>,
    ack: RemoteAckView,
    /// Epoch of this process; 0 if it is not the primary.
    epoch: u64,
    /// Number of the last chunk.
    chunk: u64,
    /// Log bytes that are not in the remote store; a lower bound.
    unshipped_bytes: u64,
    /// Age in seconds of the oldest write that is not in the remote store.
    lag_seconds: f64,
    /// Whether the data from before replication began is in the remote store. Until then nothing can be restored.
    complete: bool,
    /// Number of segments that wait for their upload.
    waiting_segments: u64,
    /// Time of the last manifest; `null` if there is none.
    #[schema(required)]
    last_manifest_at: Option<String>,
    /// Whether the remote store creates objects atomically, so that two primaries are detected; `null` until observed.
    #[schema(required)]
    creates_atomically: Option<bool>,
    /// Requests since the server was started, by call.
    requests: Vec<RemoteRequestsView>,
    /// Where segments are; `null` if all are on this machine and `local_cache_bytes` is not set.
    #[schema(required)]
    tier: Option<TierView>,
}

/// Segments by where they are.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TierView {
    /// `local_cache_bytes`; 0 if it is not set: then segments are fetched back.
    local_bytes_max: u64,
    /// Bytes of segments on this machine.
    local_bytes: u64,
    /// Bytes of cache files on this machine.
    cached_bytes: u64,
    /// Number of segments that are only in the remote store.
    remote_segments: u64,
    /// Bytes of these segments.
    remote_bytes: u64,
    /// Number of requests of reads to the remote store since the server was started.
    fetches: u64,
    /// Bytes fetched by them.
    fetched_bytes: u64,
}

/// State of replication.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReplicationStateView {
    /// The remote store was not reached yet.
    Connecting,
    /// This server is the primary.
    Primary,
    /// Another server is the primary; nothing is shipped.
    Fenced,
}

/// When a write is acknowledged.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RemoteAckView {
    /// When it is durable in the data folder.
    Local,
    /// When the remote store has it too.
    Remote,
}

/// Requests to the remote store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RemoteRequestsView {
    /// `create`, `upload`, `read`, `list` or `remove`.
    call: &'static str,
    succeeded: u64,
    failed: u64,
}

impl ReplicationView {
    /// Creates the view of a status.
    pub fn of(status: &ReplicationStatus, url: Option<String>) -> Self {
        let (state, reason) = match &status.state {
            ReplicationState::Connecting => (ReplicationStateView::Connecting, None),
            ReplicationState::Primary => (ReplicationStateView::Primary, None),
            ReplicationState::Fenced(reason) => (ReplicationStateView::Fenced, Some(reason)),
        };
        let requests = RemoteCall::ALL.map(|call| {
            let [succeeded, failed] = status.requests.of(call);
            RemoteRequestsView { call: call.name(), succeeded, failed }
        });
        Self {
            url,
            state,
            error: reason.or(status.last_error.as_ref()).map(ToString::to_string),
            ack: match status.ack {
                RemoteAck::Local => RemoteAckView::Local,
                RemoteAck::Remote => RemoteAckView::Remote,
            },
            epoch: status.epoch,
            chunk: status.chunk,
            unshipped_bytes: status.unshipped_bytes,
            lag_seconds: status.lag_ms as f64 / 1e3,
            complete: status.is_complete,
            waiting_segments: status.waiting_segments,
            last_manifest_at: status.last_manifest_ms.map(iso_time),
            creates_atomically: status.properties.as_ref().map(|it| it.creates_atomically),
            requests: requests.into(),
            tier: status.tier.map(|tier| TierView {
                local_bytes_max: tier.local_bytes_max,
                local_bytes: tier.local_bytes,
                cached_bytes: tier.cached_bytes,
                remote_segments: tier.remote_segments,
                remote_bytes: tier.remote_bytes,
                fetches: tier.fetches,
                fetched_bytes: tier.fetched_bytes,
            }),
        }
    }
}
