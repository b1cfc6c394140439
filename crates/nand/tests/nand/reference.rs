//! A reference array written for clarity: one command per die, linear searches, one value per page.
//! The real array must agree with it to the nanosecond.

use softflash_nand::{ArrayConfig, CommandKind, DieCommand, Finished, Geometry, PageStatus};
use std::collections::BTreeMap;

/// The completion of a command, as the reference computes it.
#[derive(Debug, PartialEq)]
pub struct End {
    pub tag: u64,
    pub at: u64,
    pub submitted_at: u64,
    pub status: Vec<PageStatus>,
    pub data: Vec<Vec<u8>>,
}

impl End {
    /// The same completion from the array.
    pub fn of(ended: &Finished, data: &[u8], page_bytes: usize) -> End {
        let read = ended.kind == CommandKind::Read;
        let pages = data.chunks(page_bytes).zip(ended.statuses());
        let good = pages.filter(|(_, status)| read && status.is_good());
        End {
            tag: ended.tag,
            at: ended.at.0,
            submitted_at: ended.submitted_at.0,
            status: ended.statuses().to_vec(),
            data: good.map(|(page, _)| page.to_vec()).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    InArray(u64),
    WantsBus,
    OnBus(u64),
}

struct Job {
    command: DieCommand,
    data: Vec<u8>,
    submitted_at: u64,
    stage: Stage,
}

impl Job {
    fn wants_bus(&self, kind: CommandKind) -> bool {
        self.command.kind == kind && self.stage == Stage::WantsBus
    }
}

/// The reference.
pub struct Reference {
    geometry: Geometry,
    config: ArrayConfig,
    dies: Vec<Option<Job>>,
    /// For each channel, the next die in round-robin order, and how often a program was overtaken.
    turns: Vec<(usize, u8)>,
    /// Pages by die, plane, block; a missing block is erased.
    blocks: BTreeMap<(u32, u8, u32), Vec<Vec<u8>>>,
}

impl Reference {
    /// For a configuration without cache registers and without suspending.
    pub fn new(config: &ArrayConfig) -> Reference {
        let geometry = config.geometry;
        Reference {
            geometry,
            config: config.clone(),
            dies: (0..geometry.dies()).map(|_| None).collect(),
            turns: vec![(0, 0); usize::from(geometry.channels)],
            blocks: BTreeMap::new(),
        }
    }

    fn parts(command: &DieCommand) -> impl Iterator<Item = (u32, u8, u32)> + '_ {
        (0..command.planes)
            .map(|plane| (command.die.0, command.plane + plane, command.blocks[plane as usize]))
    }

    /// Submits a command at `now`; returns whether it is accepted.
    pub fn submit(&mut self, now: u64, command: &DieCommand, data: &[u8]) -> bool {
        let ordered = Self::parts(command)
            .all(|block| self.blocks.get(&block).map_or(0, Vec::len) == command.page as usize);
        let lawful = command.kind != CommandKind::Program || ordered;
        let die = &mut self.dies[command.die.index()];
        if !lawful || die.is_some() {
            return false;
        }
        let stage = match command.kind {
            CommandKind::Read => Stage::InArray(now + self.config.die.read_ns[0]),
            CommandKind::Program => Stage::WantsBus,
            CommandKind::Erase => Stage::InArray(now + self.config.die.erase_ns),
        };
        *die = Some(Job { command: *command, data: data.to_vec(), submitted_at: now, stage });
        self.grant(now);
        true
    }

    /// Processes events up to and including `until`.
    pub fn advance(&mut self, until: u64) -> Vec<End> {
        let mut ends = Vec::new();
        while let Some((at, _, die)) = self.next().filter(|&(at, ..)| at <= until) {
            ends.extend(self.step(at, die));
            self.grant(at);
        }
        ends
    }

    /// The next event: arrays before buses, then by number.
    fn next(&self) -> Option<(u64, usize, usize)> {
        let events =
            self.dies.iter().enumerate().filter_map(|(die, job)| match job.as_ref()?.stage {
                Stage::InArray(at) => Some((at, die, die)),
                Stage::OnBus(at) => Some((at, self.dies.len() + self.channel(die), die)),
                Stage::WantsBus => None,
            });
        events.min()
    }

    fn channel(&self, die: usize) -> usize {
        die / self.geometry.dies_per_channel() as usize
    }

    fn step(&mut self, at: u64, die: usize) -> Option<End> {
        let mut job = self.dies[die].take()?;
        let program_ns = |page: u32| {
            // Shadow order of two levels: the first page, the odd ones, and not the last are lower.
            let upper =
                page > 0 && page.is_multiple_of(2) || page == self.geometry.pages_per_block - 1;
            self.config.die.program_ns[usize::from(upper)]
        };
        job.stage = match (job.command.kind, job.stage) {
            (CommandKind::Read, Stage::InArray(_)) => Stage::WantsBus,
            (CommandKind::Program, Stage::OnBus(_)) => {
                Stage::InArray(at + program_ns(job.command.page))
            }
            _ => return Some(self.end(at, job)),
        };
        self.dies[die] = Some(job);
        None
    }

    fn end(&mut self, at: u64, job: Job) -> End {
        let page_bytes = self.geometry.page_bytes as usize;
        let (mut status, mut data) = (Vec::new(), Vec::new());
        for (plane, block) in Self::parts(&job.command).enumerate() {
            status.push(PageStatus::Good);
            match job.command.kind {
                CommandKind::Read => {
                    let pages = self.blocks.get(&block);
                    match pages.and_then(|pages| pages.get(job.command.page as usize)) {
                        Some(page) => data.push(page.clone()),
                        None => status[plane] = PageStatus::Erased,
                    }
                }
                CommandKind::Program => {
                    let page = job.data[plane * page_bytes..][..page_bytes].to_vec();
                    self.blocks.entry(block).or_default().push(page);
                }
                CommandKind::Erase => {
                    self.blocks.remove(&block);
                }
            }
        }
        End { tag: job.command.tag, at, submitted_at: job.submitted_at, status, data }
    }

    /// Grants every idle bus to the next die in round-robin order.
    fn grant(&mut self, at: u64) {
        let per_channel = self.geometry.dies_per_channel() as usize;
        for channel in 0..self.turns.len() {
            let dies = channel * per_channel..(channel + 1) * per_channel;
            let jobs = || self.dies[dies.clone()].iter().flatten();
            if jobs().any(|job| matches!(job.stage, Stage::OnBus(_))) {
                continue;
            }
            let reads = jobs().any(|job| job.wants_bus(CommandKind::Read));
            let programs = jobs().any(|job| job.wants_bus(CommandKind::Program));
            let (turn, overtaken) = &mut self.turns[channel];
            let kind = match (reads, programs) {
                (false, false) => continue,
                (true, true) if *overtaken == self.config.bus.reads_ahead => CommandKind::Program,
                (true, _) => CommandKind::Read,
                (false, true) => CommandKind::Program,
            };
            match (kind, programs) {
                (CommandKind::Program, _) => *overtaken = 0,
                (_, true) => *overtaken += 1,
                _ => {}
            }
            let order =
                (0..64).map(|step| (*turn + step) % 64).filter(|&place| place < per_channel);
            for place in order {
                let Some(job) = &mut self.dies[dies.start + place] else { continue };
                if job.wants_bus(kind) {
                    let bytes = u64::from(job.command.planes) * u64::from(self.geometry.page_bytes);
                    let rate = self.config.bus.bytes_per_second;
                    job.stage = Stage::OnBus(at + bytes * 1_000_000_000 / rate);
                    *turn = (place + 1) % 64;
                    break;
                }
            }
        }
    }
}
