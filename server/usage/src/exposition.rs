//! Encoding of a metric: name, unit, HELP text, and values.
//!
//! A name that ends in a unit declares it. Non-goals: which metrics there are.

use std::fmt;

use engine::metrics::HistogramSnapshot;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Label names and values.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Unit in which a histogram was measured.
#[derive(Clone, Copy, Debug)]
pub enum HistogramUnit {
    Microseconds,
    /// As encoded.
    Raw,
}

/// Encoder of metrics.
pub struct MetricWriter<'a>(DescriptorEncoder<'a>);

impl<'a> MetricWriter<'a> {
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Encodes a counter. The suffix `_total` is added to the name.
    pub fn counter(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        self.counters(name, about, [([], value)])
    }

    pub fn counters<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        self.rows(name, about, MetricType::Counter, rows, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, u64, f64>(value, None)
        })
    }

    /// Encodes a counter of seconds.
    pub fn seconds_counter(&mut self, name: &str, about: &str, value: Option<f64>) -> fmt::Result {
        let rows = value.map(|value| ([], value));
        self.rows::<0, _>(name, about, MetricType::Counter, rows, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, f64, f64>(value, None)
        })
    }

    /// Encodes a gauge, unless its value is unknown.
    pub fn gauge(&mut self, name: &str, about: &str, value: impl Into<Option<f64>>) -> fmt::Result {
        self.gauges(name, about, value.into().map(|value| ([], value)))
    }

    pub fn gauges<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        self.rows(name, about, MetricType::Gauge, rows, |encoder, value| {
            encoder.encode_gauge(value)
        })
    }

    pub fn histogram(
        &mut self,
        name: &str,
        about: &str,
        measured: HistogramUnit,
        reading: HistogramSnapshot,
    ) -> fmt::Result {
        self.histograms(name, about, measured, [([], reading)])
    }

    pub fn histograms<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        measured: HistogramUnit,
        rows: impl IntoIterator<Item = (Labels<N>, HistogramSnapshot)>,
    ) -> fmt::Result {
        let scaled = |value: u64| match measured {
            HistogramUnit::Microseconds => value as f64 / 1e6,
            HistogramUnit::Raw => value as f64,
        };
        self.rows(name, about, MetricType::Histogram, rows, |encoder, reading| {
            let bounds = reading.bounds.iter().map(|bound| scaled(*bound)).chain([f64::INFINITY]);
            let ranges: Vec<_> = bounds.zip(reading.counts.iter().copied()).collect();
            let sum = scaled(reading.sum);
            encoder.encode_histogram::<NoLabelSet>(sum, reading.count(), &ranges, None)
        })
    }

    /// Encodes an info metric, whose value is in its labels.
    pub fn info<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        labels: Labels<N>,
    ) -> fmt::Result {
        self.0.encode_descriptor(name, about, None, MetricType::Info)?.encode_info(&labels)
    }

    fn rows<const N: usize, T>(
        &mut self,
        name: &str,
        about: &str,
        kind: MetricType,
        rows: impl IntoIterator<Item = (Labels<N>, T)>,
        write: impl Fn(&mut MetricEncoder<'_>, &T) -> fmt::Result,
    ) -> fmt::Result {
        let (stem, unit) = match (name.strip_suffix("_seconds"), name.strip_suffix("_bytes")) {
            (Some(stem), _) => (stem, Some(Unit::Seconds)),
            (_, Some(stem)) => (stem, Some(Unit::Bytes)),
            _ => (name, None),
        };
        let mut family = self.0.encode_descriptor(stem, about, unit.as_ref(), kind)?;
        for (labels, value) in rows {
            // An empty label set would be encoded as empty braces.
            match N {
                0 => write(&mut family, &value)?,
                _ => write(&mut family.encode_family(&labels)?, &value)?,
            }
        }
        Ok(())
    }
}
