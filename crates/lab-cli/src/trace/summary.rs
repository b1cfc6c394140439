//! `softflash trace summary`: summarizes a trace: sizes, rates, footprint, reuse.

use super::{Source, remarks};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_trace::summary::{HotSet, Sizes, summarize};
use softflash_trace::{Format, Summary};
use std::time::Duration;

/// Arguments of `trace summary`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash trace summary disk.csv.gz
  zcat disk.csv.gz | softflash trace summary - --from msr \\
      --strict -o json | jq .mix

One pass, at most about 60 MB of memory besides the program itself. docs/traces.md explains the \
figures.")]
pub struct Summarize {
    #[command(flatten)]
    source: Source,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Report {
    file: String,
    format: Format,
    #[serde(flatten)]
    summary: Summary,
}

/// Number of devices in the table; JSON has all of them.
const DEVICES_SHOWN: usize = 16;

impl Summarize {
    /// Reads the trace and prints its figures.
    pub fn run(self) -> Result<(), CliError> {
        let (mut reader, bar) = self.source.open()?;
        let summary = summarize(&mut reader)?;
        bar.finish_and_clear();
        let report = Report {
            file: self.source.path.display().to_string(),
            format: reader.format(),
            summary,
        };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                print(&report);
                Ok(())
            }
        }
    }
}

fn print(report: &Report) {
    let summary = &report.summary;
    remarks(&summary.tally).iter().for_each(|remark| output::say(remark));
    output::pairs(lines(report));
    if summary.devices.len() > 1 {
        output::result("");
        let shown = summary.devices.iter().take(DEVICES_SHOWN);
        output::rows(
            &["device", "requests", "reads", "writes", "read", "written", "at least"],
            shown.map(|device| {
                vec![
                    device.device.to_string(),
                    device.requests.to_string(),
                    device.reads.to_string(),
                    device.writes.to_string(),
                    human_bytes(device.bytes_read),
                    human_bytes(device.bytes_written),
                    human_bytes(device.end_bytes),
                ]
            }),
        );
        if summary.devices.len() > DEVICES_SHOWN {
            let more = summary.devices.len() - DEVICES_SHOWN;
            output::say(&format!("{more} more devices; all are in -o json"));
        }
    }
}

fn lines(report: &Report) -> Vec<(&'static str, String)> {
    let Report { format, summary, .. } = report;
    let (mix, rate, blocks) = (&summary.mix, &summary.rate, &summary.blocks);
    let per_s = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let bytes_per_s =
        rate.mean_bytes_per_s.map_or("-".to_owned(), |value| human_bytes(value as u64));
    let mut lines = vec![
        ("format", format.to_string()),
        ("requests", summary.requests.to_string()),
        ("reads", format!("{}, {}", mix.reads, human_bytes(mix.bytes_read))),
        ("writes", format!("{}, {}", mix.writes, human_bytes(mix.bytes_written))),
        ("trims", format!("{}, {}", mix.trims, human_bytes(mix.bytes_trimmed))),
        ("flushes", mix.flushes.to_string()),
        (
            "read share",
            format!("{}, of bytes {}", percent(mix.read_share), percent(mix.read_share_of_bytes)),
        ),
        ("read sizes", sizes(summary.read_sizes.as_ref())),
        ("write sizes", sizes(summary.write_sizes.as_ref())),
        ("sequential", percent(summary.sequential)),
        ("duration", format!("{:?}", Duration::from_nanos(rate.duration_ns))),
        (
            "requests/s",
            format!(
                "mean {}, fullest second {}",
                per_s(rate.mean_requests_per_s),
                rate.peak_requests_in_1s
            ),
        ),
        (
            "bytes/s",
            format!("mean {bytes_per_s}, fullest second {}", human_bytes(rate.peak_bytes_in_1s)),
        ),
        (
            "footprint",
            format!(
                "{} ({} read, {} written, {} both)",
                human_bytes(blocks.touched_bytes),
                human_bytes(blocks.read_bytes),
                human_bytes(blocks.written_bytes),
                human_bytes(blocks.both_bytes)
            ),
        ),
    ];
    if let Some(reuse) = &blocks.reuse {
        let writes = reuse.mean_writes.map_or("-".to_owned(), |writes| format!("{writes:.2}"));
        let once = percent(Some(reuse.once_share));
        lines.push((
            "accesses/block",
            format!(
                "mean {:.2}, writes of a written one {writes}, once only {once}",
                reuse.mean_accesses
            ),
        ));
        if let Some(times) = &reuse.times {
            let of = |ns| format!("{:.3?}", Duration::from_nanos(ns));
            let (p50, p90, p99) = (of(times.p50_ns), of(times.p90_ns), of(times.p99_ns));
            lines.push((
                "again after",
                format!("p10 {}, p50 {p50}, p90 {p90}, p99 {p99}", of(times.p10_ns)),
            ));
        }
    }
    if !blocks.hot.is_empty() {
        lines.push(("hot set", hot_sets(&blocks.hot)));
    }
    if blocks.sampled < 1.0 {
        let (sampled, error) =
            (percent(Some(blocks.sampled)), percent(Some(blocks.relative_error)));
        lines.push((
            "blocks sampled",
            format!("{sampled}; footprint within {error} (one standard error)"),
        ));
    }
    if blocks.cut_requests > 0 {
        lines.push(("cut at 64 MiB", blocks.cut_requests.to_string()));
    }
    lines
}

fn sizes(sizes: Option<&Sizes>) -> String {
    let Some(sizes) = sizes else { return "-".to_owned() };
    let [mean, p50, p90, p99, max] = [
        sizes.mean_bytes as u64,
        sizes.p50_bytes,
        sizes.p90_bytes,
        sizes.p99_bytes,
        sizes.max_bytes,
    ]
    .map(human_bytes);
    format!("mean {mean}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
}

/// Only the first line explains the figures.
fn hot_sets(sets: &[HotSet]) -> String {
    let row = |(index, hot): (usize, &HotSet)| {
        let (accesses, blocks) = (hot.accesses_share * 100.0, percent(Some(hot.blocks_share)));
        match index {
            0 => format!("{accesses:.0} % of accesses on {blocks} of blocks"),
            _ => format!("{accesses:.0} % on {blocks}"),
        }
    };
    sets.iter().enumerate().map(row).collect::<Vec<_>>().join(", ")
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}
