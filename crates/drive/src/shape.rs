//! The shape of a drive, computed from its device and layout: the numbers of pages, blocks and
//! write frontiers, and the capacity for the host.
//!
//! A *write frontier* belongs to a plane, or to all planes of a die. Its *blocks* are erase blocks,
//! or the same erase block of each of its planes. A physical page has the number
//! `block * pages_per_block + page`, a block the number `group * block_stride + number`. In a
//! block of several planes, consecutive pages go from plane to plane, then to the next row.
//!
//! These pages are those that the map knows: mapping units. A *flash page* is read and programmed
//! as a whole, and has one of them or several. Several are written together: they fill the flash
//! page, or the rest of it stays unused.
//!
//! A *group* of blocks has one write frontier, or one for each *stream*: for each class of hints,
//! and for the pages of a map that lies on flash. The frontier of a stream has the number
//! `group * streams + stream`.
//!
//! With *bands* a group is a lane, and its write frontiers write one block each, of any stream.
//!
//! The first blocks of a group may be those of an SLC cache, with a stream of its own. They have
//! fewer pages: one for each word line. The rest of their numbers is not used.

use crate::bands::Plan;
use crate::error::DriveError;
use crate::spec::MapKind;
use crate::spec::{DeviceSpec, FrontierScope, LifetimePolicy, PageMapped, SlcCache};
use softflash_mapping::CachedMap;
use softflash_mapping::blocks::MOST_PAGES_PER_BLOCK;
use softflash_nand::Geometry;
use softflash_policy::placement::static_stripe;
use std::ops::Range;

/// Two page numbers are reserved for other states.
const MOST_PAGES: u64 = u32::MAX as u64 - 2;

/// Blocks of a group that the host's data never fill, besides those of [streams](reserved_blocks):
/// the one being written, and one to collect into.
const RESERVED_BLOCKS: u32 = 2;

/// The longest period of a scrub: about a century.
const MOST_SCRUB_HOURS: f64 = 1e6;

/// Blocks of a group of so many streams that the host's data never fill. Of several streams, each
/// has a block that is being written; one is collected into; and one more, as the stream that
/// collects may be in the middle of its block.
fn reserved_blocks(streams: u32) -> u32 {
    if streams == 1 { RESERVED_BLOCKS } else { RESERVED_BLOCKS + streams }
}

/// Divides by a constant: by one multiplication with its inverse, exact for 32 bits. The inverse is
/// rounded down. The multiplication of `number + 1` compensates: the product is below
/// `2^64 * (number + 1) / by` by at most `2^64 / by`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Divisor {
    inverse: u64,
}

impl Divisor {
    fn new(by: u32) -> Divisor {
        Divisor { inverse: u64::MAX / u64::from(by) }
    }

    #[inline]
    pub(crate) fn divide(self, number: u32) -> u32 {
        let product = u128::from(u64::from(number) + 1) * u128::from(self.inverse);
        (product >> 64) as u32
    }
}

/// The numbering and the sizes of a drive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    page_bytes: u32,
    page_shift: u32,
    /// Pages of a flash page: a power of two.
    per_flash_page: u32,
    flash_page_shift: u32,
    dies: u32,
    /// Groups of blocks.
    groups: u32,
    /// Write frontiers of a group.
    streams: u32,
    /// Write frontiers, in all and of a die.
    frontiers: u32,
    frontiers_per_die: u32,
    /// Pages that one command can program: those of a flash page in each plane of a write frontier.
    row_pages: u32,
    blocks_per_group: u32,
    /// Blocks of a group that data never fill.
    reserved_blocks: u32,
    /// The distance from the first block of a group to that of the next. Groups mostly have a power
    /// of two of blocks, and advance in step for long. With an odd stride, their state does not
    /// share a few sets of the processor's caches.
    block_stride: u32,
    pages_per_block: u32,
    /// Blocks of a group that are an SLC cache; they come before the others.
    slc_blocks: u32,
    /// Pages of such a block.
    pages_per_slc_block: u32,
    /// Rows of a block that is none.
    rows: u16,
    /// Every so many flash pages of a block one is parity; 0: none.
    parity_period: u32,
    logical_pages: u32,
    /// Pages of a map on flash, which have the logical numbers behind those of the host.
    translation_pages: u32,
    /// The first write frontier of each page of a stripe, channels first: neighbouring logical
    /// pages lie on different channels.
    stripe: Vec<u32>,
    bands: Option<Plan>,
    by_groups: Divisor,
    by_streams: Divisor,
    by_pages_per_block: Divisor,
    by_block_stride: Divisor,
    by_frontiers_per_die: Divisor,
    by_row_pages: Divisor,
}

impl Shape {
    pub(crate) fn new(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<Shape, DriveError> {
        if !(0.0..=1000.0).contains(&op_percent) {
            return Err(DriveError::OverProvisioning(op_percent));
        }
        if !(0.0..=MOST_SCRUB_HOURS).contains(&layout.scrub_hours) {
            return Err(DriveError::ScrubHours(layout.scrub_hours));
        }
        let geometry = &device.geometry;
        geometry.validate().map_err(softflash_nand::ConfigError::from)?;
        let planes = u32::from(geometry.planes_per_die);
        let page_bytes = layout.mapping_unit.bytes_on(geometry.page_bytes)?;
        let per_flash_page = geometry.page_bytes / page_bytes;
        if per_flash_page > 1 && layout.copyback {
            return Err(DriveError::PackedCopyback { page_bytes });
        }
        let (groups_per_die, row_pages) = match layout.frontier {
            FrontierScope::Plane => (planes, per_flash_page),
            FrontierScope::Die => (1, planes * per_flash_page),
        };
        let pages_per_block = geometry.pages_per_block * row_pages;
        if pages_per_block > MOST_PAGES_PER_BLOCK {
            let most = MOST_PAGES_PER_BLOCK;
            return Err(DriveError::LargeFrontier { pages: pages_per_block, most });
        }
        let map_streams = u32::from(layout.map != MapKind::Page);
        if layout.placement.classes() > 1 && layout.lifetime != LifetimePolicy::NONE {
            return Err(DriveError::TwoClasses(layout.lifetime));
        }
        SlcCache::check(device, layout)?;
        let slc_streams = u32::from(layout.slc_cache.is_some());
        let groups = geometry.dies() * groups_per_die;
        let bands = Plan::of(layout, groups, per_flash_page)?;
        let of_streams = layout.classes() + map_streams + slc_streams;
        let streams = bands.as_ref().map_or(of_streams, Plan::frontiers_in_lane);
        let reserved_blocks =
            bands.as_ref().map_or_else(|| reserved_blocks(streams), Plan::reserved_blocks);
        let pages_per_slc_block = pages_per_block / device.die.cell.bits() as u32;
        let slc_blocks = layout.slc_cache.map_or(0, |cache| {
            let of_block = u64::from(pages_per_slc_block) * u64::from(page_bytes);
            let blocks = cache.bytes.div_ceil(u64::from(groups) * of_block);
            u32::try_from(blocks).unwrap_or(u32::MAX).max(SlcCache::LEAST_BLOCKS)
        });
        let least = (2 * reserved_blocks).saturating_add(slc_blocks);
        if geometry.blocks_per_plane < least {
            return Err(DriveError::TooFewBlocks { blocks: geometry.blocks_per_plane, least });
        }
        let pages = geometry.pages() * u64::from(per_flash_page);
        if pages > MOST_PAGES {
            return Err(DriveError::TooManyPages { pages, most: MOST_PAGES });
        }
        let parity_period = match layout.parity_data_pages {
            0 => 0,
            data => data + 1,
        };
        let frontiers_per_die = groups_per_die * streams;
        let block_stride = geometry.blocks_per_plane | 1;
        let numbers = u64::from(groups) * u64::from(block_stride) * u64::from(pages_per_block);
        let block_stride =
            if numbers > MOST_PAGES { geometry.blocks_per_plane } else { block_stride };
        let mut shape = Shape {
            page_bytes,
            page_shift: page_bytes.trailing_zeros(),
            per_flash_page,
            flash_page_shift: per_flash_page.trailing_zeros(),
            dies: geometry.dies(),
            groups,
            streams,
            frontiers: groups * streams,
            frontiers_per_die,
            row_pages,
            blocks_per_group: geometry.blocks_per_plane - slc_blocks,
            reserved_blocks,
            block_stride,
            pages_per_block,
            slc_blocks,
            pages_per_slc_block,
            rows: geometry.pages_per_block as u16,
            parity_period,
            logical_pages: 0,
            translation_pages: 0,
            stripe: stripe(geometry, groups_per_die, streams),
            bands,
            by_groups: Divisor::new(groups),
            by_streams: Divisor::new(streams),
            by_pages_per_block: Divisor::new(pages_per_block),
            by_block_stride: Divisor::new(block_stride),
            by_frontiers_per_die: Divisor::new(frontiers_per_die),
            by_row_pages: Divisor::new(row_pages),
        };
        let wanted =
            shape.data_pages_of_groups(shape.blocks_per_group) as f64 / (1.0 + op_percent / 100.0);
        let most = shape.data_pages_of_groups(shape.blocks_per_group - shape.reserved_blocks());
        // Where all groups are as full as they may be, one of them has a whole row that waits.
        let waiting = if shape.is_packed() { u64::from(groups * row_pages) } else { 0 };
        let most = most.saturating_sub(waiting);
        let logical = (wanted as u64).min(most);
        shape.set_logical_pages(logical, most, map_streams > 0);
        Ok(shape)
    }

    /// Sets the logical pages, and those of their map if it is on flash: not more than `most` in
    /// all.
    fn set_logical_pages(&mut self, wanted: u64, most: u64, map_on_flash: bool) {
        let stripe = self.groups * self.per_flash_page;
        let whole_stripes = |pages: u64| (pages - pages % u64::from(stripe)) as u32;
        let mut logical = whole_stripes(wanted);
        if map_on_flash {
            let map_of = |logical| CachedMap::pages_of(logical, self.page_bytes);
            let of_map = map_of(logical).next_multiple_of(stripe);
            logical = whole_stripes(wanted.min(most.saturating_sub(of_map.into())));
            self.translation_pages = map_of(logical);
        }
        self.logical_pages = logical;
    }

    /// Data pages of so many blocks of each group, at least.
    fn data_pages_of_groups(&self, blocks: u32) -> u64 {
        u64::from(self.groups) * self.data_pages_of_blocks(blocks)
    }

    /// Data pages of so many blocks, at least.
    fn data_pages_of_blocks(&self, blocks: u32) -> u64 {
        let of_block = match self.parity_period {
            0 => self.pages_per_block,
            period => {
                let flash_pages = self.pages_per_block >> self.flash_page_shift;
                (flash_pages - flash_pages.div_ceil(period)) << self.flash_page_shift
            }
        };
        u64::from(blocks) * u64::from(of_block)
    }

    /// Blocks of a group that data never fill.
    pub(crate) fn reserved_blocks(&self) -> u32 {
        self.reserved_blocks
    }

    /// The plan of the bands, if there are any.
    pub(crate) fn bands(&self) -> Option<&Plan> {
        self.bands.as_ref()
    }

    /// The most valid pages of a group of which collection can still free blocks.
    pub(crate) fn most_in_group(&self) -> u32 {
        self.data_pages_of_blocks(self.blocks_per_group - self.reserved_blocks()) as u32
    }

    #[inline]
    pub(crate) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    #[inline]
    pub(crate) fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    #[inline]
    pub(crate) fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    /// Pages of a map on flash; 0 if the map is in memory.
    pub(crate) fn translation_pages(&self) -> u32 {
        self.translation_pages
    }

    /// Groups of blocks.
    pub(crate) fn groups(&self) -> u32 {
        self.groups
    }

    /// Write frontiers of a group.
    #[inline]
    pub(crate) fn streams(&self) -> u32 {
        self.streams
    }

    pub(crate) fn frontiers(&self) -> u32 {
        self.frontiers
    }

    pub(crate) fn dies(&self) -> u32 {
        self.dies
    }

    /// The logical page at an offset of the host, in bytes.
    #[inline]
    pub(crate) fn page_at(&self, offset_bytes: u64) -> u32 {
        (offset_bytes >> self.page_shift) as u32
    }

    /// The end of the logical pages that the host's bytes up to this offset touch.
    #[inline]
    pub(crate) fn pages_up_to(&self, end_bytes: u64) -> u32 {
        self.page_at(end_bytes + u64::from(self.page_bytes) - 1)
    }

    /// Whether an offset of the host lies inside a page.
    #[inline]
    pub(crate) fn cuts_page(&self, offset_bytes: u64) -> bool {
        offset_bytes & (u64::from(self.page_bytes) - 1) != 0
    }

    /// Pages of the flash, those of an SLC cache as if it were none.
    pub(crate) fn flash_pages(&self) -> u64 {
        let blocks = u64::from(self.blocks_per_group + self.slc_blocks);
        u64::from(self.groups) * blocks * u64::from(self.pages_per_block)
    }

    /// Pages of one block of every group.
    pub(crate) fn frontier_pages(&self) -> u64 {
        u64::from(self.groups) * u64::from(self.pages_per_block)
    }

    /// The end of the numbers of blocks.
    pub(crate) fn blocks_end(&self) -> u32 {
        self.groups * self.block_stride
    }

    /// The end of the numbers of pages.
    pub(crate) fn pages_end(&self) -> u32 {
        self.blocks_end() * self.pages_per_block
    }

    /// The blocks of a group, without those of an SLC cache.
    pub(crate) fn blocks_of(&self, group: u32) -> Range<u32> {
        let first = group * self.block_stride + self.slc_blocks;
        first..first + self.blocks_per_group
    }

    /// The blocks of a group that are an SLC cache.
    pub(crate) fn slc_blocks_of(&self, group: u32) -> Range<u32> {
        let first = group * self.block_stride;
        first..first + self.slc_blocks
    }

    /// Whether there is an SLC cache.
    #[inline(always)]
    pub(crate) fn has_slc_cache(&self) -> bool {
        self.slc_blocks != 0
    }

    /// Whether a block is one of an SLC cache.
    #[inline(always)]
    pub(crate) fn is_slc_block(&self, block: u32) -> bool {
        self.has_slc_cache()
            && block - self.group_of_block(block) * self.block_stride < self.slc_blocks
    }

    /// Whether a write frontier is that of an SLC cache, the last of its group.
    #[inline(always)]
    pub(crate) fn is_slc_frontier(&self, frontier: u32) -> bool {
        self.has_slc_cache() && self.frontiers_in(self.group_of(frontier)).end == frontier + 1
    }

    /// The end of the pages of a block that a frontier writes.
    #[inline(always)]
    pub(crate) fn block_end(&self, frontier: u32) -> u32 {
        if self.is_slc_frontier(frontier) { self.pages_per_slc_block } else { self.pages_per_block }
    }

    /// Bytes that an SLC cache holds.
    pub(crate) fn slc_cache_bytes(&self) -> u64 {
        let blocks = u64::from(self.groups) * u64::from(self.slc_blocks);
        blocks * u64::from(self.pages_per_slc_block) * u64::from(self.page_bytes)
    }

    /// Pages of a block of an SLC cache.
    pub(crate) fn pages_per_slc_block(&self) -> u32 {
        self.pages_per_slc_block
    }

    /// The number by which the flash knows a row of a block that a frontier writes: those of blocks
    /// in SLC mode come behind the others.
    #[inline(always)]
    pub(crate) fn timed_row(&self, frontier: u32, row: u16) -> u16 {
        if self.is_slc_frontier(frontier) { self.rows + row } else { row }
    }

    /// The group of a write frontier.
    #[inline]
    pub(crate) fn group_of(&self, frontier: u32) -> u32 {
        self.by_streams.divide(frontier)
    }

    /// The write frontiers of a group.
    #[inline]
    pub(crate) fn frontiers_in(&self, group: u32) -> Range<u32> {
        group * self.streams..(group + 1) * self.streams
    }

    /// The first write frontier of each position of the static stripe.
    pub(crate) fn stripe(&self) -> &[u32] {
        &self.stripe
    }

    /// The write frontiers of a die.
    #[inline]
    pub(crate) fn frontiers_of(&self, die: u32) -> Range<u32> {
        die * self.frontiers_per_die..(die + 1) * self.frontiers_per_die
    }

    /// The first page of a block.
    #[inline]
    pub(crate) fn first_page_of(&self, block: u32) -> u32 {
        block * self.pages_per_block
    }

    /// Bytes that the host sees.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        u64::from(self.logical_pages) * u64::from(self.page_bytes)
    }

    /// Spare pages (without parity) for each logical one, in percent: the requested value, or more
    /// if that would leave no room for collection.
    pub(crate) fn op_percent(&self) -> f64 {
        let data = self.data_pages_of_groups(self.blocks_per_group) as f64;
        (data / f64::from(self.logical_pages) - 1.0) * 100.0
    }

    /// The write frontier that a logical page belongs to in the static stripe, the first of its
    /// group. Pages that fill a flash page lie together.
    #[inline]
    pub(crate) fn frontier_of(&self, logical: u32) -> u32 {
        let flash_page = logical >> self.flash_page_shift;
        let stripes = self.by_groups.divide(flash_page);
        self.stripe[(flash_page - stripes * self.groups) as usize]
    }

    #[inline]
    pub(crate) fn die_of(&self, frontier: u32) -> u32 {
        self.by_frontiers_per_die.divide(frontier)
    }

    #[inline]
    pub(crate) fn block_of(&self, page: u32) -> u32 {
        self.by_pages_per_block.divide(page)
    }

    #[inline]
    pub(crate) fn group_of_block(&self, block: u32) -> u32 {
        self.by_block_stride.divide(block)
    }

    /// The row of a page in its erase block.
    #[inline]
    pub(crate) fn row_of(&self, page_in_block: u32) -> u16 {
        self.by_row_pages.divide(page_in_block) as u16
    }

    /// Pages of a flash page.
    #[inline]
    pub(crate) fn per_flash_page(&self) -> u32 {
        self.per_flash_page
    }

    /// Whether several pages fill a flash page.
    #[inline]
    pub(crate) fn is_packed(&self) -> bool {
        self.per_flash_page > 1
    }

    /// The number of the flash page of a page: of the flash, or of a block.
    #[inline]
    pub(crate) fn flash_page_of(&self, page: u32) -> u32 {
        page >> self.flash_page_shift
    }

    /// The first page of the flash page of a page.
    #[inline]
    pub(crate) fn flash_page_begin(&self, page: u32) -> u32 {
        page & !(self.per_flash_page - 1)
    }

    /// The end of the pages of a row of a block.
    #[inline]
    pub(crate) fn row_end(&self, row: u16) -> u32 {
        (u32::from(row) + 1) * self.row_pages
    }

    /// The block of a physical page, and its row in the erase block, as the flash knows it.
    #[inline]
    pub(crate) fn place_of_physical(&self, page: u32) -> (u32, u16) {
        let block = self.block_of(page);
        let row = self.row_of(page - self.first_page_of(block));
        (block, if self.is_slc_block(block) { self.rows + row } else { row })
    }

    /// Whether pages are programmed one by one, and none is parity.
    #[inline]
    pub(crate) fn is_row_a_page(&self) -> bool {
        self.row_pages == 1 && self.parity_period == 0
    }

    /// Whether a page of a block holds parity. The position depends on the group, so that parity is
    /// spread evenly.
    #[inline]
    pub(crate) fn is_parity(&self, frontier: u32, page_in_block: u32) -> bool {
        self.parity_period != 0
            && (self.flash_page_of(page_in_block) + self.group_of(frontier)) % self.parity_period
                == self.parity_period - 1
    }

    /// Data pages of a block from this page on.
    #[inline]
    pub(crate) fn data_pages_from(&self, frontier: u32, page_in_block: u32) -> u32 {
        if self.parity_period == 0 {
            return self.block_end(frontier) - page_in_block;
        }
        let all = self.pages_per_block - page_in_block;
        let group = self.group_of(frontier);
        let parity_before = |page: u32| {
            let whole = (self.flash_page_of(page) + group) / self.parity_period;
            let cut =
                if self.is_parity(frontier, page) { page & (self.per_flash_page - 1) } else { 0 };
            (whole << self.flash_page_shift) + cut
        };
        all - (parity_before(self.pages_per_block) - parity_before(page_in_block))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.stripe.capacity() * size_of::<u32>()) as u64
    }
}

/// The first write frontier of each position of the static stripe.
fn stripe(geometry: &Geometry, groups_per_die: u32, streams: u32) -> Vec<u32> {
    let (channels, dies) = (u32::from(geometry.channels), geometry.dies_per_channel());
    let positions = static_stripe::positions(channels, dies, groups_per_die);
    positions.into_iter().map(|group| group * streams).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplying_with_the_inverse_divides_exactly() {
        let mut divisors: Vec<u32> = (1..300).chain([1 << 31, u32::MAX - 1, u32::MAX]).collect();
        divisors.extend((0..32).map(|bit| 1_u32 << bit));
        for by in divisors {
            let divisor = Divisor::new(by);
            let multiples = [0, 1, 2, 1000, u32::MAX / by / 2, u32::MAX / by]
                .map(|times| by.wrapping_mul(times));
            for near in multiples {
                for number in [near.wrapping_sub(1), near, near.wrapping_add(1), !near] {
                    assert_eq!(divisor.divide(number), number / by, "{number} / {by}");
                }
            }
        }
    }
}
