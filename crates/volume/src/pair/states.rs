//! The states that the members of a pair record on their flash.

use super::Pair;
use super::course::{Member, partner};
use crate::format::pair_state::PairState;
use softflash_base::planted::{self, Bug};

/// The states of the members while one of them is built, in the order in which they are recorded.
pub(super) fn building_states(pair: &Pair, from: Member) -> [(Member, PairState); 2] {
    let states = [0, 1].map(|member| pair.state(member));
    states_to_build(states[from].pair, states, from)
}

pub(super) fn states_to_build(
    pair: u64,
    states: [PairState; 2],
    from: Member,
) -> [(Member, PairState); 2] {
    let epoch = 1 + states[0].epoch.max(states[1].epoch);
    let operations = states[from].operations;
    let is_partner_whole = planted::bug(Bug::PartOfCopyCounts);
    let of = |is_whole| PairState { pair, epoch, operations, is_whole, is_partner_whole };
    [(from, of(true)), (partner(from), of(is_partner_whole))]
}
