//! The results of one simulation, as JSON and as a table.

use super::flows::FlowReport;
use super::scaled::{bandwidth, change, latency, rate};
use super::{Costs, Target};
use serde::Serialize;
use softflash_base::histogram::LatencySummary;
use softflash_console::output;
use softflash_console::sizes::human_bytes;
use softflash_lab::outcome::ASKED_OP_PERCENT;
use softflash_lab::{Backlog, Outcome, Programs, Sample, Settled};

/// Results and cost of a simulation.
#[derive(Debug, Serialize)]
pub struct Report {
    device: String,
    layout: String,
    precondition: String,
    seed: u64,
    /// Bytes that the host can address, and spare / logical in percent; none where the layout is
    /// not a drive.
    capacity_bytes: Option<u64>,
    op_percent: Option<f64>,
    /// What was asked for, if the drive needs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_op_percent: Option<f64>,
    /// How the precondition was settled; none where it was not.
    settled: Option<Settled>,
    requests: u64,
    completed: u64,
    bytes_read: u64,
    bytes_written: u64,
    simulated_seconds: f64,
    seconds: f64,
    cpu_seconds: f64,
    requests_per_cpu_second: f64,
    precondition_cpu_seconds: f64,
    bytes_per_page: f64,
    iops: f64,
    read_iops: f64,
    write_iops: f64,
    waf: f64,
    waf_bytes: f64,
    /// The relative change of write amplification from the first to the last quarter of the
    /// requests; none where it is unknown.
    drift: Option<f64>,
    is_drifting: bool,
    /// Of requests that come at their own times.
    backlog: Option<Backlog>,
    kept_up: Option<bool>,
    programs: Programs,
    erases: u64,
    /// The same number.
    erased_blocks: u64,
    /// Flash pages that were programmed before they were full.
    partial_page_programs: u64,
    /// Of a drive with an SLC cache: the share of the host's pages that were programmed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    slc_share: Option<f64>,
    /// Flash pages read by the background scrub.
    #[serde(skip_serializing_if = "Option::is_none")]
    scrub_reads: Option<u64>,
    /// Blocks that moved because they had been read often.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_reclaims: Option<u64>,
    /// Bytes programmed over those of the spare: collection is in a steady state after some.
    spare_rewrites: Option<f64>,
    /// Of a drive whose map lies on flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapReport>,
    read_latency_ns: Latency,
    write_latency_ns: Latency,
    /// Of each of several flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flows: Vec<FlowReport>,
    /// The run over time, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<Sample>>,
}

/// Figures of latencies for JSON, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct Latency {
    #[serde(skip)]
    pub(super) count: u64,
    pub(super) mean: f64,
    p50: u64,
    p90: u64,
    p95: u64,
    pub(super) p99: u64,
    #[serde(rename = "p99.9")]
    pub(super) p999: u64,
    #[serde(rename = "p99.99")]
    p9999: u64,
    pub(super) max: u64,
}

/// Work for a map that lies on flash.
#[derive(Debug, Serialize)]
struct MapReport {
    hit_ratio: f64,
    reads: u64,
    programs: u64,
    /// Translation pages programmed for each page that the host wrote; none if it wrote none.
    waf: Option<f64>,
}

impl MapReport {
    fn of(outcome: &Outcome) -> Option<MapReport> {
        let figure = |name: &str| outcome.figures.get(name).copied();
        Some(MapReport {
            hit_ratio: figure("map_hit_ratio")?,
            reads: figure("map_reads")? as u64,
            programs: figure("map_programs")? as u64,
            waf: figure("map_waf").filter(|_| outcome.bytes_written > 0),
        })
    }

    fn line(&self) -> String {
        let MapReport { hit_ratio, reads, programs, waf } = self;
        let share = waf.map(|waf| format!(", {waf:.3} of the write amplification"));
        let share = share.unwrap_or_default();
        format!("hit ratio {hit_ratio:.4}, {reads} pages read, {programs} programmed{share}")
    }
}

impl From<LatencySummary> for Latency {
    fn from(summary: LatencySummary) -> Latency {
        Latency {
            count: summary.count,
            mean: summary.mean_ns,
            p50: summary.p50_ns,
            p90: summary.p90_ns,
            p95: summary.p95_ns,
            p99: summary.p99_ns,
            p999: summary.p999_ns,
            p9999: summary.p9999_ns,
            max: summary.max_ns,
        }
    }
}

impl Latency {
    fn line(&self) -> String {
        let named = [
            ("mean", self.mean),
            ("p50", self.p50 as f64),
            ("p90", self.p90 as f64),
            ("p95", self.p95 as f64),
            ("p99", self.p99 as f64),
            ("p99.9", self.p999 as f64),
            ("p99.99", self.p9999 as f64),
            ("max", self.max as f64),
        ];
        named.map(|(name, ns)| format!("{name} {}", latency(ns))).join(", ")
    }
}

/// Bytes programmed over those of the spare, of a drive that has any.
fn spare_rewrites(outcome: &Outcome) -> Option<f64> {
    let figure = |name| outcome.figures.get(name).copied();
    let spare_bytes = figure("capacity_bytes")? * figure("op_percent")? / 100.0;
    (spare_bytes > 0.0).then(|| outcome.programmed_bytes as f64 / spare_bytes)
}

impl Report {
    /// The report of an outcome on the target.
    pub(super) fn new(
        target: &Target,
        device: &str,
        layout: &str,
        outcome: Outcome,
        costs: &Costs,
    ) -> Report {
        let figure = |name: &str| outcome.figures.get(name).copied();
        let ended = |of: &LatencySummary| of.count as f64 / outcome.seconds();
        let cost = costs.measured;
        Report {
            device: device.to_owned(),
            layout: layout.to_owned(),
            precondition: target.precondition.to_string(),
            seed: target.seed,
            capacity_bytes: figure("capacity_bytes").map(|bytes| bytes as u64),
            op_percent: figure("op_percent"),
            asked_op_percent: figure(ASKED_OP_PERCENT),
            settled: outcome.settled,
            map: MapReport::of(&outcome),
            requests: outcome.requests,
            completed: outcome.completed,
            bytes_read: outcome.bytes_read,
            bytes_written: outcome.bytes_written,
            simulated_seconds: outcome.simulated_ns as f64 / 1e9,
            seconds: cost.seconds,
            cpu_seconds: cost.cpu_seconds,
            requests_per_cpu_second: outcome.completed as f64 / cost.cpu_seconds,
            precondition_cpu_seconds: costs.preparation_cpu_seconds,
            bytes_per_page: outcome.bytes_per_page,
            iops: outcome.iops(),
            read_iops: ended(&outcome.read_latency),
            write_iops: ended(&outcome.write_latency),
            waf: outcome.programs.waf(),
            waf_bytes: outcome.waf_bytes(),
            drift: outcome.drift.map(|drift| drift.change),
            is_drifting: outcome.drift.is_some_and(|drift| drift.is_significant()),
            backlog: outcome.backlog,
            kept_up: outcome.backlog.map(|backlog| backlog.kept_up()),
            programs: outcome.programs,
            erases: outcome.erases,
            erased_blocks: outcome.erases,
            partial_page_programs: figure("partial_page_programs").unwrap_or(0.0) as u64,
            slc_share: figure("slc_share"),
            scrub_reads: figure("scrub_reads").map(|reads| reads as u64),
            read_reclaims: figure("read_reclaims").map(|blocks| blocks as u64),
            spare_rewrites: spare_rewrites(&outcome),
            read_latency_ns: outcome.read_latency.into(),
            write_latency_ns: outcome.write_latency.into(),
            flows: outcome.flows.iter().map(|flow| FlowReport::of(flow, target.series)).collect(),
            series: target.series.then_some(outcome.series),
        }
    }

    /// Prints the table, and that of the flows.
    pub fn print(&self) {
        output::pairs(self.lines());
        if self.flows.is_empty() {
            return;
        }
        output::result("");
        let rows = self.flows.iter().flat_map(FlowReport::rows);
        output::rows(
            &["flow", "", "requests", "rate", "throughput", "mean", "p99", "p99.9", "max"],
            rows,
        );
        let behind = self.flows.iter().filter_map(FlowReport::backlog_line);
        behind.for_each(|line| output::result(&line));
    }

    /// Rows of a table.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("device", format!("{}, layout {}", self.device, self.layout))];
        if let (Some(bytes), Some(op)) = (self.capacity_bytes, self.op_percent) {
            let bytes = human_bytes(bytes);
            let asked = self.asked_op_percent.map(|asked| format!("; {asked} % is too little"));
            lines.push((
                "capacity",
                format!(
                    "{bytes}, over-provisioning {op:.2} % (spare / logical{})",
                    asked.unwrap_or_default()
                ),
            ));
        }
        lines.push(("precondition", self.precondition_line()));
        lines.push((
            "requests",
            format!("{}, completed {}, seed {}", self.requests, self.completed, self.seed),
        ));
        lines.extend(self.of_kind(
            &self.read_latency_ns,
            self.bytes_read,
            ["read", "read latency"],
        ));
        lines.extend(self.of_kind(
            &self.write_latency_ns,
            self.bytes_written,
            ["write", "write latency"],
        ));
        if self.programs.host > 0 {
            let [pages, bytes] = [self.waf, self.waf_bytes];
            lines
                .push(("write amplification", format!("{pages:.3} in pages, {bytes:.3} in bytes")));
        }
        lines.extend(self.collection_line().map(|line| ("collection", line)));
        if self.partial_page_programs > 0 {
            let count = self.partial_page_programs;
            lines.push(("partial programs", format!("{count} flash pages, not full")));
        }
        lines.extend(self.slc_line().map(|line| ("SLC cache", line)));
        lines.extend(self.scrub_reads.map(|reads| ("scrub", format!("{reads} flash pages read"))));
        lines.extend(
            self.read_reclaims.map(|count| ("read reclaim", format!("{count} blocks moved"))),
        );
        lines.extend(self.drift.map(|drift| ("drift", self.drift_line(drift))));
        lines.extend(self.backlog.map(|backlog| ("load", backlog_line(&backlog))));
        lines.extend([
            ("simulated", format!("{:.3} s", self.simulated_seconds)),
            ("took", format!("{:.3} s", self.seconds)),
            ("processor time", format!("{:.3} s", self.cpu_seconds)),
            ("preparation", format!("{:.3} s of processor time", self.precondition_cpu_seconds)),
            ("requests per CPU second", format!("{:.2} M", self.requests_per_cpu_second / 1e6)),
            ("memory per mapping unit", format!("{:.2} bytes", self.bytes_per_page)),
        ]);
        lines.extend(self.map.iter().map(|map| ("map on flash", map.line())));
        lines
    }

    /// What the reader must know of collection, if the run wrote too little to show its cost.
    fn collection_line(&self) -> Option<String> {
        let rewrites = self.spare_rewrites.filter(|_| self.programs.host > 0)?;
        match (self.erased_blocks, rewrites < 1.0) {
            (0, _) => Some(
                "nothing was erased: these are figures of a drive that never cleans".to_owned(),
            ),
            (_, true) => Some(format!(
                "the run rewrote {rewrites:.2} of the spare: only the precondition can have made it steady"
            )),
            (_, false) => None,
        }
    }

    /// The part that the SLC cache had, if there is one, and whether the run shows only its burst.
    fn slc_line(&self) -> Option<String> {
        let share = self.slc_share.filter(|_| self.programs.host > 0)?;
        let folded = self.programs.folding as f64 / self.programs.host as f64;
        let burst = match share > 0.999 && folded < 0.5 {
            true => ": it did not fill, so these are figures of a burst",
            false => "",
        };
        let [taken, folded] = [share, folded].map(|share| 100.0 * share);
        Some(format!("took {taken:.1} % of the pages written, folded {folded:.1} %{burst}"))
    }

    /// Rates and latencies of reads or of writes; nothing if there were none.
    fn of_kind(
        &self,
        of: &Latency,
        bytes: u64,
        [name, latencies]: [&'static str; 2],
    ) -> Vec<(&'static str, String)> {
        if of.count == 0 {
            return Vec::new();
        }
        // Trims take no time.
        let seconds = self.simulated_seconds.max(1e-9);
        let iops = rate(of.count as f64 / seconds);
        let rates = format!("{iops}, {}", bandwidth(bytes as f64 / seconds));
        vec![(name, rates), (latencies, of.line())]
    }

    fn precondition_line(&self) -> String {
        let state = &self.precondition;
        match self.settled {
            None => state.clone(),
            Some(Settled { rewrites, change: last, waf, is_level }) => {
                let last = last.map(|last| format!(", last change {}", change(last)));
                let level = if is_level { "settled" } else { "NOT settled" };
                let last = last.unwrap_or_default();
                format!(
                    "{state}: {level} after {rewrites} rewrites of the drive, write amplification {waf:.3}{last}"
                )
            }
        }
    }

    fn drift_line(&self, drift: f64) -> String {
        let drift = change(drift);
        if !self.is_drifting {
            return format!("{drift} of the write amplification, first to last quarter");
        }
        let remedy = match self.precondition.as_str() {
            "steady" => "make more requests, or expect it of requests that change over time",
            _ => "use --precondition steady, or more requests",
        };
        format!(
            "still drifting: {drift} of the write amplification from the first to the last quarter of the requests; {remedy}"
        )
    }
}

pub(super) fn backlog_line(backlog: &Backlog) -> String {
    let Backlog { arrivals_ns, waiting, lag_ns } = *backlog;
    let [lag, arrivals] = [lag_ns, arrivals_ns].map(|ns| latency(ns as f64));
    match backlog.kept_up() {
        true => format!("kept up: the last request completed {lag} after its arrival"),
        false => format!(
            "did not keep up: {waiting} requests waited when the last one arrived, after {arrivals}, and the last \
             completed {lag} later"
        ),
    }
}
