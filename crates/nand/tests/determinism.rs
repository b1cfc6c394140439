//! Equal seeds give equal runs, event by event.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers fail the test that called")]

mod common;

use common::{Rig, program, read};
use softflash_base::{Time, random::Rng};
use softflash_nand::{
    Array, CommandKind, DieCommand, DieIndex, ErrorLaw, FaultConfig, Finished, Storage, presets,
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

/// How a caller gets from one time to a later one.
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

/// Drives a TLC array with random commands and returns everything that it said.
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
