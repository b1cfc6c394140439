//! Runs erases only, at the queue pair: the blocks of a unit in sequence, as the FTL erases them.

use super::hardware::Hardware;
use crate::cell::Cell;
use crate::engine::limits::physical_limits;
use crate::engine::quota::Quota;
use crate::engine::tally::Tally;
use crate::error::LabError;
use crate::outcome::Outcome;
use crate::workload::Workload;
use softflash_base::{AccessKind, Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{
    Command, Completion, Hint, Operation, QueuePair, Submit, Tag, Target, Wake,
};
use softflash_runtime::VirtualExecutor;
use softflash_workload::{BlockWorkload, Load};

/// The superblock of a unit that is being erased.
struct Eraser {
    quota: Quota,
    next_block: u32,
    dies_left: u32,
    began: Time,
}

/// Erases superblocks on as many units as there are threads: one at a time in each unit, all of its
/// planes at once. The erased bytes count as written.
pub fn run(
    cell: &Cell,
    hardware: &Hardware,
    executor: &VirtualExecutor,
) -> Result<Outcome, LabError> {
    let device = hardware.device();
    let failed = |what: String| LabError::Simulation(what);
    let Workload::Block(BlockWorkload { load: Load::Closed { threads, .. }, .. }) = cell.workload
    else {
        return Err(LabError::Parameter(format!(
            "{}: erases alone are made one after the other by each thread; use load.closed",
            cell.key
        )));
    };
    let units = threads.min(u32::from(device.info().units)) as u16;
    let mut queue = device
        .open_queue_pair(&device.info().all_units())
        .map_err(|error| failed(error.to_string()))?;
    let mut now = executor.now();
    let observation = hardware.observe(now, super::CHART_NS);
    let (tally, limits) = (Tally::new(now), cell.limits());
    let mut erasers: Vec<Eraser> = (0..u64::from(units))
        .map(|unit| Eraser {
            quota: Quota::share(&limits, now, unit, u64::from(units)),
            next_block: 0,
            dies_left: 0,
            began: now,
        })
        .collect();
    for (unit, eraser) in (0..).zip(&mut erasers) {
        start(&mut *queue, unit, eraser, &tally, now)?;
    }
    let bytes = device.info().geometry.superblock_bytes();
    let mut ended: Vec<Completion> = Vec::new();
    while let Wake::At(at) = queue.wake() {
        now = at;
        queue.poll(now, &mut ended);
        for completion in ended.drain(..) {
            completion.result.map_err(|error| failed(error.to_string()))?;
            let unit = completion.tag.0 as u16;
            let Some(eraser) = erasers.get_mut(usize::from(unit)) else { continue };
            eraser.dies_left -= 1;
            if eraser.dies_left == 0 {
                tally.completed(AccessKind::Write, eraser.began, now, bytes);
                start(&mut *queue, unit, eraser, &tally, now)?;
            }
        }
    }
    let mut outcome = tally.outcome(limits.samples);
    let observed = hardware.observed(&observation, now);
    outcome.die_utilisation = observed.die_utilisation;
    outcome.channel_utilisation = observed.channel_utilisation;
    outcome.gantt = observed.gantt;
    outcome.erases = outcome.completed * u64::from(device.info().geometry.row_pages());
    let [_, write_limit] = physical_limits(&cell.device);
    outcome.figures.insert("write_limit_bytes_per_second".to_owned(), write_limit);
    Ok(outcome)
}

/// Starts the next erase of a unit, if its quota allows one.
fn start(
    queue: &mut dyn QueuePair,
    unit: u16,
    eraser: &mut Eraser,
    tally: &Tally,
    now: Time,
) -> Result<(), LabError> {
    if !eraser.quota.take(now) {
        return Ok(());
    }
    let geometry = *queue.geometry();
    tally.submitted();
    eraser.began = now;
    eraser.dies_left = geometry.dies.into();
    let block = eraser.next_block;
    eraser.next_block = (block + 1) % geometry.blocks_per_plane;
    for die in 0..geometry.dies {
        let target = Target {
            unit: UnitId(unit),
            die,
            plane: 0,
            planes: geometry.planes,
            blocks: [block; MAX_PLANES],
            page: 0,
            rows: 1,
        };
        let command = Command {
            tag: Tag(unit.into()),
            target,
            operation: Operation::Erase,
            hint: Hint::HEADER,
        };
        if let Submit::Full(_) = queue.submit(now, command) {
            return Err(LabError::Simulation(format!("die {die} of unit {unit} takes no erase")));
        }
    }
    Ok(())
}
