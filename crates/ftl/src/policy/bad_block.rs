//! Replacement of bad blocks, and the choice of superblocks to take out of service when spares run
//! out.
//!
//! The *lead* block of a superblock is the block of its index in plane 0 of die 0. The other blocks
//! have the same number if they are good. Otherwise a *spare* of the same plane replaces them: a
//! good block whose own superblock is out of service. If there are too few spares, the superblock
//! that lacks most blocks is taken out of service, and its good blocks become spares.

/// A superblock to be composed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Index of the superblock.
    pub index: u32,
    /// The block in each stripe column; none if the column needs a spare.
    pub columns: Vec<Option<u32>>,
}

impl Draft {
    fn empty_columns(&self) -> usize {
        self.columns.iter().filter(|block| block.is_none()).count()
    }
}

/// The spare to use: the least worn, then the one of the lowest number.
pub fn choose_spare(spares: impl Iterator<Item = u32>, wear: impl Fn(u32) -> u32) -> Option<u32> {
    spares.min_by_key(|block| (wear(*block), *block))
}

/// Drops as few of `drafts` as needed, so that the spares fill the empty columns of the rest.
/// `spares` is the number of spares of each stripe column. Returns the drafts kept and those
/// dropped.
pub fn fit_to_spares(mut drafts: Vec<Draft>, spares: &[usize]) -> (Vec<Draft>, Vec<Draft>) {
    let mut spares = spares.to_vec();
    let mut needed = vec![0; spares.len()];
    for draft in &drafts {
        for (need, block) in needed.iter_mut().zip(&draft.columns) {
            *need += usize::from(block.is_none());
        }
    }
    let mut dropped = Vec::new();
    loop {
        let short = |column: usize| needed[column] > spares[column];
        let lacks = |draft: &Draft| {
            draft.columns.iter().enumerate().any(|(column, block)| block.is_none() && short(column))
        };
        let most_lacking = drafts
            .iter()
            .enumerate()
            .filter(|(_, draft)| lacks(draft))
            .max_by_key(|(_, draft)| (draft.empty_columns(), draft.index))
            .map(|(place, _)| place);
        let Some(place) = most_lacking else { return (drafts, dropped) };
        let draft = drafts.remove(place);
        for (column, block) in draft.columns.iter().enumerate() {
            match block {
                // A lead block serves only its own superblock.
                Some(_) if column == 0 => {}
                Some(_) => spares[column] += 1,
                None => needed[column] -= 1,
            }
        }
        dropped.push(draft);
    }
}

/// Whether a unit counts as worn out: half of its superblocks are bad.
pub fn worn_out(bad: u32, total: u32) -> bool {
    bad * 2 >= total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(index: u32, columns: [bool; 3]) -> Draft {
        Draft { index, columns: columns.map(|good| good.then_some(index)).to_vec() }
    }

    #[test]
    fn no_superblock_is_dropped_while_spares_suffice() {
        let drafts = vec![draft(0, [true, false, true]), draft(1, [true, true, true])];
        let (kept, dropped) = fit_to_spares(drafts.clone(), &[0, 1, 0]);
        assert_eq!((kept, dropped), (drafts, vec![]));
    }

    #[test]
    fn the_superblock_that_lacks_most_blocks_is_dropped() {
        // The one that lacks several blocks is not the last one, which is dropped first among
        // equals.
        let drafts = vec![
            draft(0, [true, false, true]),
            draft(1, [true, false, false]),
            draft(2, [true, true, false]),
            draft(3, [true, true, true]),
        ];
        let (kept, dropped) = fit_to_spares(drafts, &[0, 1, 1]);
        assert_eq!(dropped, [draft(1, [true, false, false])]);
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn good_blocks_of_a_dropped_superblock_fill_another() {
        let drafts = vec![draft(0, [true, false, true]), draft(1, [true, true, false])];
        let (kept, dropped) = fit_to_spares(drafts, &[0, 0, 0]);
        assert_eq!((kept[0].index, dropped[0].index), (0, 1));
    }

    #[test]
    fn the_lead_of_a_dropped_superblock_fills_no_other() {
        let drafts = vec![draft(0, [false, true, true]), draft(1, [true, false, true])];
        let (kept, dropped) = fit_to_spares(drafts, &[0, 0, 0]);
        assert_eq!((kept.len(), dropped.len()), (0, 2));
    }

    #[test]
    fn the_least_worn_spare_is_chosen() {
        let wear = |block: u32| [5, 3, 3][block as usize];
        assert_eq!(choose_spare([0, 2, 1].into_iter(), wear), Some(1));
    }

    #[test]
    fn a_unit_is_worn_out_when_half_of_it_is_bad() {
        assert!(!worn_out(3, 8) && worn_out(4, 8));
    }
}
