//! Metrics in Prometheus' OpenMetrics text format, with units in the names.

use crate::http::{command_metrics, pair_metrics, volume_metrics};
use crate::telemetry::{DomainStats, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use softflash_ftl::{UnitState, UnitTelemetry};
use std::fmt;

/// Content type.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Renders all metrics.
pub(super) fn render(snapshot: &Snapshot) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("softflash");
    registry.register_collector(Box::new(State(snapshot.clone())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Fields of the store that are gauges; all others are counters.
pub(super) const GAUGES: [&str; 22] = [
    "keys",
    "expiring_keys",
    "memtable_bytes",
    "cache_bytes",
    "cache_budget_bytes",
    "index_bytes",
    "value_bytes_live",
    "value_blocks",
    "patches",
    "log_live_bytes",
    "stall_longest_us",
    "superblocks_free",
    "superblocks_total",
    "usable_bytes",
    "degraded_blocks",
    "parity_blocks",
    "pinned_blocks",
    "lost_units",
    "old_units",
    "draining_bytes",
    "full",
    "clock_lead_ms",
];

#[derive(Debug)]
struct State(Snapshot);

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Snapshot { server, store, volumes, units, commands } = &self.0;
        let mut out = Out(&mut encoder);
        out.gauge("uptime", "Time since the start", Some(Unit::Seconds), server.uptime_seconds)?;
        out.gauge("shards", "Shards, each with a thread", None, server.shards)?;
        out.gauge("connections", "Connections now", None, server.connections)?;
        let counters = [
            ("connections_accepted", "Connections accepted", server.connections_accepted),
            (
                "connections_rejected",
                "Connections refused because of the limit",
                server.connections_rejected,
            ),
            (
                "connections_timed_out",
                "Connections closed because of a time limit",
                server.connections_timed_out,
            ),
            ("authentication_failures", "Wrong passwords", server.authentication_failures),
            (
                "commands_denied",
                "Commands denied by the permissions of users",
                server.commands_denied,
            ),
            ("commands", "Commands executed", server.commands),
        ];
        for (name, help, value) in counters {
            out.counter(name, help, None, value)?;
        }
        out.counter("received", "Bytes from clients", Some(Unit::Bytes), server.received_bytes)?;
        out.counter("sent", "Bytes to clients", Some(Unit::Bytes), server.sent_bytes)?;
        let (held, help) = (server.request_budget_held_bytes, "Memory held by request bodies");
        out.gauge("request_budget_held", help, Some(Unit::Bytes), held)?;
        let of_program = |(name, _): &(&str, u64)| name.starts_with("program_bytes_");
        let (program, others): (Vec<_>, Vec<_>) = store.fields().into_iter().partition(of_program);
        for (name, value) in others {
            store_field(&mut out, name, value)?;
        }
        for (name, value) in program {
            program_bytes(&mut out, name, value, volumes)?;
        }
        domain_metrics(&mut out, volumes)?;
        volume_metrics::encode(out.0, volumes)?;
        pair_metrics::encode(out.0, volumes)?;
        units_metrics(&mut out, units)?;
        command_metrics::encode(out.0, commands)
    }
}

/// Bytes programmed of an origin, in the store and in volumes.
fn program_bytes(
    out: &mut Out<'_, '_>,
    name: &str,
    of_store: u64,
    volumes: &[DomainStats],
) -> fmt::Result {
    let of = |domain: &DomainStats| {
        let fields = domain.programmed.fields();
        fields.iter().find(|(known, _)| *known == name).map_or(0, |(_, bytes)| *bytes)
    };
    let of_volumes: u64 = volumes.iter().map(of).sum();
    let origin = name.trim_start_matches("program_bytes_");
    let help = format!("Bytes programmed on the flash, of the origin {origin}");
    out.counter(name, &help, None, of_store + of_volumes)
}

/// A field of the store: moves the unit in its name to the place that Prometheus requires.
fn store_field(out: &mut Out<'_, '_>, name: &str, value: u64) -> fmt::Result {
    let help = format!("Store: {}", name.replace('_', " "));
    let is_gauge = GAUGES.contains(&name);
    if let Some(stem) = name.strip_suffix("_us") {
        return out.seconds(&format!("store_{stem}"), &help, is_gauge, value as f64 / 1e6);
    }
    if let Some(stem) = name.strip_suffix("_ms") {
        return out.seconds(&format!("store_{stem}"), &help, is_gauge, value as f64 / 1e3);
    }
    let (stem, unit) = if let Some(stem) = name.strip_suffix("_bytes") {
        (stem.to_owned(), Some(Unit::Bytes))
    } else if name.contains("_bytes_") {
        (name.replace("_bytes_", "_"), Some(Unit::Bytes))
    } else {
        // OpenMetrics reserves the suffix for counters.
        (name.strip_suffix("_total").unwrap_or(name).to_owned(), None)
    };
    let stem = format!("store_{stem}");
    match is_gauge {
        true => out.gauge(&stem, &help, unit, value),
        false => out.counter(&stem, &help, unit, value),
    }
}

type PerDomain = (Option<Unit>, fn(&DomainStats) -> u64);

/// The volumes of each set.
fn domain_metrics(out: &mut Out<'_, '_>, domains: &[DomainStats]) -> fmt::Result {
    if domains.is_empty() {
        return Ok(());
    }
    let (gauge, counter) = (MetricType::Gauge, MetricType::Counter);
    let bytes = |of: fn(&DomainStats) -> u64| (Some(Unit::Bytes), of);
    let all: [(&str, &str, MetricType, PerDomain); 8] = [
        (
            "volume_mounted",
            "Volumes: 1 if they are served, 0 if damage prevents it",
            gauge,
            (None, |it| it.not_mounted.is_none().into()),
        ),
        (
            "volume_written",
            "Volumes: bytes written by clients",
            counter,
            bytes(|it| it.volume_bytes_written),
        ),
        (
            "volume_collected",
            "Volumes: bytes moved by collection",
            counter,
            bytes(|it| it.volume_bytes_collected),
        ),
        (
            "volume_flushes",
            "Volumes: flushes of the device",
            counter,
            (None, |it| it.volume_flushes),
        ),
        ("volume_used", "Volumes: bytes held", gauge, bytes(|it| it.volume_used_bytes)),
        (
            "volume_usable",
            "Volumes: bytes that they may hold",
            gauge,
            bytes(|it| it.volume_usable_bytes),
        ),
        (
            "volume_full",
            "Volumes: 1 while writes that take more space are refused",
            gauge,
            (None, |it| it.volume_full),
        ),
        (
            "volume_refused_writes",
            "Volumes: writes refused because there was no space",
            counter,
            (None, |it| it.volume_refused_writes),
        ),
    ];
    for (name, help, kind, (unit, value)) in all {
        let mut family = out.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for domain in domains {
            let labels = [("shard", domain.shard.to_string()), ("set", domain.set.clone())];
            let (encoder, value) = (family.encode_family(&labels)?, value(domain));
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(encoder)?,
                _ => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder)?,
            }
        }
    }
    Ok(())
}

type PerUnit = fn(&UnitTelemetry) -> f64;

fn units_metrics(out: &mut Out<'_, '_>, units: &[UnitTelemetry]) -> fmt::Result {
    let gauges: [(&str, &str, PerUnit); 11] = [
        ("unit_online", "1 if the unit accepts writes", |unit| {
            f64::from(unit.state == UnitState::Online)
        }),
        ("unit_queue", "Requests queued or in progress", |unit| f64::from(unit.queue)),
        (
            "unit_device_queue",
            "Commands of its die that the device has in front of a new one, moving mean",
            |unit| unit.service.queue_milli.get() as f64 / 1e3,
        ),
        ("unit_superblocks_free", "Superblocks that can be allocated", |unit| {
            f64::from(unit.space.free())
        }),
        ("unit_superblocks_live", "Superblocks that hold data", |unit| {
            f64::from(unit.space.live + unit.space.open)
        }),
        ("unit_superblocks_bad", "Superblocks out of service", |unit| f64::from(unit.space.bad)),
        ("unit_bad_blocks", "Blocks marked bad", |unit| f64::from(unit.bad_blocks)),
        ("unit_damaged_headers", "Header pages that the mount found damaged", |unit| {
            f64::from(unit.damaged_headers)
        }),
        ("unit_erase_count_min", "Minimum erase count of a block", |unit| {
            f64::from(unit.erase_count_min)
        }),
        ("unit_erase_count_mean", "Mean erase count", |unit| unit.erase_count_mean),
        ("unit_erase_count_max", "Maximum erase count", |unit| f64::from(unit.erase_count_max)),
    ];
    let counters: [(&str, &str, Option<Unit>, PerUnit); 7] = [
        ("unit_busy", "Time with a command in progress", Some(Unit::Seconds), |unit| {
            unit.busy_ns as f64 / 1e9
        }),
        ("unit_reads", "Read commands", None, |unit| unit.reads as f64),
        ("unit_programs", "Program commands", None, |unit| unit.programs as f64),
        ("unit_erases", "Erase commands", None, |unit| unit.erases as f64),
        ("unit_read", "Bytes read", Some(Unit::Bytes), |unit| unit.bytes_read as f64),
        ("unit_programmed", "Bytes programmed", Some(Unit::Bytes), |unit| {
            unit.bytes_programmed as f64
        }),
        ("unit_errors", "Commands that failed", None, |unit| unit.errors as f64),
    ];
    let seconds: [(&str, &str, PerUnit); 3] = [
        ("unit_service_read", "Time of a read in the device, moving mean", |unit| {
            unit.service.read_ns.get() as f64 / 1e9
        }),
        ("unit_service_program", "Time of a program in the device, moving mean", |unit| {
            unit.service.program_ns.get() as f64 / 1e9
        }),
        ("unit_service_erase", "Time of an erase in the device, moving mean", |unit| {
            unit.service.erase_ns.get() as f64 / 1e9
        }),
    ];
    for (name, help, value) in seconds {
        let unit = Some(Unit::Seconds);
        out.family(name, help, unit, MetricType::Gauge, units, |unit, encoder| {
            ConstGauge::new(value(unit)).encode(encoder)
        })?;
    }
    for (name, help, value) in gauges {
        out.family(name, help, None, MetricType::Gauge, units, |unit, encoder| {
            ConstGauge::new(value(unit)).encode(encoder)
        })?;
    }
    for (name, help, kind, value) in counters {
        out.family(name, help, kind, MetricType::Counter, units, |unit, encoder| {
            ConstCounter::new(value(unit)).encode(encoder)
        })?;
    }
    Ok(())
}

struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        let kind = MetricType::Gauge;
        gauge.encode(self.0.encode_descriptor(name, help, unit.as_ref(), kind)?)
    }

    fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let kind = MetricType::Counter;
        let encoder = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        ConstCounter::new(value).encode(encoder)
    }

    fn seconds(&mut self, name: &str, help: &str, is_gauge: bool, value: f64) -> fmt::Result {
        let kind = if is_gauge { MetricType::Gauge } else { MetricType::Counter };
        let encoder = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
        match is_gauge {
            true => ConstGauge::new(value).encode(encoder),
            false => ConstCounter::new(value).encode(encoder),
        }
    }

    fn family(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        kind: MetricType,
        units: &[UnitTelemetry],
        encode: impl Fn(&UnitTelemetry, prometheus_client::encoding::MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for telemetry in units {
            let label = [("unit", u64::from(telemetry.unit.0))];
            encode(telemetry, family.encode_family(&label)?)?;
        }
        Ok(())
    }
}
