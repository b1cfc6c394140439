//! Damaged pages: their state differs from the one that the block's write pointer implies, because
//! of a power cut, a failed program or an injected fault. They are few, so they are stored
//! separately from the blocks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The damage of a page, as recorded across a power cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageDamage {
    /// Its program changed nothing: it reads as erased, and cannot be programmed.
    Hollow,
    /// Its contents are lost: it reads as uncorrectable.
    Torn,
    /// It is readable for now, and lost when the first of these limits is reached.
    Unstable {
        /// Reads that it still survives; absent: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reads_left: Option<u8>,
        /// Milliseconds until it is lost; absent: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms_left: Option<u32>,
    },
    /// Not programmed, but readable: it holds the data of a misdirected program. Programming it
    /// destroys both. Only the next page of a block can be stray.
    Stray,
}

/// The damage of a page, with its limit on the array's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Hollow,
    Torn,
    Unstable { reads_left: Option<u8>, until_ns: Option<u64> },
    Stray,
}

const NS_PER_MS: u64 = 1_000_000;

impl Damage {
    /// The damage as recorded at `now_ns`.
    fn recorded(self, now_ns: u64) -> PageDamage {
        match self {
            Damage::Hollow => PageDamage::Hollow,
            Damage::Torn => PageDamage::Torn,
            Damage::Stray => PageDamage::Stray,
            Damage::Unstable { reads_left, until_ns } => {
                let ms_left = |until: u64| until.saturating_sub(now_ns).div_ceil(NS_PER_MS);
                let ms_left = until_ns.map(|until| ms_left(until).min(u64::from(u32::MAX)) as u32);
                PageDamage::Unstable { reads_left, ms_left }
            }
        }
    }

    /// The damage restored from a record at `now_ns`.
    pub(crate) fn from_record(damage: PageDamage, now_ns: u64) -> Damage {
        match damage {
            PageDamage::Hollow => Damage::Hollow,
            PageDamage::Torn => Damage::Torn,
            PageDamage::Stray => Damage::Stray,
            PageDamage::Unstable { reads_left, ms_left } => {
                let until = |ms| now_ns.saturating_add(u64::from(ms) * NS_PER_MS);
                Damage::Unstable { reads_left, until_ns: ms_left.map(until) }
            }
        }
    }
}

/// The damaged pages of an array, by block and page.
#[derive(Debug, Default)]
pub(crate) struct DamageTable {
    pages: BTreeMap<(u32, u16), Damage>,
}

impl DamageTable {
    pub(crate) fn get(&self, block: u32, page: u32) -> Option<Damage> {
        self.pages.get(&(block, page as u16)).copied()
    }

    pub(crate) fn set(&mut self, block: u32, page: u32, damage: Damage) {
        self.pages.insert((block, page as u16), damage);
    }

    /// Removes the damage of all pages of a block.
    pub(crate) fn forget(&mut self, block: u32) {
        let pages: Vec<_> = self.pages.range(of(block)).map(|(&place, _)| place).collect();
        for place in pages {
            self.pages.remove(&place);
        }
    }

    /// The damaged pages of a block, in ascending order.
    pub(crate) fn recorded(&self, block: u32, now_ns: u64) -> Vec<(u32, PageDamage)> {
        let pages = self.pages.range(of(block));
        pages.map(|(&(_, page), damage)| (u32::from(page), damage.recorded(now_ns))).collect()
    }

    /// Reads an unstable page at `now_ns`; returns whether it is still readable. The read counts
    /// towards its limit.
    pub(crate) fn survives_read(&mut self, block: u32, page: u32, now_ns: u64) -> bool {
        let Some(damage) = self.pages.get_mut(&(block, page as u16)) else { return true };
        let Damage::Unstable { reads_left, until_ns } = damage else { return true };
        let in_time = until_ns.is_none_or(|until| now_ns < until);
        match (in_time, reads_left) {
            (true, None) => true,
            (true, Some(left)) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => {
                *damage = Damage::Torn;
                false
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }
}

fn of(block: u32) -> std::ops::RangeInclusive<(u32, u16)> {
    (block, 0)..=(block, u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(reads_left: Option<u8>, until_ns: Option<u64>) -> DamageTable {
        let mut table = DamageTable::default();
        table.set(3, 5, Damage::Unstable { reads_left, until_ns });
        table
    }

    #[test]
    fn an_unstable_page_lasts_for_its_reads_and_never_comes_back() {
        let mut table = table(Some(2), None);
        let reads: Vec<bool> = (0..4).map(|_| table.survives_read(3, 5, 0)).collect();
        assert_eq!(reads[..3], [true, true, false], "{table:?}");
        assert_eq!(table.get(3, 5), Some(Damage::Torn));
    }

    #[test]
    fn an_unstable_page_lasts_for_its_time() {
        let mut table = table(None, Some(1_000));
        assert!((0..999).all(|now| table.survives_read(3, 5, now)));
        assert!(!table.survives_read(3, 5, 1_000));
    }

    #[test]
    fn a_record_keeps_what_is_left() {
        let damage = Damage::Unstable { reads_left: Some(7), until_ns: Some(9_500_000) };
        let recorded = damage.recorded(2_000_000);
        assert_eq!(recorded, PageDamage::Unstable { reads_left: Some(7), ms_left: Some(8) });
        let back = Damage::from_record(recorded, 100);
        let expected = Damage::Unstable { reads_left: Some(7), until_ns: Some(8_000_100) };
        assert_eq!(back, expected, "whole milliseconds");
    }
}
