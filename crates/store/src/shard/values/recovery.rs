//! The ledger after a start: the newest version of each key decides which values are live.

use super::block::ValueBlock;
use super::ledger::Ledger;
use crate::format::patch::KeyHashes;
use crate::kv::slice::Slice;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Found};
use std::collections::{BTreeSet, HashMap};

impl Ledger {
    /// The ledger of recovered slices, with the value blocks that they refer to.
    ///
    /// It may list dead values: versions that a small value or a deletion on flash has superseded,
    /// until compaction drops them. Where a patch is lost, references may be missing, and all
    /// blocks are kept.
    pub fn recover(blocks: &BlockLayer, found: &[Found], slices: &[Slice]) -> Ledger {
        let mut ledger = Ledger::default();
        for found in found.iter().filter(|found| found.kind == BlockKind::Value) {
            ledger.found(ValueBlock::new(found.id, blocks.clone()));
            ledger.seal(found.id.0);
        }
        if ledger.is_empty() {
            return ledger;
        }
        for slice in slices {
            ledger.list(slice);
        }
        let is_lost = |slice: &Slice| slice.tree().patches().any(|(.., p)| p.damage().is_some());
        if slices.iter().any(is_lost) {
            found.iter().for_each(|found| ledger.keep(found.id.0));
        }
        ledger
    }

    /// Lists the values of a slice.
    fn list(&mut self, slice: &Slice) {
        // The sequence number of the newest version of each key that was seen.
        let mut newest: HashMap<KeyHashes, u64> = HashMap::new();
        slice.each_newest_in_memory(|key, version| {
            newest.entry(KeyHashes::of(key)).or_insert(version.seq);
            for reference in version.references().into_iter().flatten() {
                self.insert(&reference, version.content().expires_at_ms());
            }
        });
        for run in slice.tree().runs().filter(|_| !planted::bug(Bug::ValueLiveForgotten)) {
            let indexes = run.patches.iter().filter_map(|patch| patch.index().ok());
            for entry in indexes.flat_map(|index| index.references().entries()) {
                if *newest.entry(entry.key).or_insert(entry.seq) == entry.seq {
                    self.insert(&entry.reference, entry.expires_at_ms);
                }
            }
        }
    }

    /// Takes the blocks without live values out of the ledger, unless they are kept.
    pub fn take_unreferenced(&mut self) -> BTreeSet<BlockId> {
        let empty = self.take_empty(0);
        empty.into_iter().map(|empty| empty.handle.id()).collect()
    }
}
