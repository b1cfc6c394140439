//! The timeline compared with the whole array, which is tested against the rules of the flash.

use super::*;
use crate::activity::Activity;
use crate::command::{CommandKind, DieCommand, Finished};
use crate::faults::FaultConfig;
use crate::storage::Storage;
use crate::{Array, presets};
use softflash_base::random::Rng;
use std::collections::{BTreeMap, VecDeque};

/// Random commands of each die, in order.
fn commands(config: &ArrayConfig, rng: &mut Rng) -> Vec<VecDeque<Work>> {
    let geometry = &config.geometry;
    (0..geometry.dies())
        .map(|_| {
            let mut work = VecDeque::new();
            let mut page = 0;
            for tag in 0..60 {
                let full = page == geometry.pages_per_block as u16;
                let kind = match rng.below(10) {
                    _ if full => WorkKind::Erase,
                    0..=4 if page > 0 => WorkKind::Read,
                    9 if page > 0 => WorkKind::Erase,
                    _ => WorkKind::Program,
                };
                let pages = 1 + rng.below(u64::from(geometry.planes_per_die)) as u8;
                let at = match kind {
                    WorkKind::Read => rng.below(u64::from(page)) as u16,
                    WorkKind::Program => page,
                    _ => 0,
                };
                page = match kind {
                    WorkKind::Erase => 0,
                    WorkKind::Program => page + 1,
                    _ => page,
                };
                // Programs and erases on all planes keep the blocks of a die in step.
                let pages = if kind == WorkKind::Read { pages } else { geometry.planes_per_die };
                work.push_back(Work { tag, page: at, pages, kind });
            }
            work
        })
        .collect()
}

type Ends = BTreeMap<(u32, u32), u64>;

/// The times of a run: when each command of a die ended, and how long each die and each channel was
/// busy.
#[derive(Debug, Default, PartialEq)]
struct Times {
    ends: Ends,
    dies_busy_ns: Vec<u64>,
    channels_busy_ns: Vec<u64>,
}

fn play_timeline(config: &ArrayConfig, mut work: Vec<VecDeque<Work>>) -> Times {
    let mut timeline = Timeline::new(config).unwrap();
    let mut ends = Ends::new();
    for die in 0..config.geometry.dies() {
        feed(&mut timeline, die, &mut work[die as usize]);
    }
    while let Some(step) = timeline.step() {
        if let Some(ended) = step.ended {
            ends.insert((step.die, ended.tag), step.at);
        }
        if step.accepts.any() {
            feed(&mut timeline, step.die, &mut work[step.die as usize]);
        }
    }
    let (dies, channels) = (config.geometry.dies(), u32::from(config.geometry.channels));
    Times {
        ends,
        dies_busy_ns: (0..dies).map(|die| timeline.die_busy_ns(DieIndex(die))).collect(),
        channels_busy_ns: (0..channels)
            .map(|channel| timeline.channel_busy_ns(ChannelIndex(channel)))
            .collect(),
    }
}

fn feed(timeline: &mut Timeline, die: u32, work: &mut VecDeque<Work>) {
    while let Some(next) = work.pop_front_if(|next| timeline.accepts(die).has(next.kind)) {
        timeline.start(die, next);
    }
}

fn play_array(config: &ArrayConfig, mut work: Vec<VecDeque<Work>>) -> Times {
    let mut array = Array::new(config, Storage::TimingOnly, &FaultConfig::default(), 1).unwrap();
    let mut ends = Ends::new();
    let mut finished: Vec<Finished> = Vec::new();
    for die in 0..config.geometry.dies() {
        submit(&mut array, die, &mut work[die as usize]);
    }
    while array.step(&mut finished).is_some() {
        for done in finished.drain(..) {
            ends.insert((done.die.0, done.tag as u32), done.at.0);
        }
        for die in 0..config.geometry.dies() {
            submit(&mut array, die, &mut work[die as usize]);
        }
    }
    let (dies, channels) = (config.geometry.dies(), u32::from(config.geometry.channels));
    Times {
        ends,
        dies_busy_ns: (0..dies).map(|die| array.die_busy_ns(DieIndex(die))).collect(),
        channels_busy_ns: (0..channels)
            .map(|channel| array.channel_busy_ns(ChannelIndex(channel)))
            .collect(),
    }
}

/// Submits the commands that the die starts at once, as the timeline accepts no others. A command
/// that waits inside a die requests the bus one grant earlier than a command that is submitted when
/// the die has room.
fn submit(array: &mut Array, die: u32, work: &mut VecDeque<Work>) {
    let kind_of = |work: &Work| match work.kind {
        WorkKind::Read => CommandKind::Read,
        WorkKind::Program => CommandKind::Program,
        WorkKind::Erase => CommandKind::Erase,
        WorkKind::Move | WorkKind::CopyBack => unreachable!("the array knows no moves"),
    };
    while let Some(next) = work.pop_front_if(|next| array.would_begin(DieIndex(die), kind_of(next)))
    {
        let mut command =
            DieCommand::single(next.tag.into(), DieIndex(die), kind_of(&next), 0, next.page.into());
        command.planes = next.pages;
        array.submit(array.now(), &command, &[]).unwrap();
    }
}

/// Runs random commands on both, once for each seed, and compares their times.
fn agree(name: &str, config: &ArrayConfig, seeds: u64) {
    for seed in 0..seeds {
        let mut rng = Rng::seeded(seed).fork("timeline");
        let work = commands(config, &mut rng);
        let (ours, arrays) = (play_timeline(config, work.clone()), play_array(config, work));
        let other = ours.ends.iter().find(|&(command, end)| arrays.ends.get(command) != Some(end));
        assert_eq!(other, None, "{name}, seed {seed}: the array ends this command at another time");
        assert_eq!(ours, arrays, "{name}, seed {seed}");
    }
}

/// The flash of a preset, with and without each cache register. Dies keep few blocks, as all
/// commands use the first.
fn agree_with_every_cache(name: &str, config: ArrayConfig, seeds: u64) {
    let mut config = config.without_suspend();
    config.geometry.blocks_per_plane = config.geometry.blocks_per_plane.min(8);
    for (cache_read, cache_program) in [(false, false), (true, false), (false, true), (true, true)]
    {
        (config.die.cache_read, config.die.cache_program) = (cache_read, cache_program);
        let name = format!("{name}, cache read {cache_read}, cache program {cache_program}");
        agree(&name, &config, seeds);
    }
}

/// The flash of a device preset.
fn flash_of(preset: &str) -> ArrayConfig {
    let table: toml::Table = preset.parse().unwrap();
    let flash: toml::Table = ["geometry", "die", "bus"]
        .into_iter()
        .map(|part| (part.to_owned(), table[part].clone()))
        .collect();
    flash.try_into().unwrap()
}

#[test]
fn times_are_those_of_the_array_on_the_small_preset() {
    agree_with_every_cache("small", presets::small(), 50);
}

#[test]
fn times_are_those_of_the_array_on_sdf() {
    agree_with_every_cache("sdf", presets::sdf(), 6);
}

#[test]
fn times_are_those_of_the_array_on_tlc() {
    agree_with_every_cache("tlc", presets::tlc(), 6);
}

#[test]
fn times_are_those_of_the_array_on_the_device_presets() {
    macro_rules! preset {
        ($name:literal) => {
            ($name, include_str!(concat!("../../../../presets/devices/", $name, ".toml")))
        };
    }
    for (name, preset) in [
        preset!("sdf"),
        preset!("huawei-gen3"),
        preset!("intel-320"),
        preset!("memblaze-q520"),
        preset!("mqsim-default"),
        preset!("tlc-modern"),
    ] {
        agree_with_every_cache(name, flash_of(preset), 3);
    }
}

#[test]
fn a_timeline_refuses_dies_that_suspend() {
    let config = presets::tlc();
    let refused = Timeline::new(&config).err();
    assert_eq!(refused, Some(ConfigError::Suspend { key: "die.program_suspend" }));
    assert!(Timeline::new(&config.without_suspend()).is_ok());
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
