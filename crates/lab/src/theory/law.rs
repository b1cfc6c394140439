//! The theories that rows of experiments are compared with, and their values for a run.

use super::{d_choices_waf, fifo_waf, greedy_waf, md1_wait};
use crate::cell::Cell;
use crate::layout::LayoutKind;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::Deserialize;
use softflash_drive::spec::{
    Collect, DeviceSpec, FrontierScope, HostSpec, PageMapped, VictimPolicy,
};
use softflash_workload::{ArrivalPattern, BlockWorkload, Load, Pattern, RequestSize, Span};

/// What is missing when a theory of cleaning is for another victim policy.
const VICTIM: &str = "the layout's `victim` to be the theory's";

/// A theory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Write amplification of greedy cleaning.
    GreedyWaf,
    /// Write amplification of FIFO cleaning.
    FifoWaf,
    /// Write amplification of cleaning the best of some random blocks (`victim = "d-choices:D"`).
    DChoicesWaf,
    /// Mean latency, in microseconds, of reads from a single die at random times (M/D/1).
    Md1LatencyUs,
}

impl Law {
    /// Its value for a run, or the reason why it does not apply.
    pub fn of(self, cell: &Cell) -> Result<f64, String> {
        let (Workload::Block(workload), LayoutKind::PageMapped(layout)) =
            (&cell.workload, &cell.layout.kind)
        else {
            return Err("theory applies only to block requests on page-mapped layouts".to_owned());
        };
        match self {
            Law::GreedyWaf => {
                let pages = units_per_block(cell, layout) * blocks_collected(cell, layout);
                cleaning(cell, layout, workload, VictimPolicy::GREEDY)
                    .map(|alpha| greedy_waf(alpha, pages))
            }
            Law::FifoWaf => cleaning(cell, layout, workload, VictimPolicy::FIFO).map(fifo_waf),
            Law::DChoicesWaf => {
                let pages = units_per_block(cell, layout);
                let [d, _] = layout.victim.numbers();
                if layout.victim.name() != "d-choices" {
                    return Err(format!("theory needs {VICTIM}"));
                }
                cleaning(cell, layout, workload, layout.victim)
                    .map(|alpha| d_choices_waf(alpha, pages, d))
            }
            Law::Md1LatencyUs => single_die(&cell.device, workload),
        }
    }
}

/// Mapping units of a block.
fn units_per_block(cell: &Cell, layout: &PageMapped) -> u32 {
    let geometry = &cell.device.geometry;
    geometry.pages_per_block * (geometry.page_bytes / layout.unit_bytes(&cell.device))
}

/// Planes of a drive.
fn planes(cell: &Cell) -> u32 {
    let geometry = &cell.device.geometry;
    geometry.dies() * u32::from(geometry.planes_per_die)
}

/// Blocks that are collected together: those of a band, unless bands are collected block by block.
fn blocks_collected(cell: &Cell, layout: &PageMapped) -> u32 {
    match layout.bands.widths() {
        [width] if layout.collect == Collect::Band => width.of(planes(cell)),
        _ => 1,
    }
}

/// Blocks of a plane that cannot be collected, on average: the one that is written. With bands of
/// one width, one that is kept free, half of those of collection's bands, which cover all planes,
/// half of the host's band, and half of the one that collection makes room for.
fn blocks_in_use(cell: &Cell, layout: &PageMapped) -> f64 {
    match layout.bands.widths() {
        [width] => {
            let planes = planes(cell);
            1.5 + f64::from(width.of(planes)) / f64::from(planes)
        }
        _ => 1.0,
    }
}

/// Physical / logical pages of a plane without the blocks in use, if the models of cleaning apply.
fn cleaning(
    cell: &Cell,
    layout: &PageMapped,
    workload: &BlockWorkload,
    victim: VictimPolicy,
) -> Result<f64, String> {
    let page_bytes = layout.unit_bytes(&cell.device);
    let write_size = workload.write_size.as_ref().or(workload.size.as_ref());
    let needs = [
        (layout.victim == victim, VICTIM),
        (layout.frontier == FrontierScope::Plane, "write_frontier = \"plane\""),
        (layout.parity_data_pages == 0, "no parity"),
        (write_size == Some(&RequestSize::Fixed(page_bytes)), "writes of a page"),
        (workload.pattern == Pattern::Random, "pattern = \"random\""),
        (workload.span == Span::default(), "the whole span"),
        (workload.trim_fraction == 0.0, "no trims"),
        (layout.bands.widths().len() < 2, "bands of one width"),
    ];
    check(&needs)?;
    let blocks = f64::from(cell.device.geometry.blocks_per_plane);
    let collectable = blocks - blocks_in_use(cell, layout);
    Ok((1.0 + cell.op_percent() / 100.0) * collectable / blocks)
}

/// Mean latency of reads with random arrivals at a die that serves one at a time.
fn single_die(device: &DeviceSpec, workload: &BlockWorkload) -> Result<f64, String> {
    let geometry = &device.geometry;
    let rate = match workload.load {
        Load::Open { requests_per_second, arrivals: ArrivalPattern::Poisson } => {
            requests_per_second
        }
        _ => return Err("theory needs arrivals = \"poisson\"".to_owned()),
    };
    let alone = device.link.read_bytes_per_second == 0
        && device.controller.request_ns + device.controller.read_page_ns == 0
        && device.host == HostSpec::default();
    let needs = [
        (geometry.dies() == 1, "a device of one die"),
        (!device.die.cache_read, "die.cache_read = false, or service is no fixed time"),
        (device.die.read_ns.len() == 1, "one read time for all pages"),
        (alone, "no link, firmware or host software"),
        (workload.read_fraction == 1.0, "reads alone"),
        (workload.size == Some(RequestSize::Fixed(geometry.page_bytes)), "reads of a page"),
    ];
    check(&needs)?;
    let spare_bytes = if device.bus.transfer_spare { geometry.spare_bytes } else { 0 };
    let on_bus_bytes = f64::from(geometry.page_bytes + spare_bytes);
    let transfer_us = on_bus_bytes / device.bus.bytes_per_second as f64 * 1e6;
    let sense_us = device.die.read_ns.iter().sum::<u64>() as f64 / 1e3;
    let service_us = sense_us + transfer_us + device.bus.command_overhead_ns as f64 / 1e3;
    let utilisation = rate * service_us / 1e6;
    if utilisation >= 1.0 {
        return Err(format!("theory needs a utilisation below 1, this is {utilisation}"));
    }
    Ok(service_us + md1_wait(utilisation, service_us))
}

fn check(needs: &[(bool, &str)]) -> Result<(), String> {
    match needs.iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Err(format!("theory needs {what}")),
        None => Ok(()),
    }
}
