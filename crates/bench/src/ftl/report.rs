//! The report of `bench ftl`.

use super::FtlBench;
use super::amplification::Amplification;
use super::cost::{Spent, UnitCosts};
use super::null_device::PAGE_BYTES;
use super::recovery::Recovery;
use serde::Serialize;
use softflash_console::sizes::human_bytes;
use softflash_volume::{DomainCounters, DomainSpace};

/// What was measured of writes and reads.
pub struct Costs {
    pub writes: Spent,
    pub reads: Spent,
    pub unit: UnitCosts,
    pub write_device_seconds: f64,
    pub read_device_seconds: f64,
}

/// The cost of a request of 4 KiB.
#[derive(Serialize)]
struct Request {
    /// Processor time in nanoseconds: all of it, without checksums, copies and the device, and the
    /// share of the device.
    ns: f64,
    net_ns: f64,
    device_ns: f64,
    checksums: f64,
    copies: f64,
    instructions: Option<f64>,
    cycles: Option<f64>,
}

impl Request {
    fn new(
        spent: &Spent,
        device_ns: f64,
        checksums: f64,
        copies: f64,
        unit: &UnitCosts,
    ) -> Request {
        let apart = checksums * unit.checksum_ns + copies * unit.copy_ns + device_ns;
        Request {
            ns: spent.ns(),
            net_ns: spent.ns() - apart,
            device_ns,
            checksums,
            copies,
            instructions: spent.instructions(),
            cycles: spent.cycles(),
        }
    }
}

#[derive(Serialize)]
pub struct Report {
    flash_bytes: u64,
    units: u16,
    volume_bytes: u64,
    spare_percent: f64,
    batch: u16,
    seed: u64,
    writes: u64,
    reads: u64,
    overwrites_before: usize,
    ns_per_write: f64,
    ns_per_read: f64,
    instructions_per_write: Option<f64>,
    instructions_per_read: Option<f64>,
    #[serde(flatten)]
    unit: UnitCosts,
    write: Request,
    read: Request,
    #[serde(flatten)]
    amplification: Amplification,
    memory_bytes: u64,
    memory_bytes_per_unit: f64,
    recovery: Option<Recovery>,
}

impl FtlBench {
    #[expect(clippy::too_many_arguments, reason = "the results of the steps of one measurement")]
    pub(super) fn report(
        &self,
        space: DomainSpace,
        memory_bytes: u64,
        overwrites_before: usize,
        counters: &DomainCounters,
        costs: &Costs,
        amplification: Amplification,
        recovery: Option<Recovery>,
    ) -> Report {
        let Costs { writes, reads, unit, .. } = costs;
        let by_written = |count: u64| count as f64 / self.writes as f64;
        let data = by_written(counters.written + counters.collected);
        let ns = |seconds: f64, requests: u64| seconds * 1e9 / requests as f64;
        let write = Request::new(
            writes,
            ns(costs.write_device_seconds, self.writes),
            // Moved data are checked with the same checksum; each head of a frame has one, too.
            data + by_written(counters.frames),
            data,
            unit,
        );
        let read_device_ns = ns(costs.read_device_seconds, self.reads);
        let read = Request::new(reads, read_device_ns, 1.0, 1.0, unit);
        Report {
            flash_bytes: space.flash_bytes,
            units: self.units,
            volume_bytes: space.usable_bytes,
            spare_percent: self.spare,
            batch: self.batch,
            seed: self.seed,
            writes: self.writes,
            reads: self.reads,
            overwrites_before,
            ns_per_write: write.ns,
            ns_per_read: read.ns,
            instructions_per_write: write.instructions,
            instructions_per_read: read.instructions,
            unit: *unit,
            write,
            read,
            amplification,
            memory_bytes,
            memory_bytes_per_unit: memory_bytes as f64
                / (space.flash_bytes as f64 / PAGE_BYTES as f64),
            recovery,
        }
    }
}

impl Report {
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let count = |count: Option<f64>| {
            count.map_or("not counted by this machine".to_owned(), |count| format!("{count:.0}"))
        };
        let Amplification { waf, waf_theory, .. } = self.amplification;
        let request = |of: &Request| {
            format!(
                "{:.0} ns, net {:.0} ns; device {:.0} ns, {:.2} checksums, {:.2} copies",
                of.ns, of.net_ns, of.device_ns, of.checksums, of.copies
            )
        };
        let mut lines = vec![
            ("flash", format!("{} in {} units", human_bytes(self.flash_bytes), self.units)),
            ("volume", human_bytes(self.volume_bytes)),
            ("requests at a time", self.batch.to_string()),
            ("overwrites until steady", self.overwrites_before.to_string()),
            ("write of 4 KiB", request(&self.write)),
            ("read of 4 KiB", request(&self.read)),
            ("checksum of 4 KiB", format!("{:.0} ns", self.unit.checksum_ns)),
            ("copy of 4 KiB", format!("{:.0} ns", self.unit.copy_ns)),
            ("instructions a write", count(self.instructions_per_write)),
            ("instructions a read", count(self.instructions_per_read)),
            ("write amplification", format!("{waf:.3}")),
            (
                "mean field of greedy cleaning",
                format!(
                    "{waf_theory:.3} at {:.1} % spare; ratio {:.3}",
                    self.amplification.effective_spare_percent, self.amplification.waf_ratio
                ),
            ),
            ("frames add", format!("{:.3}", self.amplification.waf_frames)),
            ("checkpoints add", format!("{:.3}", self.amplification.waf_checkpoints)),
            ("superblock headers add", format!("{:.3}", self.amplification.waf_headers)),
            ("all pages programmed", format!("{:.3}", self.amplification.waf_total)),
            (
                "memory",
                format!(
                    "{}, {:.2} bytes a mapping unit",
                    human_bytes(self.memory_bytes),
                    self.memory_bytes_per_unit
                ),
            ),
        ];
        if let Some(recovery) = &self.recovery {
            lines.extend(recovery.lines());
        }
        lines
    }
}
