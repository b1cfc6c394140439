//! Equal seeds give equal runs, event by event.

use crate::common;
use crate::common::{Rig, program, read};
use softflash_base::{Time, checksum64, random::Rng};
use softflash_nand::{
    Array, ArrayConfig, CommandKind, CutErases, CutPages, DieCommand, DieIndex, ErrorLaw,
    FaultConfig, FaultPlace, FaultSchedule, FaultTime, Finished, PlannedFault, SilentFaults,
    SlowOperations, Storage, Strike, SuspendTiming, presets,
};

fn faults() -> FaultConfig {
    FaultConfig {
        factory_bad_block: 0.02,
        program_failure: 1e-3,
        erase_failure: 1e-3,
        bit_errors: ErrorLaw { rber_fresh: 0.004, ..ErrorLaw::default() },
        ..FaultConfig::default()
    }
}

/// How a caller advances the time.
#[derive(Clone, Copy)]
enum Pace {
    AtOnce,
    Strides(u64),
    Steps,
}

impl Pace {
    fn advance(self, array: &mut Array, now: Time, finished: &mut Vec<Finished>) {
        match self {
            Pace::AtOnce => {}
            Pace::Strides(stride_ns) => {
                while array.now() + stride_ns < now {
                    array.advance(array.now() + stride_ns, finished);
                }
            }
            Pace::Steps => {
                while array.next_event_at().is_some_and(|at| at <= now) {
                    assert!(array.step(finished) <= Some(now));
                }
            }
        }
        array.advance(now, finished);
    }
}

/// Drives a TLC array with random commands and returns all its results.
fn history(seed: u64, pace: Pace) -> String {
    let mut array = Array::new(&presets::tlc(), Storage::TimingOnly, &faults(), seed).unwrap();
    let mut rng = Rng::seeded(seed);
    let mut finished: Vec<Finished> = Vec::new();
    let mut said = String::new();
    for tag in 0..3000 {
        let now = Time(tag * 10_000);
        pace.advance(&mut array, now, &mut finished);
        let die = DieIndex(rng.below(64) as u32);
        let block = rng.below(4) as u32;
        let next = array.block_state(common::block(die.0, 0, block)).unwrap().write_pointer;
        let kind = match rng.below(10) {
            0 => CommandKind::Erase,
            1..5 => CommandKind::Program,
            _ => CommandKind::Read,
        };
        let command = DieCommand::single(tag, die, kind, block, next.unwrap_or(0));
        let taken = array.submit(now, &command, &[]);
        said += &format!("{taken:?}\n");
    }
    array.advance(Time::MAX, &mut finished);
    said + &format!("{finished:?} {:?}", array.counters())
}

#[test]
fn equal_seeds_give_equal_histories() {
    assert_eq!(history(1, Pace::AtOnce), history(1, Pace::AtOnce));
    assert_ne!(history(1, Pace::AtOnce), history(2, Pace::AtOnce));
}

/// Drives an array that stores data through commands and power cuts; returns a checksum of all
/// completions, read data and final block states.
fn digest(faults: &FaultConfig, storage: Storage, prepare: impl Fn(&mut Array)) -> u64 {
    digest_of(&presets::small(), 1, 7, faults, storage, prepare)
}

fn digest_of(
    config: &ArrayConfig,
    planes: u8,
    seed: u64,
    faults: &FaultConfig,
    storage: Storage,
    prepare: impl Fn(&mut Array),
) -> u64 {
    let pages = config.geometry.pages_per_block;
    let mut array = Array::new(config, storage, faults, seed).unwrap();
    prepare(&mut array);
    let mut rng = Rng::seeded(seed + 1);
    let mut finished: Vec<Finished> = Vec::new();
    let mut sum = 0;
    for tag in 0..4000 {
        let now = array.now() + rng.below(300_000);
        while array.next_event_at().is_some_and(|at| at <= now) {
            array.step(&mut finished);
            for ended in finished.drain(..) {
                sum = checksum64(sum, array.read_data(&ended));
                let Finished { tag, at, retries, .. } = ended;
                sum = checksum64(
                    sum,
                    format!("{tag} {at} {retries} {:?}", ended.statuses()).as_bytes(),
                );
            }
        }
        array.advance(now, &mut finished);
        if rng.chance(0.01) {
            sum += array.power_cut(now, &mut rng).commands_lost;
        }
        let (die, number) = (DieIndex(rng.below(4) as u32), rng.below(4) as u32);
        let next = array.block_state(common::block(die.0, 0, number)).unwrap().write_pointer;
        let (kind, page) = match (next, rng.below(10)) {
            (_, 0) => (CommandKind::Erase, 0),
            (next, 0..5) if next.is_none_or(|next| next == pages) => (CommandKind::Erase, 0),
            (Some(next), 1..5) if next < pages => (CommandKind::Program, next),
            (next, _) => (CommandKind::Read, rng.below(u64::from(next.unwrap_or(1).max(1))) as u32),
        };
        let programs = usize::from(kind == CommandKind::Program);
        let mut data = vec![0; programs * usize::from(planes) * 4096];
        rng.fill(&mut data);
        let blocks = [number; 4];
        let command = DieCommand { tag, die, kind, plane: 0, planes, blocks, page, head: false };
        let taken = array.submit(now, &command, &data);
        sum = sum.wrapping_add(u64::from(taken.is_ok()));
    }
    for (die, number) in (0..4).flat_map(|die| (0..4).map(move |number| (die, number))) {
        let record = array.export_block(common::block(die, 0, number)).unwrap();
        let numbers = (record.write_pointer, record.erase_count, record.reads, record.health);
        sum = checksum64(sum, format!("{numbers:?} {:?}", record.damaged).as_bytes());
    }
    sum
}

/// The faults of the first version of the fault model.
fn first_faults() -> FaultConfig {
    FaultConfig { paired_page_loss: 0.5, shorn_page_readable: 0.3, ..faults() }
}

#[test]
fn what_was_drawn_before_there_were_more_faults_is_drawn_today() {
    let digest = |faults: &FaultConfig| digest(faults, Storage::Ram, |_| {});
    assert_eq!(digest(&FaultConfig::default()), 7_271_274_738_371_045_524);
    assert_eq!(digest(&first_faults()), 11_247_524_841_579_760_202);
}

/// Every kind of fault, at high rates.
fn every_fault() -> FaultConfig {
    FaultConfig {
        cut_pages: CutPages {
            untouched: 1.0,
            whole: 1.0,
            shorn: 1.0,
            random: 1.0,
            unstable: 2.0,
            unstable_reads: 2,
            unstable_ms: 3,
        },
        cut_erases: CutErases {
            looks_erased: 1.0,
            part_old: 1.0,
            random: 1.0,
            program_failure_factor: 10.0,
        },
        silent: SilentFaults {
            miscorrected_read: 0.02,
            misdirected_read: 0.02,
            stale_read: 0.02,
            misdirected_program: 0.03,
            phantom_program: 0.03,
        },
        slow: SlowOperations { rate: 0.01, factor: 20.0 },
        ..first_faults()
    }
}

/// Every kind of planned fault but a power cut.
fn plan(array: &mut Array) {
    let at =
        |place, ms: u64, what| PlannedFault { place, when: FaultTime::AtNs(ms * 1_000_000), what };
    let slow = Strike::Slow { factor: 3.0, for_ns: 50_000_000 };
    let die = FaultPlace::Die(2);
    let faults = vec![
        at(FaultPlace::Channel(0), 100, slow),
        at(die, 400, Strike::Death),
        PlannedFault { place: die, when: FaultTime::Program(5), what: Strike::Misdirect },
        PlannedFault { place: die, when: FaultTime::Erase(2), what: Strike::Fail },
    ];
    array.schedule(&FaultSchedule { faults }).unwrap();
}

#[test]
fn equal_seeds_give_equal_bytes_with_every_fault_there_is() {
    let every = every_fault();
    let first = digest(&every, Storage::Ram, plan);
    assert_eq!(first, digest(&every, Storage::Ram, plan));
    assert_eq!(first, digest(&every, Storage::Packed, plan), "whatever keeps the bytes");
    assert_ne!(first, digest(&every, Storage::Ram, |_| {}));
}

#[test]
fn no_rule_of_the_array_is_hurt_by_any_fault() {
    let suspend = Some(SuspendTiming { suspend_ns: 7_000, resume_ns: 3_000, at_most: 2 });
    for seed in 0..24 {
        let mut config = presets::small();
        config.geometry.pages_per_block = 8;
        config.geometry.blocks_per_plane = 5;
        config.die.cache_read = seed % 2 == 0;
        config.die.cache_program = seed % 3 != 0;
        config.die.program_suspend = suspend.filter(|_| seed % 5 < 3);
        config.die.erase_suspend = suspend.filter(|_| seed % 5 > 1);
        let prepare = |array: &mut Array| {
            if seed % 4 > 0 {
                plan(array)
            }
        };
        let run = |storage| {
            digest_of(&config, 1 + (seed % 7 % 2) as u8, seed, &every_fault(), storage, prepare)
        };
        assert_eq!(run(Storage::Ram), run(Storage::Packed), "seed {seed}");
    }
}

#[test]
fn how_the_caller_advances_makes_no_difference() {
    assert_eq!(history(3, Pace::AtOnce), history(3, Pace::Strides(777)));
    assert_eq!(history(3, Pace::AtOnce), history(3, Pace::Steps));
}

#[test]
fn chance_strikes_a_die_whatever_the_others_do() {
    let config = presets::small();
    let errors = |others: bool| {
        let mut rig = Rig::with(&config, Storage::TimingOnly, &faults());
        rig.run(program(0, 3, 0, 0), &[]);
        (0..50)
            .map(|_| {
                if others {
                    rig.run(program(0, 2, 0, 0), &[]);
                    rig.run(read(0, 2, 0, 0), &[]);
                    rig.run(common::erase(0, 2, 0), &[]);
                }
                rig.run(read(0, 3, 0, 0), &[]).status[0]
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(false), errors(true));
}

#[test]
fn ties_resolve_by_number() {
    let mut rig = Rig::new(&presets::small());
    for die in [3, 1, 2, 0] {
        rig.submit(0, common::erase(u64::from(die), die, 0)).unwrap();
    }
    let order: Vec<u64> = rig.drain().iter().map(|ended| ended.tag).collect();
    assert_eq!(order, [0, 1, 2, 3]);
}
