//! The next block to collect: the choice of a victim policy of the registry.

use super::ledger::Candidate;
use softflash_base::cast::index;
use softflash_base::random::Rng;
use softflash_policy::VictimPolicy;
use softflash_policy::victim::{self, Candidates};

/// A block with more live bytes than this share of its capacity is not worth a move.
const WORTH_NUM: u64 = 31;
const WORTH_DEN: u64 = 32;
/// Bytes of the log that the record of a moved value takes, about.
const RECORD_BYTES: u64 = 96;
/// Pages of the log that the moves of a block take besides: frames are padded to whole pages and
/// word lines. Each batch of moved values may have a frame of its own.
const LOG_PAGES: u64 = 2;
const BATCH_BYTES: u64 = super::extents::BATCH_BYTES as u64;

/// The share of live bytes has so many steps: the pages of a block in the view of the policy.
const STEPS: u64 = 1 << 14;

/// Chooses the block that the policy prefers, of those that are worth a move. `now` is the value
/// clock; a block is as old as the value blocks that were filled since it was opened.
pub fn choose(
    policies: &mut (VictimPolicy, Rng),
    candidates: impl Iterator<Item = Candidate>,
    (capacity, page_bytes): (u64, u64),
    now: u64,
) -> Option<Candidate> {
    // The end of a block stays unused where the next value does not fit: a move of a block that has
    // less room than one of its values frees nothing.
    let worth = |candidate: &Candidate| {
        let Candidate { live_bytes, values, .. } = *candidate;
        let values = values as u64;
        let log_pages = LOG_PAGES + live_bytes.div_ceil(BATCH_BYTES);
        let of_log = values * RECORD_BYTES + log_pages * page_bytes;
        let taken = live_bytes + live_bytes / values.max(1) + of_log;
        values == 0 || taken * WORTH_DEN <= capacity * WORTH_NUM
    };
    let capacity = capacity.max(1);
    let blocks: Vec<Candidate> = candidates.filter(worth).collect();
    let valid: Vec<u16> = blocks
        .iter()
        .map(|block| (block.live_bytes * STEPS / capacity).min(STEPS) as u16)
        .collect();
    let closed: Vec<u32> = blocks.iter().map(|block| (block.born / capacity) as u32).collect();
    let (now, pages) = ((now / capacity) as u32, STEPS as u32);
    let (policy, rng) = policies;
    let view = Candidates { valid: &valid, closed: &closed, now, pages };
    victim::choose(*policy, &view, rng).and_then(|chosen| blocks.get(index(chosen)).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 100 << 10;
    const PAGE: u64 = 512;

    /// A block with this share of live bytes, in percent, in ten values.
    fn candidate(block: u64, live: u64, born: u64) -> Candidate {
        let live_bytes = live * CAPACITY / 100;
        Candidate { block, live_bytes, values: 10, expires_by_ms: u64::MAX, born: born << 10 }
    }

    fn chosen(blocks: &[Candidate], now: u64) -> Option<u64> {
        let mut policies = (VictimPolicy::aged_cost_benefit(75), Rng::seeded(1));
        let chosen = choose(&mut policies, blocks.iter().copied(), (CAPACITY, PAGE), now << 10);
        chosen.map(|chosen| chosen.block)
    }

    #[test]
    fn the_emptiest_of_blocks_of_one_age_is_chosen_and_full_ones_never() {
        let blocks = [candidate(1, 60, 0), candidate(2, 40, 0), candidate(3, 99, 0)];
        assert_eq!(chosen(&blocks, 1_000), Some(2));
        assert_eq!(chosen(&blocks[2..], 1_000), None);
    }

    #[test]
    fn a_block_without_room_for_another_of_its_values_is_not_chosen() {
        let four_values = Candidate { values: 4, ..candidate(1, 80, 0) };
        assert_eq!(chosen(&[four_values], 1_000), None);
        assert_eq!(chosen(&[candidate(1, 80, 0)], 1_000), Some(1));
    }

    #[test]
    fn a_block_of_small_values_is_chosen_if_their_records_take_less_than_it_frees() {
        let with = |values| Candidate { values, ..candidate(1, 50, 0) };
        assert_eq!(chosen(&[with(250)], 1_000), Some(1));
        assert_eq!(chosen(&[with(500)], 1_000), None);
    }

    #[test]
    fn an_old_block_wins_over_a_young_one_that_is_a_little_emptier() {
        let blocks = [candidate(1, 60, 0), candidate(2, 55, 9_900)];
        assert_eq!(chosen(&blocks, 10_000), Some(1));
    }
}
