//! Mappings that place pages by a policy or in streams, or lie on flash themselves.

use super::{Mapping, Placing, ReadDisturb, SlcCache, Translation};
use crate::shape::Shape;
use crate::spec::PageMapped;
use softflash_mapping::Lifetimes;
use softflash_policy::placement::by_hint;

/// A mapping with a placement policy, streams, and a map that may lie on flash.
pub(crate) struct PlacedMapping {
    streams: u32,
    /// Classes of hints that have write frontiers of their own.
    classes: u32,
    /// The stream of each block in use, if there are several.
    stream_of: Vec<u8>,
    placing: Option<Placing>,
    lifetimes: Option<Lifetimes>,
    translation: Option<Translation>,
    slc_cache: Option<SlcCache>,
    read_disturb: Option<ReadDisturb>,
}

impl PlacedMapping {
    /// The mapping of a layout.
    pub(crate) fn new(layout: &PageMapped, shape: &Shape) -> PlacedMapping {
        let several = shape.streams() > 1;
        PlacedMapping {
            streams: shape.streams(),
            classes: layout.placement.classes(),
            stream_of: vec![0; if several { shape.blocks_end() as usize } else { 0 }],
            placing: Placing::new(layout.placement, shape),
            lifetimes: Lifetimes::new(layout.lifetime, shape.logical_pages(), shape.blocks_end()),
            translation: Translation::new(layout.map, shape),
            slc_cache: SlcCache::new(layout, shape),
            read_disturb: ReadDisturb::new(layout, shape),
        }
    }
}

impl Mapping for PlacedMapping {
    const GATHERS: bool = true;
    const BANDED: bool = false;

    #[inline]
    fn streams(&self) -> u32 {
        self.streams
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
        self.stream_of.get(block as usize).copied().unwrap_or(0).into()
    }

    #[inline]
    fn set_stream(&mut self, block: u32, stream: u32) {
        if let Some(of_block) = self.stream_of.get_mut(block as usize) {
            *of_block = stream as u8;
        }
    }

    fn die_of(&self, shape: &Shape, _logical: u32, block: u32) -> u32 {
        let group = shape.group_of_block(block);
        shape.die_of(shape.frontiers_in(group).start)
    }

    #[inline]
    fn placing(&self) -> Option<&Placing> {
        self.placing.as_ref()
    }

    #[inline]
    fn placing_mut(&mut self) -> Option<&mut Placing> {
        self.placing.as_mut()
    }

    #[inline]
    fn lifetimes(&self) -> Option<&Lifetimes> {
        self.lifetimes.as_ref()
    }

    #[inline]
    fn lifetimes_mut(&mut self) -> Option<&mut Lifetimes> {
        self.lifetimes.as_mut()
    }

    #[inline]
    fn translation(&self) -> Option<&Translation> {
        self.translation.as_ref()
    }

    #[inline]
    fn translation_mut(&mut self) -> Option<&mut Translation> {
        self.translation.as_mut()
    }

    #[inline]
    fn slc_cache(&self) -> Option<&SlcCache> {
        self.slc_cache.as_ref()
    }

    #[inline]
    fn slc_cache_mut(&mut self) -> Option<&mut SlcCache> {
        self.slc_cache.as_mut()
    }

    #[inline]
    fn read_disturb(&self) -> Option<&ReadDisturb> {
        self.read_disturb.as_ref()
    }

    #[inline]
    fn read_disturb_mut(&mut self) -> Option<&mut ReadDisturb> {
        self.read_disturb.as_mut()
    }

    fn memory_bytes(&self) -> u64 {
        self.stream_of.capacity() as u64
            + self.placing.as_ref().map_or(0, Placing::memory_bytes)
            + self.lifetimes.as_ref().map_or(0, Lifetimes::memory_bytes)
            + self.translation.as_ref().map_or(0, Translation::memory_bytes)
            + self.slc_cache.as_ref().map_or(0, SlcCache::memory_bytes)
            + self.read_disturb.as_ref().map_or(0, ReadDisturb::memory_bytes)
    }
}
