//! The timing of an array alone: until when each die and each bus is busy. For drives whose
//! firmware tracks the state of every block itself, and that simulate millions of requests a
//! second.
//!
//! [`Array`](crate::Array) simulates the whole flash: contents, rules, faults, power cuts. The
//! timeline simulates its times only, with the same `channel`; both complete every command at the
//! same time (`tests.rs` runs random commands on both). The caller must keep the rules of the
//! flash: pages in order, no program without erase.
//!
//! [`Timeline::start`] starts work on a die that [accepts](Timeline::accepts) it;
//! [`Timeline::step`] processes the next event and returns its die, the kinds of work that the die
//! accepts now, and the work that ended.
//!
//! A die that can suspend accepts one read in addition while it loads, programs or erases. This
//! read is sensed before all work that waits on the die, and it suspends the program or erase under
//! way if the times of the configuration allow it; otherwise it waits for its end. A read of the
//! block under work never suspends: the timeline does not know blocks, so such a read starts with
//! [`Timeline::start_behind`]. Moves inside a die are not suspended, and neither are the senses of
//! other moves.

mod bus;
mod clock;
mod die;
mod event_queue;
mod recorder;
mod senses;
mod suspend;
#[cfg(test)]
mod tests;
mod work;

pub use recorder::Interval;
pub use work::{Work, WorkKind};

use crate::address::{ChannelIndex, DieIndex};
use crate::config::{ArrayConfig, ConfigError};
use crate::timing::MAX_PARTS;
use bus::BusLine;
use clock::Clock;
pub use die::WorkKinds;
use die::{Acceptance, DieLine, Passing};
use event_queue::Owner;
use recorder::Recorder;
use softflash_base::Time;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The time.
    pub at: u64,
    /// The die of the event.
    pub die: u32,
    /// The kinds of work that it accepts now.
    pub accepts: WorkKinds,
    /// The work that ended there, if any.
    pub ended: Option<Work>,
}

/// Dies and buses in virtual time.
pub struct Timeline {
    clock: Clock,
    dies: Vec<DieLine>,
    buses: Vec<BusLine>,
    acceptance: Acceptance,
}

impl Timeline {
    /// A timeline of idle dies.
    ///
    /// # Errors
    /// Those of [`ArrayConfig::validate`].
    pub fn new(config: &ArrayConfig) -> Result<Timeline, ConfigError> {
        let (timing, pages) = config.compile()?;
        let geometry = &config.geometry;
        let (dies, per_channel) = (geometry.dies(), geometry.dies_per_channel());
        Ok(Timeline {
            dies: (0..dies).map(|die| DieLine::new(die, per_channel)).collect(),
            buses: (0..geometry.channels.into())
                .map(|channel| BusLine::new(channel, per_channel))
                .collect(),
            acceptance: Acceptance::new(&timing),
            clock: Clock::new(timing, pages.levels(), dies, geometry.channels.into()),
        })
    }

    /// Whether moved pages stay inside their die (copyback) or cross the bus twice.
    pub fn set_copyback(&mut self, copyback: bool) {
        self.clock.copyback = copyback;
    }

    /// Pages of the flash of `config` are read in so many equal parts from now on, at most
    /// [`MAX_PARTS`].
    ///
    /// # Panics
    /// If there are more parts.
    pub fn set_parts(&mut self, config: &ArrayConfig, number: u8) {
        assert!((1..=MAX_PARTS).contains(&number), "a page has {number} parts");
        self.clock.timing.set_parts(&config.geometry, &config.bus, number);
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.clock.now)
    }

    /// The time of the next event, if no work is started before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let at = self.clock.events.next_at();
        (at != u64::MAX).then_some(Time(at))
    }

    /// When a die ends what its cell array does now; `None` while that is idle. It takes longer
    /// than other functions: it looks through the pending events.
    pub fn busy_until(&self, die: u32) -> Option<Time> {
        self.clock.events.at_of_die(die).map(Time)
    }

    /// Advances the time to `now`. No event may be before it.
    ///
    /// # Panics
    /// If `now` is before the current time.
    #[inline]
    pub fn pass_to(&mut self, now: Time) {
        assert!(now.0 >= self.clock.now, "time ran back from {} to {}", self.clock.now, now.0);
        self.clock.now = now.0;
    }

    /// The kinds of work that a die accepts now.
    #[inline]
    pub fn accepts(&self, die: u32) -> WorkKinds {
        self.acceptance.of(&self.dies[die as usize])
    }

    /// Starts work on a die, now; returns the kinds of work that the die accepts in addition.
    ///
    /// # Panics
    /// In debug builds, if the die does not accept it, or if other work than a read is for the
    /// [head](Work::HEAD) of a page.
    #[inline(always)]
    pub fn start(&mut self, die: u32, work: Work) -> WorkKinds {
        let Timeline { clock, dies, buses, acceptance } = self;
        let line = &mut dies[die as usize];
        check(die, work, acceptance.of(line));
        let channel = usize::from(line.channel);
        match work.kind {
            WorkKind::Read if clock.timing.suspends && line.is_passed_by_reads() => {
                clock.pass(line, work, Passing::Waits);
            }
            WorkKind::Read => clock.read(line, &mut buses[channel], work),
            WorkKind::Program => clock.load(line, &mut buses[channel], work),
            WorkKind::Erase => clock.erase(line, work),
            WorkKind::CopyBack => clock.copy_back(line, work),
            WorkKind::Move if clock.copyback => clock.move_inside(line, work),
            WorkKind::Move => clock.sense_moved(line, work),
            WorkKind::Pack => clock.sense_packed(line, work),
        }
        acceptance.of(line)
    }

    /// As [`start`](Timeline::start), for a read of the block that the oldest program or erase of
    /// the die works on: it does not suspend this work, but waits for its end.
    ///
    /// # Panics
    /// As [`start`](Timeline::start).
    pub fn start_behind(&mut self, die: u32, read: Work) -> WorkKinds {
        let Timeline { clock, dies, acceptance, .. } = self;
        let line = &mut dies[die as usize];
        let accepts = acceptance.of(line);
        if read.kind != WorkKind::Read || !accepts.read_passes() {
            return self.start(die, read);
        }
        check(die, read, accepts);
        clock.pass(line, read, Passing::WaitsForEnd);
        acceptance.of(line)
    }

    /// Ends a copy-back after its current page; the work that ends then has the number of copied
    /// pages. Other work is not affected.
    pub fn cut(&mut self, die: u32) {
        self.clock.cut(&mut self.dies[die as usize]);
    }

    /// Processes events up to the next one at which work ends or a die accepts work; `None` if all
    /// dies are idle.
    #[inline]
    pub fn step(&mut self) -> Option<Step> {
        self.step_before(u64::MAX)
    }

    /// As [`step`](Timeline::step), but processes no event at `end` or later.
    #[inline(always)]
    pub fn step_before(&mut self, end: u64) -> Option<Step> {
        loop {
            let at = self.clock.events.next_at();
            if at >= end {
                return None;
            }
            debug_assert!(at >= self.clock.now, "time ran back from {} to {at}", self.clock.now);
            self.clock.now = at;
            let (die, ended) = match self.clock.events.pop() {
                Owner::Die(die) => (die, self.array_done(die)),
                Owner::Bus(channel) => self.bus_done(channel),
            };
            let accepts = self.accepts(die);
            if accepts.any() || ended.is_some() {
                return Some(Step { at, die, accepts, ended });
            }
        }
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.buses.len() as u32
    }

    /// Busy time of a die's cell array in nanoseconds, including all of the work in progress.
    pub fn die_busy_ns(&self, die: DieIndex) -> u64 {
        self.dies.get(die.index()).map_or(0, |die| die.busy_ns)
    }

    /// Busy time of a channel's bus in nanoseconds, including all of the transfer in progress.
    pub fn channel_busy_ns(&self, channel: ChannelIndex) -> u64 {
        self.buses.get(channel.index()).map_or(0, |bus| bus.channel.busy_ns)
    }

    /// Records the activities of dies and buses, up to `most` intervals; see
    /// [`Timeline::recorded`].
    pub fn record(&mut self, most: usize) {
        self.clock.recorder = Recorder::of(most);
    }

    /// The recorded intervals, in the order in which they were scheduled.
    pub fn recorded(&self) -> &[Interval] {
        self.clock.recorder.intervals()
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let dies = self.dies.capacity() * size_of::<DieLine>();
        let buses = self.buses.capacity() * size_of::<BusLine>();
        (size_of::<Timeline>() + dies + buses) as u64
            + self.clock.levels.len() as u64
            + self.clock.events.memory_bytes()
    }

    /// Handles the end of the work in a die's cell array; returns the work that is complete with
    /// it.
    #[inline(always)]
    fn array_done(&mut self, die: u32) -> Option<Work> {
        let line = &mut self.dies[die as usize];
        self.clock.array_ended(line, &mut self.buses[usize::from(line.channel)])
    }
}

/// Checks the work that a die is given, in debug builds.
#[inline(always)]
fn check(die: u32, work: Work, accepts: WorkKinds) {
    debug_assert!(accepts.has(work.kind), "die {die} was given work that it does not accept");
    let whole = work.pages != Work::HEAD;
    debug_assert!(whole || work.kind == WorkKind::Read, "die {die} was given work on no page");
}
