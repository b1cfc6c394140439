//! Metrics of the commands of Redis clients.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use softflash_base::EDGES_US;
use softflash_protocol::CommandStat;
use std::fmt;

/// Writes latency and errors of each command that was called.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, commands: &[CommandStat]) -> fmt::Result {
    let (name, unit) = ("command_duration", Some(&Unit::Seconds));
    let help = "Latency of commands, from their batch's begin until its replies may be sent";
    let mut family = out.encode_descriptor(name, help, unit, MetricType::Histogram)?;
    for command in commands {
        let label = [("command", command.name)];
        let mut encoder = family.encode_family(&label)?;
        let edges = EDGES_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = edges.zip(command.by_edge.iter().copied()).collect();
        let sum = command.sum_us as f64 / 1e6;
        encoder.encode_histogram::<NoLabelSet>(sum, command.calls, &buckets, None)?;
    }
    let (name, kind) = ("command_errors", MetricType::Counter);
    let help = "Commands refused before they ran, and failed ones";
    let mut family = out.encode_descriptor(name, help, None, kind)?;
    for command in commands {
        for (reason, count) in [("refused", command.refused), ("failed", command.failed)] {
            let labels = [("command", command.name), ("reason", reason)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
