//! Export of all live keys of a store that is not open. It only reads, as a check does, so it works
//! on a device that cannot be written.

use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::version::Content;
use crate::kv::merge::Merge;
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::shard::recovery::decisions::Decisions;
use crate::shard::recovery::examination::{Examination, Examined};
use crate::shard::recovery::{OnLogLoss, Recovered};
use crate::shard::values::reading::read_stored;
use crate::shard::{content_of, fragments_of};
use crate::value::{Entry, Value};
use bytes::Bytes;
use futures_util::future::join_all;
use softflash_base::ShardId;
use softflash_blocks::BlockLayer;
use softflash_device::Device;
use softflash_flash::Flash;
use softflash_ftl::Hint;
use softflash_runtime::{RuntimeHandle, yield_now};
use std::sync::Arc;

/// Keys between two yields.
const YIELD_KEYS: u64 = 1024;

/// A store whose state has been recovered, to be read once.
pub struct Export {
    shards: Vec<ExportedShard>,
}

struct ExportedShard {
    flash: Flash,
    blocks: BlockLayer,
    recovered: Recovered,
    /// The clock that the log records: an export keeps the keys that a server would still serve,
    /// whatever the wall clock of this machine says.
    now_ms: u64,
}

impl Drop for ExportedShard {
    fn drop(&mut self) {
        self.flash.stop();
    }
}

impl Export {
    /// Recovers the state of all shards in memory.
    ///
    /// # Errors
    /// As the opening of a store.
    pub async fn begin(
        device: &Arc<dyn Device>,
        layout: &StoreLayout,
        runtime: &RuntimeHandle,
    ) -> Result<Export> {
        if let Some(problem) = layout.problem() {
            return Err(StoreError::Unusable(problem));
        }
        let decisions = Decisions::default();
        // Concurrently: the shards ask each other for the outcome of transactions.
        let shards = (0..layout.shards).map(|number| {
            let (shard, decisions) = (ShardId(number), &decisions);
            let on_log_loss = OnLogLoss::Refuse;
            let spec = Examination { shard, device, layout, decisions, runtime, on_log_loss };
            async move {
                let examined = spec.run().await.and_then(ExportedShard::new);
                examined.inspect_err(|error| decisions.abandon(shard, error))
            }
        });
        let shards = join_all(shards).await.into_iter().collect::<Result<_>>()?;
        Ok(Export { shards })
    }

    /// The number of keys, an estimate.
    pub fn keys(&self) -> u64 {
        let slices = self.shards.iter().flat_map(|shard| &shard.recovered.slices);
        slices.map(|slice| slice.live_keys.get() + slice.memory_keys() as u64).sum()
    }

    /// Gives every live key with its entry to `sink`, slice by slice, in ascending order.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where a key or a value cannot be read, and the error of the sink,
    /// which ends the export.
    pub async fn each<E: From<StoreError>>(
        &self,
        sink: &mut dyn FnMut(Bytes, Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        for shard in &self.shards {
            for slice in &shard.recovered.slices {
                shard.each_of(slice, sink).await?;
            }
        }
        Ok(())
    }
}

impl ExportedShard {
    fn new(examined: Examined) -> Result<ExportedShard> {
        let Examined { flash, blocks, recovered, recorded_ms: now_ms, .. } = examined;
        match recovered {
            Ok(recovered) => Ok(ExportedShard { flash, blocks, recovered, now_ms }),
            Err(error) => {
                flash.stop();
                Err(error)
            }
        }
    }

    async fn each_of<E: From<StoreError>>(
        &self,
        slice: &Slice,
        sink: &mut dyn FnMut(Bytes, Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut merge = Merge::new(slice.sources(Hint::HOST_LATER));
        let (mut ahead, mut keys) = (merge.next().await?, 0_u64);
        while let Some(newest) = ahead.take() {
            let key = newest.key.clone();
            let entry = self.entry_of(&mut merge, newest).await?;
            // Older versions of the key.
            ahead = loop {
                match merge.next().await? {
                    Some(record) if record.key == key => {}
                    next => break next,
                }
            };
            if let Some(entry) = entry {
                sink(key, entry)?;
            }
            keys += 1;
            if keys.is_multiple_of(YIELD_KEYS) {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// The entry of the version whose first record was read; none if the key is deleted or has
    /// expired.
    async fn entry_of(&self, merge: &mut Merge, first: Record) -> Result<Option<Entry>> {
        let Some(expires_at_ms) = first.expires_at_ms() else { return Ok(None) };
        if expires_at_ms != 0 && expires_at_ms <= self.now_ms {
            return Ok(None);
        }
        let key = first.key.clone();
        let pieces = fragments_of(first, async || merge.next().await).await?;
        match content_of(pieces, expires_at_ms) {
            Content::Deletion => Ok(None),
            Content::Inline(entry) => Ok(Some(entry)),
            Content::Separated(separated) => {
                let mut fragments = Vec::new();
                for reference in separated.references().unwrap_or_default() {
                    let hint = Hint::HOST_LATER;
                    let stored = read_stored(&self.blocks, &reference, &key, hint).await?;
                    fragments.push(stored.value);
                }
                Ok(Some(Entry { value: Value::from_fragments(fragments), expires_at_ms }))
            }
        }
    }
}
