//! What the map of a drive needs beside its table of pages: the choice of a write frontier for each
//! page, streams, predicted lifetimes, an SLC cache, counts of reads, and a map that lies on flash.
//! The state machine is written once, for a drive that has all of them, and compiled for each kind
//! of mapping: where a mapping has none, its steps vanish.

mod banded;
mod placed;
mod placing;
mod read_disturb;
mod slc_cache;
mod static_stripe;
mod translation;

pub(crate) use banded::BandedMapping;
pub(crate) use placed::PlacedMapping;
pub(crate) use placing::Placing;
pub(crate) use read_disturb::ReadDisturb;
pub(crate) use slc_cache::SlcCache;
pub(crate) use static_stripe::StaticMapping;
pub(crate) use translation::Translation;

use crate::bands::Bands;
use crate::shape::Shape;
use softflash_mapping::Lifetimes;

/// A kind of mapping. It has none of the optional parts that it does not name.
pub(crate) trait Mapping: Sized {
    /// Whether pages may wait for others that fill their flash page.
    const GATHERS: bool;

    /// Whether pages lie in bands.
    const BANDED: bool;

    /// Write frontiers of a group of blocks.
    fn streams(&self) -> u32;

    /// Classes of hints that have write frontiers of their own.
    fn hint_classes(&self) -> u32;

    /// The stream of the write frontier that takes a page, by its class of hints.
    fn stream_of_hint(&self, hint: u32) -> u32;

    /// The stream of a block in use.
    fn stream_of(&self, block: u32) -> u32;

    /// A block is written by the frontier of this stream.
    fn set_stream(&mut self, block: u32, stream: u32);

    /// The die of a page that lies in this block.
    fn die_of(&self, shape: &Shape, logical: u32, block: u32) -> u32;

    /// The choice of a write frontier for each page, if it does not depend on the page alone.
    #[inline(always)]
    fn placing(&self) -> Option<&Placing> {
        None
    }

    /// As [`placing`](Mapping::placing), to change it.
    #[inline(always)]
    fn placing_mut(&mut self) -> Option<&mut Placing> {
        None
    }

    /// The bands, if pages lie in bands.
    #[inline(always)]
    fn bands(&self) -> Option<&Bands> {
        None
    }

    /// As [`bands`](Mapping::bands), to change them.
    #[inline(always)]
    fn bands_mut(&mut self) -> Option<&mut Bands> {
        None
    }

    /// The bands, and the lifetimes of pages if they are predicted.
    #[inline(always)]
    fn bands_and_lifetimes(&mut self) -> Option<(&mut Bands, Option<&mut Lifetimes>)> {
        None
    }

    /// The lifetimes of pages, if they are predicted.
    #[inline(always)]
    fn lifetimes(&self) -> Option<&Lifetimes> {
        None
    }

    /// As [`lifetimes`](Mapping::lifetimes), to change them.
    #[inline(always)]
    fn lifetimes_mut(&mut self) -> Option<&mut Lifetimes> {
        None
    }

    /// The map's pages on flash, if it lies there.
    #[inline(always)]
    fn translation(&self) -> Option<&Translation> {
        None
    }

    /// As [`translation`](Mapping::translation), to change it.
    #[inline(always)]
    fn translation_mut(&mut self) -> Option<&mut Translation> {
        None
    }

    /// The SLC cache, if there is one.
    #[inline(always)]
    fn slc_cache(&self) -> Option<&SlcCache> {
        None
    }

    /// As [`slc_cache`](Mapping::slc_cache), to change it.
    #[inline(always)]
    fn slc_cache_mut(&mut self) -> Option<&mut SlcCache> {
        None
    }

    /// The reads of blocks, if blocks that are read often are moved.
    #[inline(always)]
    fn read_disturb(&self) -> Option<&ReadDisturb> {
        None
    }

    /// As [`read_disturb`](Mapping::read_disturb), to change it.
    #[inline(always)]
    fn read_disturb_mut(&mut self) -> Option<&mut ReadDisturb> {
        None
    }

    /// Bytes of memory.
    fn memory_bytes(&self) -> u64;
}
