//! Older values of lost records, further down in the tree. Keys that the damaged patch's filter
//! contains must not get an older value.

use super::salvage::Salvaged;
use crate::error::Result;
use crate::error::is_data_loss;
use crate::format::patch::PatchIndex;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::tree::Tree;
use bytes::Bytes;
use softflash_base::checksum;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::collections::BTreeMap;

/// The newest older version of a key: its sequence number, and whether it is a deletion.
type Older = BTreeMap<Bytes, (u64, bool)>;

/// The older values below a damaged patch.
pub(super) struct Below {
    /// Deletions that hide the older values of lost records.
    pub(super) deletions: Vec<Record>,
    /// Older values may become visible, because the lost keys are unknown.
    pub(super) is_unknown: bool,
}

/// Looks for older values of the lost records of a patch of this run.
pub(super) async fn look_below(
    tree: &Tree,
    (level, run): (usize, u64),
    salvaged: &Salvaged,
) -> Result<Below> {
    let older = patches_below(tree, level, run);
    let nothing = Below { deletions: Vec::new(), is_unknown: false };
    if older.is_empty() || salvaged.gap_bounds().next().is_none() {
        return Ok(nothing);
    }
    let index = match salvaged.patch.index() {
        Ok(index) if index.header().filter_len > 0 => index,
        _ => return Ok(Below { is_unknown: true, ..nothing }),
    };
    let mut found = Older::new();
    for (from, to) in salvaged.gap_bounds() {
        for patch in &older {
            collect(patch, from, to, index, &mut found).await?;
        }
    }
    let kept =
        |key: &Bytes| salvaged.records.binary_search_by(|record| record.key.cmp(key)).is_ok();
    let hidden = found.into_iter().filter(|(key, (_, deleted))| !deleted && !kept(key));
    // The lost version is newer, so that `seq + 1` is not newer than the lost version.
    let deletions = hidden.map(|(key, (seq, _))| Record::delete(key, seq + 1)).collect();
    Ok(Below { deletions, ..nothing })
}

fn patches_below(tree: &Tree, level: usize, run: u64) -> Vec<&Patch> {
    let beside = !planted::bug(Bug::RepairOfLowerLevels);
    let is_below = |at: usize, number: u64| at > level || beside && at == level && number < run;
    let below = tree.patches().filter(|(at, number, _)| is_below(*at, *number));
    below.map(|(.., patch)| &**patch).collect()
}

/// Collects the newest versions in `patch` of keys from `from` to `to` that the damaged patch may
/// have held.
async fn collect(
    patch: &Patch,
    from: &[u8],
    to: &[u8],
    damaged: &PatchIndex,
    found: &mut Older,
) -> Result<()> {
    let Ok(index) = patch.index() else { return Ok(()) };
    for number in index.lower_bound(from)..index.block_count() {
        let block = match patch.read_block(number, Hint::REFRESH).await {
            Err(error) if is_data_loss(&error) => continue,
            read => read?,
        };
        for record in block.into_records().flatten() {
            if *record.key > *to {
                return Ok(());
            }
            if *record.key < *from || !damaged.may_contain(checksum::hash64(&record.key)) {
                continue;
            }
            let newest = found.entry(record.key.clone()).or_insert((0, true));
            if record.seq > newest.0 {
                *newest = (record.seq, record.is_delete());
            }
        }
    }
    Ok(())
}
