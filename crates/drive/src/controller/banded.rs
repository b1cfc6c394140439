//! Writes to bands, and their collection: pages are read, wait for the lane that takes them, and
//! are programmed there.

use super::Controller;
use crate::mapping::Mapping;
use crate::pages::Purpose;
use crate::space::BandStep;
use softflash_base::AccessKind;
use softflash_mapping::NONE;

impl<M: Mapping> Controller<M> {
    /// Queues a page of the host to be programmed in a band; returns the die, unless the page is
    /// held back.
    #[inline]
    pub(super) fn write_to_band(&mut self, page: u32, logical: u32) -> Option<u32> {
        let die = self.space.write_to_band(logical, page, &mut self.pages);
        if let Some(die) = die {
            self.dies.rank(die, AccessKind::Write);
        }
        self.follow_bands();
        die
    }

    /// A page that collection moves has been read.
    #[inline(never)]
    pub(super) fn moved_page_read(&mut self, page: u32) {
        match self.space.queue_moved(page, &mut self.pages) {
            Some(die) => {
                self.dies.rank(die, AccessKind::Write);
                self.dispatch_alone(die);
            }
            None => _ = self.pages.complete_page(page),
        }
        self.follow_bands();
    }

    /// A page that collection moves has been programmed.
    #[inline]
    pub(super) fn move_ended(&mut self, page: u32) {
        self.space.move_ended(self.pages.block(page));
        self.pages.complete_page(page);
    }

    /// Queues pages that were held back and have a band by now, and does the steps of collection
    /// that are due.
    #[inline(never)]
    pub(super) fn follow_bands(&mut self) {
        loop {
            if let Some(die) = self.space.queue_held_back(&mut self.pages) {
                self.dies.rank(die, AccessKind::Write);
                self.dispatch_alone(die);
                continue;
            }
            let die = match self.space.next_band_step(false) {
                Some(BandStep::Read { logical, physical }) => {
                    let page = self.pages.add_page(NONE, logical, 0);
                    let die = self.queue_read(page, (logical, physical), Purpose::Move);
                    self.pages.set_flash_page(page, physical);
                    die
                }
                Some(BandStep::Erase { die }) => die,
                None => return,
            };
            self.dispatch_alone(die);
        }
    }
}
