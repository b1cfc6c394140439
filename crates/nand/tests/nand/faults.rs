//! Faults at their configured rates, and the statuses that the array returns for them.

use crate::common::{BUS, READ, Rig, US, block, erase, program, read};
use softflash_base::Time;
use softflash_nand::{
    Array, BlockIndex, DieCommand, ErrorLaw, FaultConfig, Health, PageIndex, PageStatus, PageStore,
    RuleBroken, Storage, StoreFailure, presets,
};

fn rig(faults: FaultConfig) -> Rig {
    Rig::with(&presets::small(), Storage::Ram, &faults)
}

#[test]
fn factory_bad_blocks_come_from_the_seed_at_their_rate() {
    let faults = FaultConfig { factory_bad_block: 0.02, ..FaultConfig::default() };
    let bad = |seed| {
        let array = Array::new(&presets::sdf(), Storage::TimingOnly, &faults, seed).unwrap();
        array.bad_blocks().collect::<Vec<_>>()
    };
    let drawn = bad(1);
    // 360 448 blocks at 2 %: 7209, with a standard deviation of 84.
    assert!(drawn.len().abs_diff(7209) < 4 * 84, "{}", drawn.len());
    assert!(drawn.iter().all(|&(_, health)| health == Health::FactoryBad));
    assert_eq!(drawn, bad(1));
    assert_ne!(drawn, bad(2));
}

#[test]
fn a_factory_bad_block_gives_and_takes_nothing() {
    let mut rig = rig(FaultConfig { factory_bad_block: 1.0, ..FaultConfig::default() });
    let refused = rig.array.submit(Time::ZERO, &program(0, 0, 3, 0), &[0; 4096]);
    assert_eq!(refused, Err(RuleBroken::BadBlock { block: 3 }.into()));
    assert_eq!(rig.run(read(0, 0, 3, 0), &[]).statuses(), [PageStatus::Uncorrectable]);
}

#[test]
fn a_failed_program_loses_its_page_and_its_block() {
    let mut rig = rig(FaultConfig { program_failure: 0.25, ..FaultConfig::default() });
    let mut failed = 0;
    for number in 0..8 {
        for page in 0..16 {
            let data = rig.page(page as u8);
            let ended = rig.run(program(0, 0, number, page), &data);
            if ended.is_good() {
                continue;
            }
            assert_eq!(ended.statuses(), [PageStatus::Failed]);
            let state = rig.array.block_state(block(0, 0, number)).unwrap();
            assert_eq!((state.health, state.write_pointer), (Health::GrownBad, Some(page + 1)));
            let lost = rig.run(read(0, 0, number, page), &[]);
            assert_eq!(lost.statuses(), [PageStatus::Uncorrectable]);
            assert_eq!(rig.array.read_data(&lost), [0; 4096], "no data of a lost page");
            for older in 0..page {
                let kept = rig.run(read(0, 0, number, older), &[]);
                assert!(kept.is_good() && rig.array.read_data(&kept) == rig.page(older as u8));
            }
            failed += 1;
            break;
        }
    }
    assert!(failed >= 6, "at 25 % nearly every block fails within 16 pages: {failed} of 8");
}

#[test]
fn a_failed_erase_makes_the_block_bad_and_unreadable() {
    let mut rig = rig(FaultConfig { erase_failure: 1.0, ..FaultConfig::default() });
    rig.fill(0, 0, 3);
    assert_eq!(rig.run(erase(0, 0, 0), &[]).statuses(), [PageStatus::Failed]);
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!((state.health, state.write_pointer), (Health::GrownBad, None));
    assert_eq!(rig.run(read(0, 0, 0, 1), &[]).statuses(), [PageStatus::Uncorrectable]);
}

#[test]
fn one_plane_can_fail_alone() {
    let mut rig = rig(FaultConfig { program_failure: 0.5, ..FaultConfig::default() });
    let both = DieCommand { planes: 2, ..program(0, 0, 0, 0) };
    let mixed = (0..8).any(|number| {
        let command = DieCommand { blocks: [number, number, 0, 0], ..both };
        let ended = rig.run(command, &[0; 8192]);
        ended.statuses()[0] != ended.statuses()[1]
    });
    assert!(mixed, "of eight pairs at 50 %");
}

#[test]
fn a_program_queued_behind_a_failed_one_fails_too() {
    let mut config = presets::small();
    config.die.cache_program = true;
    let faults = FaultConfig { program_failure: 1.0, erase_failure: 1.0, ..FaultConfig::default() };
    let mut rig = Rig::with(&config, Storage::TimingOnly, &faults);
    rig.submit(0, program(1, 0, 0, 0)).unwrap();
    rig.submit(0, program(2, 0, 0, 1)).unwrap();
    assert!(rig.drain().iter().all(|ended| ended.status[0] == PageStatus::Failed));
    let now = rig.array.now().0;
    rig.submit(now, erase(3, 0, 1)).unwrap();
    rig.submit(now, program(4, 0, 1, 0)).unwrap();
    assert!(rig.drain().iter().all(|ended| ended.status[0] == PageStatus::Failed));
}

#[test]
fn retries_cost_time_and_the_page_is_corrected() {
    // About 66 errors in a codeword of which 40 are corrected: one retry at 0.6 leaves about 39,
    // sometimes a second one is needed.
    let bit_errors = ErrorLaw { rber_fresh: 0.008, ..ErrorLaw::default() };
    let mut rig = rig(FaultConfig { bit_errors, ..FaultConfig::default() });
    rig.fill(0, 0, 1);
    let mut retried = [0; 3];
    for _ in 0..100 {
        let ended = rig.run(read(0, 0, 0, 0), &[]);
        let retries = u64::from(ended.retries);
        assert!(matches!(ended.status[0], PageStatus::Corrected(bits) if bits <= 40), "{ended:?}");
        assert_eq!(ended.latency_ns(), READ + retries * 40 * US + BUS);
        assert_eq!(rig.array.read_data(&ended), [0; 4096]);
        retried[ended.retries as usize] += 1;
    }
    assert_eq!(retried[0], 0);
    assert!(retried[1] > 0 && retried[2] > 0, "{retried:?}");
}

#[test]
fn an_uncorrectable_page_is_never_returned_as_data() {
    let bit_errors = ErrorLaw { rber_fresh: 0.4, ..ErrorLaw::default() };
    let mut rig = rig(FaultConfig { bit_errors, ..FaultConfig::default() });
    let data = rig.page(0xab);
    assert!(rig.run(program(0, 0, 0, 0), &data).is_good());
    let ended = rig.run(read(0, 0, 0, 0), &[]);
    assert_eq!((ended.status[0], ended.retries), (PageStatus::Uncorrectable, 8));
    assert_eq!(ended.latency_ns(), READ + 8 * 40 * US + BUS);
    assert_eq!(rig.array.read_data(&ended), [0; 4096]);
}

#[test]
fn pages_of_a_block_read_better_once_it_is_full() {
    // About 4 errors in a codeword of a full block and 80 of an open one; 40 are corrected.
    let bit_errors = ErrorLaw {
        rber_fresh: 4.0 / 8192.0,
        open_block_factor: 20.0,
        retry_steps: 0,
        ..ErrorLaw::default()
    };
    let mut rig = rig(FaultConfig { bit_errors, ..FaultConfig::default() });
    rig.fill(0, 0, 15);
    assert_eq!(rig.run(read(0, 0, 0, 3), &[]).status[0], PageStatus::Uncorrectable);
    let last = rig.page(15);
    assert!(rig.run(program(0, 0, 0, 15), &last).is_good());
    assert!(rig.run(read(0, 0, 0, 3), &[]).is_good());
}

#[test]
fn wear_reads_and_age_are_counted() {
    let mut rig = rig(FaultConfig::default());
    rig.fill(0, 0, 2);
    let programmed_at_s = rig.array.now().0 / 1_000_000_000;
    for _ in 0..5 {
        rig.run(read(0, 0, 0, 1), &[]);
    }
    rig.advance(3600 * 1_000_000_000);
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!((state.reads, state.age_s), (5, 3600 - programmed_at_s));
    rig.run(erase(0, 0, 0), &[]);
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!((state.reads, state.erase_count, state.write_pointer), (0, 1, Some(0)));
}

/// A store whose every operation fails.
struct Broken;

const FAILURE: StoreFailure = StoreFailure { errno: 5 };

impl PageStore for Broken {
    fn write(&mut self, _: PageIndex, _: &[u8]) -> Result<(), StoreFailure> {
        Err(FAILURE)
    }
    fn read(&mut self, _: PageIndex, _: &mut [u8]) -> Result<(), StoreFailure> {
        Err(FAILURE)
    }
    fn erase(&mut self, _: BlockIndex) -> Result<(), StoreFailure> {
        Err(FAILURE)
    }
}

#[test]
fn a_store_that_fails_is_reported_and_its_page_is_lost() {
    let store = Storage::Store(Box::new(Broken));
    let mut rig = Rig::with(&presets::small(), store, &FaultConfig::default());
    let data = rig.page(1);
    let failed = [PageStatus::StoreFailed(FAILURE)];
    assert_eq!(rig.run(program(0, 0, 0, 0), &data).statuses(), failed);
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).statuses(), [PageStatus::Uncorrectable]);
    assert_eq!(rig.run(erase(0, 0, 0), &[]).statuses(), failed);
    let refused = rig.array.submit(rig.array.now(), &program(0, 0, 0, 0), &data);
    assert_eq!(refused, Err(RuleBroken::PartlyErased { block: 0 }.into()));
}
