//! The superblocks of a unit, and the number in each state.

mod slot;

pub(crate) use slot::{Slot, State};

use crate::free_index::FreeIndex;
use crate::policy::wear::{Candidate, Readiness};
use crate::telemetry::SpaceAccount;
use softflash_base::UnitId;

/// The superblocks of one unit.
pub(crate) struct Slots {
    unit: UnitId,
    slots: Vec<Slot>,
    /// Superblocks in each [`State`].
    account: [u32; 7],
    free: FreeIndex,
}

impl Slots {
    /// Superblocks that are all out of service.
    pub fn new(unit: UnitId, superblocks: u32) -> Slots {
        let mut account = [0; 7];
        account[State::OutOfService as usize] = superblocks;
        let (slots, free) = (vec![Slot::new(); superblocks as usize], FreeIndex::new(superblocks));
        Slots { unit, slots, account, free }
    }

    pub fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    pub fn slot_mut(&mut self, index: u32) -> &mut Slot {
        self.free.note_change(index);
        &mut self.slots[index as usize]
    }

    /// The superblock of an index that may be out of range.
    pub fn try_slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    /// All superblocks with their indices.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0_u32..).zip(&self.slots)
    }

    /// Changes the state of a superblock and checks the sum over all states.
    pub fn set_state(&mut self, index: u32, state: State) {
        self.free.note_change(index);
        let old = self.slots[index as usize].replace_state(state);
        assert!(
            self.account[old as usize] > 0,
            "unit {}: superblock {index} was {old:?}, and the account has none in that state",
            self.unit
        );
        self.account[old as usize] -= 1;
        self.account[state as usize] += 1;
        assert_eq!(
            self.space().total() as usize,
            self.slots.len(),
            "unit {}: superblocks were lost or counted twice",
            self.unit
        );
    }

    /// The free superblocks, by the order of the wear policy.
    pub fn free(&mut self) -> &FreeIndex {
        let slots = &self.slots;
        self.free.refresh(|index| candidate(index, &slots[index as usize]));
        &self.free
    }

    /// Number of superblocks in a state.
    pub fn in_state(&self, state: State) -> u32 {
        self.account[state as usize]
    }

    pub fn space(&self) -> SpaceAccount {
        SpaceAccount {
            erased: self.in_state(State::Erased),
            erase_pending: self.in_state(State::ErasePending) + self.in_state(State::Erasing),
            open: self.in_state(State::Open),
            live: self.in_state(State::Live) + self.in_state(State::Releasing),
            bad: self.in_state(State::OutOfService),
        }
    }

    /// Recounts superblocks by state, and the commands of all superblocks, which are `load`.
    ///
    /// # Panics
    /// If a superblock or command is lost or counted twice.
    pub fn check(&self, load: u32) {
        let mut account = [0; 7];
        for slot in &self.slots {
            account[slot.state() as usize] += 1;
        }
        assert_eq!(account, self.account, "unit {}: superblocks by state", self.unit);
        let under_way: u32 = self.slots.iter().map(Slot::under_way).sum();
        assert_eq!(under_way, load, "unit {}: commands under way", self.unit);
        self.free.check(|index| candidate(index, &self.slots[index as usize]));
    }
}

/// A superblock as a candidate for allocation; none if it cannot be allocated.
fn candidate(index: u32, slot: &Slot) -> Option<Candidate> {
    let (readiness, pending_erases) = match slot.state() {
        State::Erased => (Readiness::Erased, 0),
        State::Erasing if slot.has_failed() => return None,
        State::Erasing => (Readiness::Erasing, u32::from(!slot.is_erased())),
        State::ErasePending => (Readiness::ErasePending, 1),
        _ => return None,
    };
    let (wear, wear_unknown) = slot.wear();
    Some(Candidate { index, wear: wear + pending_erases, wear_unknown, readiness })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_free_superblocks_follows_their_wear() {
        let mut slots = Slots::new(UnitId(0), 3);
        for (index, wear) in [(0, 4), (1, 3), (2, 5)] {
            slots.set_state(index, State::ErasePending);
            slots.slot_mut(index).set_wear((wear, false));
        }
        let first = |slots: &mut Slots| {
            slots.free().first(Readiness::ErasePending, None).map(|first| (first.index, first.wear))
        };
        assert_eq!(first(&mut slots), Some((1, 4)), "with the erase that is due");
        slots.slot_mut(1).set_wear((6, false));
        assert_eq!(first(&mut slots), Some((0, 5)));
        slots.check(0);
    }
}
