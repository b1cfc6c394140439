//! Metrics of pairs of sets, and of their windows.

use crate::telemetry::DomainStats;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use softflash_volume::PairFigures;
use std::fmt;

/// A gauge of a set of a pair; none where it has no value.
type Gauge = (&'static str, &'static str, Option<Unit>, fn(&DomainStats) -> Option<f64>);

/// A counter of a pair.
type Counter = (&'static str, &'static str, fn(&PairFigures) -> u64);

/// Writes the state and the counts of the pair of each set that is one of a pair. Both sets of a
/// pair tell the same of it.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, domains: &[DomainStats]) -> fmt::Result {
    let paired: Vec<&DomainStats> = domains.iter().filter(|domain| domain.pair.is_some()).collect();
    if paired.is_empty() {
        return Ok(());
    }
    gauges(out, &paired)?;
    counters(out, &paired)
}

fn labels(domain: &DomainStats) -> [(&'static str, String); 2] {
    [("shard", domain.shard.to_string()), ("set", domain.set.clone())]
}

fn gauges(out: &mut DescriptorEncoder<'_>, paired: &[&DomainStats]) -> fmt::Result {
    let bytes = Some(Unit::Bytes);
    let seconds = Some(Unit::Seconds);
    let gauges: [Gauge; 8] = [
        ("volume_pair_whole", "1 while both sets of the pair have all volumes", None, |it| {
            Some(f64::from(it.pair?.is_whole))
        }),
        (
            "volume_pair_building",
            "1 while a copy of everything is made for one set of the pair",
            None,
            |it| Some(f64::from(it.pair?.is_building)),
        ),
        (
            "volume_pair_behind",
            "Bytes that the sets of the pair have still to get from each other",
            bytes.clone(),
            |it| Some(it.pair?.behind_bytes as f64),
        ),
        ("volume_pair_staged", "Bytes of them in memory", bytes.clone(), |it| {
            Some(it.pair?.staged_bytes as f64)
        }),
        (
            "volume_pair_longest_drain",
            "The longest time from the end of a window until the set was at rest",
            seconds.clone(),
            |it| Some(it.pair?.longest_drain_ns as f64 / 1e9),
        ),
        ("volume_window_deterministic", "1 while the set only reads", None, |it| {
            Some(f64::from(it.window?.is_deterministic))
        }),
        ("volume_window_length", "The length of windows", seconds, |it| {
            Some(it.window?.length_ns as f64 / 1e9)
        }),
        (
            "volume_window_writes_left",
            "Bytes that clients may write before the window has to end",
            bytes,
            |it| Some(it.window?.writes_left_bytes as f64),
        ),
    ];
    for (name, help, unit, value) in gauges {
        let mut family = out.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for domain in paired {
            if let Some(value) = value(domain) {
                ConstGauge::new(value).encode(family.encode_family(&labels(domain))?)?;
            }
        }
    }
    Ok(())
}

fn counters(out: &mut DescriptorEncoder<'_>, paired: &[&DomainStats]) -> fmt::Result {
    let counters: [Counter; 7] = [
        ("volume_pair_turns", "Windows that have ended", |it| it.turns),
        (
            "volume_pair_early_turns",
            "Windows that ended before their time, as much was staged or had changed",
            |it| it.early_turns,
        ),
        (
            "volume_pair_late_turns",
            "Windows that took longer than their time, as the set had still to get data",
            |it| it.late_turns,
        ),
        (
            "volume_pair_operations",
            "Operations for which a set left its deterministic window",
            |it| it.operations,
        ),
        ("volume_pair_staged_reads", "Mapping units that were read from memory", |it| {
            it.staged_reads
        }),
        (
            "volume_pair_healed_units",
            "Mapping units that one set could not read and the other one could",
            |it| it.healed_units,
        ),
        ("volume_pair_lost_units", "Mapping units that neither set could read", |it| it.lost_units),
    ];
    for (name, help, value) in counters {
        let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
        for domain in paired {
            let Some(pair) = &domain.pair else { continue };
            ConstCounter::new(value(pair)).encode(family.encode_family(&labels(domain))?)?;
        }
    }
    Ok(())
}
