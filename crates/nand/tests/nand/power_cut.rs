//! The state of pages and blocks after power cuts.

use crate::common::{Rig, US, block, erase, program, read};
use softflash_base::{Time, random::Rng};
use softflash_nand::{
    DieCommand, DieIndex, FaultConfig, PageDamage, PageStatus, PowerCutReport, Storage, presets,
};

/// Programs page `page` of block 0 and cuts the power `after_ns` later, on a fresh array per seed.
fn cut_program(faults: &FaultConfig, page: u32, after_ns: u64, seed: u64) -> (Rig, PowerCutReport) {
    let mut rig = Rig::with(&presets::small(), Storage::Ram, faults);
    rig.fill(0, 0, page);
    let (now, data) = (rig.array.now(), rig.page(0xaa));
    rig.array.submit(now, &program(9, 0, 0, page), &data).unwrap();
    let report = rig.array.power_cut(now + after_ns, &mut Rng::seeded(seed));
    assert_eq!((rig.array.next_event_at(), rig.drain().len()), (None, 0), "nothing is delivered");
    (rig, report)
}

#[test]
fn an_interrupted_program_is_untouched_torn_or_whole_and_consumes_its_page() {
    let mut sum = PowerCutReport::default();
    for seed in 0..200 {
        // Load until 10 us, program until 210 us; half way is 110 us.
        let (mut rig, report) = cut_program(&FaultConfig::default(), 1, 110 * US, seed);
        let state = rig.array.block_state(block(0, 0, 0)).unwrap();
        assert_eq!((state.write_pointer, report.commands_lost), (Some(2), 1));
        let ended = rig.run(read(0, 0, 0, 1), &[]);
        let outcome = (report.pages_untouched, report.pages_torn, report.pages_whole);
        match outcome {
            (1, 0, 0) => assert_eq!(ended.status[0], PageStatus::Erased),
            (0, 1, 0) => assert_eq!(ended.status[0], PageStatus::Uncorrectable),
            (0, 0, 1) => assert_eq!(rig.array.read_data(&ended), [0xaa; 4096]),
            _ => panic!("{report:?}"),
        }
        let older = rig.run(read(0, 0, 0, 0), &[]);
        assert_eq!(rig.array.read_data(&older), [0; 4096], "older pages are unharmed");
        let data = rig.page(2);
        assert!(rig.run(program(0, 0, 0, 2), &data).is_good(), "the next page can be programmed");
        sum.pages_untouched += report.pages_untouched;
        sum.pages_torn += report.pages_torn;
        sum.pages_whole += report.pages_whole;
    }
    // Half way: 1/8 untouched, 1/8 whole, 3/4 torn of 200.
    assert!(sum.pages_untouched.abs_diff(25) < 19 && sum.pages_whole.abs_diff(25) < 19, "{sum:?}");
    assert!(sum.pages_torn.abs_diff(150) < 25, "{sum:?}");
}

#[test]
fn what_was_still_on_the_bus_or_in_the_queue_never_happened() {
    let (rig, report) = cut_program(&FaultConfig::default(), 3, 5 * US, 1);
    let expected = PowerCutReport { commands_lost: 1, ..PowerCutReport::default() };
    assert_eq!(report, expected);
    let state = rig.array.block_state(block(0, 0, 0)).unwrap();
    assert_eq!(state.write_pointer, Some(3));

    let mut config = presets::small();
    config.die.cache_program = true;
    let mut rig = Rig::new(&config);
    rig.submit(0, erase(1, 0, 0)).unwrap();
    rig.submit(0, program(2, 0, 1, 0)).unwrap();
    let report = rig.array.power_cut(Time(1000 * US), &mut Rng::seeded(1));
    assert_eq!(report.commands_lost, 2);
    assert_eq!(rig.array.block_state(block(0, 0, 1)).unwrap().write_pointer, Some(0));
    assert!(rig.run(program(2, 0, 1, 0), &[]).is_good(), "its page is still free");
}

#[test]
fn what_ended_before_the_cut_is_whole_though_nobody_was_told() {
    let (mut rig, report) = cut_program(&FaultConfig::default(), 0, 210 * US, 1);
    let expected = PowerCutReport { commands_lost: 1, ..PowerCutReport::default() };
    assert_eq!(report, expected);
    let ended = rig.run(read(0, 0, 0, 0), &[]);
    assert_eq!(rig.array.read_data(&ended), [0xaa; 4096]);
}

#[test]
fn an_upper_page_can_take_its_lower_page_with_it() {
    // Shadow order: page 2 is the upper page of page 0; page 1 is on another word line.
    let faults = FaultConfig { paired_page_loss: 1.0, ..FaultConfig::default() };
    let (mut rig, report) = cut_program(&faults, 2, 300 * US, 1);
    assert_eq!(report.pages_lost_with_pair, 1);
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).statuses(), [PageStatus::Uncorrectable]);
    assert!(rig.run(read(0, 0, 0, 1), &[]).is_good());
    let (_, report) = cut_program(&faults, 1, 100 * US, 1);
    assert_eq!(report.pages_lost_with_pair, 0, "a lower page has none below it");
}

#[test]
fn no_cut_takes_a_page_that_is_safe() {
    let faults = FaultConfig { paired_page_loss: 1.0, ..FaultConfig::default() };
    let (rig, _) = cut_program(&faults, 0, 300 * US, 1);
    let safe_after = rig.array.safe_after();
    assert_eq!(safe_after[..3], [3, 5, 5], "in shadow order");
    let mut taken = 0;
    for page in 0..safe_after.len() as u32 {
        let (mut rig, report) = cut_program(&faults, page, 300 * US, 1);
        taken += report.pages_lost_with_pair;
        for older in 0..page {
            let safe = safe_after[older as usize] <= page;
            let good = rig.run(read(0, 0, 0, older), &[]).is_good();
            assert!(good || !safe, "page {older}, cut in the program of page {page}");
        }
    }
    assert!(taken > 3, "cuts took {taken} pages");
    let (rig, _) = cut_program(&FaultConfig::default(), 0, 300 * US, 1);
    assert_eq!(rig.array.safe_after()[..3], [1, 2, 3], "nothing is lost with a pair");
}

#[test]
fn a_shorn_page_reads_as_new_bytes_then_erased_ones() {
    let faults = FaultConfig { shorn_page_readable: 1.0, ..FaultConfig::default() };
    let shorn = (0..20).filter(|&seed| {
        let (mut rig, report) = cut_program(&faults, 0, 110 * US, seed);
        assert_eq!(report.pages_torn, 0);
        if report.pages_shorn == 0 {
            return false;
        }
        let ended = rig.run(read(0, 0, 0, 0), &[]);
        let data = rig.array.read_data(&ended);
        let new = data.iter().take_while(|&&byte| byte == 0xaa).count();
        assert!(ended.is_good() && new % 512 == 0 && (512..4096).contains(&new), "{new}");
        assert!(data[new..].iter().all(|&byte| byte == 0xff));
        true
    });
    assert!(shorn.count() > 5);
}

#[test]
fn an_interrupted_erase_leaves_old_contents_nothing_or_a_block_to_erase_again() {
    let mut sum = PowerCutReport::default();
    for seed in 0..200 {
        let mut rig = Rig::ram();
        rig.fill(0, 0, 2);
        let now = rig.array.now();
        rig.submit(now.0, erase(1, 0, 0)).unwrap();
        let report = rig.array.power_cut(now + 1000 * US, &mut Rng::seeded(seed));
        let state = rig.array.block_state(block(0, 0, 0)).unwrap();
        let status = rig.run(read(0, 0, 0, 0), &[]).status[0];
        let found = (state.write_pointer, state.erase_count, status);
        let outcome = (report.blocks_untouched, report.blocks_partly_erased, report.blocks_erased);
        match outcome {
            (1, 0, 0) => assert_eq!(found, (Some(2), 0, PageStatus::Good)),
            (0, 1, 0) => assert_eq!(found, (None, 1, PageStatus::Uncorrectable)),
            (0, 0, 1) => assert_eq!(found, (Some(0), 1, PageStatus::Erased)),
            _ => panic!("{report:?}"),
        }
        sum.blocks_untouched += report.blocks_untouched;
        sum.blocks_partly_erased += report.blocks_partly_erased;
        sum.blocks_erased += report.blocks_erased;
        let next = state.write_pointer.unwrap_or(0);
        if state.write_pointer.is_none() {
            assert!(rig.run(erase(0, 0, 0), &[]).is_good());
        }
        let data = rig.page(5);
        assert!(rig.run(program(0, 0, 0, next), &data).is_good(), "the block is of use again");
    }
    assert!(sum.blocks_untouched > 5 && sum.blocks_erased > 5, "{sum:?}");
    assert!(sum.blocks_partly_erased > 100, "{sum:?}");
}

#[test]
fn a_suspended_erase_is_cut_like_any_other() {
    let mut config = presets::tlc();
    config.die.cache_read = false;
    let mut rig = Rig::new(&config);
    let mut outcomes = 0;
    for (seed, number) in (0..20).enumerate() {
        rig.run(program(0, 0, number, 0), &[]);
        let now = rig.array.now().0;
        rig.submit(now, erase(1, 0, number)).unwrap();
        rig.advance(now + 100 * US);
        rig.submit(now + 100 * US, read(2, 0, 30, 0)).unwrap();
        // The suspend takes 700 us, the sense 56.5: the cut comes in the read's sense.
        let cut = Time(now + 820 * US);
        let report = rig.array.power_cut(cut, &mut Rng::seeded(seed as u64));
        assert_eq!(report.commands_lost, 2);
        outcomes += report.blocks_untouched + report.blocks_partly_erased + report.blocks_erased;
    }
    assert_eq!(outcomes, 20, "each cut found the erase under way");
}

#[test]
fn all_dies_are_cut_at_one_instant_and_work_again() {
    let mut rig = Rig::new(&presets::small());
    for die in 0..4 {
        rig.submit(0, DieCommand { planes: 2, ..program(1, die, 0, 0) }).unwrap();
    }
    let report = rig.array.power_cut(Time(100 * US), &mut Rng::seeded(3));
    let pages = report.pages_untouched + report.pages_torn + report.pages_whole;
    assert_eq!((report.commands_lost, pages), (4, 8));
    let counters = rig.array.counters();
    assert_eq!((counters.submitted, counters.finished, counters.lost), (4, 0, 4));
    for die in 0..4 {
        assert_eq!(rig.array.die_load(DieIndex(die)), 0);
        assert!(rig.run(program(1, die, 1, 0), &[]).is_good());
    }
}

#[test]
fn equal_seeds_cut_alike() {
    let cut = |seed| cut_program(&FaultConfig::default(), 1, 110 * US, seed).1;
    assert_eq!(cut(5), cut(5));
}

#[test]
fn blocks_survive_in_their_records() {
    let faults = FaultConfig { paired_page_loss: 1.0, ..FaultConfig::default() };
    let (mut rig, _) = cut_program(&faults, 2, 300 * US, 1);
    rig.fill(0, 1, 16);
    rig.run(erase(0, 0, 1), &[]);
    rig.array.mark_bad(block(0, 0, 7));
    let mut other = Rig::new(&presets::small());
    for number in 0..8 {
        let record = rig.array.export_block(block(0, 0, number)).unwrap();
        other.array.import_block(block(0, 0, number), &record).unwrap();
        assert_eq!(other.array.export_block(block(0, 0, number)).as_ref(), Some(&record));
    }
    let record = rig.array.export_block(block(0, 0, 0)).unwrap();
    assert_eq!(record.damaged.first(), Some(&(0, PageDamage::Torn)));
    assert_eq!(other.run(read(0, 0, 0, 0), &[]).statuses(), [PageStatus::Uncorrectable]);
    assert!(other.run(read(0, 0, 0, 1), &[]).is_good());
    assert!(other.run(program(0, 0, 0, 3), &[]).is_good(), "it goes on where it was");
}

#[test]
fn records_that_cannot_be_are_refused() {
    let mut rig = Rig::new(&presets::small());
    let good = rig.array.export_block(block(0, 0, 0)).unwrap();
    let mut told = |at, record: &softflash_nand::BlockRecord| {
        rig.array.import_block(at, record).unwrap_err().to_string()
    };
    let mut beyond = good.clone();
    beyond.write_pointer = Some(17);
    assert!(told(block(0, 0, 0), &beyond).contains("page 17"));
    let mut damaged = good.clone();
    damaged.damaged.push((0, PageDamage::Torn));
    assert!(told(block(0, 0, 0), &damaged).contains("page 0"));
    assert!(told(block(0, 0, 8), &good).contains("block 8"));
    rig.submit(0, erase(0, 0, 0)).unwrap();
    let at_work = rig.array.import_block(block(0, 0, 1), &good).unwrap_err();
    assert!(at_work.to_string().contains("at work"));
}
