//! Silent faults and their counters.

use crate::common::{Rig, block, erase, program, read};
use softflash_nand::{
    DieCommand, FaultConfig, InjectedFaults, PageDamage, PageStatus, SilentFaults, Storage, presets,
};

fn rig(silent: SilentFaults) -> Rig {
    let faults = FaultConfig { silent, ..FaultConfig::default() };
    Rig::with(&presets::small(), Storage::Ram, &faults)
}

/// Programs a page of one repeated byte, with a status of success.
fn put(rig: &mut Rig, number: u32, page: u32, byte: u8) {
    let data = rig.page(byte);
    assert!(rig.run(program(0, 0, number, page), &data).is_good());
}

/// The status of a read and the first byte of its data.
fn get(rig: &mut Rig, number: u32, page: u32) -> (PageStatus, u8) {
    let ended = rig.run(read(0, 0, number, page), &[]);
    (ended.status[0], rig.array.read_data(&ended)[0])
}

#[test]
fn a_miscorrected_read_succeeds_with_wrong_bits_of_one_codeword() {
    let mut rig = rig(SilentFaults { miscorrected_read: 0.25, ..SilentFaults::default() });
    put(&mut rig, 0, 0, 0xaa);
    let mut wrong = 0;
    for _ in 0..400 {
        let ended = rig.run(read(0, 0, 0, 0), &[]);
        assert_eq!(ended.status[0], PageStatus::Good);
        let data = rig.array.read_data(&ended);
        let flipped = |bytes: &[u8]| -> u32 { bytes.iter().map(|b| (b ^ 0xaa).count_ones()).sum() };
        let codewords: Vec<u32> = data.chunks(1024).map(flipped).collect();
        let damaged = codewords.iter().filter(|&&bits| bits > 0).count();
        assert!(damaged <= 1 && codewords.iter().all(|&bits| bits <= 41), "{codewords:?}");
        wrong += damaged as u64;
    }
    // 100 of 400, within four standard deviations.
    assert!(wrong.abs_diff(100) < 35, "{wrong}");
    assert_eq!(rig.array.injected().miscorrected_reads, wrong);
}

#[test]
fn a_misdirected_read_shows_the_same_page_of_another_block() {
    let mut rig = rig(SilentFaults { misdirected_read: 1.0, ..SilentFaults::default() });
    put(&mut rig, 0, 0, 1);
    assert_eq!(get(&mut rig, 0, 0), (PageStatus::Good, 1), "there is no other");
    assert_eq!(rig.array.injected(), InjectedFaults::default());
    put(&mut rig, 3, 0, 2);
    put(&mut rig, 3, 1, 3);
    assert_eq!(get(&mut rig, 0, 0), (PageStatus::Good, 2));
    assert_eq!(get(&mut rig, 3, 0), (PageStatus::Good, 1));
    assert_eq!(get(&mut rig, 3, 1), (PageStatus::Good, 3), "block 0 has not come so far");
    assert_eq!(get(&mut rig, 5, 0).0, PageStatus::Erased, "only reads that would succeed");
    assert_eq!(rig.array.injected().misdirected_reads, 2);
}

#[test]
fn a_stale_read_shows_what_the_register_held() {
    let mut rig = rig(SilentFaults { stale_read: 1.0, ..SilentFaults::default() });
    put(&mut rig, 0, 0, 1);
    put(&mut rig, 0, 1, 2);
    // Commands take turns on two registers: the read gets that of the command before the last.
    assert_eq!(get(&mut rig, 0, 1), (PageStatus::Good, 1));
    assert_eq!(get(&mut rig, 0, 1), (PageStatus::Good, 2), "it held the same");
    assert_eq!(rig.array.injected().stale_reads, 1);
}

#[test]
fn a_phantom_program_leaves_its_page_erased_and_spent() {
    let mut rig = rig(SilentFaults { phantom_program: 1.0, ..SilentFaults::default() });
    put(&mut rig, 0, 0, 1);
    assert_eq!(get(&mut rig, 0, 0).0, PageStatus::Erased);
    assert_eq!(rig.array.block_state(block(0, 0, 0)).unwrap().write_pointer, Some(1));
    put(&mut rig, 0, 1, 2);
    assert_eq!(rig.array.injected().phantom_programs, 2);
}

#[test]
fn rates_are_kept() {
    let silent =
        SilentFaults { phantom_program: 0.1, misdirected_program: 0.2, ..SilentFaults::default() };
    let faults = FaultConfig { silent, ..FaultConfig::default() };
    let mut rig = Rig::with(&presets::small(), Storage::TimingOnly, &faults);
    for number in (0..8).cycle().take(128) {
        let both = |command| DieCommand { planes: 2, blocks: [number; 4], ..command };
        rig.run(both(erase(0, 0, 0)), &[]);
        for page in 0..16 {
            assert!(rig.run(both(program(0, 0, 0, page)), &[]).is_good());
        }
    }
    let InjectedFaults { phantom_programs, misdirected_programs, .. } = rig.array.injected();
    // Of 4096 pages: 410 and 20 % of the others, 737, within four standard deviations.
    assert!(phantom_programs.abs_diff(410) < 77, "{phantom_programs}");
    assert!(misdirected_programs.abs_diff(737) < 98, "{misdirected_programs}");
}

/// An array whose every program is misdirected, with a block 0 that held a page before.
fn misdirecting() -> Rig {
    let mut rig = rig(SilentFaults { misdirected_program: 1.0, ..SilentFaults::default() });
    let mut plain = Rig::ram();
    put(&mut plain, 0, 0, 1);
    // Only blocks 0 and 1 are left to hit.
    (2..8).for_each(|number| assert!(rig.array.mark_bad(block(0, 0, number))));
    rig
}

#[test]
fn a_misdirected_program_can_lie_where_the_next_one_of_another_block_belongs() {
    let mut rig = misdirecting();
    put(&mut rig, 0, 0, 7);
    assert_eq!(get(&mut rig, 0, 0).0, PageStatus::Erased, "not where it belongs");
    assert_eq!(get(&mut rig, 1, 0), (PageStatus::Good, 7), "but there");
    let stray = rig.array.export_block(block(0, 0, 1)).unwrap();
    assert_eq!((stray.write_pointer, &stray.damaged[..]), (Some(0), &[(0, PageDamage::Stray)][..]));

    // An array without faults imports the block. A program of the page destroys both data without
    // an error.
    let mut other = Rig::ram();
    other.array.import_block(block(0, 0, 1), &stray).unwrap();
    put(&mut other, 1, 0, 8);
    assert_eq!(get(&mut other, 1, 0).0, PageStatus::Uncorrectable);
    put(&mut other, 1, 1, 9);
    assert_eq!(get(&mut other, 1, 1), (PageStatus::Good, 9));
    assert!(other.run(erase(0, 0, 1), &[]).is_good());
    put(&mut other, 1, 0, 8);
    assert_eq!(get(&mut other, 1, 0), (PageStatus::Good, 8));
}

#[test]
fn an_erase_clears_what_was_misdirected() {
    let mut rig = misdirecting();
    put(&mut rig, 0, 0, 7);
    assert!(rig.run(erase(0, 0, 1), &[]).is_good());
    assert_eq!(get(&mut rig, 1, 0).0, PageStatus::Erased);
}

#[test]
fn a_misdirected_program_destroys_a_page_that_was_programmed() {
    let mut rig = misdirecting();
    put(&mut rig, 0, 0, 7);
    rig.run(erase(0, 0, 0), &[]);
    let mut full = rig.array.export_block(block(0, 0, 1)).unwrap();
    full = softflash_nand::BlockRecord { write_pointer: Some(16), damaged: Vec::new(), ..full };
    rig.array.import_block(block(0, 0, 1), &full).unwrap();
    assert_eq!(get(&mut rig, 1, 0), (PageStatus::Good, 7));
    put(&mut rig, 0, 0, 8);
    assert_eq!(get(&mut rig, 1, 0).0, PageStatus::Uncorrectable);
    let InjectedFaults { misdirected_programs, pages_overwritten, .. } = rig.array.injected();
    assert_eq!((misdirected_programs, pages_overwritten), (2, 1));
}

#[test]
fn what_is_silent_does_not_depend_on_what_is_kept() {
    let silent = SilentFaults {
        miscorrected_read: 0.1,
        misdirected_read: 0.1,
        stale_read: 0.0,
        misdirected_program: 0.1,
        phantom_program: 0.1,
    };
    let faults = FaultConfig { silent, ..FaultConfig::default() };
    let run = |storage| {
        let mut rig = Rig::with(&presets::small(), storage, &faults);
        let mut statuses = Vec::new();
        for page in 0..16 {
            for number in 0..8 {
                let data = rig.page(number as u8);
                statuses.push(rig.run(program(0, 0, number, page), &data).status[0]);
                statuses.push(rig.run(read(0, 0, number, page), &[]).status[0]);
            }
        }
        (statuses, rig.array.injected())
    };
    let kept = run(Storage::Ram);
    assert_eq!(kept, run(Storage::TimingOnly));
    assert_eq!(kept, run(Storage::Packed));
    assert!(kept.1.misdirected_programs > 0 && kept.1.misdirected_reads > 0);
}
