//! The effects of operations on blocks and data.

use super::Core;
use super::die::{Die, Slot};
use super::injector::Shown;
use crate::address::BlockIndex;
use crate::block::{Content, Health, NEEDS_ERASE};
use crate::command::PageStatus;
use crate::damage::Damage;
use crate::error_law::Exposure;
use crate::geometry::MAX_PLANES;
use crate::storage::StoreFailure;

impl Core {
    /// Determines the results of the sensed pages; returns the most read retries of any plane.
    #[inline]
    pub(super) fn look(&mut self, die: &mut Die, slot: u8) -> u8 {
        if self.injector.is_some() {
            return self.look_with_faults(die, slot);
        }
        let most_retries = self.look_at_all(die, slot);
        if self.store.is_some() {
            self.fetch(die, slot, &[Shown::Itself; MAX_PLANES]);
        }
        most_retries
    }

    /// Reads the pages of all planes.
    #[inline]
    pub(super) fn look_at_all(&mut self, die: &mut Die, slot: u8) -> u8 {
        let index = die.index.index();
        let command = die.slot_mut(slot);
        let mut most_retries = 0;
        for plane in 0..usize::from(command.planes) {
            let block = BlockIndex(command.blocks[plane]);
            let (found, retries) = self.look_at(index, block, command.page);
            if found != PageStatus::Good {
                command.status[plane] = found;
            }
            most_retries = most_retries.max(retries);
        }
        command.retries = most_retries;
        self.counters.pages_read += u64::from(command.planes);
        most_retries
    }

    /// The result of a read of one page, and its retries.
    #[inline]
    fn look_at(&mut self, die: usize, index: BlockIndex, page: u32) -> (PageStatus, u8) {
        let block = self.blocks.get_mut(index);
        block.reads = block.reads.saturating_add(1);
        let content = match self.blocks.content(index, page) {
            Content::Unstable => self.look_at_unstable(index, page),
            content => content,
        };
        let law = &self.faults.bit_errors;
        match content {
            Content::Data if law.is_on() => self.correct(die, index),
            Content::Data | Content::Unstable => (PageStatus::Good, 0),
            Content::Erased => (PageStatus::Erased, 0),
            Content::Lost if law.is_on() => (PageStatus::Uncorrectable, law.retry_steps),
            Content::Lost => (PageStatus::Uncorrectable, 0),
        }
    }

    /// The content of a page whose program was interrupted and that was readable until now.
    #[cold]
    fn look_at_unstable(&mut self, index: BlockIndex, page: u32) -> Content {
        match self.blocks.survives_read(index, page, self.now) {
            true => Content::Data,
            false => Content::Lost,
        }
    }

    /// The result of ECC on a page with data, and its retries.
    fn correct(&mut self, die: usize, index: BlockIndex) -> (PageStatus, u8) {
        let block = self.blocks.get(index);
        let exposure = Exposure {
            erase_count: block.erase_count,
            reads: block.reads,
            age_s: self.blocks.age_s(index, self.now_s()),
            open: u32::from(block.committed) < self.geometry.pages_per_block,
        };
        let law = &self.faults.bit_errors;
        let verdict = law.read(self.geometry.page_bytes, exposure, &mut self.rngs[die]);
        let status = match (verdict.readable, verdict.worst_codeword_errors) {
            (false, _) => PageStatus::Uncorrectable,
            (true, 0) => PageStatus::Good,
            (true, errors) => PageStatus::Corrected(errors.min(255) as u8),
        };
        (status, verdict.retries)
    }

    /// Copies the data of a read into its register. A page that is not good reads as zeros.
    pub(super) fn fetch(&mut self, die: &mut Die, slot: u8, shown: &[Shown; MAX_PLANES]) {
        let page_bytes = self.page_bytes();
        let command = die.slot(slot);
        if !command.status[..usize::from(command.planes)].iter().any(|status| status.is_good()) {
            // `Array::read_data` returns zeros. Frequent: a search for written pages reads many
            // erased ones.
            return;
        }
        let mut register = std::mem::take(&mut self.registers[die.register(slot)]);
        let command = die.slot_mut(slot);
        // The flash senses the whole page, but only a stale read can return bytes beyond the
        // transferred ones, and only an injector makes stale reads.
        let asked = match command.head && self.injector.is_none() {
            true => self.geometry.sector_bytes() as usize,
            false => page_bytes,
        };
        register.resize(usize::from(command.planes) * page_bytes, 0);
        for (plane, bytes) in register.chunks_exact_mut(page_bytes).enumerate() {
            let status = &mut command.status[plane];
            let own = command.blocks[plane];
            if !status.is_good() {
                bytes.fill(0);
                continue;
            }
            let read = match shown[plane] {
                Shown::Itself => self.read_page(own, command.page, &mut bytes[..asked]),
                faulty => self.read_page_wrong(own, command.page, bytes, faulty),
            };
            if let Err(failure) = read {
                bytes.fill(0);
                *status = PageStatus::StoreFailed(failure);
            }
        }
        self.registers[die.register(slot)] = register;
    }

    #[inline]
    pub(super) fn read_page(
        &mut self,
        block: u32,
        page: u32,
        bytes: &mut [u8],
    ) -> Result<(), StoreFailure> {
        let page = self.geometry.page_index(BlockIndex(block), page);
        self.store.as_mut().map_or(Ok(()), |store| store.read(page, bytes))
    }

    /// Completes a program: its pages hold data, or their blocks go bad.
    #[inline]
    pub(super) fn program_done(&mut self, die: &mut Die, slot: u8) {
        if self.injector.is_some() {
            return self.program_done_with_faults(die, slot);
        }
        let planes = die.slot(slot).planes;
        let now_s = self.now_s();
        self.counters.pages_programmed += u64::from(planes);
        for plane in 0..usize::from(planes) {
            if self.program_takes(die, slot, plane, now_s) {
                self.keep_or_lose(die, slot, plane);
            }
        }
    }

    /// Programs one plane's page, without its data. On a failure, sets the plane's status, marks
    /// the block bad and returns false.
    #[inline]
    pub(super) fn program_takes(
        &mut self,
        die: &mut Die,
        slot: u8,
        plane: usize,
        now_s: u64,
    ) -> bool {
        let Slot { page, blocks, .. } = *die.slot(slot);
        let index = BlockIndex(blocks[plane]);
        let block = self.blocks.get(index);
        let rate = self.faults.program_failure_at(block.erase_count, block.weak);
        // After a failed erase the queue may still hold a program of the block.
        let hopeless = block.health != Health::Good || block.committed == NEEDS_ERASE;
        if hopeless || self.rngs[die.index.index()].chance(rate) {
            self.fail_program(index, page, now_s);
            die.slot_mut(slot).status[plane] = PageStatus::Failed;
            return false;
        }
        self.blocks.commit_program(index, page, now_s);
        true
    }

    /// Stores the data of one plane's page. If the page holds stray data, both are lost without an
    /// error.
    #[inline]
    pub(super) fn keep_or_lose(&mut self, die: &mut Die, slot: u8, plane: usize) {
        let Slot { page, blocks, .. } = *die.slot(slot);
        let index = BlockIndex(blocks[plane]);
        if self.blocks.buries_stray(index, page) {
            self.blocks.damage(index, page, Damage::Torn);
        } else if let Some(failure) = self.keep_in(die, slot, plane, index) {
            self.blocks.damage(index, page, Damage::Torn);
            die.slot_mut(slot).status[plane] = PageStatus::StoreFailed(failure);
        }
    }

    /// Marks the block bad and, unless the block must be erased, the page lost.
    #[cold]
    pub(super) fn fail_program(&mut self, index: BlockIndex, page: u32, now_s: u64) {
        let block = self.blocks.get_mut(index);
        block.health = Health::GrownBad;
        if block.committed != NEEDS_ERASE {
            self.blocks.commit_program(index, page, now_s);
            self.blocks.damage(index, page, Damage::Torn);
        }
    }

    /// Writes one plane's page from the register into a block of the page store, if there is a
    /// store.
    #[inline]
    pub(super) fn keep_in(
        &mut self,
        die: &Die,
        slot: u8,
        plane: usize,
        block: BlockIndex,
    ) -> Option<StoreFailure> {
        let page_bytes = self.page_bytes();
        let store = self.store.as_mut()?;
        let page = self.geometry.page_index(block, die.slot(slot).page);
        let register = &self.registers[die.register(slot)];
        store.write(page, &register[plane * page_bytes..][..page_bytes]).err()
    }

    /// Completes an erase: its blocks are erased, or bad.
    pub(super) fn erase_done(&mut self, die: &mut Die, slot: u8) {
        if self.injector.is_some() {
            return self.erase_done_with_faults(die, slot);
        }
        self.erase_all(die, slot);
    }

    /// Erases the blocks of all planes.
    pub(super) fn erase_all(&mut self, die: &mut Die, slot: u8) {
        let rng = die.index.index();
        let command = die.slot_mut(slot);
        let planes = usize::from(command.planes);
        self.counters.blocks_erased += planes as u64;
        for (index, status) in command.blocks.iter().zip(&mut command.status).take(planes) {
            *status = self.erase_block(rng, BlockIndex(*index));
        }
    }

    fn erase_block(&mut self, die: usize, index: BlockIndex) -> PageStatus {
        let block = self.blocks.get(index);
        let rate = self.faults.erase_failure_at(block.erase_count);
        if block.health != Health::Good || self.rngs[die].chance(rate) {
            self.fail_erase(index);
            return PageStatus::Failed;
        }
        if let Some(Err(failure)) = self.store.as_mut().map(|store| store.erase(index)) {
            self.blocks.spoil_erase(index);
            return PageStatus::StoreFailed(failure);
        }
        self.blocks.commit_erase(index);
        PageStatus::Good
    }

    /// Marks the block bad and all its pages unreadable.
    #[cold]
    pub(super) fn fail_erase(&mut self, index: BlockIndex) {
        self.blocks.spoil_erase(index);
        self.blocks.get_mut(index).health = Health::GrownBad;
    }
}
