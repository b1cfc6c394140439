//! Examination of the separated values of a slice, for checks and repairs.

use super::ledger::Ledger;
use super::reading::read_stored_everywhere;
use crate::error::{Result, StoreError, is_data_loss};
use crate::format::reference::Reference;
use crate::headless::Headless;
use crate::kv::slice::Slice;
use bytes::Bytes;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;
use softflash_runtime::yield_now;
use std::collections::BTreeMap;

/// Values between two yields.
const YIELD_VALUES: u64 = 16;

/// The separated values of a slice.
#[derive(Debug, Default)]
pub(crate) struct ExaminedValues {
    /// Values read without a problem; fragments count one by one.
    pub(crate) values: u64,
    /// Their bytes, headers and keys included.
    pub(crate) bytes: u64,
    /// Keys whose newest value is lost, with the problem.
    pub(crate) lost: BTreeMap<Bytes, String>,
    /// Blocks with a newest value, and a missing or damaged copy or a damaged erase header, with
    /// the problem. Blocks without one do not count: a power cut in their deletion leaves one copy,
    /// and one in their erase such a header.
    pub(crate) degraded: BTreeMap<BlockId, String>,
}

/// The blocks that values are in.
#[derive(Clone, Copy)]
pub(crate) struct OnFlash<'a> {
    pub(crate) blocks: &'a BlockLayer,
    pub(crate) headless: &'a Headless,
}

/// A reference of a version.
struct Named {
    key: Bytes,
    seq: u64,
    expires_at_ms: u64,
    reference: Reference,
}

/// Reads every value of the newest version of each key of a slice. Expired values may be gone.
pub(crate) async fn examine(
    slice: &Slice,
    ledger: &Ledger,
    on_flash: OnFlash<'_>,
    now_ms: u64,
) -> Result<ExaminedValues> {
    let mut examined = ExaminedValues::default();
    let mut in_memory = Vec::new();
    slice.each_newest_in_memory(|key, version| {
        let expires_at_ms = version.content().expires_at_ms();
        let named =
            |reference| Named { key: key.clone(), seq: version.seq, expires_at_ms, reference };
        in_memory.extend(version.references().into_iter().flatten().map(named));
    });
    for named in in_memory {
        examined.read(named, slice, ledger, on_flash, now_ms).await?;
    }
    for (.., patch) in slice.tree().patches() {
        let Ok(index) = patch.index() else { continue };
        let has_references = !index.references().is_empty();
        for number in (0..index.block_count()).filter(|_| has_references) {
            let block = match patch.read_block(number, Hint::REFRESH).await {
                // The patch itself is reported.
                Err(error) if is_data_loss(&error) => continue,
                read => read?,
            };
            for record in block.into_records().flatten() {
                let Some(reference) = record.reference().copied() else { continue };
                let expires_at_ms = record.expires_at_ms().unwrap_or(0);
                let (key, seq) = (record.key, record.seq);
                let named = Named { key, seq, expires_at_ms, reference };
                examined.read(named, slice, ledger, on_flash, now_ms).await?;
            }
        }
    }
    Ok(examined)
}

impl ExaminedValues {
    async fn read(
        &mut self,
        Named { key, seq, expires_at_ms, reference }: Named,
        slice: &Slice,
        ledger: &Ledger,
        OnFlash { blocks, headless }: OnFlash<'_>,
        now_ms: u64,
    ) -> Result<()> {
        let has_expired = expires_at_ms != 0 && expires_at_ms <= now_ms;
        let is_dead = !ledger.is_live(&reference) && blocks.contains(BlockId(reference.block()));
        if has_expired || is_dead || self.lost.contains_key(&key) {
            return Ok(());
        }
        match read_stored_everywhere(blocks, &reference, &key, Hint::REFRESH).await {
            Ok(stored) => {
                self.values += 1;
                self.bytes += stored.stored_len() as u64;
                if self.values.is_multiple_of(YIELD_VALUES) {
                    yield_now().await;
                }
                let block = BlockId(reference.block());
                let problem =
                    blocks.copy_problem(block).or_else(|| headless.problem(blocks, block));
                if let Some(problem) = problem
                    && !self.degraded.contains_key(&block)
                    && is_newest(slice, &key, seq).await?
                {
                    self.degraded.insert(block, problem);
                }
            }
            Err(StoreError::DataLoss(problem)) => {
                if is_newest(slice, &key, seq).await? {
                    self.lost.insert(key, problem);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Whether the version of `key` with this sequence number is its newest one. A lost patch may hold
/// a newer one: then the version counts.
async fn is_newest(slice: &Slice, key: &[u8], seq: u64) -> Result<bool> {
    if let Some(in_memory) = slice.in_memory(key, |version| version.seq) {
        return Ok(in_memory == seq);
    }
    for run in slice.tree().runs() {
        let Some(patch) = run.patch_for(key).and_then(|place| run.patches.get(place)) else {
            continue;
        };
        match patch.find(key, u64::MAX, Hint::REFRESH).await {
            Ok(Some(record)) => return Ok(record.seq == seq),
            Ok(None) => {}
            Err(error) if is_data_loss(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
