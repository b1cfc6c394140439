//! Random commands: compared with a simple reference, and checked against invariants with every
//! feature and every fault enabled.

use crate::common;
use crate::reference::{End, Reference};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use softflash_base::{Time, random::Rng};
use softflash_nand::{
    Array, ArrayConfig, ChannelIndex, CommandKind, DieCommand, DieIndex, ErrorLaw, FaultConfig,
    Finished, PageStatus, Refused, Storage, SuspendTiming, presets,
};
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 512;
const BLOCKS: u32 = 3;

fn tiny() -> ArrayConfig {
    let mut config = presets::small();
    config.geometry.blocks_per_plane = BLOCKS;
    config.geometry.pages_per_block = 6;
    config.geometry.chips_per_channel = 3;
    config.geometry.page_bytes = PAGE_BYTES as u32;
    // 10 us a page, as in the preset.
    config.bus.bytes_per_second = 51_200_000;
    config.bus.reads_ahead = 2;
    config
}

fn settings() -> ProptestConfig {
    // Seeds of failures are kept beside this file and tried first in later runs.
    let kept = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        cases: 200,
        failure_persistence: Some(Box::new(kept)),
        ..ProptestConfig::default()
    }
}

/// A command to try, and the delay since the last one.
#[derive(Debug, Clone)]
struct Try {
    wait_us: u64,
    command: DieCommand,
    in_order: bool,
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let kind = prop_oneof![
        4 => Just(CommandKind::Read),
        5 => Just(CommandKind::Program),
        1 => Just(CommandKind::Erase),
    ];
    let wait = prop_oneof![3 => Just(0), 3 => 0..30_u64, 3 => 0..300_u64, 1 => 0..4000_u64];
    let place = (0..6_u32, 0..2_u8, 1..=2_u8, 0..BLOCKS, 0..BLOCKS, 0..6_u32);
    let one = (wait, kind, place, prop::bool::weighted(0.9)).prop_map(
        |(wait_us, kind, (die, plane, planes, first, second, page), in_order)| {
            let planes = if plane == 1 { 1 } else { planes };
            let (die, blocks) = (DieIndex(die), [first, second, 0, 0]);
            let command =
                DieCommand { tag: 0, die, kind, plane, planes, blocks, page, head: false };
            Try { wait_us, command, in_order }
        },
    );
    prop::collection::vec(one, 1..400)
}

/// The command with its tag and, for most programs, the page that is next in order.
fn concrete(attempt: &Try, tag: u64, array: &Array) -> DieCommand {
    let mut command = DieCommand { tag, ..attempt.command };
    if command.kind == CommandKind::Program && attempt.in_order {
        let first = common::block(command.die.0, command.plane, command.blocks[0]);
        let next = array.block_state(first).and_then(|state| state.write_pointer);
        command.page = next.unwrap_or(0).min(5);
    }
    command
}

fn bytes_of(tag: u64, planes: u8) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(planes) * PAGE_BYTES];
    Rng::seeded(tag).fill(&mut bytes);
    bytes
}

fn ends(array: &mut Array, until: u64) -> Vec<End> {
    let mut ends = Vec::new();
    let mut finished: Vec<Finished> = Vec::new();
    // Event by event, as data are valid only until the die takes its next command.
    while let Some(at) = array.next_event_at().filter(|at| at.0 <= until) {
        array.advance(at, &mut finished);
        for ended in finished.drain(..) {
            ends.push(End::of(&ended, array.read_data(&ended), PAGE_BYTES));
        }
    }
    array.advance(Time(until), &mut finished);
    assert!(finished.is_empty());
    ends
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn the_array_agrees_with_the_reference_to_the_nanosecond(tries in tries()) {
        let config = tiny();
        let mut array = Array::new(&config, Storage::Ram, &FaultConfig::default(), 1).unwrap();
        let mut reference = Reference::new(&config);
        let (mut now, mut taken) = (0, 0);
        for (tag, attempt) in tries.iter().enumerate() {
            now += attempt.wait_us * 1000;
            prop_assert_eq!(ends(&mut array, now), reference.advance(now));
            let command = concrete(attempt, tag as u64, &array);
            let data = match command.kind {
                CommandKind::Program => bytes_of(command.tag, command.planes),
                _ => Vec::new(),
            };
            let accepted = array.submit(Time(now), &command, &data);
            let expected = reference.submit(now, &command, &data);
            prop_assert_eq!(accepted.is_ok(), expected, "{:?}: {:?}", command, accepted);
            taken += u64::from(expected);
        }
        let end = now + 10_000_000_000;
        prop_assert_eq!(ends(&mut array, end), reference.advance(end));
        let counters = array.counters();
        prop_assert_eq!((counters.submitted, counters.finished), (taken, taken));
    }

    #[test]
    fn what_must_hold_holds_with_everything_switched_on(tries in tries(), seed in 0..1000_u64) {
        Everything::new(seed).run(&tries)?;
    }
}

/// The knowledge of the layer above about a page.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    /// It was acknowledged with this tag and plane.
    Acknowledged(u64, u8),
    /// Its program failed, or its program or erase was cut: it may hold the data of one of these
    /// programs, or nothing.
    Unsure(Vec<(u64, u8)>),
}

/// An array with all features and faults, and the expected contents.
struct Everything {
    array: Array,
    config: ArrayConfig,
    rng: Rng,
    under_way: BTreeMap<u64, DieCommand>,
    pages: BTreeMap<(u32, u8, u32, u32), Known>,
    /// Commands in progress at the last power cut.
    lost: u64,
}

impl Everything {
    fn new(seed: u64) -> Everything {
        let mut config = tiny();
        let suspend = SuspendTiming { suspend_ns: 7_000, resume_ns: 3_000, at_most: 2 };
        config.die.cache_read = seed.is_multiple_of(2);
        config.die.cache_program = !seed.is_multiple_of(3);
        config.die.program_suspend = (seed % 5 < 3).then_some(suspend);
        config.die.erase_suspend = (seed % 5 > 1).then_some(suspend);
        let faults = FaultConfig {
            factory_bad_block: 0.05,
            program_failure: 0.01,
            erase_failure: 0.02,
            bit_errors: ErrorLaw { rber_fresh: 0.004, ..ErrorLaw::default() },
            ..FaultConfig::default()
        };
        Everything {
            array: Array::new(&config, Storage::Ram, &faults, seed).unwrap(),
            config,
            rng: Rng::seeded(seed),
            under_way: BTreeMap::new(),
            pages: BTreeMap::new(),
            lost: 0,
        }
    }

    fn run(&mut self, tries: &[Try]) -> Result<(), TestCaseError> {
        let mut now = 0;
        for (tag, attempt) in tries.iter().enumerate() {
            now += attempt.wait_us * 1000;
            self.advance(now)?;
            if self.rng.chance(0.01) {
                self.cut(now);
            }
            let command = concrete(attempt, tag as u64, &self.array);
            let data = match command.kind {
                CommandKind::Program => bytes_of(command.tag, command.planes),
                _ => Vec::new(),
            };
            let room = self.array.has_room(command.die, command.kind);
            match self.array.submit(Time(now), &command, &data) {
                Ok(()) => {
                    prop_assert!(room);
                    self.under_way.insert(command.tag, command);
                }
                Err(Refused::Busy) => prop_assert!(!room),
                Err(Refused::Rule(_)) => prop_assert!(command.kind != CommandKind::Read),
            }
        }
        self.advance(now + 10_000_000_000)?;
        prop_assert!(self.under_way.is_empty(), "nothing is forgotten");
        prop_assert_eq!(self.array.next_event_at(), None);
        self.check_times()
    }

    fn advance(&mut self, until: u64) -> Result<(), TestCaseError> {
        let mut finished: Vec<Finished> = Vec::new();
        let mut last = Time::ZERO;
        while let Some(at) = self.array.next_event_at().filter(|at| at.0 <= until) {
            self.array.advance(at, &mut finished);
            for ended in finished.drain(..) {
                prop_assert!(ended.at >= last && ended.at == at);
                last = ended.at;
                self.check(&ended)?;
            }
        }
        self.array.advance(Time(until), &mut finished);
        let counters = self.array.counters();
        let open = self.under_way.len() as u64;
        prop_assert_eq!(counters.submitted, counters.finished + counters.lost + open);
        prop_assert_eq!(counters.lost, self.lost);
        Ok(())
    }

    fn check(&mut self, ended: &Finished) -> Result<(), TestCaseError> {
        let Some(command) = self.under_way.remove(&ended.tag) else {
            return Err(TestCaseError::fail(format!("{ended:?} was not under way")));
        };
        let die = &self.config.die;
        let bus_ns = 10_000 * u64::from(command.planes);
        let least = match command.kind {
            CommandKind::Read => die.read_ns[0] + bus_ns,
            CommandKind::Program => die.program_ns[0] + bus_ns,
            CommandKind::Erase => die.erase_ns,
        };
        prop_assert!(ended.latency_ns() >= least, "{:?}", ended);
        for (plane, status) in ended.statuses().iter().enumerate() {
            let plane_number = command.plane + plane as u8;
            let block = (command.die.0, plane_number, command.blocks[plane]);
            let page = (block.0, block.1, block.2, command.page);
            match command.kind {
                CommandKind::Read => self.check_read(ended, plane, page)?,
                CommandKind::Program => {
                    let known = match status.is_good() {
                        true => Known::Acknowledged(ended.tag, plane as u8),
                        false => Known::Unsure(vec![(ended.tag, plane as u8)]),
                    };
                    self.pages.insert(page, known);
                }
                CommandKind::Erase => {
                    self.pages.retain(|&(die, plane, number, _), _| (die, plane, number) != block);
                }
            }
        }
        Ok(())
    }

    fn check_read(
        &self,
        ended: &Finished,
        plane: usize,
        page: (u32, u8, u32, u32),
    ) -> Result<(), TestCaseError> {
        let status = ended.statuses()[plane];
        let data = &self.array.read_data(ended)[plane * PAGE_BYTES..][..PAGE_BYTES];
        let is =
            |tag, plane: u8| bytes_of(tag, plane + 1)[usize::from(plane) * PAGE_BYTES..] == *data;
        if !status.is_good() {
            prop_assert!(data.iter().all(|&byte| byte == 0), "an unreadable page shows nothing");
        }
        match self.pages.get(&page) {
            Some(&Known::Acknowledged(tag, plane)) => {
                prop_assert!(status.is_good() && is(tag, plane), "{:?}", ended);
            }
            Some(Known::Unsure(writers)) => {
                let known = writers.iter().any(|&(tag, plane)| is(tag, plane));
                prop_assert!(!status.is_good() || known, "{:?}", ended);
            }
            None => {
                prop_assert!(
                    matches!(status, PageStatus::Erased | PageStatus::Uncorrectable),
                    "{:?}",
                    ended
                );
            }
        }
        Ok(())
    }

    fn cut(&mut self, now: u64) {
        let lost = self.array.power_cut(Time(now), &mut self.rng).commands_lost;
        assert_eq!(lost, self.under_way.len() as u64);
        self.lost += lost;
        for (tag, command) in std::mem::take(&mut self.under_way) {
            for plane in 0..command.planes {
                let number = command.blocks[usize::from(plane)];
                let block = (command.die.0, command.plane + plane, number);
                match command.kind {
                    CommandKind::Read => {}
                    CommandKind::Program => {
                        // Older contents are still there if an erase before it was cut too.
                        let page = (block.0, block.1, block.2, command.page);
                        match self.pages.entry(page).or_insert(Known::Unsure(Vec::new())) {
                            Known::Unsure(writers) => writers.push((tag, plane)),
                            known => panic!("{command:?} was taken over {known:?}"),
                        }
                    }
                    CommandKind::Erase => self.unsettle(block),
                }
            }
        }
    }

    /// A block's erase was cut: its pages hold their old data or nothing.
    fn unsettle(&mut self, block: (u32, u8, u32)) {
        for (&(die, plane, number, _), known) in &mut self.pages {
            if (die, plane, number) == block
                && let &mut Known::Acknowledged(tag, of) = known
            {
                *known = Known::Unsure(vec![(tag, of)]);
            }
        }
    }

    fn check_times(&self) -> Result<(), TestCaseError> {
        let elapsed = self.array.now().0;
        for die in 0..self.config.geometry.dies() {
            prop_assert!(self.array.die_busy_ns(DieIndex(die)) <= elapsed);
        }
        for channel in 0..u32::from(self.config.geometry.channels) {
            prop_assert!(self.array.channel_busy_ns(ChannelIndex(channel)) <= elapsed);
        }
        Ok(())
    }
}
