//! Bands: superblocks over some or all lanes of a drive. A *lane* is a group of blocks, of a plane
//! or of a die. A *band* has one block in each of its lanes.
//!
//! A *stream* writes bands of one width: one stream for each width and class of the host's pages,
//! and one for each width and class of the pages that collection moves. The host's have one open
//! band. Those of collection have several narrow ones, as many as cover the lanes, so that moving
//! pages uses all of them.
//!
//! A page gets its lane when it arrives, and its place there when its program begins. Collection
//! reads pages in one lane and programs them in another, as firmware without copyback does: if they
//! stayed in their lane, lanes with more valid pages than others would fill first, and the spare of
//! a wide band would be that of its fullest lane.

mod lanes;
mod plan;
mod shapes;
mod streams;
mod victims;

pub(crate) use lanes::Lanes;
pub(crate) use plan::Plan;
pub(crate) use shapes::Shapes;
pub(crate) use streams::{OpenBand, Stream};
pub(crate) use victims::{NextMove, Victim, Victims};

use crate::pages::Queue;
use crate::shape::Shape;
use softflash_mapping::Bands as Members;

/// The state of the bands of a drive.
#[derive(Debug)]
pub(crate) struct Bands {
    pub(crate) plan: Plan,
    pub(crate) lanes: Lanes,
    pub(crate) streams: Vec<Stream>,
    /// The stream of each block in use.
    pub(crate) stream_of: Vec<u8>,
    /// The stream that takes the pages of each block that is collected.
    pub(crate) moved_to: Vec<u8>,
    /// Which blocks are collected together; `None` if each is by itself.
    pub(crate) members: Option<Members>,
    pub(crate) victims: Victims,
    /// The shapes of requests, where they decide between two widths.
    pub(crate) shapes: Option<Shapes>,
    /// Bands or blocks closed so far: a counter that wraps.
    pub(crate) closed: u32,
    /// Pages of the host that wait until a band can be opened for their stream.
    pub(crate) held_back: Queue,
}

impl Bands {
    /// No band is open; `None` for a drive without bands.
    pub(crate) fn new(shape: &Shape) -> Option<Bands> {
        let plan = shape.bands()?.clone();
        let blocks_end = shape.blocks_end();
        Some(Bands {
            lanes: Lanes::new(shape),
            streams: vec![Stream::default(); plan.streams() as usize],
            stream_of: vec![0; blocks_end as usize],
            moved_to: vec![0; blocks_end as usize],
            members: plan.collects_bands().then(|| Members::new(blocks_end)),
            victims: Victims::new(shape, plan.victims_at_once()),
            shapes: plan.wide_from_bytes().map(Shapes::new),
            closed: 0,
            held_back: Queue::EMPTY,
            plan,
        })
    }

    /// The class of a block in use.
    pub(crate) fn class_of(&self, block: u32) -> u32 {
        self.plan.class_of(self.stream_of[block as usize].into())
    }

    /// Whether a block in use takes pages that collection moves.
    #[inline]
    pub(crate) fn takes_moved(&self, block: u32) -> bool {
        self.plan.is_of_moved(self.stream_of[block as usize].into())
    }

    /// Whether collection has to free blocks: of the free ones, those included that collection
    /// frees soon, some are kept for its own bands, and the widest band of the host needs others.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        let widest = self.plan.widest();
        self.lanes.supply() < self.lanes.count() + widest || self.lanes.ready() < widest
    }

    /// The stream of the host's pages of a class, of requests that are wide or not.
    pub(crate) fn stream_of_host(&self, class: u32, is_wide: bool) -> u32 {
        let wide = self.plan.stream_of_host(class, 0);
        let narrow = self.plan.stream_of_host(class, self.plan.widths() - 1);
        // A wide band is worth no wait while few blocks are free.
        let is_scarce = self.lanes.free() * 2 < self.lanes.count() + self.plan.widest();
        let opens = self.streams[wide as usize].left() == 0;
        if is_wide && !(opens && is_scarce) { wide } else { narrow }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.stream_of.capacity() + self.moved_to.capacity()) as u64
            + self.members.as_ref().map_or(0, Members::memory_bytes)
            + self.victims.memory_bytes()
            + self.lanes.memory_bytes()
            + self.streams.iter().map(Stream::memory_bytes).sum::<u64>()
    }
}
