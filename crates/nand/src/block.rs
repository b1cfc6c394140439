//! The state of every block. It determines the state of every page: the pages of a block are
//! programmed in order, so those before the write pointer hold data. The few pages damaged by a
//! power cut, a failed program or an injected fault are listed separately, in `damage`.

use crate::address::BlockIndex;
use crate::damage::{Damage, DamageTable, PageDamage};
use crate::prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// Whether a block may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Usable.
    #[default]
    Good,
    /// Bad from the factory. Its pages read as uncorrectable.
    FactoryBad,
    /// A program or erase failed, or the host marked the block bad. Its pages can still be read,
    /// except after a failed erase.
    GrownBad,
}

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockState {
    /// The next page to program: those before it are programmed. `None` if the block must be erased
    /// first, as an erase was interrupted or failed.
    pub write_pointer: Option<u32>,
    /// Erases so far.
    pub erase_count: u32,
    /// Pages read since the last erase.
    pub reads: u32,
    /// Seconds since a page was last programmed.
    pub age_s: u64,
    /// Whether it may be used.
    pub health: Health,
}

/// The state of a block that survives a power cycle, without its data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRecord {
    /// As [`BlockState::write_pointer`].
    pub write_pointer: Option<u32>,
    /// Erases so far.
    pub erase_count: u32,
    /// Pages read since the last erase.
    #[serde(default)]
    pub reads: u32,
    /// Seconds since a page was last programmed.
    #[serde(default)]
    pub age_s: u64,
    /// Whether it may be used.
    #[serde(default)]
    pub health: Health,
    /// Whether the block seems usable although its last erase was interrupted: its programs fail
    /// more often until the next erase, as configured.
    #[serde(default)]
    pub weak: bool,
    /// Damaged pages before the write pointer, in ascending order, and a stray page at the write
    /// pointer.
    #[serde(default)]
    pub damaged: Vec<(u32, PageDamage)>,
}

/// The write pointer of a block that must be erased before it can be programmed.
pub(crate) const NEEDS_ERASE: u16 = u16::MAX;

/// Second 0 of the array's clock in a block's time stamp, so that blocks older than the clock can
/// be imported.
const EPOCH_S: u64 = 1 << 31;

const NS_PER_S: u64 = 1_000_000_000;

/// A block in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Pages before it are programmed; [`NEEDS_ERASE`] if the block is in no defined state.
    pub(crate) committed: u16,
    /// The write pointer after all accepted commands succeed; new commands are checked against it.
    pub(crate) reserved: u16,
    pub(crate) health: Health,
    has_damage: bool,
    /// Its last erase was interrupted.
    pub(crate) weak: bool,
    pub(crate) erase_count: u32,
    pub(crate) reads: u32,
    programmed_at_s: u32,
}

const FRESH: Block = Block {
    committed: 0,
    reserved: 0,
    health: Health::Good,
    has_damage: false,
    weak: false,
    erase_count: 0,
    reads: 0,
    programmed_at_s: EPOCH_S as u32,
};

/// The contents of a page, bit errors aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Data,
    Erased,
    Lost,
    /// Data, until [`BlockTable::survives_read`] returns false.
    Unstable,
}

/// All blocks of an array.
pub(crate) struct BlockTable {
    blocks: Vec<Block>,
    damage: DamageTable,
}

impl BlockTable {
    pub(crate) fn new(blocks: u32) -> BlockTable {
        BlockTable { blocks: vec![FRESH; blocks as usize], damage: DamageTable::default() }
    }

    #[inline]
    pub(crate) fn get(&self, block: BlockIndex) -> &Block {
        &self.blocks[block.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, block: BlockIndex) -> &mut Block {
        &mut self.blocks[block.index()]
    }

    /// Prefetches the state of a block for a later access.
    #[inline]
    pub(crate) fn prefetch(&self, block: BlockIndex) {
        prefetch(self.get(block));
    }

    /// The result of a read of the page.
    #[inline]
    pub(crate) fn content(&self, index: BlockIndex, page: u32) -> Content {
        let block = self.get(index);
        if page >= u32::from(block.committed) {
            match block.has_damage && self.is_stray(index, page) {
                true => Content::Data,
                false => Content::Erased,
            }
        } else if block.committed == NEEDS_ERASE {
            Content::Lost
        } else if block.has_damage {
            match self.damage.get(index.0, page) {
                None => Content::Data,
                Some(Damage::Hollow) => Content::Erased,
                Some(Damage::Torn) => Content::Lost,
                Some(Damage::Unstable { .. }) => Content::Unstable,
                Some(Damage::Stray) => Content::Data,
            }
        } else {
            Content::Data
        }
    }

    /// Records a program of a page at `now_s`, successful or not.
    #[inline]
    pub(crate) fn commit_program(&mut self, index: BlockIndex, page: u32, now_s: u64) {
        let block = self.get_mut(index);
        assert_eq!(u32::from(block.committed), page, "pages of a block are programmed in order");
        block.committed = page as u16 + 1;
        block.programmed_at_s = (EPOCH_S + now_s).min(u64::from(u32::MAX)) as u32;
    }

    /// Records a completed erase.
    pub(crate) fn commit_erase(&mut self, index: BlockIndex) {
        self.forget_damage(index);
        let block = self.get_mut(index);
        block.committed = 0;
        block.reads = 0;
        block.weak = false;
        block.erase_count = block.erase_count.saturating_add(1);
    }

    /// Records an erase that left the block in an undefined state.
    pub(crate) fn spoil_erase(&mut self, index: BlockIndex) {
        self.commit_erase(index);
        let block = self.get_mut(index);
        block.committed = NEEDS_ERASE;
        block.reserved = NEEDS_ERASE;
    }

    /// Marks a block of a new array bad.
    pub(crate) fn make_factory_bad(&mut self, index: BlockIndex) {
        let block = self.get_mut(index);
        block.health = Health::FactoryBad;
        (block.committed, block.reserved) = (NEEDS_ERASE, NEEDS_ERASE);
    }

    /// Records an erase that was interrupted early enough for the block to keep pages.
    pub(crate) fn interrupt_erase(&mut self, index: BlockIndex) {
        let block = self.get_mut(index);
        block.erase_count = block.erase_count.saturating_add(1);
        block.weak = true;
    }

    /// Records the damage of a page.
    pub(crate) fn damage(&mut self, index: BlockIndex, page: u32, damage: Damage) {
        self.get_mut(index).has_damage = true;
        self.damage.set(index.0, page, damage);
    }

    /// Records that a page counts as programmed but was not. A stray page there stays readable.
    pub(crate) fn hollow_out(&mut self, index: BlockIndex, page: u32) {
        if !self.buries_stray(index, page) {
            self.damage(index, page, Damage::Hollow);
        }
    }

    /// Whether a program of this page overwrites the data of a misdirected program.
    #[inline]
    pub(crate) fn buries_stray(&self, index: BlockIndex, page: u32) -> bool {
        self.get(index).has_damage && self.is_stray(index, page)
    }

    /// Whether a block's next page holds the data of a misdirected program.
    pub(crate) fn has_stray(&self, index: BlockIndex) -> bool {
        let block = self.get(index);
        block.has_damage && self.is_stray(index, u32::from(block.committed))
    }

    #[cold]
    fn is_stray(&self, index: BlockIndex, page: u32) -> bool {
        self.damage.get(index.0, page) == Some(Damage::Stray)
    }

    /// Reads an unstable page; returns whether it is still readable.
    #[cold]
    pub(crate) fn survives_read(&mut self, index: BlockIndex, page: u32, now_ns: u64) -> bool {
        self.damage.survives_read(index.0, page, now_ns)
    }

    fn forget_damage(&mut self, index: BlockIndex) {
        if std::mem::take(&mut self.get_mut(index).has_damage) {
            self.damage.forget(index.0);
        }
    }

    #[inline]
    pub(crate) fn age_s(&self, index: BlockIndex, now_s: u64) -> u64 {
        (EPOCH_S + now_s).saturating_sub(u64::from(self.get(index).programmed_at_s))
    }

    pub(crate) fn state(&self, index: BlockIndex, now_s: u64) -> BlockState {
        let block = self.get(index);
        BlockState {
            write_pointer: (block.committed != NEEDS_ERASE).then_some(u32::from(block.committed)),
            erase_count: block.erase_count,
            reads: block.reads,
            age_s: self.age_s(index, now_s),
            health: block.health,
        }
    }

    pub(crate) fn export(&self, index: BlockIndex, now_ns: u64) -> BlockRecord {
        let BlockState { write_pointer, erase_count, reads, age_s, health } =
            self.state(index, now_ns / NS_PER_S);
        let Block { has_damage, weak, .. } = *self.get(index);
        let damaged = match has_damage {
            true => self.damage.recorded(index.0, now_ns),
            false => Vec::new(),
        };
        BlockRecord { write_pointer, erase_count, reads, age_s, health, weak, damaged }
    }

    /// Restores a block to a recorded state. The record has been checked.
    pub(crate) fn import(&mut self, index: BlockIndex, record: &BlockRecord, now_ns: u64) {
        self.forget_damage(index);
        let pointer = record.write_pointer.map_or(NEEDS_ERASE, |page| page as u16);
        *self.get_mut(index) = Block {
            committed: pointer,
            reserved: pointer,
            health: record.health,
            has_damage: false,
            weak: record.weak,
            erase_count: record.erase_count,
            reads: record.reads,
            programmed_at_s: (EPOCH_S + now_ns / NS_PER_S).saturating_sub(record.age_s) as u32,
        };
        for &(page, damage) in &record.damaged {
            self.damage(index, page, Damage::from_record(damage, now_ns));
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        /// Estimated bytes of an entry: key, value and a share of the nodes of a B-tree.
        const DAMAGE_BYTES: usize = 24;
        (self.blocks.capacity() * size_of::<Block>() + self.damage.len() * DAMAGE_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockIndex = BlockIndex(1);

    #[test]
    fn a_block_takes_twenty_bytes() {
        assert_eq!(size_of::<Block>(), 20);
    }

    #[test]
    fn damage_lasts_until_the_erase() {
        let mut table = BlockTable::new(3);
        (0..4).for_each(|page| table.commit_program(BLOCK, page, 5));
        table.damage(BLOCK, 1, Damage::Hollow);
        table.damage(BLOCK, 2, Damage::Torn);
        let contents: Vec<Content> = (0..5).map(|page| table.content(BLOCK, page)).collect();
        use Content::{Data, Erased, Lost};
        assert_eq!(contents, [Data, Erased, Lost, Data, Erased]);
        table.commit_erase(BLOCK);
        assert_eq!((table.content(BLOCK, 2), table.damage.len()), (Erased, 0));
    }

    #[test]
    fn a_record_brings_a_block_back_with_its_age() {
        let mut table = BlockTable::new(3);
        (0..4).for_each(|page| table.commit_program(BLOCK, page, 100));
        table.damage(BLOCK, 2, Damage::Torn);
        table.get_mut(BLOCK).health = Health::GrownBad;
        let record = table.export(BLOCK, 160 * NS_PER_S);
        assert_eq!((record.age_s, record.damaged.len()), (60, 1));
        let mut other = BlockTable::new(3);
        other.import(BLOCK, &record, 7 * NS_PER_S);
        assert_eq!(other.export(BLOCK, 7 * NS_PER_S), record);
        assert_eq!(other.age_s(BLOCK, 17), 70);
        assert_eq!(other.content(BLOCK, 2), Content::Lost);
    }

    #[test]
    fn a_spoilt_block_reads_as_lost() {
        let mut table = BlockTable::new(3);
        table.spoil_erase(BLOCK);
        assert_eq!(table.content(BLOCK, 0), Content::Lost);
        assert_eq!(table.state(BLOCK, 0).write_pointer, None);
    }
}
