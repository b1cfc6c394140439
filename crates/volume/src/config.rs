//! Settings of a mapped domain.

use crate::unit_slots::UnitSlots;
use softflash_ftl::FtlConfig;
use softflash_policy::{
    Chosen, LifetimePolicy, PlacementPolicy, Schedule, VictimPolicy, WearPolicy,
};

/// Settings of a [`Domain`](crate::Domain). The default suits most devices.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainConfig {
    /// The number of the domain on its device.
    pub domain: u16,
    /// The slots of its units, if a table of sets names them. Without a table the units have slots
    /// in their order, and always have to be the same.
    pub slots: Option<UnitSlots>,
    /// Spare space for collection in percent of the usable space. Less makes collection write more.
    pub op_percent: f64,
    /// The most mapping units of a frame; a few less where its last page would not be full.
    pub frame_units: u32,
    /// Frames of clients under way for each unit, from which on further writes are gathered in the
    /// next frame.
    pub frames_per_unit: u32,
    /// Requests of up to 64 KiB that are under way for each unit while volumes compete, at least
    /// 16 for the domain; others wait for their turn by weight. More keep the units busier, fewer
    /// keep to the weights sooner.
    pub competing_per_unit: u32,
    /// Collection of a unit, which begins when writers open the last superblock that they may
    /// have, goes on until so many are free, with one for the next checkpoint; it adds those that a
    /// larger one takes. Superblocks that only wait for a flush count as free.
    pub low_superblocks: u32,
    /// Entries of frames after which a checkpoint is made; 0: an eighth of the domain, at least
    /// 2^16.
    pub checkpoint_entries: u64,
    /// Which superblock of a unit is collected next.
    pub victim: VictimPolicy,
    /// How the erases of a unit are levelled.
    pub wear: WearPolicy,
    /// The order of the commands that wait for a die.
    pub order: Schedule,
    /// Which unit takes the next frame: a policy that does not depend on pages' numbers.
    pub placement: PlacementPolicy,
    /// Which data without hints share superblocks; not one that needs requests to come.
    pub lifetime: LifetimePolicy,
    /// Seed of the policies that draw random numbers.
    pub seed: u64,
}

impl Default for DomainConfig {
    fn default() -> DomainConfig {
        DomainConfig {
            domain: 1,
            slots: None,
            op_percent: 7.0,
            frame_units: 64,
            frames_per_unit: 2,
            competing_per_unit: 8,
            low_superblocks: 8,
            checkpoint_entries: 0,
            victim: VictimPolicy::GREEDY,
            wear: FtlConfig::default().wear,
            order: FtlConfig::default().order,
            placement: PlacementPolicy::LEAST_QUEUE,
            lifetime: LifetimePolicy::NONE,
            seed: 1,
        }
    }
}

/// The least bound of the requests under way while volumes compete.
const LEAST_COMPETING: u32 = 16;

impl DomainConfig {
    /// These settings, with the policies that were chosen.
    pub fn with_policies(self, chosen: &Chosen) -> DomainConfig {
        DomainConfig {
            victim: chosen.victim.unwrap_or(self.victim),
            wear: chosen.wear.unwrap_or(self.wear),
            order: chosen.order.unwrap_or(self.order),
            placement: chosen.placement.unwrap_or(self.placement),
            lifetime: chosen.lifetime.unwrap_or(self.lifetime),
            ..self
        }
    }

    /// These settings on flash whose pages have so many mapping units: a full frame, with its head,
    /// ends with a page. The rest of its last page would be lost to data otherwise, a fifth of all
    /// flash where 4 planes are programmed together.
    pub(crate) fn on_pages_of(self, page_units: u32) -> DomainConfig {
        let with_head = self.frame_units.saturating_add(1);
        let full = (with_head - with_head % page_units.max(1)).max(page_units);
        DomainConfig { frame_units: full.saturating_sub(1).max(1), ..self }
    }

    /// The epoch of the table of sets; 0 without one.
    pub(crate) fn epoch(&self) -> u32 {
        self.slots.as_ref().map_or(0, UnitSlots::epoch)
    }

    /// Requests under way while volumes compete for so many units.
    pub(crate) fn competing_requests(&self, units: u16) -> u32 {
        self.competing_per_unit.saturating_mul(units.into()).max(LEAST_COMPETING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_ends_with_a_page() {
        let entries = |frame_units, page_units| {
            let config = DomainConfig { frame_units, ..DomainConfig::default() };
            config.on_pages_of(page_units).frame_units
        };
        assert_eq!(
            [1, 2, 4, 16, 64].map(|page_units| entries(64, page_units)),
            [64, 63, 63, 63, 63]
        );
        assert_eq!([1, 4, 16].map(|page_units| entries(8, page_units)), [8, 7, 15]);
        assert_eq!([1, 2].map(|page_units| entries(1, page_units)), [1, 1]);
    }
}
