//! Reading the headers of every superblock, many at a time.

use crate::config::FtlConfig;
use crate::ftl::Ftl;
use crate::header::{Decoded, FORMAT_VERSION, HeaderKind, HeaderPlace, decode, encoded_bytes};
use crate::hint::Stream;
use crate::layout::{HEADER_PAGES, Layout};
use crate::recovery::{Finding, recover};
use crate::slab::Slab;
use crate::superblock::{FtlError, OwnerTag, Superblock};
use softflash_base::{IoBuf, Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{
    Command, Completion, DeviceError, Operation, QueuePair, Submit, Tag, Target, Wake,
};
use std::collections::VecDeque;

/// A superblock that holds data of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSuperblock {
    /// The handle; live until it is released.
    pub superblock: Superblock,
    /// What the owner gave when it was allocated.
    pub tag: OwnerTag,
    /// The stream it was allocated for.
    pub stream: Stream,
}

/// A superblock whose opening header is neither whole nor blank: a power cut tore it, so that nothing
/// inside was ever acknowledged, or the flash lost it. The two look the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSuperblock {
    /// The handle: its pages can be read, and its space comes back when it is released.
    pub superblock: Superblock,
    /// What does not fit.
    pub reason: String,
}

/// What a mount found. All of it is live until released.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// Superblocks with their owners' tags, by unit and index.
    pub superblocks: Vec<FoundSuperblock>,
    /// Superblocks whose owner is unknown.
    pub damaged: Vec<DamagedSuperblock>,
    /// Superblocks, listed above too, whose erase header is damaged, for which the opening header stands in. A power
    /// cut leaves this behind only of superblocks that were given up and being erased.
    pub erase_headers_lost: Vec<DamagedSuperblock>,
}

/// Which header pages a read covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Both in one read, where they lie in one block.
    Both,
    /// The beginning of one, where the device gives parts of pages. Where that is no header, the whole page is read.
    EraseHead,
    OpeningHead,
    Erase,
    Opening,
    /// The opening header once more, as it was not found.
    OpeningAgain,
}

struct HeaderRead {
    unit: usize,
    index: u32,
    step: Step,
    die: u8,
}

/// The search of one unit.
struct Scan {
    id: UnitId,
    bad: Vec<(u8, u8, u32)>,
    findings: Vec<Finding>,
    /// Whether beginnings of pages are read first.
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

/// An FTL on its way: reads two pages of every superblock, or their beginnings, so its time is bounded by the device.
pub struct Mounting {
    queue: Option<Box<dyn QueuePair>>,
    config: FtlConfig,
    layout: Result<Layout, FtlError>,
    scans: Vec<Scan>,
    reads: Slab<HeaderRead>,
    completions: Vec<Completion>,
}

impl Mounting {
    pub(crate) fn new(queue: Box<dyn QueuePair>, config: FtlConfig) -> Mounting {
        let layout = Layout::new(queue.geometry(), &config);
        let scans = match &layout {
            Ok(layout) => queue.units().map(|unit| scan(&*queue, layout, UnitId(unit))).collect(),
            Err(_) => Vec::new(),
        };
        Mounting {
            queue: Some(queue),
            config,
            layout,
            scans,
            reads: Slab::new(),
            completions: Vec::new(),
        }
    }

    /// Goes on with what the device has finished by `now`. The result comes once; do not poll after it.
    ///
    /// # Errors
    /// [`Unsupported`](FtlError::Unsupported), [`NewerFormat`](FtlError::NewerFormat). Damaged headers are not
    /// errors of the mount; the [`Inventory`] lists them.
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
        if self.reads.len() > 0 || self.scans.iter().any(|scan| !scan.pending.is_empty()) {
            self.queue = Some(queue);
            return None;
        }
        let mut inventory = Inventory::default();
        let mut units = Vec::with_capacity(self.scans.len());
        for scan in self.scans.drain(..) {
            let mut unit = recover(scan.id, &layout, &scan.bad, scan.findings, now, &mut inventory);
            unit.note_shortage(now, self.config.prepared_target);
            units.push(unit);
        }
        Some(Ok((Ftl::new(queue, self.config, layout, units), inventory)))
    }

    /// What to wait for before the next poll.
    pub fn wake(&self) -> Wake {
        match self.queue.as_ref().map(|queue| queue.wake()) {
            // Nothing was submitted yet, or the mount is over.
            None | Some(Wake::Idle) => Wake::Now,
            Some(wake) => wake,
        }
    }

    /// Submits reads up to the depth of every die; true where any was taken.
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
                    Step::EraseHead | Step::OpeningHead => queue.sector_bytes() as usize,
                    _ => target.rows as usize * layout.page_bytes as usize,
                };
                let operation = Operation::Read(queue.buffers().take(bytes));
                let read = HeaderRead { unit, index, step, die: target.die };
                let place = self.reads.insert(read);
                let command = Command { tag: Tag(u64::from(place)), target, operation };
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
            Step::Opening | Step::OpeningAgain | Step::OpeningHead => (1, 1),
        };
        let run = layout.run(page, 1);
        let mut blocks = [0; MAX_PLANES];
        blocks[0] = scan.findings[index as usize].block(layout.seat(page), index);
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
        let HeaderRead { unit, index, step, die } = self.reads.remove(completion.tag.0 as u32);
        let scan = &mut self.scans[unit];
        scan.in_device[usize::from(die)] -= 1;
        let place = HeaderPlace { device_uuid, unit: scan.id.0, index };
        let page = layout.page_bytes as usize;
        let read = |kind, bytes: &[u8]| {
            decode(kind, place, layout.seats(), layout.blocks_per_plane, bytes)
        };
        // What the beginning of a page shows counts if it is a header or nothing; what else it is, the whole page tells.
        let by_head = |kind, outcome: Result<&IoBuf, Decoded>| match outcome {
            Ok(bytes) => Some(read(kind, bytes))
                .filter(|told| matches!(told, Decoded::Valid(_) | Decoded::Newer(_))),
            Err(reason) => Some(reason).filter(|reason| *reason == Decoded::Blank),
        };
        let outcome = match (&completion.result, &completion.buffer) {
            (Ok(()), Some(buffer)) => Ok(buffer),
            (Ok(()), None) => Err(Decoded::Damaged("the device lost the buffer".to_owned())),
            (Err(DeviceError::Erased { .. }), _) => Err(Decoded::Blank),
            (Err(error), _) => Err(Decoded::Damaged(error.to_string())),
        };
        let finding = &mut scan.findings[index as usize];
        match (step, outcome) {
            (Step::Both, Ok(bytes)) => {
                finding.erase = read(HeaderKind::Erase, &bytes[..page]);
                finding.opening = read(HeaderKind::Opening, &bytes[page..]);
            }
            (Step::Both, Err(_)) => {
                scan.pending.push_back((index, Step::Erase));
            }
            (Step::EraseHead, outcome) => match by_head(HeaderKind::Erase, outcome) {
                Some(told) => {
                    finding.erase = told;
                    look_for_opening(scan, layout, index);
                }
                None => scan.pending.push_back((index, Step::Erase)),
            },
            (Step::OpeningHead, outcome) => match by_head(HeaderKind::Opening, outcome) {
                Some(told) => finding.opening = told,
                None => scan.pending.push_back((index, Step::Opening)),
            },
            (Step::Erase, outcome) => {
                finding.erase =
                    outcome.map_or_else(|reason| reason, |bytes| read(HeaderKind::Erase, bytes));
                look_for_opening(scan, layout, index);
            }
            (Step::Opening, outcome) => {
                finding.opening =
                    outcome.map_or_else(|reason| reason, |bytes| read(HeaderKind::Opening, bytes));
            }
            (Step::OpeningAgain, outcome) => {
                let again = outcome.map(|bytes| read(HeaderKind::Opening, bytes));
                if let Ok(valid @ Decoded::Valid(_)) = again {
                    finding.opening = valid;
                }
            }
        }
        // What is taken for free is erased: a read that went wrong must not decide that. A page that the device says
        // was never programmed is not looked at twice.
        let looked = matches!(step, Step::Both | Step::Opening) && completion.result.is_ok();
        if looked && !matches!(scan.findings[index as usize].opening, Decoded::Valid(_)) {
            scan.pending.push_back((index, Step::OpeningAgain));
        }
        let finding = &scan.findings[index as usize];
        for header in [&finding.erase, &finding.opening] {
            if let Decoded::Newer(found) = header {
                let (unit, supported) = (scan.id, FORMAT_VERSION);
                return Err(FtlError::NewerFormat { unit, found: *found, supported });
            }
        }
        Ok(())
    }
}

/// The search of a unit, with the first read of every superblock.
fn scan(queue: &dyn QueuePair, layout: &Layout, id: UnitId) -> Scan {
    let mut bad = queue.bad_blocks(id);
    bad.sort_unstable();
    let sector_bytes = queue.sector_bytes();
    let heads =
        sector_bytes < layout.page_bytes && encoded_bytes(layout.seats()) <= sector_bytes as usize;
    let step = match (heads, layout.seats()) {
        (true, _) => Step::EraseHead,
        (false, 1) => Step::Both,
        (false, _) => Step::Erase,
    };
    let mut scan = Scan {
        id,
        bad,
        findings: vec![Finding::default(); layout.blocks_per_plane as usize],
        heads,
        pending: VecDeque::new(),
        in_device: vec![0; layout.dies as usize],
    };
    for index in 0..layout.blocks_per_plane {
        // A lead that went bad in use may still hold what its owner has not moved yet.
        scan.findings[index as usize].lead_bad = scan.is_bad(0, 0, index);
        scan.pending.push_back((index, step));
    }
    scan
}

/// Decides where the opening header is to be found, once the erase header has been looked at.
fn look_for_opening(scan: &mut Scan, layout: &Layout, index: u32) {
    let run = layout.run(1, 1);
    let finding = &scan.findings[index as usize];
    let block = finding.block(layout.seat(1), index);
    let known = matches!(finding.erase, Decoded::Valid(_));
    let readable = known || !scan.is_bad(run.die, run.plane, block);
    let erase_damaged = matches!(finding.erase, Decoded::Damaged(_));
    if readable {
        let step = if scan.heads { Step::OpeningHead } else { Step::Opening };
        scan.pending.push_back((index, step));
    } else if erase_damaged {
        // Another block stood in for the bad one, and only the erase header told which.
        let reason = "the erase header, which tells where it lies, is damaged".to_owned();
        scan.findings[index as usize].opening = Decoded::Damaged(reason);
    }
}
