//! Policies that choose the unit of a new block.

mod least_loaded;
mod round_robin;

use least_loaded::LeastLoaded;
use round_robin::RoundRobin;

/// The load and the free space of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The unit.
    pub(crate) unit: u16,
    /// Requests queued or under way, and blocks being written.
    pub(crate) load: u32,
    /// Superblocks that can be allocated.
    pub(crate) free: u32,
}

/// Chooses a unit for a new block, or `None` if no unit has space.
pub(crate) trait Placement {
    /// `candidates` are in order of their units. Returns a unit among them.
    fn choose(&mut self, candidates: &[Candidate]) -> Option<u16>;
}

/// The placements that a store can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlacementKind {
    /// The least loaded unit.
    #[default]
    LeastLoaded,
    /// The units in cyclic order.
    RoundRobin,
}

impl PlacementKind {
    /// A new policy of this kind.
    pub(crate) fn policy(self) -> Box<dyn Placement> {
        match self {
            PlacementKind::LeastLoaded => Box::new(LeastLoaded::default()),
            PlacementKind::RoundRobin => Box::new(RoundRobin::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Candidate;

    /// Units from 0 on with their loads and free superblocks.
    pub fn units(loads: &[(u32, u32)]) -> Vec<Candidate> {
        let unit = |(unit, &(load, free))| Candidate { unit: unit as u16, load, free };
        loads.iter().enumerate().map(unit).collect()
    }
}
