//! Changes of a map that lies on flash.

use super::Space;
use crate::counters::MapCounters;
use crate::mapping::Mapping;
use crate::pages::{Pages, Queue};
use softflash_mapping::NONE;
use softflash_mapping::map::cached::Step;

impl<M: Mapping> Space<M> {
    /// Whether the map lies on flash.
    #[inline(always)]
    pub(crate) fn has_map_on_flash(&self) -> bool {
        self.mapping.translation().is_some()
    }

    /// Whether the place of a logical page is known now; otherwise its translation page is read.
    pub(crate) fn look_up(&mut self, logical: u32) -> bool {
        self.mapping.translation_mut().is_none_or(|translation| translation.look_up(logical))
    }

    /// A page waits for its translation page, which is being read.
    pub(crate) fn wait_for_map(&mut self, logical: u32, page: u32, pages: &mut Pages) {
        if let Some(translation) = self.mapping.translation_mut() {
            translation.wait(logical, page, pages);
        }
    }

    /// The program of this logical page begins, or it is forgotten: its entry changes.
    #[inline(always)]
    pub(crate) fn entry_changes(&mut self, logical: u32) {
        if let Some(translation) = self.mapping.translation_mut() {
            translation.program_begins(logical);
        }
    }

    /// The entries of the pages that collection has moved to a frontier, from `begin` on, change.
    pub(super) fn note_moved(&mut self, frontier: u32, begin: u32) {
        let Space { shape, map, frontiers, mapping, .. } = self;
        let Some(translation) = mapping.translation_mut() else { return };
        let state = &frontiers[frontier as usize];
        let first = shape.first_page_of(state.open_block());
        for page in begin..state.next() {
            if !shape.is_parity(frontier, page) {
                translation.moved(frontier, map.logical_of(first + page));
            }
        }
    }

    /// All pages of a frontier's victim have moved: their entries change on flash.
    pub(super) fn update_entries(&mut self, frontier: u32) {
        if let Some(translation) = self.mapping.translation_mut() {
            translation.update(frontier);
        }
    }

    /// A translation page is in memory; returns the pages that waited for it.
    pub(crate) fn map_page_read(&mut self, logical: u32) -> Queue {
        let translation = self.mapping.translation_mut();
        translation.map_or(Queue::EMPTY, |translation| translation.read_done(logical))
    }

    /// The next translation page to be read or programmed.
    pub(crate) fn next_map_step(&mut self) -> Option<Step> {
        self.mapping.translation_mut()?.next_step()
    }

    /// Whether translation pages are to be read or programmed, or pages were held back.
    #[inline(always)]
    pub(crate) fn has_follow_ups(&self) -> bool {
        self.mapping.translation().is_some_and(|translation| translation.has_steps())
            || self.mapping.placing().is_some_and(|placing| placing.holds_back())
    }

    /// The physical page of a translation page that is read from flash; [`NONE`] if it was never
    /// programmed, and has no entries yet.
    pub(crate) fn place_of_map_page(&mut self, logical: u32) -> u32 {
        let physical = self.map.physical_of(logical);
        if let Some(translation) = self.mapping.translation_mut()
            && physical != NONE
        {
            translation.count_read();
        }
        physical
    }

    /// The counters of the map on flash.
    pub(crate) fn map_counters(&self) -> Option<MapCounters> {
        let (hits, misses, reads) = self.mapping.translation()?.counters();
        Some(MapCounters { hits, misses, reads, programs: self.programs.for_map })
    }
}
