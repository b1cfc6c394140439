//! What operations do to blocks and data when they take effect.

use super::Core;
use crate::address::BlockIndex;
use crate::block::{Content, Health, NEEDS_ERASE};
use crate::command::PageStatus;
use crate::damage::Damage;
use crate::die::{Die, Slot};
use crate::error_law::Exposure;
use crate::storage::StoreFailure;

impl Core {
    /// Finds out what the sensed pages hold; returns the retries of the plane that needs most.
    #[inline]
    pub(super) fn look(&mut self, die: &mut Die, slot: u8) -> u8 {
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
        if self.store.is_some() {
            self.fetch(die, slot);
        }
        most_retries
    }

    /// What a read of one page comes to, and its retries.
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

    /// What a page holds whose program was interrupted and that was good until now.
    #[cold]
    fn look_at_unstable(&mut self, index: BlockIndex, page: u32) -> Content {
        match self.blocks.survives_read(index, page, self.now) {
            true => Content::Data,
            false => Content::Lost,
        }
    }

    /// What ECC makes of a page with data, and its retries.
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

    /// Brings the data of a read into its register. Of pages without data nothing is shown.
    fn fetch(&mut self, die: &mut Die, slot: u8) {
        let page_bytes = self.page_bytes();
        let Some(store) = &mut self.store else { return };
        let register = &mut self.registers[die.register(slot)];
        let command = die.slot_mut(slot);
        register.resize(usize::from(command.planes) * page_bytes, 0);
        for (plane, bytes) in register.chunks_exact_mut(page_bytes).enumerate() {
            let page = self.geometry.page_index(BlockIndex(command.blocks[plane]), command.page);
            let status = &mut command.status[plane];
            if !status.is_good() {
                bytes.fill(0);
            } else if let Err(failure) = store.read(page, bytes) {
                bytes.fill(0);
                *status = PageStatus::StoreFailed(failure);
            }
        }
    }

    /// A program has come to its end: its pages hold data, or their blocks go bad.
    #[inline]
    pub(super) fn program_done(&mut self, die: &mut Die, slot: u8) {
        let Slot { page, planes, .. } = *die.slot(slot);
        let now_s = self.now_s();
        self.counters.pages_programmed += u64::from(planes);
        for plane in 0..usize::from(planes) {
            let index = BlockIndex(die.slot(slot).blocks[plane]);
            let block = self.blocks.get(index);
            let rate = self.faults.program_failure_at(block.erase_count, block.weak);
            // After a failed erase the queue may still hold a program of the block.
            let hopeless = block.health != Health::Good || block.committed == NEEDS_ERASE;
            if hopeless || self.rngs[die.index.index()].chance(rate) {
                self.fail_program(index, page, now_s);
                die.slot_mut(slot).status[plane] = PageStatus::Failed;
                continue;
            }
            self.blocks.commit_program(index, page, now_s);
            if let Some(failure) = self.keep(die, slot, plane) {
                self.blocks.damage(index, page, Damage::Torn);
                die.slot_mut(slot).status[plane] = PageStatus::StoreFailed(failure);
            }
        }
    }

    /// A page is lost and its block goes bad, if it had not before.
    #[cold]
    fn fail_program(&mut self, index: BlockIndex, page: u32, now_s: u64) {
        let block = self.blocks.get_mut(index);
        block.health = Health::GrownBad;
        if block.committed != NEEDS_ERASE {
            self.blocks.commit_program(index, page, now_s);
            self.blocks.damage(index, page, Damage::Torn);
        }
    }

    /// Writes one plane's page from the register to the store, if there is one.
    #[inline]
    fn keep(&mut self, die: &Die, slot: u8, plane: usize) -> Option<StoreFailure> {
        let page_bytes = self.page_bytes();
        let store = self.store.as_mut()?;
        let Slot { page, blocks, .. } = *die.slot(slot);
        let page = self.geometry.page_index(BlockIndex(blocks[plane]), page);
        let register = &self.registers[die.register(slot)];
        store.write(page, &register[plane * page_bytes..][..page_bytes]).err()
    }

    /// An erase has come to its end: its blocks are erased, or bad.
    pub(super) fn erase_done(&mut self, die: &mut Die, slot: u8) {
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
            self.blocks.spoil_erase(index);
            self.blocks.get_mut(index).health = Health::GrownBad;
            return PageStatus::Failed;
        }
        if let Some(Err(failure)) = self.store.as_mut().map(|store| store.erase(index)) {
            self.blocks.spoil_erase(index);
            return PageStatus::StoreFailed(failure);
        }
        self.blocks.commit_erase(index);
        PageStatus::Good
    }
}
