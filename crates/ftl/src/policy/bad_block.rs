//! What stands in for a bad block, and which superblock is given up when nothing does.
//!
//! A superblock is led by the block of its own index in plane 0 of die 0. Its other blocks have the same
//! index where they are good; otherwise a *spare* of the same plane stands in: a good block whose own
//! superblock is out of service. Where spares run out, the superblock that lacks most is given up and its
//! good blocks become spares for the others.

/// A superblock to be composed: for every seat the block it has, none where it needs a spare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its index.
    pub index: u32,
    /// The block in every seat.
    pub seats: Vec<Option<u32>>,
}

impl Draft {
    fn holes(&self) -> usize {
        self.seats.iter().filter(|block| block.is_none()).count()
    }
}

/// The spare to use: the least worn, then the lowest number.
pub fn choose_spare(spares: impl Iterator<Item = u32>, wear: impl Fn(u32) -> u32) -> Option<u32> {
    spares.min_by_key(|block| (wear(*block), *block))
}

/// Gives up as few of `drafts` as needed for the spares to fill the holes of the rest. `spares` is the
/// number of spares of every seat. Returns the drafts kept and those given up.
pub fn give_up(mut drafts: Vec<Draft>, spares: &[usize]) -> (Vec<Draft>, Vec<Draft>) {
    let mut spares = spares.to_vec();
    let mut needed = vec![0; spares.len()];
    for draft in &drafts {
        for (need, block) in needed.iter_mut().zip(&draft.seats) {
            *need += usize::from(block.is_none());
        }
    }
    let mut given_up = Vec::new();
    loop {
        let short = |seat: usize| needed[seat] > spares[seat];
        let lacks = |draft: &Draft| {
            draft.seats.iter().enumerate().any(|(seat, block)| block.is_none() && short(seat))
        };
        let victim = drafts
            .iter()
            .enumerate()
            .filter(|(_, draft)| lacks(draft))
            .max_by_key(|(_, draft)| (draft.holes(), draft.index))
            .map(|(place, _)| place);
        let Some(place) = victim else { return (drafts, given_up) };
        let draft = drafts.remove(place);
        for (seat, block) in draft.seats.iter().enumerate() {
            match block {
                // The lead can lead only its own superblock.
                Some(_) if seat == 0 => {}
                Some(_) => spares[seat] += 1,
                None => needed[seat] -= 1,
            }
        }
        given_up.push(draft);
    }
}

/// Whether a unit has lost so many superblocks that its flash must be taken for worn out: half.
pub fn worn_out(bad: u32, total: u32) -> bool {
    bad * 2 >= total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(index: u32, seats: [bool; 3]) -> Draft {
        Draft { index, seats: seats.map(|good| good.then_some(index)).to_vec() }
    }

    #[test]
    fn nothing_is_given_up_while_spares_suffice() {
        let drafts = vec![draft(0, [true, false, true]), draft(1, [true, true, true])];
        let (kept, given_up) = give_up(drafts.clone(), &[0, 1, 0]);
        assert_eq!((kept, given_up), (drafts, vec![]));
    }

    #[test]
    fn one_superblock_with_several_holes_saves_the_others() {
        // The one with several is not the last, which goes first among equals.
        let drafts = vec![
            draft(0, [true, false, true]),
            draft(1, [true, false, false]),
            draft(2, [true, true, false]),
            draft(3, [true, true, true]),
        ];
        let (kept, given_up) = give_up(drafts, &[0, 1, 1]);
        assert_eq!(given_up, [draft(1, [true, false, false])]);
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn the_good_blocks_of_one_given_up_fill_another() {
        let drafts = vec![draft(0, [true, false, true]), draft(1, [true, true, false])];
        let (kept, given_up) = give_up(drafts, &[0, 0, 0]);
        assert_eq!((kept[0].index, given_up[0].index), (0, 1));
    }

    #[test]
    fn the_lead_of_one_given_up_fills_no_other() {
        let drafts = vec![draft(0, [false, true, true]), draft(1, [true, false, true])];
        let (kept, given_up) = give_up(drafts, &[0, 0, 0]);
        assert_eq!((kept.len(), given_up.len()), (0, 2));
    }

    #[test]
    fn the_least_worn_spare_stands_in() {
        let wear = |block: u32| [5, 3, 3][block as usize];
        assert_eq!(choose_spare([0, 2, 1].into_iter(), wear), Some(1));
    }

    #[test]
    fn a_unit_is_worn_out_when_half_of_it_is_bad() {
        assert!(!worn_out(3, 8) && worn_out(4, 8));
    }
}
