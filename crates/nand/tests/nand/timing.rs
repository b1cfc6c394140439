//! Latencies calculated by hand. All times in microseconds: a page takes 10 on the bus, 50 to read,
//! 200 (lower) or 600 (upper) to program; an erase takes 2000.

use crate::common::{BUS, ERASE, LOWER, READ, Rig, UPPER, US, erase, program, read};
use softflash_base::Time;
use softflash_nand::{
    Activity, Array, ArrayConfig, ChannelIndex, CommandKind, DieCommand, DieIndex, FaultConfig,
    Recorded, Storage, SuspendTiming, presets,
};

fn small(change: impl FnOnce(&mut ArrayConfig)) -> ArrayConfig {
    let mut config = presets::small();
    change(&mut config);
    config
}

#[test]
fn single_operations_take_the_sum_of_their_steps() {
    let mut rig = Rig::new(&presets::small());
    assert_eq!(rig.run(program(0, 0, 0, 0), &[]).latency_ns(), BUS + LOWER);
    assert_eq!(rig.run(program(0, 0, 0, 1), &[]).latency_ns(), BUS + LOWER);
    assert_eq!(rig.run(program(0, 0, 0, 2), &[]).latency_ns(), BUS + UPPER);
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).latency_ns(), READ + BUS);
    assert_eq!(rig.run(erase(0, 0, 0), &[]).latency_ns(), ERASE);
    let busy = 2 * LOWER + UPPER + READ + ERASE;
    assert_eq!(rig.array.die_busy_ns(DieIndex(0)), busy);
    assert_eq!(rig.array.channel_busy_ns(ChannelIndex(0)), 4 * BUS);
}

#[test]
fn planes_work_at_once_and_share_the_bus() {
    let mut rig = Rig::new(&presets::small());
    let both = |command| DieCommand { planes: 2, blocks: [3, 5, 0, 0], ..command };
    assert_eq!(rig.run(both(program(0, 0, 0, 0)), &[]).latency_ns(), 2 * BUS + LOWER);
    assert_eq!(rig.run(both(read(0, 0, 0, 0)), &[]).latency_ns(), READ + 2 * BUS);
    assert_eq!(rig.run(both(erase(0, 0, 0)), &[]).latency_ns(), ERASE);
}

#[test]
fn command_overhead_and_spare_area_cost_bus_time() {
    let config = small(|config| {
        config.geometry.spare_bytes = 2048;
        config.bus.transfer_spare = true;
        config.bus.command_overhead_ns = 300;
    });
    let mut rig = Rig::new(&config);
    assert_eq!(rig.run(read(0, 0, 0, 0), &[]).latency_ns(), READ + BUS * 3 / 2 + 300);
}

#[test]
fn the_beginning_of_a_page_costs_bus_time_for_itself_alone() {
    let mut rig = Rig::new(&presets::small());
    let head = |command| DieCommand { head: true, ..command };
    // The first 1 KiB of pages of 4 KiB.
    assert_eq!(rig.run(head(read(0, 0, 0, 0)), &[]).latency_ns(), READ + BUS / 4);
    // Only reads of one plane can transfer the beginning of a page alone.
    let both = DieCommand { planes: 2, ..read(0, 0, 0, 0) };
    assert_eq!(rig.run(head(both), &[]).latency_ns(), READ + 2 * BUS);
    assert_eq!(rig.run(head(program(0, 0, 0, 0)), &[]).latency_ns(), BUS + LOWER);
}

#[test]
fn reads_of_two_dies_share_the_bus_of_their_channel_only() {
    let mut rig = Rig::new(&presets::small());
    for die in 0..4 {
        rig.submit(0, read(u64::from(die), die, 0, 0)).unwrap();
    }
    // Dies 0 and 1 are on channel 0, dies 2 and 3 on channel 1.
    assert_eq!(rig.ends_us(), [(0, 60), (2, 60), (1, 70), (3, 70)]);
}

#[test]
fn a_read_goes_before_a_waiting_program_on_the_bus() {
    let config = small(|config| config.geometry.chips_per_channel = 3);
    let mut rig = Rig::new(&config);
    // Die 0 is in transfer from 50 to 60; meanwhile die 1's program and die 2's read queue up.
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.advance(5 * US);
    rig.submit(5 * US, read(2, 2, 0, 0)).unwrap();
    rig.advance(52 * US);
    rig.submit(52 * US, program(1, 1, 0, 0)).unwrap();
    // The bus: die 0 until 60, die 2's read until 70, die 1's data until 80, then its program.
    assert_eq!(rig.ends_us(), [(0, 60), (2, 70), (1, 280)]);
}

#[test]
fn a_program_is_overtaken_a_limited_number_of_times() {
    let config = small(|config| {
        config.geometry.chips_per_channel = 4;
        config.bus.reads_ahead = 1;
    });
    let mut rig = Rig::new(&config);
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, read(1, 1, 0, 0)).unwrap();
    rig.submit(0, read(2, 2, 0, 0)).unwrap();
    rig.advance(51 * US);
    rig.submit(51 * US, program(3, 3, 0, 0)).unwrap();
    // 50-60 die 0; 60-70 die 1 overtakes; 70-80 the program's data; 80-90 die 2.
    assert_eq!(rig.ends_us(), [(0, 60), (1, 70), (2, 90), (3, 280)]);
}

#[test]
fn a_cache_read_senses_the_next_page_during_the_transfer() {
    // The bus is slower than the array here: 100 us a page.
    let slow = |cache_read| {
        small(|config| {
            config.die.cache_read = cache_read;
            config.bus.bytes_per_second = 40_960_000;
        })
    };
    let mut rig = Rig::new(&slow(true));
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, read(1, 0, 0, 1)).unwrap();
    assert_eq!(rig.advance(150 * US).len(), 1);
    rig.submit(150 * US, read(2, 0, 0, 2)).unwrap();
    // Senses end at 50, 100 and 200; transfers take 50-150, 150-250, 250-350.
    assert_eq!(rig.ends_us(), [(1, 250), (2, 350)]);
    assert_eq!(rig.array.channel_busy_ns(ChannelIndex(0)), 300 * US);

    let mut rig = Rig::new(&slow(false));
    for page in 0..3 {
        rig.run(read(0, 0, 0, page), &[]);
    }
    assert_eq!(rig.array.now(), Time(450 * US), "without it every page takes both times");
}

#[test]
fn a_cache_read_waits_for_the_array_where_that_is_slower() {
    let mut rig = Rig::new(&small(|config| config.die.cache_read = true));
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, read(1, 0, 0, 1)).unwrap();
    // Senses 0-50 and 50-100, transfers 50-60 and 100-110.
    assert_eq!(rig.ends_us(), [(0, 60), (1, 110)]);
}

#[test]
fn a_cache_program_loads_the_next_page_during_the_program() {
    let mut rig = Rig::new(&small(|config| config.die.cache_program = true));
    rig.submit(0, program(0, 0, 0, 0)).unwrap();
    rig.submit(0, program(1, 0, 0, 1)).unwrap();
    // Loads 0-10 and 10-20, programs 10-210 and 210-410.
    assert_eq!(rig.ends_us(), [(0, 210), (1, 410)]);
}

#[test]
fn commands_of_different_kinds_do_not_overlap_on_a_die() {
    let config = small(|config| (config.die.cache_read, config.die.cache_program) = (true, true));
    let mut rig = Rig::new(&config);
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, program(1, 0, 1, 0)).unwrap();
    // The read until 60, then load until 70 and program until 270.
    assert_eq!(rig.ends_us(), [(0, 60), (1, 270)]);
    rig.submit(270 * US, program(2, 0, 1, 1)).unwrap();
    rig.submit(270 * US, read(3, 0, 1, 0)).unwrap();
    assert_eq!(rig.ends_us(), [(2, 480), (3, 540)]);
    rig.submit(540 * US, erase(4, 0, 1)).unwrap();
    rig.submit(540 * US, program(5, 0, 1, 0)).unwrap();
    assert_eq!(rig.ends_us(), [(4, 2540), (5, 2750)]);
}

fn suspending() -> ArrayConfig {
    small(|config| {
        let timing = |suspend_us| SuspendTiming {
            suspend_ns: suspend_us * US,
            resume_ns: 5 * US,
            at_most: 2,
        };
        config.die.program_suspend = Some(timing(20));
        config.die.erase_suspend = Some(timing(100));
    })
}

#[test]
fn a_read_suspends_an_erase() {
    let mut rig = Rig::new(&suspending());
    rig.submit(0, erase(0, 0, 0)).unwrap();
    rig.advance(500 * US);
    rig.submit(500 * US, read(1, 0, 1, 0)).unwrap();
    // Suspended 500-600, sense until 650, transfer until 660, resumed at 665 with 1500 left.
    assert_eq!(rig.ends_us(), [(1, 660), (0, 2165)]);
    assert_eq!(rig.array.counters().suspensions, 1);
    assert_eq!(rig.array.die_busy_ns(DieIndex(0)), ERASE + READ);
}

#[test]
fn a_cache_register_lets_the_program_go_on_during_the_transfer() {
    let mut config = suspending();
    config.die.cache_read = true;
    let mut rig = Rig::new(&config);
    rig.submit(0, program(0, 0, 0, 0)).unwrap();
    rig.advance(100 * US);
    rig.submit(100 * US, read(1, 0, 1, 0)).unwrap();
    // Program from 10, suspended 100-120 with 110 left, sense until 170, resumed at 175.
    assert_eq!(rig.ends_us(), [(1, 180), (0, 285)]);
}

#[test]
fn reads_among_themselves_use_the_cache_register_on_a_die_that_can_suspend() {
    let mut config = suspending();
    config.die.cache_read = true;
    let mut rig = Rig::new(&config);
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, read(1, 0, 0, 1)).unwrap();
    rig.submit(0, read(2, 0, 0, 2)).unwrap_err();
    assert_eq!(rig.ends_us(), [(0, 60), (1, 110)]);
}

#[test]
fn an_operation_is_suspended_a_limited_number_of_times() {
    let mut rig = Rig::new(&suspending());
    rig.submit(0, erase(0, 0, 0)).unwrap();
    let mut now = 100 * US;
    let mut latencies = Vec::new();
    for tag in 1..=3 {
        rig.advance(now);
        rig.submit(now, read(tag, 0, 1, 0)).unwrap();
        while rig.array.die_load(DieIndex(0)) > 1 {
            let next = rig.array.next_event_at().unwrap().0;
            for ended in rig.advance(next).iter().filter(|ended| ended.tag == tag) {
                latencies.push(ended.latency_ns() / US);
                now = next + 100 * US;
            }
            if rig.array.counters().finished == 3 {
                break;
            }
        }
    }
    // Two reads suspend. The erase has 2000 - 100 - 95 left at 525, when the third comes; resumed
    // at 425 + 5 with 1805 left, it ends at 100 + 160 + 5 + 95 + 160 + 5 + 1805 = 2330.
    assert_eq!(latencies, [160, 160]);
    let ends: Vec<_> = rig.drain().iter().map(|ended| (ended.tag, ended.at.0 / US)).collect();
    assert_eq!(ends, [(3, 2390)]);
    assert_eq!(rig.array.counters().suspensions, 2);
}

#[test]
fn an_operation_about_to_end_is_not_suspended() {
    let mut rig = Rig::new(&suspending());
    rig.submit(0, erase(0, 0, 0)).unwrap();
    rig.advance(1900 * US);
    rig.submit(1900 * US, read(1, 0, 1, 0)).unwrap();
    assert_eq!(rig.ends_us(), [(0, 2000), (1, 2060)]);
    assert_eq!(rig.array.counters().suspensions, 0);
}

#[test]
fn a_read_of_the_block_under_work_waits_for_its_end() {
    let mut rig = Rig::new(&suspending());
    rig.submit(0, program(0, 0, 0, 0)).unwrap();
    rig.advance(50 * US);
    rig.submit(50 * US, read(1, 0, 0, 0)).unwrap();
    let ended = rig.drain();
    assert_eq!((ended[1].tag, ended[1].at), (1, Time(270 * US)));
    assert!(ended[1].is_good(), "it finds the page programmed: {ended:?}");
}

#[test]
fn one_die_reads_at_the_rate_of_its_slower_half() {
    let sdf = presets::sdf();
    let mut rig = Rig::new(&sdf);
    let (pages, mut submitted, mut ended) = (200, 2, 0);
    rig.submit(0, read(0, 0, 0, 0)).unwrap();
    rig.submit(0, read(1, 0, 0, 1)).unwrap();
    while let Some(at) = rig.array.next_event_at() {
        for _ in rig.advance(at.0) {
            ended += 1;
            if submitted < pages {
                rig.submit(at.0, read(submitted, 0, 0, submitted as u32)).unwrap();
                submitted += 1;
            }
        }
    }
    // The bus is the slower half: one sense, then a transfer after the other.
    assert_eq!((ended, rig.array.now()), (pages, Time(75_000 + pages * 204_800)));
}

#[test]
fn two_chips_program_at_the_raw_write_rate_of_the_paper() {
    let mut rig = Rig::new(&presets::sdf());
    let both = |die, page| DieCommand { planes: 2, ..program(0, die, 0, page) };
    let rounds = 100;
    let mut next = [1; 2];
    rig.submit(0, both(0, 0)).unwrap();
    rig.submit(0, both(1, 0)).unwrap();
    while let Some(at) = rig.array.next_event_at() {
        for ended in rig.advance(at.0) {
            let page = &mut next[ended.die.index()];
            if *page < rounds {
                rig.submit(at.0, both(ended.die.0, *page)).unwrap();
                *page += 1;
            }
        }
    }
    // Each chip: load two pages, program; the second chip starts one load later.
    let cycle = 2 * 204_800 + 1_017_900;
    assert_eq!(rig.array.now(), Time(u64::from(rounds) * cycle + 2 * 204_800));
    let rate = 44.0 * 4.0 * 8192.0 / cycle as f64;
    assert!((rate - 1.01).abs() < 0.001, "{rate} GB/s");
}

#[test]
fn the_recorder_sees_what_begins_in_its_window_with_its_times() {
    let mut array =
        Array::new(&presets::small(), Storage::TimingOnly, &FaultConfig::default(), 1).unwrap();
    let die = DieIndex(1);
    let erase = DieCommand::single(1, die, CommandKind::Erase, 0, 0);
    array.submit(Time::ZERO, &erase, &[]).unwrap();
    array.advance(Time(5_000_000), &mut Vec::new());
    array.record(Time(5_000_000), Time(5_100_000), usize::MAX);
    let program = DieCommand::single(2, die, CommandKind::Program, 0, 0);
    array.submit(array.now(), &program, &[]).unwrap();
    array.advance(Time(6_000_000), &mut Vec::new());
    array.submit(array.now(), &DieCommand { kind: CommandKind::Read, ..program }, &[]).unwrap();
    array.advance(Time::MAX, &mut Vec::new());
    let recorded =
        |activity, begin, end| Recorded { die, activity, begin: Time(begin), end: Time(end) };
    let wanted = [
        recorded(Activity::Transfer, 5_000_000, 5_010_000),
        recorded(Activity::Program, 5_010_000, 5_210_000),
    ];
    assert_eq!(array.recorded(), wanted, "the erase came before the window and the read after it");
}
