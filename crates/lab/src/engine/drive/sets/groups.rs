//! All sets of a device.

use super::group::{Group, Set};
use crate::engine::drive::course::BusyTimes;
use crate::engine::drive::{busy, programs_of};
use crate::engine::meter::{CountsPages, PageCounts};
use crate::outcome::Programs;
use softflash_drive::Drive;

/// The sets, by their groups.
pub(super) struct Groups(pub(super) Vec<Group>);

impl Groups {
    /// All sets.
    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        self.0.iter().flat_map(|group| group.sets())
    }

    /// The drives of all sets.
    pub(super) fn drives(&self) -> impl Iterator<Item = &Drive> {
        self.sets().map(Set::drive)
    }

    /// Bytes that the host can address in each group.
    pub(super) fn group_bytes(&self) -> u64 {
        self.drives().next().map_or(0, Drive::capacity_bytes)
    }

    /// Bytes that the host can address.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.group_bytes() * self.0.len() as u64
    }

    /// The measured part begins: what has been counted so far is no part of it.
    pub(super) fn begin_measured(&mut self) {
        self.0.iter_mut().flat_map(Group::sets_mut).for_each(Set::begin_measured);
    }

    /// What all sets have programmed, by cause.
    pub(super) fn programs(&self) -> Programs {
        self.drives().map(|drive| programs_of(&drive.counters())).fold(Programs::default(), sum)
    }

    /// Busy times of channels and dies.
    pub(super) fn busy(&self) -> BusyTimes {
        let (mut channels, mut dies) = BusyTimes::default();
        for (of_channels, of_dies) in self.drives().map(busy) {
            channels.extend(of_channels);
            dies.extend(of_dies);
        }
        (channels, dies)
    }
}

impl CountsPages for Groups {
    fn page_counts(&self) -> PageCounts {
        let mut all = PageCounts::default();
        for counts in self.drives().map(CountsPages::page_counts) {
            all.written += counts.written;
            all.programmed_for_host += counts.programmed_for_host;
            all.programmed += counts.programmed;
        }
        all
    }
}

fn sum(one: Programs, other: Programs) -> Programs {
    Programs {
        host: one.host + other.host,
        collection: one.collection + other.collection,
        folding: one.folding + other.folding,
        compaction: one.compaction + other.compaction,
        parity: one.parity + other.parity,
        metadata: one.metadata + other.metadata,
        padding: one.padding + other.padding,
    }
}
