//! Write amplification by cause, the steady state, and the theory of greedy cleaning beside it.

use serde::Serialize;
use softflash_lab::theory::greedy_waf;
use softflash_volume::{ClosedSuperblocks, DomainCounters};

/// Two windows in a row whose write amplifications differ by less than this are the steady state.
const STEADY_WITHIN: f64 = 0.01;
/// Windows before the steady state is looked for: until then old data are in the order of the fill.
const LEAST_WINDOWS: usize = 3;
/// Windows after which a state counts as steady in any case.
const MOST_WINDOWS: usize = 12;

/// Finds the steady state from windows of writes.
#[derive(Default)]
pub struct Steady {
    windows: Vec<f64>,
}

impl Steady {
    /// Adds the write amplification of a window; returns whether the state is steady.
    pub fn add(&mut self, waf: f64) -> bool {
        let last = self.windows.last().copied();
        self.windows.push(waf);
        let is_near = last.is_some_and(|last| (waf / last - 1.0).abs() < STEADY_WITHIN);
        self.windows.len() >= LEAST_WINDOWS && is_near || self.windows.len() >= MOST_WINDOWS
    }

    pub fn windows(&self) -> usize {
        self.windows.len()
    }
}

/// Mapping units programmed in a part of the run.
pub fn difference(before: DomainCounters, after: DomainCounters) -> DomainCounters {
    DomainCounters {
        written: after.written - before.written,
        collected: after.collected - before.collected,
        map: after.map - before.map,
        overhead: after.overhead - before.overhead,
        map_overhead: after.map_overhead - before.map_overhead,
        frames: after.frames - before.frames,
        ..after
    }
}

/// Data programmed by data written.
pub fn data_waf(counters: &DomainCounters) -> f64 {
    (counters.written + counters.collected) as f64 / counters.written.max(1) as f64
}

/// The mean of the superblocks that collection may choose.
#[derive(Default)]
pub struct Occupancy {
    superblocks: u64,
    units: u64,
    valid: u64,
}

impl Occupancy {
    pub fn add(&mut self, closed: ClosedSuperblocks) {
        self.superblocks += u64::from(closed.superblocks);
        self.units += closed.units;
        self.valid += closed.valid;
    }
}

/// Mapping units programmed by mapping units written, by cause, and the theory.
#[derive(Debug, Serialize)]
pub struct Amplification {
    /// Data of clients and data moved by collection, by data of clients.
    pub waf: f64,
    /// The share of frames' heads and padding.
    pub waf_frames: f64,
    /// The share of checkpoints, their frames included.
    pub waf_checkpoints: f64,
    /// The share of superblock headers.
    pub waf_headers: f64,
    /// All pages programmed by mapping units written: the sum of these four.
    pub waf_total: f64,
    /// Space for data in the superblocks that collection may choose, without the heads of frames,
    /// and the share of it that is spare.
    pub effective_spare_percent: f64,
    /// The mean field of greedy cleaning at that spare space.
    pub waf_theory: f64,
    /// `waf` by `waf_theory`.
    pub waf_ratio: f64,
}

impl Amplification {
    /// From the counts of a part of the run, and all pages programmed in it.
    pub fn of(counters: &DomainCounters, programmed: u64, occupancy: &Occupancy) -> Amplification {
        let by_written = |units: u64| units as f64 / counters.written.max(1) as f64;
        let data = counters.written + counters.collected;
        let heads = counters.overhead - counters.map_overhead;
        let share = data as f64 / (data + heads).max(1) as f64;
        let space = occupancy.units as f64 * share;
        let alpha = space / (occupancy.valid as f64).max(1.0);
        let pages = space / (occupancy.superblocks as f64).max(1.0);
        let waf = data_waf(counters);
        let waf_theory = greedy_waf(alpha, pages.round() as u32);
        Amplification {
            waf,
            waf_frames: by_written(heads),
            waf_checkpoints: by_written(counters.map + counters.map_overhead),
            waf_headers: by_written(programmed.saturating_sub(counters.programmed())),
            waf_total: by_written(programmed),
            effective_spare_percent: 100.0 * (1.0 - 1.0 / alpha),
            waf_theory,
            waf_ratio: waf / waf_theory,
        }
    }
}
