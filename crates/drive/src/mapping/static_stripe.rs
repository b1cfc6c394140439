//! The mapping of most drives: a logical page always has the same write frontier, the only one of
//! its group, and the map is in memory.

use super::{Lifetimes, Mapping, Placing, ReadDisturb, SlcCache, Translation};
use crate::bands::Bands;
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

    #[inline(always)]
    fn placing(&self) -> Option<&Placing> {
        None
    }

    #[inline(always)]
    fn placing_mut(&mut self) -> Option<&mut Placing> {
        None
    }

    #[inline(always)]
    fn bands(&self) -> Option<&Bands> {
        None
    }

    #[inline(always)]
    fn bands_mut(&mut self) -> Option<&mut Bands> {
        None
    }

    #[inline(always)]
    fn bands_and_lifetimes(&mut self) -> Option<(&mut Bands, Option<&mut Lifetimes>)> {
        None
    }

    #[inline(always)]
    fn lifetimes(&self) -> Option<&Lifetimes> {
        None
    }

    #[inline(always)]
    fn lifetimes_mut(&mut self) -> Option<&mut Lifetimes> {
        None
    }

    #[inline(always)]
    fn translation(&self) -> Option<&Translation> {
        None
    }

    #[inline(always)]
    fn translation_mut(&mut self) -> Option<&mut Translation> {
        None
    }

    #[inline(always)]
    fn slc_cache(&self) -> Option<&SlcCache> {
        None
    }

    #[inline(always)]
    fn slc_cache_mut(&mut self) -> Option<&mut SlcCache> {
        None
    }

    #[inline(always)]
    fn read_disturb(&self) -> Option<&ReadDisturb> {
        None
    }

    #[inline(always)]
    fn read_disturb_mut(&mut self) -> Option<&mut ReadDisturb> {
        None
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}
