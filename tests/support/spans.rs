//! Spans as a collector decodes them, by the definitions of OpenTelemetry.
//!
//! Non-goals: whether they are right.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::Seen;

/// A received span.
#[derive(Clone, Debug)]
pub struct Arrived(pub Span);

impl Arrived {
    /// Returns all spans in these requests, each of which must be a span export.
    pub fn all(seen: &[Seen]) -> Vec<Self> {
        let mut found = Vec::new();
        for seen in seen {
            assert_eq!(seen.line, "POST /v1/traces HTTP/1.1");
            let request = ExportTraceServiceRequest::decode(&seen.body[..]).expect("it is OTLP");
            for resource in request.resource_spans {
                let service = resource.resource.expect("a service").attributes;
                assert_eq!(text(&service, "service.name"), Some("trug"));
                found.extend(resource.scope_spans.into_iter().flat_map(|it| it.spans).map(Self));
            }
        }
        found
    }

    /// Returns the value of the attribute with this name.
    pub fn said(&self, name: &str) -> Option<&str> {
        text(&self.0.attributes, name)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        let found = self.0.attributes.iter().find(|it| it.key == name)?;
        match found.value.as_ref()?.value.as_ref()? {
            Value::IntValue(number) => Some(*number),
            _ => None,
        }
    }
}

fn text<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|it| it.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}
