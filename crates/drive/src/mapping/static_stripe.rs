//! The mapping of most drives: a logical page always has the same write frontier, the only one of
//! its group, and the map is in memory.

use super::Mapping;
use crate::shape::Shape;
use crate::spec::{MapKind, PageMapped};

/// A page map in memory with a static stripe.
pub(crate) struct StaticMapping;

impl StaticMapping {
    /// The mapping of a layout; `None` if it needs more.
    pub(crate) fn of(layout: &PageMapped, shape: &Shape) -> Option<StaticMapping> {
        let placement = layout.placement;
        let is_static = placement.is_static() && layout.classes() == 1;
        let has_more = layout.map != MapKind::Page || shape.is_packed() || shape.has_slc_cache();
        let has_more = has_more || layout.scrub_hours > 0.0 || layout.read_reclaim_reads > 0;
        (is_static && !has_more).then_some(StaticMapping)
    }
}

impl Mapping for StaticMapping {
    const GATHERS: bool = false;
    const BANDED: bool = false;

    #[inline(always)]
    fn streams(&self) -> u32 {
        1
    }

    fn hint_classes(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn stream_of_hint(&self, _hint: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn stream_of(&self, _block: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn set_stream(&mut self, _block: u32, _stream: u32) {}

    #[inline(always)]
    fn die_of(&self, shape: &Shape, logical: u32, _block: u32) -> u32 {
        // A page never leaves its write frontier.
        shape.die_of(shape.frontier_of(logical))
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}
