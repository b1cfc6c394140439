//! Static wear levelling: finds the block whose data are so cold that its superblock lags behind
//! the most worn one. A rewrite moves the data, as that of a block that is hard to read does.

use crate::damage::Damage;
use crate::directory::Directory;
use crate::pools::Pools;
use softflash_ftl::Origin;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Superblocks that are written to a unit between two looks at it: a look reads the wear of all.
const WRITTEN_BETWEEN_LOOKS: u64 = 8;

/// Looks for superblocks with cold data.
pub(crate) struct WearLevelling {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    damage: Rc<Damage>,
    /// The newest generation of each unit at the last look.
    looked_at: RefCell<BTreeMap<u16, u64>>,
}

impl WearLevelling {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        damage: &Rc<Damage>,
    ) -> WearLevelling {
        let units = pools.flash().units();
        let generation = |unit| (unit, pools.flash().newest_generation(unit));
        let looked_at = units.iter().map(generation).collect();
        WearLevelling {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            damage: Rc::clone(damage),
            looked_at: RefCell::new(looked_at),
        }
    }

    /// Whether enough was written to some unit since the last look.
    pub(crate) fn is_look_due(&self) -> bool {
        let (flash, looked_at) = (self.pools.flash(), self.looked_at.borrow());
        // A unit that has joined since is due.
        let looked_at = |unit| looked_at.get(&unit).copied().unwrap_or(0);
        let is_due =
            |unit| flash.newest_generation(unit) >= looked_at(unit) + WRITTEN_BETWEEN_LOOKS;
        flash.units().iter().any(is_due)
    }

    /// Requests a refresh of the block that lags behind in each unit, if the wear policy of the FTL
    /// moves cold data and enough was written since the last look.
    pub(crate) fn note_lagging(&self) {
        let flash = self.pools.flash();
        let mut looked_at = self.looked_at.borrow_mut();
        for unit in &flash.units() {
            let looked_at = looked_at.entry(unit).or_default();
            let newest = flash.newest_generation(unit);
            if newest < *looked_at + WRITTEN_BETWEEN_LOOKS {
                continue;
            }
            *looked_at = newest;
            let lagging = flash.worth_moving(unit, |_| true);
            if let Some(id) = lagging.and_then(|superblock| self.directory.id_at(&superblock)) {
                self.damage.note_needs_refresh(id, Origin::Levelling);
            }
        }
    }
}
