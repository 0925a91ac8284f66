//! Export of spans to a collector: OTLP over HTTP with protobuf, through the outbound webhook client.
//!
//! Guarantees: spans wait in a bounded queue, and are dropped when it is full; an unreachable collector costs spans,
//! never a request; queued spans are flushed at shutdown, within a time limit. Non-goals: content of spans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use opentelemetry::trace::TracerProvider;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use outbound::OutboundClient;
use prost::Message;
use protocol::destination::OutboundUrl;
use rustls::ClientConfig;
use tokio::runtime::Handle;
use usage::task::blocking;

use crate::tracer::OtlpTracer;

/// Maximum queued spans; more are dropped.
const QUEUED_SPANS_MAX: usize = 4_096;
/// Maximum spans per export.
const BATCH_SPANS_MAX: usize = 512;
/// Maximum time that queued spans wait for a full batch.
const BATCH_DELAY: Duration = Duration::from_secs(2);
/// Time-out of the flush at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Export of the spans of this process.
pub struct SpanExport(SdkTracerProvider);

struct OtlpTransport {
    outbound: OutboundClient,
    at: OutboundUrl,
    runtime: Handle,
    resource: ResourceAttributesWithSchema,
    /// Consecutive spans that were not delivered.
    lost: AtomicU64,
}

impl SpanExport {
    /// Starts sending spans to a collector at this URL: those of a ratio of the traces, from 0 to 1. Called within the
    /// runtime that sends them, before requests are served.
    pub fn start(
        traces: &OutboundUrl,
        sample_ratio: f64,
        service_name: &str,
        tls: Arc<ClientConfig>,
    ) -> Self {
        let exporter = OtlpTransport {
            outbound: OutboundClient::new(std::slice::from_ref(traces.origin()), tls),
            at: traces.clone(),
            runtime: Handle::current(),
            resource: ResourceAttributesWithSchema::default(),
            lost: AtomicU64::new(0),
        };
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUED_SPANS_MAX)
            .with_max_export_batch_size(BATCH_SPANS_MAX)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let by_ratio = Sampler::TraceIdRatioBased(sample_ratio);
        let resource = Resource::builder_empty().with_service_name(service_name.to_owned());
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::ParentBased(Box::new(by_ratio)))
            .with_resource(resource.with_attribute(version).build())
            .build();
        usage::spans::install(OtlpTracer(provider.tracer("trug")));
        Self(provider)
    }

    /// Flushes the queue, within a time limit, and shuts down.
    pub async fn stop(self) {
        let ended = blocking(move || self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
        if let Err(error) = ended.await {
            tracing::warn!(%error, "queued spans dropped at shutdown");
        }
    }
}

impl SpanExporter for OtlpTransport {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let (outbound, at) = (self.outbound.clone(), self.at.clone());
        // The queue is drained by a thread without an I/O driver.
        let posted = self.runtime.spawn(async move {
            let protobuf = HeaderValue::from_static("application/x-protobuf");
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, protobuf)]);
            outbound.post(&mut None, &at, &headers, Bytes::from(body)).await
        });
        let why = match posted.await {
            Ok(Ok(answer)) if (200..300).contains(&answer.status) => {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    tracing::info!(lost, "span export resumed");
                }
                return Ok(());
            }
            Ok(Ok(answer)) => format!("the response status is {}", answer.status),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            let host = self.at.origin().host();
            tracing::warn!(host, why, "span export failing; spans are dropped");
        }
        Err(OTelSdkError::InternalFailure(why))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "spans dropped");
        }
        Ok(())
    }
}

impl fmt::Debug for OtlpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("at", &self.at).finish_non_exhaustive()
    }
}
