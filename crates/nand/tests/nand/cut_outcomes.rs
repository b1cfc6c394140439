//! Power cuts with configured weights of the outcomes.

use crate::common::{Rig, US, block, erase, program, read};
use softflash_base::random::Rng;
use softflash_nand::{
    CutErases, CutPages, FaultConfig, Health, PageDamage, PageStatus, PowerCutReport, Storage,
    presets,
};

const SECOND: u64 = 1_000_000_000;

/// Programs page 1 of block 0 and cuts the power during the program.
fn cut_program(cut_pages: CutPages, seed: u64) -> (Rig, PowerCutReport) {
    let faults = FaultConfig { cut_pages, ..FaultConfig::default() };
    let mut rig = Rig::with(&presets::small(), Storage::Ram, &faults);
    rig.fill(0, 0, 1);
    let (now, data) = (rig.array.now(), rig.page(0xaa));
    rig.array.submit(now, &program(9, 0, 0, 1), &data).unwrap();
    let report = rig.array.power_cut(now + 110 * US, &mut Rng::seeded(seed));
    (rig, report)
}

/// Fills four pages of block 0, erases it and cuts the power during the erase.
fn cut_erase(cut_erases: CutErases, program_failure: f64, seed: u64) -> (Rig, PowerCutReport) {
    let faults = FaultConfig { program_failure, cut_erases, ..FaultConfig::default() };
    let mut rig = Rig::with(&presets::small(), Storage::Ram, &faults);
    rig.fill(0, 0, 4);
    let now = rig.array.now();
    rig.submit(now.0, erase(1, 0, 0)).unwrap();
    let report = rig.array.power_cut(now + 1000 * US, &mut Rng::seeded(seed));
    (rig, report)
}

#[test]
fn pages_fall_into_the_configured_states_in_their_shares() {
    let cut = CutPages {
        untouched: 1.0,
        whole: 1.0,
        shorn: 2.0,
        random: 2.0,
        unstable: 4.0,
        ..CutPages::default()
    };
    let mut seen = [0_u32; 5];
    for seed in 0..400 {
        let (mut rig, report) = cut_program(cut, seed);
        let ended = rig.run(read(0, 0, 0, 1), &[]);
        let data = rig.array.read_data(&ended);
        let new = data.iter().take_while(|&&byte| byte == 0xaa).count();
        let PowerCutReport { pages_untouched, pages_whole, pages_shorn, .. } = report;
        let state = match (pages_untouched, pages_whole, pages_shorn, report.pages_torn) {
            (1, 0, 0, 0) if ended.status[0] == PageStatus::Erased => 0,
            (0, 1, 0, 0) if new == 4096 => 1,
            (0, 0, 1, 0) if new < 4096 && new % 512 == 0 && ended.is_good() => 2,
            (0, 0, 0, 1) if ended.status[0] == PageStatus::Uncorrectable => 3,
            (0, 0, 0, 0) if new == 4096 && report.pages_unstable == 1 => 4,
            _ => panic!("{report:?} {ended:?}"),
        };
        seen[state] += 1;
        let older = rig.run(read(0, 0, 0, 0), &[]);
        assert_eq!(rig.array.read_data(&older), [0; 4096]);
    }
    // Of 400: 40, 40, 80, 80, 160, each within four standard deviations.
    for (seen, (expected, deviation)) in
        seen.into_iter().zip([(40, 6), (40, 6), (80, 8), (80, 8), (160, 10)])
    {
        assert!(u32::abs_diff(seen, expected) < 4 * deviation, "{seen} of {expected}");
    }
}

#[test]
fn an_unstable_page_reads_clean_so_often_and_is_then_lost() {
    let cut = CutPages { unstable: 1.0, unstable_reads: 3, ..CutPages::default() };
    let (mut rig, _) = cut_program(cut, 1);
    for _ in 0..3 {
        let ended = rig.run(read(0, 0, 0, 1), &[]);
        assert!(ended.is_good() && rig.array.read_data(&ended) == [0xaa; 4096]);
    }
    for _ in 0..2 {
        let ended = rig.run(read(0, 0, 0, 1), &[]);
        assert_eq!(ended.status[0], PageStatus::Uncorrectable);
        assert_eq!(rig.array.read_data(&ended), [0; 4096]);
    }
    assert!(rig.run(read(0, 0, 0, 0), &[]).is_good(), "its neighbour is stable");
    rig.run(erase(0, 0, 0), &[]);
    rig.fill(0, 0, 2);
    assert!((0..9).all(|_| rig.run(read(0, 0, 0, 1), &[]).is_good()), "new again");
}

#[test]
fn an_unstable_page_is_lost_after_its_time_though_nobody_read_it() {
    let cut =
        CutPages { unstable: 1.0, unstable_reads: 0, unstable_ms: 2000, ..CutPages::default() };
    let (mut rig, _) = cut_program(cut, 1);
    let cut_at = rig.array.now().0;
    assert!((0..300).all(|_| rig.run(read(0, 0, 0, 1), &[]).is_good()), "any number of reads");
    // A read of 50 us senses just before the time is up, the next one after it.
    rig.advance(cut_at + 2 * SECOND - 60 * US);
    assert!(rig.run(read(0, 0, 0, 1), &[]).is_good());
    assert_eq!(rig.run(read(0, 0, 0, 1), &[]).status[0], PageStatus::Uncorrectable);
}

#[test]
fn what_an_unstable_page_has_left_survives_in_its_record() {
    let cut =
        CutPages { unstable: 1.0, unstable_reads: 3, unstable_ms: 5000, ..CutPages::default() };
    let (mut rig, _) = cut_program(cut, 1);
    rig.run(read(0, 0, 0, 1), &[]);
    let record = rig.array.export_block(block(0, 0, 0)).unwrap();
    let left = PageDamage::Unstable { reads_left: Some(2), ms_left: Some(5000) };
    assert_eq!(record.damaged, [(1, left)]);
    let mut other = Rig::new(&presets::small());
    other.array.import_block(block(0, 0, 0), &record).unwrap();
    let statuses: Vec<bool> = (0..3).map(|_| other.run(read(0, 0, 0, 1), &[]).is_good()).collect();
    assert_eq!(statuses, [true, true, false]);
}

#[test]
fn a_block_can_look_erased_and_be_weak_until_its_next_erase() {
    let cut =
        CutErases { looks_erased: 1.0, program_failure_factor: 1000.0, ..CutErases::default() };
    let (mut rig, report) = cut_erase(cut, 0.0, 1);
    assert_eq!((report.blocks_look_erased, report.blocks_erased), (1, 0));
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).status[0], PageStatus::Erased);
    let record = rig.array.export_block(block(0, 0, 0)).unwrap();
    assert_eq!((record.weak, record.write_pointer, record.erase_count), (true, Some(0), 1));
    rig.run(erase(0, 0, 0), &[]);
    assert!(!rig.array.export_block(block(0, 0, 0)).unwrap().weak);

    // 0.1 % of the programs fail at first, all of them in the weak block.
    let (mut rig, _) = cut_erase(cut, 1e-3, 1);
    assert!(rig.run(program(0, 0, 1, 0), &[0; 4096]).is_good());
    assert_eq!(rig.run(program(0, 0, 0, 0), &[0; 4096]).status[0], PageStatus::Failed);
    assert_eq!(rig.array.block_state(block(0, 0, 0)).unwrap().health, Health::GrownBad);
}

#[test]
fn a_block_can_keep_part_of_its_pages() {
    let cut = CutErases { part_old: 1.0, ..CutErases::default() };
    let mut seen = [0_u32; 3];
    for seed in 0..100 {
        let (mut rig, report) = cut_erase(cut, 0.0, seed);
        assert_eq!(report.blocks_part_old, 1);
        for page in 0..4 {
            let ended = rig.run(read(0, 0, 0, page), &[]);
            let kept = rig.array.read_data(&ended) == rig.page(page as u8);
            seen[match ended.status[0] {
                PageStatus::Good if kept => 0,
                PageStatus::Erased => 1,
                PageStatus::Uncorrectable => 2,
                status => panic!("{status:?}"),
            }] += 1;
        }
        let record = rig.array.export_block(block(0, 0, 0)).unwrap();
        assert_eq!((record.write_pointer, record.weak), (Some(4), true));
        assert!(rig.run(program(0, 0, 0, 4), &[0; 4096]).is_good(), "it goes on where it was");
        assert!(rig.run(erase(0, 0, 0), &[]).is_good());
    }
    // Of 400: 200, 100, 100, within four standard deviations.
    assert!(seen[0].abs_diff(200) < 40 && seen[1].abs_diff(100) < 35, "{seen:?}");
}

#[test]
fn a_block_of_random_bits_must_be_erased_again() {
    let (mut rig, report) = cut_erase(CutErases { random: 1.0, ..CutErases::default() }, 0.0, 1);
    assert_eq!(report.blocks_partly_erased, 1);
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).status[0], PageStatus::Uncorrectable);
    assert!(rig.array.submit(rig.array.now(), &program(0, 0, 0, 0), &[0; 4096]).is_err());
    assert!(rig.run(erase(0, 0, 0), &[]).is_good());
    rig.fill(0, 0, 4);
}

#[test]
fn equal_seeds_leave_equal_blocks() {
    let left = |seed| {
        let cut =
            CutErases { looks_erased: 1.0, part_old: 2.0, random: 1.0, ..CutErases::default() };
        let (rig, report) = cut_erase(cut, 0.0, seed);
        (report, rig.array.export_block(block(0, 0, 0)))
    };
    assert_eq!(left(3), left(3));
    assert!((0..20).any(|seed| left(seed) != left(3)));
}
