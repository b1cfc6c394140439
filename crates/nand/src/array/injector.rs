//! Selects the commands that silent and planned faults strike. An array has an injector only if
//! such faults are possible; without them it only checks that it has none. The effects of the
//! faults are in `injection`.

use crate::command::CommandKind;
use crate::config::ConfigError;
use crate::faults::{
    FaultConfig, FaultPlace, FaultSchedule, FaultTime, InjectedFaults, SLOWED_STEP_NS_MAX,
    SilentFaults, SlowOperations, Strike,
};
use crate::geometry::Geometry;
use softflash_base::random::Rng;
use std::collections::BTreeSet;

/// Planned faults, and counters of injected ones.
pub(super) struct Injector {
    silent: SilentFaults,
    slow: SlowOperations,
    dies: Vec<DieFaults>,
    /// The slow periods of each channel's bus.
    buses: Vec<Vec<Slowness>>,
    /// The times of planned power cuts.
    pub(super) cuts: BTreeSet<u64>,
    pub(super) counters: InjectedFaults,
}

/// Faults of one die.
struct DieFaults {
    /// A separate generator, so that injection does not change other random draws.
    rng: Rng,
    /// Commands whose work in the cell array has begun, and has ended, by kind.
    begun: [u64; 3],
    ended: [u64; 3],
    /// The faults that have not struck yet, in the schedule's order.
    planned: Vec<(FaultTime, Strike)>,
    dead_from: u64,
    slow: Vec<Slowness>,
}

/// A period in which operations take longer.
#[derive(Clone, Copy)]
struct Slowness {
    from: u64,
    until: u64,
    factor: f64,
}

/// The result of a command's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The die is dead.
    Dead,
    /// A planned failure of the command.
    Fails,
    /// The outcome is decided page by page.
    Goes,
}

/// The effect on a page of a program that would succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Itself,
    Nothing,
    Elsewhere,
}

/// The data of a page in a read that would succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Itself,
    /// The page of this number in another block.
    Other(u32),
    /// The former contents of the register.
    Stale,
    /// The page with bits flipped that follow from this seed.
    Flipped(u64),
}

impl Injector {
    /// An injector, if these rates need one.
    pub(super) fn new(faults: &FaultConfig, rngs: &[Rng], channels: u16) -> Option<Box<Injector>> {
        let needed = faults.silent != SilentFaults::default() || faults.slow.rate > 0.0;
        needed.then(|| Injector::idle(faults, rngs, channels))
    }

    /// An injector, even if no rate needs one.
    pub(super) fn idle(faults: &FaultConfig, rngs: &[Rng], channels: u16) -> Box<Injector> {
        let die = |rng: &Rng| DieFaults {
            rng: rng.fork("injected"),
            begun: [0; 3],
            ended: [0; 3],
            planned: Vec::new(),
            dead_from: u64::MAX,
            slow: Vec::new(),
        };
        Box::new(Injector {
            silent: faults.silent,
            slow: faults.slow,
            dies: rngs.iter().map(die).collect(),
            buses: vec![Vec::new(); usize::from(channels)],
            cuts: BTreeSet::new(),
            counters: InjectedFaults::default(),
        })
    }

    /// Adds the faults of a schedule.
    pub(super) fn plan(
        &mut self,
        schedule: &FaultSchedule,
        geometry: &Geometry,
    ) -> Result<(), ConfigError> {
        schedule.validate(geometry)?;
        let per_channel = geometry.dies_per_channel();
        for fault in &schedule.faults {
            if let (FaultTime::AtNs(at), Strike::PowerCut { .. }) = (fault.when, fault.what) {
                self.cuts.insert(at);
                continue;
            }
            let dies = match fault.place {
                FaultPlace::Die(die) => die..die + 1,
                FaultPlace::Channel(channel) => {
                    self.plan_bus(channel, fault.when, fault.what);
                    channel * per_channel..(channel + 1) * per_channel
                }
            };
            for die in dies {
                self.dies[die as usize].plan(fault.when, fault.what);
            }
        }
        Ok(())
    }

    /// Plans a slow period of a bus. A bus counts no commands, so only a fault at a time slows it.
    fn plan_bus(&mut self, channel: u32, when: FaultTime, what: Strike) {
        if let (FaultTime::AtNs(from), Strike::Slow { factor, for_ns }) = (when, what) {
            let until = from.saturating_add(for_ns);
            self.buses[channel as usize].push(Slowness { from, until, factor });
        }
    }

    pub(super) fn is_dead(&self, die: usize, now: u64) -> bool {
        self.dies[die].dead_from <= now
    }

    /// Counts a command whose work ends now; returns its verdict and the planned fault that strikes
    /// it.
    pub(super) fn work_ends(
        &mut self,
        die: usize,
        kind: CommandKind,
        now: u64,
    ) -> (Verdict, Option<Strike>) {
        let die = &mut self.dies[die];
        let struck = die.struck(kind, now);
        if die.dead_from <= now {
            self.counters.dead_commands += 1;
            return (Verdict::Dead, None);
        }
        if struck == Some(Strike::Fail) {
            self.counters.planned_failures += 1;
            return (Verdict::Fails, None);
        }
        (Verdict::Goes, struck)
    }

    /// The effect of a program that would succeed on a page.
    pub(super) fn written(&mut self, die: usize, planned: Option<Strike>) -> Written {
        let rng = &mut self.dies[die].rng;
        match planned {
            Some(Strike::Phantom) => Written::Nothing,
            Some(Strike::Misdirect) => Written::Elsewhere,
            _ if rng.chance(self.silent.phantom_program) => Written::Nothing,
            _ if rng.chance(self.silent.misdirected_program) => Written::Elsewhere,
            _ => Written::Itself,
        }
    }

    /// The data that a read returns for a page whose read would succeed. `other` finds the block of
    /// a misdirected read.
    pub(super) fn shown(
        &mut self,
        die: usize,
        planned: Option<Strike>,
        other: impl FnOnce(&mut Rng) -> Option<u32>,
    ) -> Shown {
        let rng = &mut self.dies[die].rng;
        let strike = match planned {
            Some(strike) => strike,
            None if rng.chance(self.silent.misdirected_read) => Strike::Misdirect,
            None if rng.chance(self.silent.stale_read) => Strike::Stale,
            None if rng.chance(self.silent.miscorrected_read) => Strike::Miscorrect,
            None => return Shown::Itself,
        };
        match strike {
            Strike::Misdirect => match other(rng) {
                Some(block) => {
                    self.counters.misdirected_reads += 1;
                    Shown::Other(block)
                }
                None => Shown::Itself,
            },
            Strike::Stale => Shown::Stale,
            Strike::Miscorrect => {
                self.counters.miscorrected_reads += 1;
                Shown::Flipped(rng.next_u64())
            }
            _ => Shown::Itself,
        }
    }

    /// A random number below `n` from a die's generator.
    pub(super) fn below(&mut self, die: usize, n: u32) -> u32 {
        self.dies[die].rng.below(u64::from(n)) as u32
    }

    /// The duration of a die's step that takes `ns` without faults. The first step of a command
    /// counts the command.
    pub(super) fn die_step_ns(
        &mut self,
        die: usize,
        first_of: Option<CommandKind>,
        now: u64,
        ns: u64,
    ) -> u64 {
        let die = &mut self.dies[die];
        let by_chance = if die.rng.chance(self.slow.rate) { self.slow.factor } else { 1.0 };
        let slowed = slowed(ns, by_chance.max(factor_at(&die.slow, now)));
        if let Some(kind) = first_of
            && let Some(progress) = die.cut_in(kind)
        {
            self.cuts.insert(now + (slowed as f64 * progress) as u64);
        }
        self.counters.slowed_steps += u64::from(slowed > ns);
        slowed
    }

    /// The duration of a transfer on a channel that takes `ns` without faults.
    pub(super) fn bus_step_ns(&mut self, channel: usize, now: u64, ns: u64) -> u64 {
        let slowed = slowed(ns, factor_at(&self.buses[channel], now));
        self.counters.slowed_steps += u64::from(slowed > ns);
        slowed
    }
}

impl DieFaults {
    fn plan(&mut self, when: FaultTime, what: Strike) {
        match (when, what) {
            (FaultTime::AtNs(from), Strike::Death) => self.dead_from = self.dead_from.min(from),
            (FaultTime::AtNs(from), Strike::Slow { .. }) => self.slow_down(from, what),
            (_, Strike::PowerCut { .. }) => self.planned.push((when.after(self.begun), what)),
            _ => self.planned.push((when.after(self.ended), what)),
        }
    }

    /// Counts a command whose work begins; returns its progress at a power cut that was planned for
    /// it, if any.
    fn cut_in(&mut self, kind: CommandKind) -> Option<f64> {
        let begun = &mut self.begun[kind as usize];
        *begun += 1;
        let this = (kind, *begun);
        let place = self.planned.iter().position(|&(when, what)| {
            matches!(what, Strike::PowerCut { .. }) && when.counted() == Some(this)
        })?;
        match self.planned.remove(place).1 {
            Strike::PowerCut { progress } => Some(progress),
            _ => None,
        }
    }

    fn slow_down(&mut self, from: u64, what: Strike) {
        if let Strike::Slow { factor, for_ns } = what {
            self.slow.push(Slowness { from, until: from.saturating_add(for_ns), factor });
        }
    }

    /// Counts a command whose work has ended, applies the faults of the die that were planned for
    /// this end, and returns the first fault that was planned for the command itself.
    fn struck(&mut self, kind: CommandKind, now: u64) -> Option<Strike> {
        let ended = &mut self.ended[kind as usize];
        *ended += 1;
        let ended = *ended;
        let mut first = None;
        let mut of_die = Vec::new();
        self.planned.retain(|&(when, what)| {
            if matches!(what, Strike::PowerCut { .. }) {
                return true;
            }
            let due = match when.counted() {
                None => what.suits(kind) && matches!(when, FaultTime::AtNs(from) if from <= now),
                Some((counted, number)) => counted == kind && number == ended,
            };
            if due && !what.suits(kind) {
                of_die.push(what);
                return false;
            }
            let strikes = due && first.is_none();
            if strikes {
                first = Some(what);
            }
            !strikes
        });
        for what in of_die {
            match what {
                Strike::Death => self.dead_from = self.dead_from.min(now),
                _ => self.slow_down(now, what),
            }
        }
        first
    }
}

/// The greatest factor at a time.
fn factor_at(slow: &[Slowness], now: u64) -> f64 {
    let active = slow.iter().filter(|slow| (slow.from..slow.until).contains(&now));
    active.map(|slow| slow.factor).fold(1.0, f64::max)
}

fn slowed(ns: u64, factor: f64) -> u64 {
    if factor <= 1.0 {
        return ns;
    }
    ((ns as f64 * factor) as u64).min(SLOWED_STEP_NS_MAX.max(ns))
}
