//! The arrangement of a drive's pages: what lies in each block, and what the blocks are used for.
//! A drive is brought into the arrangement of another one of the same layout, or of its
//! [sibling](crate::Sibling).

use super::{Space, streams};
use crate::mapping::Mapping;
use crate::precondition;
use crate::sibling::Scale;
use crate::write_frontier::WriteFrontier;
use softflash_mapping::{Blocks, NONE};

/// The arrangement of a drive, by the positions of the static stripe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) logical_pages: u32,
    pub(crate) groups: Vec<Group>,
}

/// The arrangement of a group of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Group {
    /// Blocks closed so far.
    pub(crate) closed: u32,
    pub(crate) blocks: Vec<Block>,
    /// Numbers of the free blocks, in the order of their use.
    pub(crate) free: Vec<u32>,
}

/// The arrangement of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) used: Used,
    /// The stream of the write frontier that wrote it.
    pub(crate) stream: u32,
    pub(crate) erases: u32,
    /// The logical page of each page that has been written; [`NONE`] where it is not valid.
    pub(crate) pages: Vec<u32>,
}

/// The use of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Used {
    Free,
    Open,
    /// It was the block of this number that was closed.
    Closed(u32),
    Victim,
}

impl Arrangement {
    /// The numbers of logical pages, groups and blocks.
    pub(crate) fn outline(&self) -> (u32, Vec<usize>) {
        (self.logical_pages, self.groups.iter().map(|group| group.blocks.len()).collect())
    }
}

impl<M: Mapping> Space<M> {
    /// The arrangement of the pages. Nothing may be under way.
    pub(crate) fn arrangement(&self) -> Arrangement {
        assert_eq!(self.shape.translation_pages(), 0, "a map on flash has no arrangement");
        let groups = self.shape.stripe().iter().map(|&first| self.shape.group_of(first));
        Arrangement {
            logical_pages: self.shape.logical_pages(),
            groups: groups.map(|group| self.arrangement_of(group)).collect(),
        }
    }

    fn arrangement_of(&self, group: u32) -> Group {
        let range = self.shape.blocks_of(group);
        let free: Vec<u32> =
            self.blocks.free_blocks(group).map(|block| block - range.start).collect();
        let first = self.shape.frontiers_in(group).start;
        Group {
            closed: self.frontier(first).closed(),
            blocks: range.map(|block| self.arrangement_in(group, block)).collect(),
            free,
        }
    }

    fn arrangement_in(&self, group: u32, block: u32) -> Block {
        let frontiers = self.shape.frontiers_in(group);
        let writes = frontiers.clone().find(|&of| self.frontier(of).open_block() == block);
        let is_victim = frontiers.clone().any(|of| self.frontier(of).victim() == block);
        let (used, written) = match writes {
            Some(frontier) => (Used::Open, self.frontier(frontier).next()),
            None if is_victim => (Used::Victim, self.shape.pages_per_block()),
            None if self.blocks.is_closed(block) => {
                (Used::Closed(self.blocks.closed_as(block)), self.shape.pages_per_block())
            }
            None => (Used::Free, 0),
        };
        let first = self.shape.first_page_of(block);
        let logical = |page| match self.map.is_valid(page) {
            true => self.map.logical_of(page),
            false => NONE,
        };
        let stream = writes.map_or(self.mapping.stream_of(block), |of| of - frontiers.start);
        Block {
            used,
            stream,
            erases: self.blocks.erases(block),
            pages: (first..first + written).map(logical).collect(),
        }
    }

    /// Makes new space ready for arrangements: no block is free or written.
    pub(crate) fn vacate(&mut self) {
        let groups = streams::groups_of_blocks(&self.shape);
        self.blocks = Blocks::none_free(groups, self.shape.pages_per_block());
        self.vacate_cache();
    }

    /// Brings the groups of one replica into the arrangement of the sibling. `place` gives the
    /// logical page of one in the arrangement's order.
    pub(crate) fn assume(
        &mut self,
        arrangement: &Arrangement,
        (scale, replica): (Scale, u32),
        place: &dyn Fn(u32) -> u32,
    ) {
        let positions = arrangement.groups.len() as u32;
        assert_eq!(positions * scale.groups, self.shape.groups(), "an arrangement of other groups");
        let logical_pages = u64::from(self.shape.logical_pages());
        let expand = |logical, of_block| {
            let expanded = scale.expand(logical, replica, of_block);
            (expanded < logical_pages).then(|| place(expanded as u32))
        };
        for (position, arranged) in (replica * positions..).zip(&arrangement.groups) {
            let group = self.shape.group_of(self.shape.stripe()[position as usize]);
            self.assume_group(group, arranged, scale.pages, &expand);
        }
    }

    /// All replicas of a sibling with so many logical pages have been assumed. Pages of the host
    /// that none of its pages stands for are written.
    pub(crate) fn complete(
        &mut self,
        sibling_pages: u32,
        scale: Scale,
        place: &dyn Fn(u32) -> u32,
    ) {
        self.recount();
        for logical in 0..self.shape.logical_pages() {
            if scale.contract(logical) >= sibling_pages {
                precondition::write(self, place(logical), 0);
            }
        }
    }

    /// Brings a group into an arrangement whose blocks have `replicas` times fewer pages.
    fn assume_group(
        &mut self,
        group: u32,
        arranged: &Group,
        replicas: u32,
        expand: &dyn Fn(u32, u32) -> Option<u32>,
    ) {
        let blocks = self.shape.blocks_of(group);
        assert_eq!(blocks.len(), arranged.blocks.len(), "an arrangement of other blocks");
        let frontiers = self.shape.frontiers_in(group);
        for frontier in frontiers.filter(|&frontier| !self.shape.is_slc_frontier(frontier)) {
            self.frontiers[frontier as usize] = WriteFrontier::new(frontier, NONE);
        }
        let mut victim = None;
        for (block, of) in blocks.clone().zip(&arranged.blocks) {
            self.mapping.set_stream(block, of.stream);
            self.blocks.set_erases(block, of.erases);
            self.fill_block(block, &of.pages, replicas, expand);
            let frontier = self.shape.frontiers_in(group).start + of.stream;
            match of.used {
                Used::Free => {}
                Used::Open => {
                    let next = of.pages.len() as u32 * replicas;
                    self.frontiers[frontier as usize].reopen(block, next, &self.shape);
                }
                Used::Closed(number) => self.blocks.close(block, number),
                Used::Victim => victim = Some(block),
            }
        }
        for &number in &arranged.free {
            self.blocks.add_free(group, blocks.start + number);
        }
        let first = self.shape.frontiers_in(group).start;
        self.frontiers[first as usize].set_closed(arranged.closed);
        if let Some(victim) = victim {
            self.collect_again(group, victim);
        }
    }

    /// Fills the first pages of a block with replicas of these, one replica of all behind the
    /// other.
    fn fill_block(
        &mut self,
        block: u32,
        pages: &[u32],
        replicas: u32,
        expand: &dyn Fn(u32, u32) -> Option<u32>,
    ) {
        let (mut physical, mut valid) = (self.shape.first_page_of(block), 0);
        for replica in 0..replicas {
            for &page in pages {
                if page != NONE
                    && let Some(logical) = expand(page, replica)
                {
                    let before = self.map.put(logical, physical);
                    assert_eq!(before, NONE, "page {logical} lies at two places");
                    valid += 1;
                }
                physical += 1;
            }
        }
        self.blocks.set_valid(block, valid);
    }

    /// Goes on with the collection of a block.
    fn collect_again(&mut self, group: u32, victim: u32) {
        let frontier = self.shape.frontiers_in(group).start + self.mapping.stream_of(victim);
        let state = self.frontier(frontier);
        let next = if state.open_block() == NONE { 0 } else { state.next() };
        let free = self.shape.data_pages_from(frontier, next);
        self.collect_into(frontier, victim, free.saturating_sub(self.blocks.valid_in(victim)));
    }
}
