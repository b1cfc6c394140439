//! Reads the headers of all superblocks, many at a time.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use crate::config::FtlConfig;
use crate::ftl::Ftl;
use crate::header::{Decoded, FORMAT_VERSION, HeaderKind, HeaderPlace, decode, encoded_bytes};
use crate::inventory::Inventory;
use crate::layout::{HEADER_PAGES, Layout};
use crate::owners::{Owners, Ownership};
use crate::recovery::{Finding, recover, refuse_older_table};
use crate::slab::{Slab, place_of};
use crate::superblock::FtlError;
use crate::unit::Unit;
use softflash_base::cast;
use softflash_base::{IoBuf, Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{
    Command, Completion, DeviceError, Hint, Operation, Priority, QueuePair, Submit, Tag, Target,
    Wake,
};
use std::collections::VecDeque;

/// The header pages of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Both in one read, if they are in one block.
    Both,
    /// The beginning of one page, if the device can read parts of pages. If it is no header, the
    /// whole page is read.
    EraseHead,
    OpeningHead,
    Erase,
    Opening,
    /// The opening header a second time, because it was not found.
    OpeningRetry,
}

struct HeaderRead {
    unit: usize,
    index: u32,
    step: Step,
    die: u8,
}

/// The header reads of one unit.
struct Scan {
    id: UnitId,
    bad: Vec<(u8, u8, u32)>,
    findings: Vec<Finding>,
    /// Whether the beginnings of pages are read first.
    heads: bool,
    /// Reads to submit.
    pending: VecDeque<(u32, Step)>,
    in_device: Vec<u16>,
}

impl Scan {
    fn is_bad(&self, die: u8, plane: u8, block: u32) -> bool {
        self.bad.binary_search(&(die, plane, block)).is_ok()
    }
}

/// A mount under way. It reads two pages of every superblock, or their beginnings, so the device
/// bounds its time.
pub struct Mounting {
    queue: Option<Box<dyn QueuePair>>,
    config: FtlConfig,
    owners: Owners,
    layout: Result<Layout, FtlError>,
    scans: Vec<Scan>,
    reads: Slab<HeaderRead>,
    completions: Vec<Completion>,
}

impl Ftl {
    /// Begins a mount of units of the block layer: [`Mounting::poll`] reads the headers on the
    /// flash and returns the FTL.
    pub fn mount(queue: Box<dyn QueuePair>, config: FtlConfig) -> Mounting {
        let owners = Owners::one(queue.units().clone(), Ownership::BLOCKS);
        Mounting::new(queue, config, owners)
    }

    /// As [`mount`](Ftl::mount), of units of these owners.
    ///
    /// # Panics
    /// If the units of the queue pair are not those of the owners.
    pub fn mount_for(queue: Box<dyn QueuePair>, config: FtlConfig, owners: Owners) -> Mounting {
        Mounting::new(queue, config, owners)
    }
}

impl Mounting {
    fn new(queue: Box<dyn QueuePair>, config: FtlConfig, owners: Owners) -> Mounting {
        assert_eq!(queue.units(), &owners.units(), "the queue pair has the units of the owners");
        let layout = Layout::new(queue.geometry(), &config);
        let scans = match &layout {
            Ok(layout) => {
                queue.units().iter().map(|unit| scan(&*queue, layout, UnitId(unit))).collect()
            }
            Err(_) => Vec::new(),
        };
        Mounting {
            queue: Some(queue),
            config,
            owners,
            layout,
            scans,
            reads: Slab::new(),
            completions: Vec::new(),
        }
    }

    /// Processes the completions up to `now`. Returns the result once; do not poll after it.
    ///
    /// # Errors
    /// [`Unsupported`](FtlError::Unsupported), [`NewerFormat`](FtlError::NewerFormat),
    /// [`OlderTable`](FtlError::OlderTable), and [`Damaged`](FtlError::Damaged) if a header has a
    /// generation that none can follow. Damaged headers are no errors of the mount; the
    /// [`Inventory`] lists them.
    pub fn poll(&mut self, now: Time) -> Option<Result<(Ftl, Inventory), FtlError>> {
        let layout = match &self.layout {
            Ok(layout) => *layout,
            Err(error) => return Some(Err(error.clone())),
        };
        let mut queue = self.queue.take()?;
        loop {
            let mut completions = std::mem::take(&mut self.completions);
            queue.poll(now, &mut completions);
            for completion in completions.drain(..) {
                if let Err(error) = self.complete(&layout, queue.device_uuid(), completion) {
                    return Some(Err(error));
                }
            }
            self.completions = completions;
            if !self.submit(&layout, &mut *queue, now) {
                break;
            }
        }
        if self.reads.stored() > 0 || self.scans.iter().any(|scan| !scan.pending.is_empty()) {
            self.queue = Some(queue);
            return None;
        }
        let mut inventory = Inventory::default();
        let mut units = Vec::with_capacity(self.scans.len());
        for (place, scan) in self.scans.drain(..).enumerate() {
            let mut unit = Unit::new(scan.id, place, layout, &self.config, now);
            if let Err(error) = refuse_older_table(scan.id, self.owners.epoch(), &scan.findings) {
                return Some(Err(error));
            }
            if let Err(error) =
                recover(&mut unit, &self.owners, &scan.bad, &scan.findings, &mut inventory)
            {
                return Some(Err(error));
            }
            unit.note_supply(now);
            units.push(unit);
        }
        let epoch = self.owners.epoch();
        Some(Ok((Ftl::new(queue, &self.config, epoch, layout, units), inventory)))
    }

    /// The event to wait for before the next poll.
    pub fn wake(&self) -> Wake {
        match self.queue.as_ref().map(|queue| queue.wake()) {
            // No read is submitted yet, or the mount is over.
            None | Some(Wake::Idle) => Wake::Now,
            Some(wake) => wake,
        }
    }

    /// Submits reads up to the depth of every die. Returns true if the device accepted any.
    fn submit(&mut self, layout: &Layout, queue: &mut dyn QueuePair, now: Time) -> bool {
        let depth = queue.geometry().die_queue_depth.min(self.config.max_die_depth).max(1);
        let mut submitted = false;
        for unit in 0..self.scans.len() {
            while let Some(&(index, step)) = self.scans[unit].pending.front() {
                let target = self.target(layout, unit, index, step);
                let die = usize::from(target.die);
                if self.scans[unit].in_device[die] >= depth {
                    break;
                }
                let bytes = match step {
                    Step::EraseHead | Step::OpeningHead => cast::index(queue.sector_bytes()),
                    _ => cast::index(target.rows) * cast::index(layout.page_bytes),
                };
                let operation = Operation::Read(queue.buffers().take(bytes));
                let read = HeaderRead { unit, index, step, die: target.die };
                let place = self.reads.insert(read);
                let hint = Hint::HEADER.at(Priority::Foreground);
                let command = Command { tag: Tag(u64::from(place)), target, operation, hint };
                if let Submit::Full(_) = queue.submit(now, command) {
                    self.reads.remove(place);
                    return submitted;
                }
                let scan = &mut self.scans[unit];
                scan.in_device[die] += 1;
                scan.pending.pop_front();
                submitted = true;
            }
        }
        submitted
    }

    fn target(&self, layout: &Layout, unit: usize, index: u32, step: Step) -> Target {
        let scan = &self.scans[unit];
        let (page, rows) = match step {
            Step::Both => (0, HEADER_PAGES),
            Step::Erase | Step::EraseHead => (0, 1),
            Step::Opening | Step::OpeningRetry | Step::OpeningHead => (1, 1),
        };
        let run = layout.run(page, 1);
        let mut blocks = [0; MAX_PLANES];
        blocks[0] = scan.findings[cast::index(index)].block(layout.column(page), index);
        Target {
            unit: scan.id,
            die: run.die,
            plane: run.plane,
            planes: 1,
            blocks,
            page: run.page,
            rows,
        }
    }

    fn complete(
        &mut self,
        layout: &Layout,
        device_uuid: u128,
        completion: Completion,
    ) -> Result<(), FtlError> {
        let HeaderRead { unit, index, step, die } = self.reads.remove(place_of(completion.tag));
        let scan = &mut self.scans[unit];
        scan.in_device[usize::from(die)] -= 1;
        let place = HeaderPlace { device_uuid, unit: scan.id.0, index };
        let page = cast::index(layout.page_bytes);
        let read = |kind, bytes: &[u8]| {
            decode(kind, place, layout.columns(), layout.blocks_per_plane, bytes)
        };
        // The beginning of a page decides if it is a valid header, of this or a newer version, or
        // blank. Otherwise the whole page decides.
        let by_head = |kind, outcome: Result<&IoBuf, Decoded>| match outcome {
            Ok(bytes) => Some(read(kind, bytes))
                .filter(|decoded| matches!(decoded, Decoded::Valid(_) | Decoded::Newer(_))),
            Err(reason) => Some(reason).filter(|reason| *reason == Decoded::Blank),
        };
        let outcome = match (&completion.result, &completion.buffer) {
            (Ok(()), Some(buffer)) => Ok(buffer),
            (Ok(()), None) => Err(Decoded::Damaged("the device lost the buffer".to_owned())),
            (Err(DeviceError::Erased { .. }), _) => Err(Decoded::Blank),
            (Err(error), _) => Err(Decoded::Damaged(error.to_string())),
        };
        let finding = &mut scan.findings[cast::index(index)];
        match (step, outcome) {
            (Step::Both, Ok(bytes)) => {
                finding.erase = read(HeaderKind::Erase, &bytes[..page]);
                finding.opening = read(HeaderKind::Opening, &bytes[page..]);
            }
            (Step::Both, Err(_)) => {
                scan.pending.push_back((index, Step::Erase));
            }
            (Step::EraseHead, outcome) => match by_head(HeaderKind::Erase, outcome) {
                Some(decoded) => {
                    finding.erase = decoded;
                    queue_opening_read(scan, layout, index);
                }
                None => scan.pending.push_back((index, Step::Erase)),
            },
            (Step::OpeningHead, outcome) => match by_head(HeaderKind::Opening, outcome) {
                Some(decoded) => finding.opening = decoded,
                None => scan.pending.push_back((index, Step::Opening)),
            },
            (Step::Erase, outcome) => {
                finding.erase =
                    outcome.map_or_else(|reason| reason, |bytes| read(HeaderKind::Erase, bytes));
                queue_opening_read(scan, layout, index);
            }
            (Step::Opening, outcome) => {
                finding.opening =
                    outcome.map_or_else(|reason| reason, |bytes| read(HeaderKind::Opening, bytes));
            }
            (Step::OpeningRetry, outcome) => {
                let again = outcome.map(|bytes| read(HeaderKind::Opening, bytes));
                if let Ok(valid @ Decoded::Valid(_)) = again {
                    finding.opening = valid;
                }
            }
        }
        // A free superblock is erased, so one wrong read must not decide that it is free. A page
        // that the device reports as never programmed is read once.
        let page_was_read = matches!(step, Step::Both | Step::Opening) && completion.result.is_ok();
        if page_was_read && !matches!(scan.findings[cast::index(index)].opening, Decoded::Valid(_))
        {
            scan.pending.push_back((index, Step::OpeningRetry));
        }
        let finding = &scan.findings[cast::index(index)];
        for header in [&finding.erase, &finding.opening] {
            if let Decoded::Newer(found) = header {
                let (unit, supported) = (scan.id, FORMAT_VERSION);
                return Err(FtlError::NewerFormat { unit, found: *found, supported });
            }
        }
        Ok(())
    }
}

/// The scan of a unit, with the first read of every superblock queued.
fn scan(queue: &dyn QueuePair, layout: &Layout, id: UnitId) -> Scan {
    let mut bad = queue.bad_blocks(id);
    bad.sort_unstable();
    let sector_bytes = queue.sector_bytes();
    let heads = sector_bytes < layout.page_bytes
        && encoded_bytes(layout.columns()) <= cast::index(sector_bytes);
    let step = match (heads, layout.columns()) {
        (true, _) => Step::EraseHead,
        (false, 1) => Step::Both,
        (false, _) => Step::Erase,
    };
    let mut scan = Scan {
        id,
        bad,
        findings: vec![Finding::default(); cast::index(layout.blocks_per_plane)],
        heads,
        pending: VecDeque::new(),
        in_device: vec![0; cast::index(layout.dies)],
    };
    for index in 0..layout.blocks_per_plane {
        // A lead block that failed in use may still have data that its owner has not moved yet.
        scan.findings[cast::index(index)].lead_bad = scan.is_bad(0, 0, index);
        scan.pending.push_back((index, step));
    }
    scan
}

/// Queues the read of the opening header, once the erase header is decoded.
fn queue_opening_read(scan: &mut Scan, layout: &Layout, index: u32) {
    let run = layout.run(1, 1);
    let finding = &scan.findings[cast::index(index)];
    let block = finding.block(layout.column(1), index);
    let known = matches!(finding.erase, Decoded::Valid(_));
    let readable = known || !scan.is_bad(run.die, run.plane, block);
    let erase_damaged = matches!(finding.erase, Decoded::Damaged(_));
    if readable {
        let step = if scan.heads { Step::OpeningHead } else { Step::Opening };
        scan.pending.push_back((index, step));
    } else if erase_damaged {
        // Another block has replaced the bad one, and only the erase header names it.
        let reason = "the erase header, which has its block number, is damaged".to_owned();
        scan.findings[cast::index(index)].opening = Decoded::Damaged(reason);
    }
}
