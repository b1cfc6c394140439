//! Play commands on the timeline and on the array, each given as soon as its die accepts it.

use super::super::*;
use super::commands::{Commands, Given, arrivals};
use crate::Array;
use crate::command::{CommandKind, DieCommand, Finished};
use crate::faults::FaultConfig;
use crate::geometry::MAX_PLANES;
use crate::storage::Storage;
use std::collections::{BTreeMap, VecDeque};

/// The times of a run: when each command of a die ended, and how long each die and each channel was
/// busy.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) ends: BTreeMap<(u32, u32), u64>,
    dies_busy_ns: Vec<u64>,
    channels_busy_ns: Vec<u64>,
}

/// The programs and erases of each die that have not ended, in order, as tags and blocks. The
/// firmware of a drive knows them, and the timeline does not.
type UnderWork = Vec<VecDeque<(u32, u32)>>;

pub(super) fn play_timeline(config: &ArrayConfig, mut commands: Commands) -> Times {
    let mut timeline = Timeline::new(config).unwrap();
    let (dies, channels) = (config.geometry.dies(), u32::from(config.geometry.channels));
    let mut under_work: UnderWork = vec![VecDeque::new(); dies as usize];
    let mut ends = BTreeMap::new();
    for arrival in arrivals(&commands) {
        while let Some(step) = timeline.step_before(arrival.saturating_add(1)) {
            if let Some(ended) = step.ended {
                ends.insert((step.die, ended.tag), step.at);
                under_work[step.die as usize].pop_front_if(|(tag, _)| *tag == ended.tag);
            }
            feed(&mut timeline, step.die, &mut commands, &mut under_work);
        }
        if arrival != u64::MAX {
            timeline.pass_to(Time(arrival));
            (0..dies).for_each(|die| feed(&mut timeline, die, &mut commands, &mut under_work));
        }
    }
    Times {
        ends,
        dies_busy_ns: (0..dies).map(|die| timeline.die_busy_ns(DieIndex(die))).collect(),
        channels_busy_ns: (0..channels)
            .map(|channel| timeline.channel_busy_ns(ChannelIndex(channel)))
            .collect(),
    }
}

fn feed(timeline: &mut Timeline, die: u32, commands: &mut Commands, under_work: &mut UnderWork) {
    let (queue, under_work) = (&mut commands[die as usize], &mut under_work[die as usize]);
    let now = timeline.now().0;
    let takes = |timeline: &Timeline, given: &Given| {
        given.at <= now && timeline.accepts(die).has(given.work.kind)
    };
    while let Some(Given { block, work, .. }) = queue.pop_front_if(|next| takes(timeline, next)) {
        let conflicts = under_work.front().is_some_and(|(_, other)| *other == block);
        if work.kind != WorkKind::Read {
            under_work.push_back((work.tag, block));
            timeline.start(die, work);
        } else if conflicts {
            timeline.start_behind(die, work);
        } else {
            timeline.start(die, work);
        }
    }
}

/// As [`play_timeline`]; returns the number of suspensions, too.
pub(super) fn play_array(config: &ArrayConfig, mut commands: Commands) -> (Times, u64) {
    let mut array = Array::new(config, Storage::TimingOnly, &FaultConfig::default(), 1).unwrap();
    let (dies, channels) = (config.geometry.dies(), u32::from(config.geometry.channels));
    let mut ends = BTreeMap::new();
    let mut finished: Vec<Finished> = Vec::new();
    for arrival in arrivals(&commands) {
        while array.next_event_at().is_some_and(|at| at.0 <= arrival) {
            array.step(&mut finished);
            for done in finished.drain(..) {
                ends.insert((done.die.0, done.tag as u32), done.at.0);
            }
            (0..dies).for_each(|die| submit(&mut array, die, &mut commands[die as usize]));
        }
        if arrival != u64::MAX {
            array.advance(Time(arrival), &mut finished);
            (0..dies).for_each(|die| submit(&mut array, die, &mut commands[die as usize]));
        }
    }
    let times = Times {
        ends,
        dies_busy_ns: (0..dies).map(|die| array.die_busy_ns(DieIndex(die))).collect(),
        channels_busy_ns: (0..channels)
            .map(|channel| array.channel_busy_ns(ChannelIndex(channel)))
            .collect(),
    };
    (times, array.counters().suspensions)
}

/// Submits the commands that the timeline accepts: those that the die starts at once, and the reads
/// that pass. A command that waits inside a die requests the bus one grant earlier than a command
/// that is submitted when the die has room.
fn submit(array: &mut Array, die: u32, commands: &mut VecDeque<Given>) {
    let (die, now) = (DieIndex(die), array.now());
    let takes = |array: &Array, next: &Given| {
        next.at <= now.0 && array.would_begin(die, kind_of(next.work))
    };
    while let Some(Given { block, work, .. }) = commands.pop_front_if(|next| takes(array, next)) {
        let head = work.pages == Work::HEAD;
        let command = DieCommand {
            planes: if head { 1 } else { work.pages },
            blocks: [block; MAX_PLANES],
            head,
            ..DieCommand::single(work.tag.into(), die, kind_of(work), block, work.page.into())
        };
        array.submit(now, &command, &[]).unwrap();
    }
}

fn kind_of(work: Work) -> CommandKind {
    match work.kind {
        WorkKind::Read => CommandKind::Read,
        WorkKind::Program => CommandKind::Program,
        WorkKind::Erase => CommandKind::Erase,
        WorkKind::Move | WorkKind::CopyBack | WorkKind::Pack => {
            unreachable!("the array knows no moves")
        }
    }
}
