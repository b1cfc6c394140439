//! Planned faults: the effect, place and time of each, for tests that need an exact fault.

use super::slow::SLOW_FACTOR_MAX;
use crate::command::CommandKind;
use crate::config::ConfigError;
use crate::geometry::Geometry;
use serde::{Deserialize, Serialize};

/// A list of planned faults. If several can strike one command, the first in the list strikes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSchedule {
    /// The faults.
    #[serde(default)]
    pub faults: Vec<PlannedFault>,
}

/// One planned fault. It strikes once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedFault {
    /// The place.
    pub place: FaultPlace,
    /// The time.
    pub when: FaultTime,
    /// The effect.
    pub what: Strike,
}

/// Where a planned fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultPlace {
    /// A die, counted through the array.
    Die(u32),
    /// Each die of a channel, counted through the array; a slowdown also slows its bus.
    Channel(u32),
}

/// When a planned fault strikes. Commands are counted per die, from the planning of the fault on,
/// beginning with 1. A command counts once for all its planes, at the end of its work in the cell
/// array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTime {
    /// This time of the array's clock, in nanoseconds. A fault of a command strikes the first
    /// suitable command whose work in the cell array ends then or later.
    AtNs(u64),
    /// The die's read of this number.
    Read(u64),
    /// The die's program of this number.
    Program(u64),
    /// The die's erase of this number.
    Erase(u64),
}

impl FaultTime {
    /// The same time if these numbers of commands of each kind have been counted before.
    pub(crate) fn after(self, [reads, programs, erases]: [u64; 3]) -> FaultTime {
        match self {
            FaultTime::AtNs(at) => FaultTime::AtNs(at),
            FaultTime::Read(number) => FaultTime::Read(number.saturating_add(reads)),
            FaultTime::Program(number) => FaultTime::Program(number.saturating_add(programs)),
            FaultTime::Erase(number) => FaultTime::Erase(number.saturating_add(erases)),
        }
    }

    /// The kind of the counted command, and its number.
    pub(crate) fn counted(self) -> Option<(CommandKind, u64)> {
        match self {
            FaultTime::AtNs(_) => None,
            FaultTime::Read(number) => Some((CommandKind::Read, number)),
            FaultTime::Program(number) => Some((CommandKind::Program, number)),
            FaultTime::Erase(number) => Some((CommandKind::Erase, number)),
        }
    }
}

/// The effect of a planned fault. The first five strike one command, all its planes. It is used up
/// even without an effect: a command that fails anyway is not misdirected, stale or miscorrected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strike {
    /// The command fails: a read is uncorrectable, once; a program or erase fails, and its blocks
    /// go bad.
    Fail,
    /// As [`SilentFaults::phantom_program`](crate::SilentFaults::phantom_program).
    Phantom,
    /// As [`SilentFaults::misdirected_read`](crate::SilentFaults::misdirected_read) or
    /// [`misdirected_program`](crate::SilentFaults::misdirected_program).
    Misdirect,
    /// As [`SilentFaults::stale_read`](crate::SilentFaults::stale_read).
    Stale,
    /// As [`SilentFaults::miscorrected_read`](crate::SilentFaults::miscorrected_read).
    Miscorrect,
    /// The die is dead: commands whose work ends then or later complete as
    /// [`PageStatus::Dead`](crate::PageStatus::Dead), after their usual time and without effect.
    Death,
    /// Work that begins from then on takes longer.
    Slow {
        /// The factor on durations, 1 to 1000.
        factor: f64,
        /// The length of the slow period, in nanoseconds, at least 1.
        for_ns: u64,
    },
    /// The power of all dies is cut. The array only returns the time
    /// ([`Array::planned_cut`](crate::Array::planned_cut)); its driver makes the cut.
    PowerCut {
        /// The share of the command's work that is done by then, 0 to 1, if it is not suspended.
        /// Ignored if a time is given.
        #[serde(default)]
        progress: f64,
    },
}

impl Strike {
    /// Whether it strikes a command and suits this kind.
    pub(crate) fn suits(self, kind: CommandKind) -> bool {
        match self {
            Strike::Fail => true,
            Strike::Phantom => kind == CommandKind::Program,
            Strike::Misdirect => kind != CommandKind::Erase,
            Strike::Stale | Strike::Miscorrect => kind == CommandKind::Read,
            Strike::Death | Strike::Slow { .. } | Strike::PowerCut { .. } => false,
        }
    }

    /// Whether it strikes one command, not the die.
    fn is_of_command(self) -> bool {
        !matches!(self, Strike::Death | Strike::Slow { .. } | Strike::PowerCut { .. })
    }
}

impl FaultSchedule {
    /// Checks that the places exist in an array of this geometry, and that each fault is possible
    /// at its time.
    ///
    /// # Errors
    /// [`ConfigError::Schedule`] names the first entry that is wrong.
    pub fn validate(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        for (entry, fault) in self.faults.iter().enumerate() {
            if let Some(reason) = fault.problem(geometry) {
                return Err(ConfigError::Schedule { entry, reason });
            }
        }
        Ok(())
    }

    /// The faults of some channels of an array, in ascending order, for an array of these channels
    /// alone. Power cuts at a time are in every part.
    #[must_use]
    pub fn part(&self, geometry: &Geometry, channels: &[u32]) -> FaultSchedule {
        let per_channel = geometry.dies_per_channel();
        let position = |channel: u32| channels.binary_search(&channel).ok().map(|at| at as u32);
        let moved = |fault: &PlannedFault| {
            let place = match fault.place {
                _ if fault.is_cut_at_time() => FaultPlace::Die(0),
                FaultPlace::Die(die) => {
                    let channel = position(die / per_channel)?;
                    FaultPlace::Die(channel * per_channel + die % per_channel)
                }
                FaultPlace::Channel(channel) => FaultPlace::Channel(position(channel)?),
            };
            Some(PlannedFault { place, ..*fault })
        };
        FaultSchedule { faults: self.faults.iter().filter_map(moved).collect() }
    }
}

impl PlannedFault {
    fn is_cut_at_time(&self) -> bool {
        matches!((self.when, self.what), (FaultTime::AtNs(_), Strike::PowerCut { .. }))
    }

    /// The problem, if there is one.
    fn problem(&self, geometry: &Geometry) -> Option<String> {
        match self.place {
            FaultPlace::Die(die) if die >= geometry.dies() => {
                return Some(format!("die {die} does not exist; there are {}", geometry.dies()));
            }
            FaultPlace::Channel(channel) if channel >= u32::from(geometry.channels) => {
                let channels = geometry.channels;
                return Some(format!("channel {channel} does not exist; there are {channels}"));
            }
            _ => {}
        }
        if let Some((kind, number)) = self.when.counted() {
            if number == 0 {
                return Some("commands are counted from 1".to_owned());
            }
            if self.what.is_of_command() && !self.what.suits(kind) {
                return Some(format!("{:?} cannot happen to a {kind:?}", self.what));
            }
        }
        match self.what {
            Strike::Slow { factor, .. } if !(1.0..=SLOW_FACTOR_MAX).contains(&factor) => {
                Some(format!("factor is {factor}; it must be 1 to {SLOW_FACTOR_MAX}"))
            }
            Strike::PowerCut { progress } if !(0.0..=1.0).contains(&progress) => {
                Some(format!("progress is {progress}; it must be 0 to 1"))
            }
            Strike::Slow { for_ns: 0, .. } => Some("for_ns is 0; it must be at least 1".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    const GOOD: PlannedFault =
        PlannedFault { place: FaultPlace::Die(3), when: FaultTime::Program(7), what: Strike::Fail };

    fn told(fault: PlannedFault) -> String {
        let schedule = FaultSchedule { faults: vec![GOOD, fault] };
        schedule.validate(&presets::small().geometry).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_happen_is_named_with_its_entry() {
        let alone = FaultSchedule { faults: vec![GOOD] };
        alone.validate(&presets::small().geometry).unwrap();
        assert_eq!(
            told(PlannedFault { place: FaultPlace::Die(4), ..GOOD }),
            "fault schedule, entry 1: die 4 does not exist; there are 4"
        );
        assert!(told(PlannedFault { place: FaultPlace::Channel(2), ..GOOD }).contains("channel 2"));
        assert!(told(PlannedFault { when: FaultTime::Read(0), ..GOOD }).contains("from 1"));
        assert!(told(PlannedFault { what: Strike::Stale, ..GOOD }).contains("Stale cannot"));
        let slow =
            |factor, for_ns| told(PlannedFault { what: Strike::Slow { factor, for_ns }, ..GOOD });
        assert!(slow(0.5, 1).contains("0.5") && slow(f64::NAN, 1).contains("NaN"));
        assert!(slow(2.0, 0).contains("for_ns"));
        let cut = Strike::PowerCut { progress: 1.5 };
        assert!(told(PlannedFault { what: cut, ..GOOD }).contains("progress is 1.5"));
    }

    #[test]
    fn a_part_keeps_its_own_places_only() {
        let on = |place| PlannedFault { place, ..GOOD };
        let (die, channel) = (FaultPlace::Die, FaultPlace::Channel);
        let all = [die(0), die(3), channel(0), channel(1), die(2)].map(on);
        let part = FaultSchedule { faults: all.to_vec() }.part(&presets::small().geometry, &[1]);
        assert_eq!(part.faults, [die(1), channel(0), die(0)].map(on));
        let geometry = Geometry { channels: 4, ..presets::small().geometry };
        let all = [die(2), die(3), die(7), channel(3), channel(2)].map(on);
        let part = FaultSchedule { faults: all.to_vec() }.part(&geometry, &[1, 3]);
        assert_eq!(part.faults, [die(0), die(1), die(3), channel(1)].map(on));
        let what = Strike::PowerCut { progress: 0.0 };
        let cut = PlannedFault { place: die(0), when: FaultTime::AtNs(5), what };
        let part = FaultSchedule { faults: vec![cut] }.part(&presets::small().geometry, &[1]);
        assert_eq!(part.faults, [cut], "a cut is everywhere");
    }

    #[test]
    fn a_schedule_can_be_written_as_text() {
        let text = "[[faults]]\nplace = { channel = 1 }\nwhen = { at-ns = 5000 }\n\
                    what = { slow = { factor = 100.0, for_ns = 1000000 } }\n\
                    [[faults]]\nplace = { die = 0 }\nwhen = { program = 3 }\nwhat = \"fail\"\n";
        let schedule: FaultSchedule = toml::from_str(text).unwrap();
        let slow = Strike::Slow { factor: 100.0, for_ns: 1_000_000 };
        let (place, when) = (FaultPlace::Channel(1), FaultTime::AtNs(5000));
        assert_eq!(schedule.faults[0], PlannedFault { place, when, what: slow });
        assert_eq!(schedule.faults[1].what, Strike::Fail);
        assert_eq!(
            toml::from_str::<FaultSchedule>(&toml::to_string(&schedule).unwrap()),
            Ok(schedule)
        );
    }
}
