//! The block with the fewest valid pages of the `w` that were closed first; of equals, the oldest.
//! A window of 1 is FIFO, one of all blocks is greedy. Young blocks are given the time to lose
//! pages.
//!
//! Hu, Eleftheriou, Haas, Iliadis and Pletka, *Write amplification analysis in flash-based solid
//! state drives*, SYSTOR 2009.

use super::view::{Candidates, Rule};
use crate::registry::{Entry, Numbers, Parameter};
use softflash_base::random::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "windowed-greedy",
    parameters: &[Parameter::new("W", "blocks of the window")],
    meaning: "The one with the fewest valid pages of so many that were closed first.",
    aliases: &[],
    rule: choose,
};

fn choose(candidates: &Candidates<'_>, [window, _]: Numbers, _: &mut Rng) -> Option<u32> {
    let blocks = candidates.valid.len();
    let window = (window as usize).clamp(1, blocks.max(1));
    // The youngest of the window is at the top; of equal age, the one with the highest number.
    let mut oldest = BinaryHeap::with_capacity(window);
    for block in (0..blocks).filter(|&block| candidates.is_closed(block)) {
        let entry = (Reverse(candidates.age(block)), block);
        if oldest.len() < window {
            oldest.push(entry);
        } else if let Some(mut youngest) = oldest.peek_mut()
            && entry < *youngest
        {
            *youngest = entry;
        }
    }
    let of_window = oldest.into_iter();
    of_window
        .min_by_key(|&(age, block)| (candidates.valid[block], age, block))
        .map(|(_, block)| block as u32)
}
