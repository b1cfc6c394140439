//! The mapping of drives whose pages lie in bands.

use super::Mapping;
use crate::bands::Bands;
use crate::shape::Shape;
use crate::spec::PageMapped;
use softflash_mapping::Lifetimes;
use softflash_policy::placement::by_hint;

/// A page map in memory, with bands, whose pages may have classes.
pub(crate) struct BandedMapping {
    /// Write frontiers of a lane.
    frontiers: u32,
    /// Classes of hints.
    classes: u32,
    bands: Bands,
    lifetimes: Option<Lifetimes>,
}

impl BandedMapping {
    /// The mapping of a layout; `None` without bands.
    pub(crate) fn of(layout: &PageMapped, shape: &Shape) -> Option<BandedMapping> {
        Some(BandedMapping {
            frontiers: shape.streams(),
            classes: layout.placement.classes(),
            bands: Bands::new(shape)?,
            lifetimes: Lifetimes::new(layout.lifetime, shape.logical_pages(), shape.blocks_end()),
        })
    }
}

impl Mapping for BandedMapping {
    const GATHERS: bool = false;
    const BANDED: bool = true;

    #[inline]
    fn streams(&self) -> u32 {
        self.frontiers
    }

    fn hint_classes(&self) -> u32 {
        self.classes
    }

    #[inline]
    fn stream_of_hint(&self, hint: u32) -> u32 {
        by_hint::class(hint, self.classes)
    }

    #[inline]
    fn stream_of(&self, block: u32) -> u32 {
        self.bands.class_of(block)
    }

    fn set_stream(&mut self, _block: u32, _stream: u32) {}

    fn die_of(&self, shape: &Shape, _logical: u32, block: u32) -> u32 {
        shape.die_of(shape.frontiers_in(shape.group_of_block(block)).start)
    }

    #[inline]
    fn bands(&self) -> Option<&Bands> {
        Some(&self.bands)
    }

    #[inline]
    fn bands_mut(&mut self) -> Option<&mut Bands> {
        Some(&mut self.bands)
    }

    #[inline]
    fn bands_and_lifetimes(&mut self) -> Option<(&mut Bands, Option<&mut Lifetimes>)> {
        Some((&mut self.bands, self.lifetimes.as_mut()))
    }

    #[inline]
    fn lifetimes(&self) -> Option<&Lifetimes> {
        self.lifetimes.as_ref()
    }

    #[inline]
    fn lifetimes_mut(&mut self) -> Option<&mut Lifetimes> {
        self.lifetimes.as_mut()
    }

    fn memory_bytes(&self) -> u64 {
        self.bands.memory_bytes() + self.lifetimes.as_ref().map_or(0, Lifetimes::memory_bytes)
    }
}
