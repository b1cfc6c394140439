//! Power cuts.
//!
//! Only operations in a cell array have an effect; queued commands and commands whose data are
//! still on the bus have none. An interrupted program consumes its page: the page is untouched,
//! torn or whole. The further the program has progressed, the likelier the page is whole instead of
//! untouched. Older pages of its word line may be lost too. An interrupted erase usually leaves a
//! block without readable pages that must be erased again. Weights in
//! [`FaultConfig`](crate::FaultConfig) replace these probabilities and add outcomes: pages that
//! become unreadable later, blocks that look erased or keep part of their pages.

use super::die::{CellArray, Die, NONE, Slot, Stage};
use super::{Array, Core};
use crate::address::BlockIndex;
use crate::block::{Content, NEEDS_ERASE};
use crate::channel::Channel;
use crate::command::CommandKind;
use crate::damage::Damage;
use crate::faults::{CutErase, CutPage, CutPages};
use softflash_base::Time;
use softflash_base::random::Rng;

/// The granularity of a shorn page: the length of its new part is a multiple of these bytes.
const SUB_PAGE_BYTES: usize = 512;

/// The probability that an interrupted operation has no effect or its full effect: no effect if the
/// cut is at its beginning, the full effect if the cut is at its end.
const CLEAN_SHARE: f64 = 0.25;

/// The operations in progress at a power cut, and their outcomes. Pages and blocks are counted in
/// each plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PowerCutReport {
    /// Commands without a completion.
    pub commands_lost: u64,
    /// Pages that read as erased though their programs had begun.
    pub pages_untouched: u32,
    /// Pages that cannot be read.
    pub pages_torn: u32,
    /// Pages whose first part reads as new data and the rest as erased bytes.
    pub pages_shorn: u32,
    /// Pages fully programmed.
    pub pages_whole: u32,
    /// Pages that read as fully programmed and become uncorrectable later.
    pub pages_unstable: u32,
    /// Older pages, lost in the interrupted program of another page of their word line.
    pub pages_lost_with_pair: u32,
    /// Blocks that kept their old contents.
    pub blocks_untouched: u32,
    /// Blocks that must be erased again.
    pub blocks_partly_erased: u32,
    /// Blocks fully erased.
    pub blocks_erased: u32,
    /// Blocks that read as erased though their erases were not complete.
    pub blocks_look_erased: u32,
    /// Blocks that kept some of their pages.
    pub blocks_part_old: u32,
}

/// The result of an interrupted operation.
enum Effect {
    Nothing,
    Part,
    All,
}

impl Effect {
    /// Draws the result by the progress of the operation, 0 to 1.
    fn draw(progress: f64, rng: &mut Rng) -> Effect {
        let draw = rng.unit_f64();
        if draw < CLEAN_SHARE * (1.0 - progress) {
            Effect::Nothing
        } else if draw < CLEAN_SHARE {
            Effect::All
        } else {
            Effect::Part
        }
    }
}

impl Array {
    /// Cuts the power at `at`. Commands that end by then take effect, but have no completion.
    /// Operations in progress are interrupted, with outcomes drawn from `rng`. Afterwards the power
    /// is back and all dies are idle.
    pub fn power_cut(&mut self, at: Time, rng: &mut Rng) -> PowerCutReport {
        let mut discarded = Vec::new();
        self.advance(at, &mut discarded);
        let mut report =
            PowerCutReport { commands_lost: discarded.len() as u64, ..PowerCutReport::default() };
        for die in &mut self.dies {
            self.core.interrupt(die, rng, &mut report);
        }
        self.channels.iter_mut().for_each(Channel::power_cut);
        self.core.events.clear_all();
        self.core.forget_cuts();
        report
    }
}

impl Core {
    /// Cuts the power of one die.
    fn interrupt(&mut self, die: &mut Die, rng: &mut Rng, report: &mut PowerCutReport) {
        let load = u64::from(die.load());
        report.commands_lost += load;
        self.counters.lost += load;
        if let Some((slot, progress)) = under_way(die, self.now)
            && !self.is_dead(die.index)
        {
            match die.slot(slot).kind {
                CommandKind::Read => {}
                CommandKind::Program => self.cut_program(die, slot, progress, rng, report),
                CommandKind::Erase => self.cut_erase(die.slot(slot), progress, rng, report),
            }
        }
        self.unreserve(die);
        die.power_cut();
    }

    /// Releases the reservations of lost commands.
    fn unreserve(&mut self, die: &Die) {
        let slots = die.slots.iter().zip(die.stages);
        for (slot, _) in slots.filter(|&(_, stage)| stage != Stage::Free) {
            for &index in &slot.blocks[..usize::from(slot.planes)] {
                let block = self.blocks.get_mut(BlockIndex(index));
                block.reserved = block.committed;
            }
        }
    }

    fn cut_program(
        &mut self,
        die: &Die,
        slot: u8,
        progress: f64,
        rng: &mut Rng,
        report: &mut PowerCutReport,
    ) {
        let Slot { page, planes, blocks, .. } = *die.slot(slot);
        let now_s = self.now_s();
        for (plane, index) in blocks[..usize::from(planes)].iter().copied().enumerate() {
            let index = BlockIndex(index);
            if self.blocks.get(index).committed == NEEDS_ERASE {
                continue;
            }
            self.blocks.commit_program(index, page, now_s);
            let cut = match self.blocks.buries_stray(index, page) {
                true => CutPage::Random,
                false => self.cut_page(progress, rng),
            };
            match cut {
                CutPage::Untouched => {
                    report.pages_untouched += 1;
                    self.blocks.damage(index, page, Damage::Hollow);
                }
                CutPage::Whole => {
                    report.pages_whole += 1;
                    self.store_cut_page(die, slot, plane, usize::MAX);
                }
                CutPage::Shorn => {
                    report.pages_shorn += 1;
                    let sub_pages = (self.page_bytes() / SUB_PAGE_BYTES).max(2) as u64;
                    let whole = 1 + rng.below(sub_pages - 1) as usize;
                    self.store_cut_page(die, slot, plane, whole * SUB_PAGE_BYTES);
                }
                CutPage::Random => {
                    report.pages_torn += 1;
                    self.blocks.damage(index, page, Damage::Torn);
                }
                CutPage::Unstable => {
                    report.pages_unstable += 1;
                    self.blocks.damage(index, page, self.unstable_page());
                    self.store_cut_page(die, slot, plane, usize::MAX);
                }
            }
            self.lose_pairs(index, page, rng, report);
        }
    }

    /// Draws the outcome of an interrupted program, by the configured weights if there are any.
    fn cut_page(&self, progress: f64, rng: &mut Rng) -> CutPage {
        self.faults.cut_pages.draw(rng).unwrap_or_else(|| match Effect::draw(progress, rng) {
            Effect::Nothing => CutPage::Untouched,
            Effect::All => CutPage::Whole,
            Effect::Part if rng.chance(self.faults.shorn_page_readable) => CutPage::Shorn,
            Effect::Part => CutPage::Random,
        })
    }

    /// The damage of a page that decays later, with its configured limits.
    fn unstable_page(&self) -> Damage {
        let CutPages { unstable_reads, unstable_ms, .. } = self.faults.cut_pages;
        let until_ns = self.now + u64::from(unstable_ms) * 1_000_000;
        Damage::Unstable {
            reads_left: (unstable_reads > 0).then_some(unstable_reads),
            until_ns: (unstable_ms > 0).then_some(until_ns),
        }
    }

    /// Draws the older pages of the word line that an interrupted program destroys.
    fn lose_pairs(
        &mut self,
        index: BlockIndex,
        page: u32,
        rng: &mut Rng,
        report: &mut PowerCutReport,
    ) {
        for older in self.pages.older_mates(page) {
            if rng.chance(self.faults.paired_page_loss) {
                report.pages_lost_with_pair += 1;
                self.blocks.damage(index, older, Damage::Torn);
            }
        }
    }

    /// Writes the first `whole` bytes of a page, followed by erased bytes, to the page store. If
    /// the store fails, the page is lost.
    fn store_cut_page(&mut self, die: &Die, slot: u8, plane: usize, whole: usize) {
        let page_bytes = self.page_bytes();
        let Slot { page, blocks, .. } = *die.slot(slot);
        let block = BlockIndex(blocks[plane]);
        let Some(store) = &mut self.store else { return };
        let register = &mut self.registers[die.register(slot)];
        let bytes = &mut register[plane * page_bytes..][..page_bytes];
        bytes[whole.min(page_bytes)..].fill(0xff);
        if store.write(self.geometry.page_index(block, page), bytes).is_err() {
            self.blocks.damage(block, page, Damage::Torn);
        }
    }

    fn cut_erase(
        &mut self,
        slot: &Slot,
        progress: f64,
        rng: &mut Rng,
        report: &mut PowerCutReport,
    ) {
        for &index in &slot.blocks[..usize::from(slot.planes)] {
            let index = BlockIndex(index);
            match self.faults.cut_erases.draw(rng) {
                Some(outcome) => self.cut_erase_to(outcome, index, rng, report),
                None => self.cut_erase_after(progress, index, rng, report),
            }
        }
    }

    /// An interrupted erase whose outcome depends on its progress.
    fn cut_erase_after(
        &mut self,
        progress: f64,
        index: BlockIndex,
        rng: &mut Rng,
        report: &mut PowerCutReport,
    ) {
        let erased = match Effect::draw(progress, rng) {
            Effect::Nothing => {
                report.blocks_untouched += 1;
                return;
            }
            Effect::Part => false,
            Effect::All => self.store_is_rid_of(index),
        };
        if erased {
            report.blocks_erased += 1;
            self.blocks.commit_erase(index);
        } else {
            report.blocks_partly_erased += 1;
            self.blocks.spoil_erase(index);
        }
    }

    /// An interrupted erase with an outcome drawn by the configured weights. A block without
    /// readable pages cannot keep any, and a block that the page store cannot erase does not look
    /// erased.
    fn cut_erase_to(
        &mut self,
        outcome: CutErase,
        index: BlockIndex,
        rng: &mut Rng,
        report: &mut PowerCutReport,
    ) {
        let committed = self.blocks.get(index).committed;
        match outcome {
            CutErase::LooksErased if self.store_is_rid_of(index) => {
                report.blocks_look_erased += 1;
                self.blocks.commit_erase(index);
                self.blocks.get_mut(index).weak = true;
            }
            CutErase::PartOld if committed != NEEDS_ERASE => {
                report.blocks_part_old += 1;
                self.blocks.interrupt_erase(index);
                for page in 0..u32::from(committed) {
                    self.spoil_old_page(index, page, rng);
                }
            }
            _ => {
                report.blocks_partly_erased += 1;
                self.blocks.spoil_erase(index);
            }
        }
    }

    /// Draws the damage of a page after a partial erase. A lost page stays lost.
    fn spoil_old_page(&mut self, index: BlockIndex, page: u32, rng: &mut Rng) {
        let damage = match rng.below(4) {
            0 => Damage::Hollow,
            1 => Damage::Torn,
            _ => return,
        };
        if self.blocks.content(index, page) == Content::Data {
            self.blocks.damage(index, page, damage);
        }
    }

    fn store_is_rid_of(&mut self, index: BlockIndex) -> bool {
        self.store.as_mut().is_none_or(|store| store.erase(index).is_ok())
    }
}

/// The slot of the interrupted operation of a die's cell array, and its progress, 0 to 1.
fn under_way(die: &Die, now: u64) -> Option<(u8, f64)> {
    let (slot, left_ns) = match die.array {
        _ if die.parked != NONE => (die.parked, die.parked_left_ns),
        CellArray::Working => (die.array_slot, die.work_ends - now),
        CellArray::Suspending | CellArray::Resuming => (die.array_slot, die.parked_left_ns),
        CellArray::Idle | CellArray::Holding => return None,
    };
    let progress = 1.0 - left_ns as f64 / die.work_ns.max(1) as f64;
    Some((slot, progress.clamp(0.0, 1.0)))
}
