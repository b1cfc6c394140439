//! Results of `bench kv`.

use super::distribution::Order;
use super::series::{Second, SecondOfLine};
use super::workload::Workload;
use serde::Serialize;
use softflash_console::measure::LatencySummary;
use softflash_console::sizes::human_bytes;

/// The results, in the order of the JSON output.
#[derive(Debug, Serialize)]
pub struct Report {
    pub workload: Workload,
    pub distribution: Order,
    pub keys: u32,
    pub value_bytes: u64,
    pub threads: u16,
    pub depth: u32,
    pub durability: String,
    pub device: String,
    /// Keys and values of the data set as a share of the payload of all superblocks.
    pub fullness: f64,
    pub operations: u64,
    pub seconds: f64,
    pub operations_per_second: f64,
    pub bytes_per_second: f64,
    /// Operations in the slowest whole second as a share of the mean; none below two seconds.
    pub slowest_second_ratio: Option<f64>,
    pub cpu_us_per_operation: f64,
    pub latency: LatencySummary,
    /// Latency of reads; none unless there are reads and writes.
    pub read_latency: Option<LatencySummary>,
    /// Latency of writes; none unless there are reads and writes.
    pub write_latency: Option<LatencySummary>,
    /// Bytes programmed per byte written; none without writes.
    pub write_amplification: Option<f64>,
    pub flash_reads_per_operation: f64,
    /// Payload of the superblocks in use at the end, per byte of live keys and values.
    pub space_used_ratio: Option<f64>,
    /// The most memory that was resident, the filling included.
    pub peak_memory_bytes: u64,
    /// The time line: rate and delays of each second.
    pub seconds_series: Vec<SecondOfLine>,
    /// Each second of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<Second>>,
}

impl Report {
    /// Rows of a table.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mut lines = vec![
            line("keys", self.distribution.to_string()),
            line("operations", self.operations.to_string()),
            line("took", format!("{:.2} s", self.seconds)),
            line("operations per second", format!("{:.0}", self.operations_per_second)),
        ];
        if let Some(ratio) = self.slowest_second_ratio {
            lines.push(line("slowest second", format!("{ratio:.2} of the mean")));
        }
        lines.push(line(
            "keys and values",
            format!("{}/s", human_bytes(self.bytes_per_second as u64)),
        ));
        let cpu = format!("{:.2} us", self.cpu_us_per_operation);
        lines.push(line("processor time per operation", cpu));
        match (&self.read_latency, &self.write_latency) {
            (Some(reads), Some(writes)) => {
                lines.extend(latencies("read ", reads));
                lines.extend(latencies("write ", writes));
            }
            _ => lines.extend(latencies("", &self.latency)),
        }
        if let Some(waf) = self.write_amplification {
            lines.push(line("write amplification", format!("{waf:.2}")));
        }
        lines.push(line(
            "flash reads per operation",
            format!("{:.3}", self.flash_reads_per_operation),
        ));
        if let Some(ratio) = self.space_used_ratio {
            lines.push(line("space used / live data", format!("{ratio:.2}")));
        }
        lines.push(line("data / device", format!("{:.1} %", self.fullness * 100.0)));
        lines.push(line("peak memory", human_bytes(self.peak_memory_bytes)));
        lines.push(line("device", self.device.clone()));
        for (index, second) in self.series.iter().flatten().enumerate() {
            let figures =
                format!("{} operations, longest {:.0} us", second.operations, second.longest_us);
            lines.push(line(&format!("second {}", index + 1), figures));
        }
        lines
    }
}

fn line(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn latencies(kind: &str, latency: &LatencySummary) -> Vec<(String, String)> {
    latency.lines().into_iter().map(|(name, value)| (format!("{kind}{name}"), value)).collect()
}
