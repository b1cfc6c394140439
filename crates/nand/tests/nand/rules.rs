//! The physical rules cannot be bypassed, and a refused command changes nothing.

use crate::common::{Rig, block, erase, program, read};
use softflash_base::{Time, random::Rng};
use softflash_nand::{
    CommandKind, DieCommand, DieIndex, FaultConfig, Health, PageStatus, Refused, RuleBroken,
    Storage, presets,
};

fn broken(rig: &mut Rig, command: DieCommand) -> RuleBroken {
    let (at, before) = (rig.array.now(), rig.array.counters());
    match rig.array.submit(at, &command, &[]) {
        Err(Refused::Rule(rule)) => {
            assert_eq!((rig.array.counters(), rig.array.next_event_at()), (before, None));
            rule
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_of_a_block_are_programmed_in_order() {
    let mut rig = Rig::new(&presets::small());
    let skipped = broken(&mut rig, program(0, 0, 0, 1));
    assert_eq!(skipped, RuleBroken::OutOfOrder { block: 0, page: 1, next: 0 });
    rig.fill(0, 0, 3);
    let skipped = broken(&mut rig, program(0, 0, 0, 4));
    assert_eq!(skipped, RuleBroken::OutOfOrder { block: 0, page: 4, next: 3 });
}

#[test]
fn no_page_is_programmed_twice_without_an_erase() {
    let mut rig = Rig::new(&presets::small());
    rig.fill(0, 0, 16);
    let again = broken(&mut rig, program(0, 0, 0, 15));
    assert_eq!(again, RuleBroken::ProgramWithoutErase { block: 0, page: 15 });
    assert!(rig.run(erase(0, 0, 0), &[]).is_good());
    assert!(rig.run(program(0, 0, 0, 0), &[]).is_good());
}

#[test]
fn queued_commands_count_for_the_rules() {
    let mut config = presets::small();
    config.die.cache_program = true;
    let mut rig = Rig::new(&config);
    rig.submit(0, program(1, 0, 0, 0)).unwrap();
    let twice = rig.submit(0, program(2, 0, 0, 0)).unwrap_err();
    assert_eq!(twice, RuleBroken::ProgramWithoutErase { block: 0, page: 0 }.into());
    rig.submit(0, program(3, 0, 0, 1)).unwrap();
    assert_eq!(rig.submit(0, program(4, 0, 0, 2)), Err(Refused::Busy));
    assert!(rig.drain().iter().all(|ended| ended.is_good()));
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!(state.write_pointer, Some(2));
}

#[test]
fn an_erase_in_the_queue_opens_the_block_for_what_follows() {
    let mut config = presets::small();
    config.die.cache_program = true;
    let mut rig = Rig::new(&config);
    rig.fill(0, 0, 2);
    let now = rig.array.now().0;
    rig.submit(now, erase(1, 0, 0)).unwrap();
    rig.submit(now, program(2, 0, 0, 0)).unwrap();
    assert!(rig.drain().iter().all(|ended| ended.is_good()));
    assert_eq!(rig.array.block_state(block(0, 0, 0)).unwrap().write_pointer, Some(1));
}

#[test]
fn bad_blocks_take_no_program_and_no_erase() {
    let mut rig = Rig::new(&presets::small());
    rig.fill(0, 1, 1);
    assert!(rig.array.mark_bad(block(0, 0, 1)));
    let bad = RuleBroken::BadBlock { block: 1 };
    assert_eq!(broken(&mut rig, program(0, 0, 1, 1)), bad);
    assert_eq!(broken(&mut rig, erase(0, 0, 1)), bad);
    let rescued = rig.run(read(0, 0, 1, 0), &[]);
    assert_eq!(rescued.statuses(), [PageStatus::Good], "what it holds can be moved away");
    let bad: Vec<_> = rig.array.bad_blocks().collect();
    assert_eq!(bad, [(block(0, 0, 1), Health::GrownBad)]);
    assert!(!rig.array.mark_bad(block(99, 0, 1)));
}

#[test]
fn every_plane_must_be_fit_for_a_multi_plane_program() {
    let mut rig = Rig::new(&presets::small());
    rig.fill(0, 0, 1);
    let both = DieCommand { planes: 2, ..program(0, 0, 0, 1) };
    let behind = broken(&mut rig, both);
    assert_eq!(behind, RuleBroken::OutOfOrder { block: 0, page: 1, next: 0 });
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!(state.write_pointer, Some(1), "the plane that was fit is as before");
    assert!(rig.run(program(0, 0, 0, 1), &[]).is_good());
}

#[test]
fn addresses_outside_the_array_are_named() {
    let mut rig = Rig::new(&presets::small());
    assert_eq!(
        broken(&mut rig, read(0, 4, 0, 0)),
        RuleBroken::NoSuchDie { die: DieIndex(4), dies: 4 }
    );
    assert_eq!(broken(&mut rig, read(0, 0, 8, 0)), RuleBroken::NoSuchBlock { block: 8, limit: 8 });
    assert_eq!(broken(&mut rig, read(0, 0, 0, 16)), RuleBroken::NoSuchPage { page: 16, limit: 16 });
    let beyond = DieCommand { plane: 1, planes: 2, ..read(0, 0, 0, 0) };
    assert_eq!(
        broken(&mut rig, beyond),
        RuleBroken::NoSuchPlanes { plane: 1, planes: 2, limit: 2 }
    );
    let overflowing = DieCommand { plane: 1, planes: 255, ..beyond };
    assert!(matches!(broken(&mut rig, overflowing), RuleBroken::NoSuchPlanes { .. }));
    let none = DieCommand { planes: 0, ..beyond };
    assert!(matches!(broken(&mut rig, none), RuleBroken::NoSuchPlanes { .. }));
}

#[test]
fn data_fill_the_pages_exactly() {
    let mut rig = Rig::ram();
    let length = |given| Err(RuleBroken::DataLength { given, needed: 4096 }.into());
    for given in [0, 4095, 4097] {
        let refused = rig.array.submit(Time::ZERO, &program(0, 0, 0, 0), &vec![0; given]);
        assert_eq!(refused, length(given));
    }
    assert!(rig.run(program(0, 0, 0, 0), &[7; 4096]).is_good());
}

#[test]
fn time_neither_runs_back_nor_skips_events() {
    let mut rig = Rig::new(&presets::small());
    rig.submit(100, erase(1, 0, 0)).unwrap();
    let wrong = |now, earliest, latest| {
        let (now, earliest, latest) = (Time(now), Time(earliest), Time(latest));
        Err(Refused::Rule(RuleBroken::WrongTime { now, earliest, latest }))
    };
    assert_eq!(rig.submit(99, erase(2, 1, 0)), wrong(99, 100, 2_000_100));
    assert_eq!(rig.submit(2_000_101, erase(2, 1, 0)), wrong(2_000_101, 100, 2_000_100));
    rig.submit(2_000_100, erase(2, 1, 0)).unwrap();
    assert_eq!(rig.drain().len(), 2);
}

#[test]
fn a_block_whose_erase_was_cut_must_be_erased_again() {
    let mut rig = Rig::new(&presets::small());
    // Among a few cuts, most leave the block partly erased; find one.
    let mut rng = Rng::seeded(1);
    let cut = (0..8).find(|&number| {
        rig.fill(0, number, 2);
        let now = rig.array.now().0;
        rig.submit(now, erase(0, 0, number)).unwrap();
        rig.array.power_cut(Time(now + 1_000_000), &mut rng).blocks_partly_erased == 1
    });
    let number = cut.expect("a cut in the middle of an erase");
    let refused = broken(&mut rig, program(0, 0, number, 0));
    assert_eq!(refused, RuleBroken::PartlyErased { block: number });
    let lost = rig.run(read(0, 0, number, 0), &[]);
    assert_eq!(lost.statuses(), [PageStatus::Uncorrectable]);
    assert!(rig.run(erase(0, 0, number), &[]).is_good());
    assert!(rig.run(program(0, 0, number, 0), &[]).is_good());
}

#[test]
fn what_was_never_programmed_reads_as_erased() {
    let mut rig = Rig::ram();
    rig.fill(0, 0, 1);
    let both = DieCommand { planes: 2, ..read(0, 0, 0, 0) };
    let ended = rig.run(both, &[]);
    assert_eq!(ended.statuses(), [PageStatus::Good, PageStatus::Erased]);
    assert!(!ended.is_good());
    let data = rig.array.read_data(&ended);
    assert_eq!((data.len(), data[0], data[4096]), (8192, 0, 0));
    assert_eq!(rig.run(read(0, 0, 0, 1), &[]).statuses(), [PageStatus::Erased]);
}

#[test]
fn a_die_takes_as_many_commands_as_it_has_registers() {
    let mut rig = Rig::new(&presets::small());
    assert!(rig.array.has_room(DieIndex(0), CommandKind::Read));
    rig.submit(0, read(1, 0, 0, 0)).unwrap();
    assert!(!rig.array.has_room(DieIndex(0), CommandKind::Read));
    assert_eq!(rig.submit(0, read(2, 0, 0, 0)), Err(Refused::Busy));
    assert_eq!((rig.array.die_load(DieIndex(0)), rig.array.die_load(DieIndex(1))), (1, 0));
    let mut config = presets::small();
    config.die.cache_read = true;
    let mut rig = Rig::with(&config, Storage::TimingOnly, &FaultConfig::default());
    rig.submit(0, read(1, 0, 0, 0)).unwrap();
    rig.submit(0, erase(2, 0, 0)).unwrap();
    assert_eq!(rig.submit(0, read(3, 0, 0, 0)), Err(Refused::Busy));
}
