//! The timeline compared with the whole array (`agreement`), and with times computed by hand.

mod agreement;
mod commands;
mod players;

use super::*;
use crate::activity::Activity;
use crate::presets;
use crate::timing::SuspendTiming;

/// The small preset, whose dies suspend: programs in 20 us, erases in 100, twice at most.
fn suspending() -> ArrayConfig {
    let mut config = presets::small();
    let timing = |suspend_ns| Some(SuspendTiming { suspend_ns, resume_ns: 5_000, at_most: 2 });
    (config.die.program_suspend, config.die.erase_suspend) = (timing(20_000), timing(100_000));
    config
}

const READ: Work = Work { tag: 1, page: 0, pages: 1, kind: WorkKind::Read };
const PROGRAM: Work = Work { tag: 0, page: 0, pages: 1, kind: WorkKind::Program };
const ERASE: Work = Work { tag: 0, page: 0, pages: 1, kind: WorkKind::Erase };

/// Starts `work` on die 0, and the read at `read_at`; returns the ends in order, as tag and time.
fn read_during(config: &ArrayConfig, work: Work, read_at: u64, behind: bool) -> Vec<(u32, u64)> {
    let mut timeline = Timeline::new(config).unwrap();
    timeline.start(0, work);
    let mut ends = Vec::new();
    let mut play = |timeline: &mut Timeline, end| {
        while let Some(step) = timeline.step_before(end) {
            ends.extend(step.ended.map(|work| (work.tag, step.at)));
        }
    };
    play(&mut timeline, read_at);
    timeline.pass_to(Time(read_at));
    assert!(timeline.accepts(0).has(WorkKind::Read) && timeline.accepts(0).read_passes());
    let accepts = if behind { timeline.start_behind(0, READ) } else { timeline.start(0, READ) };
    assert!(!accepts.has(WorkKind::Read), "one read at a time passes");
    play(&mut timeline, u64::MAX);
    ends
}

#[test]
fn a_read_suspends_a_program_or_an_erase() {
    // Suspended 500-600, sense until 650, transfer until 660, resumed at 665 with 1500 left.
    let ends = read_during(&suspending(), ERASE, 500_000, false);
    assert_eq!(ends, [(1, 660_000), (0, 2_165_000)]);
    // Program from 10, suspended 100-120 with 110 left, sense until 170, resumed at 185: after the
    // transfer, as there is no cache register.
    let ends = read_during(&suspending(), PROGRAM, 100_000, false);
    assert_eq!(ends, [(1, 180_000), (0, 295_000)]);
    let mut cached = suspending();
    cached.die.cache_read = true;
    let ends = read_during(&cached, PROGRAM, 100_000, false);
    assert_eq!(ends, [(1, 180_000), (0, 285_000)]);
}

#[test]
fn a_read_of_the_block_under_work_waits_for_the_end_of_the_work() {
    let ends = read_during(&suspending(), ERASE, 500_000, true);
    assert_eq!(ends, [(0, 2_000_000), (1, 2_060_000)]);
}

#[test]
fn work_about_to_end_is_not_suspended() {
    let ends = read_during(&suspending(), ERASE, 1_900_000, false);
    assert_eq!(ends, [(0, 2_000_000), (1, 2_060_000)]);
}

#[test]
fn a_read_is_sensed_while_the_data_of_a_program_cross_the_bus() {
    // Sensed 2-52, transferred until 62; the program, loaded at 10, has to wait for the cell array.
    let ends = read_during(&suspending(), PROGRAM, 2_000, false);
    assert_eq!(ends, [(1, 62_000), (0, 262_000)]);
}

#[test]
fn the_program_of_a_move_is_suspended_and_its_senses_are_not() {
    let work = Work { tag: 0, page: 0, pages: 2, kind: WorkKind::Move };
    let mut timeline = Timeline::new(&suspending()).unwrap();
    assert!(!timeline.start(0, work).any());
    // Senses until 100, crossings until 140.
    let step = timeline.step().unwrap();
    assert_eq!((step.at, step.accepts.read_passes(), step.ended), (140_000, true, None));
    // Suspended until 160, sensed until 210; the bus is taken from 205 to 215, so it is transferred
    // until 225; resumed at 230.
    timeline.start(0, READ);
    let mut ends = Vec::new();
    assert!(timeline.step_before(205_000).is_none());
    timeline.pass_to(Time(205_000));
    timeline.start(1, PROGRAM);
    while let Some(step) = timeline.step() {
        ends.extend(step.ended.map(|work| (work.kind, step.at)));
    }
    let expected =
        [(WorkKind::Read, 225_000), (WorkKind::Program, 415_000), (WorkKind::Move, 430_000)];
    assert_eq!(ends, expected);
}

#[test]
fn reads_send_the_parts_they_need_and_packs_take_whole_pages_back() {
    let mut config = suspending();
    config.bus.command_overhead_ns = 100;
    let read_ns = config.die.read_ns[0];
    let page_ns =
        1_000_000_000 * u64::from(config.geometry.page_bytes) / config.bus.bytes_per_second;
    let ends_at = |work| {
        let mut timeline = Timeline::new(&config).unwrap();
        timeline.set_parts(&config, 4);
        timeline.start(0, work);
        let mut steps = std::iter::from_fn(|| timeline.step());
        steps.find_map(|step| step.ended.map(|_| step.at)).unwrap()
    };
    let read = |parts| ends_at(Work { pages: Work::parts(parts), ..READ });
    assert_eq!(read(1), read_ns + 100 + page_ns / 4);
    assert_eq!(read(3), read_ns + 100 + page_ns * 3 / 4);
    assert_eq!(read(4), ends_at(READ));
    // Seven parts of three pages become one page and three quarters: two pages are programmed.
    let tag = Work::packed(7, 3);
    let pack = ends_at(Work { tag, page: 0, pages: 2, kind: WorkKind::Pack });
    let crossings_ns = 3 * 100 + page_ns / 4 * 7 + 100 + 2 * page_ns;
    assert_eq!(pack, 3 * read_ns + crossings_ns + config.die.program_ns[0]);
}

#[test]
fn suspended_work_is_recorded_in_parts() {
    let mut timeline = Timeline::new(&suspending()).unwrap();
    timeline.record(10);
    timeline.start(0, ERASE);
    timeline.pass_to(Time(500_000));
    timeline.start(0, READ);
    while timeline.step().is_some() {}
    let told: Vec<(Activity, u64, u64)> =
        timeline.recorded().iter().map(|i| (i.activity, i.begin_ns, i.end_ns)).collect();
    let expected = [
        (Activity::Erase, 0, 500_000),
        (Activity::Sense, 600_000, 650_000),
        (Activity::Transfer, 650_000, 660_000),
        (Activity::Erase, 665_000, 2_165_000),
    ];
    assert_eq!(told, expected);
    assert_eq!(timeline.die_busy_ns(DieIndex(0)), 2_000_000 + 50_000);
}

#[test]
fn a_die_that_does_not_suspend_takes_no_read_to_pass() {
    let mut timeline = Timeline::new(&suspending().without_suspend()).unwrap();
    assert!(!timeline.start(0, ERASE).any());
    assert!(!timeline.start(1, PROGRAM).any());
}

#[test]
fn the_head_of_a_page_crosses_the_bus_in_its_share_of_the_time() {
    // 1 KiB of a page of 4 KiB, which takes 10 us.
    let mut timeline = Timeline::new(&presets::small()).unwrap();
    timeline.start(0, Work { pages: Work::HEAD, ..READ });
    let mut ended_at = None;
    while let Some(step) = timeline.step() {
        ended_at = step.ended.map(|_| step.at).or(ended_at);
    }
    assert_eq!(ended_at, Some(50_000 + 2_500));
    assert_eq!(timeline.channel_busy_ns(ChannelIndex(0)), 2_500);
}

#[test]
fn a_move_takes_two_crossings_or_none() {
    let config = presets::small();
    let work = Work { tag: 0, page: 0, pages: 2, kind: WorkKind::Move };
    for (copyback, crossing_ns) in [(false, 40_000), (true, 0)] {
        let mut timeline = Timeline::new(&config).unwrap();
        timeline.set_copyback(copyback);
        timeline.start(0, work);
        let mut last = None;
        while let Some(step) = timeline.step() {
            last = Some(step);
        }
        let expected = 2 * 50_000 + crossing_ns + 200_000;
        let last = last.map(|step| (step.at, step.die, step.accepts.any(), step.ended));
        assert_eq!(last, Some((expected, 0, true, Some(work))));
    }
}

#[test]
fn a_copy_back_ends_after_the_page_at_which_it_is_cut() {
    let config = presets::small();
    // Pages 0 to 3 are lower, lower, upper and lower ones.
    let work = Work { tag: 0, page: 0, pages: 4, kind: WorkKind::CopyBack };
    for (cut_at, pages, ends) in [
        (None, 4, 250_000 + 250_000 + 650_000 + 250_000),
        (Some(0), 1, 250_000),
        (Some(250_000), 1, 250_000),
        (Some(250_001), 2, 500_000),
        (Some(600_000), 3, 1_150_000),
    ] {
        let mut timeline = Timeline::new(&config).unwrap();
        timeline.record(10);
        timeline.start(0, work);
        if let Some(cut_at) = cut_at {
            timeline.pass_to(Time(cut_at));
            timeline.cut(0);
        }
        let step = timeline.step().unwrap();
        assert_eq!((step.at, step.ended), (ends, Some(Work { pages, ..work })));
        assert_eq!(timeline.die_busy_ns(DieIndex(0)), ends);
        assert_eq!(timeline.recorded()[0].end_ns, ends);
    }
}

#[test]
fn a_window_is_recorded() {
    let mut timeline = Timeline::new(&presets::small()).unwrap();
    timeline.record(3);
    timeline.start(0, Work { tag: 0, page: 0, pages: 1, kind: WorkKind::Program });
    timeline.start(1, Work { tag: 0, page: 0, pages: 1, kind: WorkKind::Erase });
    while timeline.step().is_some() {}
    let told: Vec<(u32, Activity, u64)> =
        timeline.recorded().iter().map(|i| (i.die, i.activity, i.end_ns)).collect();
    let expected = [
        (0, Activity::Transfer, 10_000),
        // Scheduled as soon as its pages are on the bus.
        (0, Activity::Program, 210_000),
        (1, Activity::Erase, 2_000_000),
    ];
    assert_eq!(told, expected);
}
