//! Metrics of each volume.

use crate::telemetry::DomainStats;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use softflash_base::EDGES_US;
use softflash_volume::{Latencies, VolumeFigures};
use std::fmt;

/// A counter of a volume, with the value of its second label.
type PerVolume = (&'static str, fn(&VolumeFigures) -> u64);

/// A gauge of a volume; none where it has no value.
type Gauge = (&'static str, &'static str, fn(&VolumeFigures) -> Option<u64>);

/// Writes size, requests and latencies of each volume.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, domains: &[DomainStats]) -> fmt::Result {
    if domains.is_empty() {
        return Ok(());
    }
    let volumes: Vec<&VolumeFigures> =
        domains.iter().flat_map(|domain| &domain.by_volume).collect();
    gauges(out, &volumes)?;
    counters(out, &volumes)?;
    latencies(out, &volumes)
}

fn gauges(out: &mut DescriptorEncoder<'_>, volumes: &[&VolumeFigures]) -> fmt::Result {
    let gauges: [Gauge; 3] = [
        ("volume_size", "Size of a volume", |it| Some(it.size_bytes)),
        ("volume_held", "Bytes that a volume and its snapshots hold", |it| Some(it.used_bytes)),
        ("volume_quota", "The most that a volume and its snapshots may hold", |it| it.quota_bytes),
    ];
    for (name, help, value) in gauges {
        let unit = Some(&Unit::Bytes);
        let mut family = out.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for volume in volumes {
            if let Some(value) = value(volume) {
                let label = [("volume", volume.name.as_str())];
                let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&label)?)?;
            }
        }
    }
    Ok(())
}

fn counters(out: &mut DescriptorEncoder<'_>, volumes: &[&VolumeFigures]) -> fmt::Result {
    let mut family = |name: &str, help: &str, unit: Option<Unit>, key, counters: &[PerVolume]| {
        let kind = MetricType::Counter;
        let mut family = out.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for volume in volumes {
            for (label, value) in counters {
                let labels = [("volume", volume.name.as_str()), (key, label)];
                ConstCounter::new(value(volume)).encode(family.encode_family(&labels)?)?;
            }
        }
        fmt::Result::Ok(())
    };
    let operations: [PerVolume; 3] = [
        ("read", |it| it.counters.reads),
        ("write", |it| it.counters.writes),
        ("discard", |it| it.counters.discards),
    ];
    family("volume_requests", "Requests to a volume", None, "operation", &operations)?;
    let bytes: [PerVolume; 2] =
        [("read", |it| it.counters.read_bytes), ("write", |it| it.counters.written_bytes)];
    let unit = Some(Unit::Bytes);
    family("volume_request", "Bytes of the requests to a volume", unit, "operation", &bytes)?;
    let waits: [PerVolume; 3] = [
        ("iops", |it| it.counters.iops_waits),
        ("bandwidth", |it| it.counters.bandwidth_waits),
        ("weight", |it| it.counters.weight_waits),
    ];
    family("volume_waits", "Requests to a volume that waited", None, "limit", &waits)?;
    let refusals: [PerVolume; 2] =
        [("quota", |it| it.counters.quota_refusals), ("space", |it| it.counters.full_refusals)];
    family("volume_refusals", "Writes to a volume that were refused", None, "limit", &refusals)
}

type PerOperation = (&'static str, fn(&VolumeFigures) -> &Latencies);

fn latencies(out: &mut DescriptorEncoder<'_>, volumes: &[&VolumeFigures]) -> fmt::Result {
    let (name, unit) = ("volume_duration", Some(&Unit::Seconds));
    let help = "Latency of the requests to a volume, waits for its limits included";
    let mut family = out.encode_descriptor(name, help, unit, MetricType::Histogram)?;
    let operations: [PerOperation; 4] = [
        ("read", |it| &it.latencies.read),
        ("write", |it| &it.latencies.write),
        ("discard", |it| &it.latencies.discard),
        ("flush", |it| &it.latencies.flush),
    ];
    for volume in volumes {
        for (operation, of) in operations {
            let latencies = of(volume);
            if latencies.count() == 0 {
                continue;
            }
            let labels = [("volume", volume.name.as_str()), ("operation", operation)];
            let mut encoder = family.encode_family(&labels)?;
            let edges = EDGES_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
            let buckets: Vec<_> = edges.zip(latencies.by_edge().iter().copied()).collect();
            let sum = latencies.sum_us() as f64 / 1e6;
            encoder.encode_histogram::<NoLabelSet>(sum, latencies.count(), &buckets, None)?;
        }
    }
    Ok(())
}
