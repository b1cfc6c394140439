//! Planned faults strike at their place and time; dead and slow dies.

use crate::common::{BUS, ERASE, LOWER, READ, Rig, US, block, erase, program, read};
use softflash_base::{Time, random::Rng};
use softflash_nand::{
    ArrayConfig, ChannelIndex, DieCommand, FaultConfig, FaultPlace, FaultSchedule, FaultTime,
    Health, InjectedFaults, PageStatus, PlannedFault, PowerCutReport, SlowOperations, Storage,
    Strike, SuspendTiming, presets,
};

const DIE_0: FaultPlace = FaultPlace::Die(0);

fn planned(faults: &[(FaultPlace, FaultTime, Strike)]) -> Rig {
    planned_on(&presets::small(), faults)
}

fn planned_on(config: &ArrayConfig, faults: &[(FaultPlace, FaultTime, Strike)]) -> Rig {
    let mut rig = Rig::with(config, Storage::Ram, &FaultConfig::default());
    plan(&mut rig, faults);
    rig
}

fn plan(rig: &mut Rig, faults: &[(FaultPlace, FaultTime, Strike)]) {
    let fault = |&(place, when, what): &_| PlannedFault { place, when, what };
    let faults = faults.iter().map(fault).collect();
    rig.array.schedule(&FaultSchedule { faults }).unwrap();
}

fn put(rig: &mut Rig, die: u32, page: u32) -> PageStatus {
    let data = rig.page(page as u8 + 1);
    rig.run(program(0, die, 0, page), &data).status[0]
}

#[test]
fn the_program_of_that_number_on_that_die_fails_and_no_other() {
    let mut rig = planned(&[(DIE_0, FaultTime::Program(3), Strike::Fail)]);
    let statuses: Vec<PageStatus> = (0..3).map(|page| put(&mut rig, 0, page)).collect();
    assert_eq!(statuses, [PageStatus::Good, PageStatus::Good, PageStatus::Failed]);
    assert_eq!(rig.array.block_state(block(0, 0, 0)).unwrap().health, Health::GrownBad);
    assert!((0..5).all(|page| put(&mut rig, 1, page) == PageStatus::Good), "another die");
    let both = DieCommand { planes: 2, blocks: [1, 1, 0, 0], ..program(0, 0, 1, 0) };
    assert!(rig.run(both, &[0; 8192]).is_good(), "once");
    assert_eq!(rig.array.injected().planned_failures, 1);
}

#[test]
fn all_planes_of_a_planned_command_are_struck() {
    let mut rig = planned(&[(DIE_0, FaultTime::Program(1), Strike::Phantom)]);
    let both = DieCommand { planes: 2, ..program(0, 0, 0, 0) };
    assert!(rig.run(both, &[1; 8192]).is_good());
    let ended = rig.run(DieCommand { planes: 2, ..read(0, 0, 0, 0) }, &[]);
    assert_eq!(ended.statuses(), [PageStatus::Erased, PageStatus::Erased]);
    assert_eq!(rig.array.injected().phantom_programs, 2);
}

#[test]
fn a_time_strikes_the_first_command_that_it_can() {
    let at = FaultTime::AtNs(1000 * US);
    let strikes = [Strike::Phantom, Strike::Miscorrect].map(|what| (DIE_0, at, what));
    let mut rig = planned(&strikes);
    put(&mut rig, 0, 0);
    rig.advance(999 * US);
    assert!(rig.run(erase(0, 0, 1), &[]).is_good(), "neither can happen to an erase");
    assert_eq!(put(&mut rig, 0, 1), PageStatus::Good);
    let wrong = rig.run(read(0, 0, 0, 0), &[]);
    assert!(wrong.is_good() && rig.array.read_data(&wrong) != rig.page(1));
    assert_eq!(rig.run(read(0, 0, 0, 1), &[]).status[0], PageStatus::Erased, "the phantom");
    let right = rig.run(read(0, 0, 0, 0), &[]);
    assert!(right.is_good() && rig.array.read_data(&right) == rig.page(1));
    let expected =
        InjectedFaults { phantom_programs: 1, miscorrected_reads: 1, ..InjectedFaults::default() };
    assert_eq!(rig.array.injected(), expected);
}

#[test]
fn reads_and_erases_fail_when_it_is_planned() {
    let mut rig = planned(&[
        (DIE_0, FaultTime::Read(2), Strike::Fail),
        (DIE_0, FaultTime::Erase(1), Strike::Fail),
    ]);
    put(&mut rig, 0, 0);
    let reads: Vec<PageStatus> = (0..3).map(|_| rig.run(read(0, 0, 0, 0), &[]).status[0]).collect();
    assert_eq!(reads, [PageStatus::Good, PageStatus::Uncorrectable, PageStatus::Good]);
    assert_eq!(rig.run(erase(0, 0, 0), &[]).status[0], PageStatus::Failed);
    assert_eq!(rig.array.block_state(block(0, 0, 0)).unwrap().health, Health::GrownBad);
}

#[test]
fn a_dead_die_answers_everything_with_that_and_nothing_changes() {
    let mut rig = planned(&[(DIE_0, FaultTime::AtNs(5000 * US), Strike::Death)]);
    put(&mut rig, 0, 0);
    rig.advance(5000 * US - 100 * US);
    // It begins on a living die and ends on a dead one.
    assert_eq!(put(&mut rig, 0, 1), PageStatus::Dead);
    assert_eq!(put(&mut rig, 0, 1), PageStatus::Dead, "not a broken rule");
    assert_eq!(put(&mut rig, 0, 9), PageStatus::Dead);
    let ended = rig.run(read(0, 0, 0, 0), &[]);
    assert_eq!((ended.status[0], ended.latency_ns()), (PageStatus::Dead, READ + BUS));
    assert_eq!(rig.array.read_data(&ended), [0; 4096]);
    let both = DieCommand { planes: 2, ..erase(0, 0, 0) };
    assert_eq!(rig.run(both, &[]).statuses(), [PageStatus::Dead, PageStatus::Dead]);
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!((state.write_pointer, state.erase_count, state.health), (Some(1), 0, Health::Good));
    assert_eq!(put(&mut rig, 1, 0), PageStatus::Good, "its neighbour lives");
    assert_eq!(rig.array.injected().dead_commands, 5);
}

#[test]
fn a_channel_dies_with_all_its_dies_and_a_cut_finds_nothing_there() {
    let mut rig = planned(&[(FaultPlace::Channel(1), FaultTime::AtNs(1), Strike::Death)]);
    let statuses: Vec<PageStatus> = (0..4).map(|die| put(&mut rig, die, 0)).collect();
    use PageStatus::{Dead, Good};
    assert_eq!(statuses, [Good, Good, Dead, Dead]);
    let now = rig.array.now();
    for die in 2..4 {
        rig.array.submit(now, &program(0, die, 0, 5), &[0; 4096]).unwrap();
    }
    let report = rig.array.power_cut(now + 100 * US, &mut Rng::seeded(1));
    assert_eq!(report, PowerCutReport { commands_lost: 2, ..PowerCutReport::default() });
    assert_eq!(rig.array.block_state(block(2, 0, 0)).unwrap().write_pointer, Some(0));
}

#[test]
fn a_die_can_die_at_a_command() {
    let mut rig = planned(&[(DIE_0, FaultTime::Read(2), Strike::Death)]);
    put(&mut rig, 0, 0);
    let reads: Vec<PageStatus> = (0..3).map(|_| rig.run(read(0, 0, 0, 0), &[]).status[0]).collect();
    assert_eq!(reads, [PageStatus::Good, PageStatus::Dead, PageStatus::Dead]);
}

#[test]
fn a_slow_die_is_slow_for_its_time() {
    let slow = Strike::Slow { factor: 10.0, for_ns: 5000 * US };
    let mut rig = planned(&[(DIE_0, FaultTime::AtNs(300 * US), slow)]);
    let latency = |rig: &mut Rig, command| rig.run(command, &[]).latency_ns();
    put(&mut rig, 0, 0);
    assert_eq!(latency(&mut rig, read(0, 0, 0, 0)), READ + BUS);
    rig.advance(300 * US);
    assert_eq!(latency(&mut rig, read(0, 0, 0, 0)), 10 * READ + BUS);
    assert_eq!(latency(&mut rig, read(0, 1, 0, 0)), READ + BUS, "its neighbour is not");
    let data = rig.page(1);
    assert_eq!(rig.run(program(0, 0, 0, 1), &data).latency_ns(), BUS + 10 * LOWER);
    rig.advance(5300 * US);
    assert_eq!(latency(&mut rig, read(0, 0, 0, 0)), READ + BUS);
    assert_eq!(rig.array.injected().slowed_steps, 2);
}

#[test]
fn a_slow_channel_has_a_slow_bus_too() {
    let slow = Strike::Slow { factor: 1000.0, for_ns: 1_000_000 * US };
    let mut rig = planned(&[(FaultPlace::Channel(0), FaultTime::AtNs(0), slow)]);
    let ended = rig.run(read(0, 1, 0, 0), &[]);
    assert_eq!(ended.latency_ns(), 1000 * (READ + BUS));
    assert_eq!(rig.array.channel_busy_ns(ChannelIndex(0)), 1000 * BUS);
    assert_eq!(rig.run(read(0, 2, 0, 0), &[]).latency_ns(), READ + BUS);
}

#[test]
fn single_operations_are_slow_at_their_rate() {
    let slow = SlowOperations { rate: 0.2, factor: 50.0 };
    let faults = FaultConfig { slow, ..FaultConfig::default() };
    let mut rig = Rig::with(&presets::small(), Storage::TimingOnly, &faults);
    let mut slowed = 0;
    for _ in 0..500 {
        match rig.run(erase(0, 0, 0), &[]).latency_ns() {
            ERASE => {}
            took => {
                assert_eq!(took, 50 * ERASE);
                slowed += 1;
            }
        }
    }
    // 100 of 500, within four standard deviations.
    assert!(u64::abs_diff(slowed, 100) < 36, "{slowed}");
    assert_eq!(rig.array.injected().slowed_steps, slowed);
}

#[test]
fn a_slow_program_can_be_suspended_and_cut() {
    let mut config = presets::small();
    config.die.program_suspend =
        Some(SuspendTiming { suspend_ns: 10 * US, resume_ns: 5 * US, at_most: 4 });
    let slow = Strike::Slow { factor: 100.0, for_ns: 20 * US };
    let mut rig = planned_on(&config, &[(DIE_0, FaultTime::AtNs(0), slow)]);
    let data = rig.page(1);
    rig.array.submit(Time(0), &program(1, 0, 0, 0), &data).unwrap();
    rig.advance(1000 * US);
    rig.submit(1000 * US, read(2, 0, 1, 0)).unwrap();
    // The program has 20 000 us from 10 us on, and waits 10 + 60 + 5 us for the read, which has no
    // cache register.
    assert_eq!(rig.ends_us(), [(2, 1070), (1, 20_085)]);
    plan(
        &mut rig,
        &[(DIE_0, FaultTime::AtNs(0), Strike::Slow { factor: 100.0, for_ns: u64::MAX })],
    );
    let now = rig.array.now();
    rig.array.submit(now, &program(3, 0, 0, 1), &data).unwrap();
    let report = rig.array.power_cut(now + 10_000 * US, &mut Rng::seeded(1));
    let pages = report.pages_untouched + report.pages_torn + report.pages_whole;
    assert_eq!((report.commands_lost, pages), (1, 1));
}

#[test]
fn a_power_cut_can_be_planned_into_the_middle_of_a_command() {
    let cut = Strike::PowerCut { progress: 0.25 };
    let mut rig = planned(&[(FaultPlace::Die(1), FaultTime::Program(2), cut)]);
    put(&mut rig, 1, 0);
    assert_eq!(rig.array.planned_cut(), None);
    let now = rig.array.now();
    rig.array.submit(now, &program(1, 1, 0, 1), &[1; 4096]).unwrap();
    rig.array.submit(now, &program(2, 2, 0, 0), &[1; 4096]).unwrap();
    rig.advance(now.0 + BUS);
    let at = rig.array.planned_cut().unwrap();
    assert_eq!(at, now + (BUS + LOWER / 4));
    let report = rig.array.power_cut(at, &mut Rng::seeded(1));
    let pages = report.pages_untouched + report.pages_torn + report.pages_whole;
    assert_eq!((report.commands_lost, pages), (2, 2));
    assert_eq!(rig.array.planned_cut(), None, "once");
}

#[test]
fn commands_are_counted_from_the_planning_on() {
    let mut rig = Rig::ram();
    put(&mut rig, 0, 0);
    for page in [1, 3] {
        plan(&mut rig, &[(DIE_0, FaultTime::Program(2), Strike::Phantom)]);
        put(&mut rig, 0, page);
        put(&mut rig, 0, page + 1);
    }
    let found: Vec<bool> = (0..5).map(|page| rig.run(read(0, 0, 0, page), &[]).is_good()).collect();
    assert_eq!(found, [true, true, false, true, false]);
}

#[test]
fn a_schedule_that_cannot_be_changes_nothing() {
    let mut rig = Rig::ram();
    let good = PlannedFault { place: DIE_0, when: FaultTime::Program(1), what: Strike::Fail };
    let bad = PlannedFault { place: FaultPlace::Die(99), ..good };
    assert!(rig.array.schedule(&FaultSchedule { faults: vec![good, bad] }).is_err());
    assert_eq!(put(&mut rig, 0, 0), PageStatus::Good);
}
