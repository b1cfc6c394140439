//! Counts the live keys of a slice, exactly: reads every patch.

use super::cursor::{RunCursor, STEP_BYTES};
use super::merge::{MemoryCursor, Merge, Source};
use super::slice::Slice;
use crate::error::Result;
use bytes::Bytes;
use softflash_ftl::Hint;
use softflash_runtime::yield_now;
use std::rc::Rc;

/// Keys between two yields.
const YIELD_KEYS: u64 = 1024;

impl Slice {
    /// The number of keys whose newest version is a value that has not expired at `now_ms`.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`](crate::StoreError::DataLoss) where a patch is damaged.
    pub async fn count_live(&self, now_ms: u64, hint: Hint) -> Result<u64> {
        let mut merge = Merge::new(self.sources(hint));
        let (mut live, mut last, mut keys) = (0, None::<Bytes>, 0_u64);
        while let Some(record) = merge.next().await? {
            // The newest version of a key comes first.
            if last.as_ref() == Some(&record.key) {
                continue;
            }
            live += u64::from(!record.is_delete() && !record.is_expired(now_ms));
            last = Some(record.key);
            keys += 1;
            if keys.is_multiple_of(YIELD_KEYS) {
                yield_now().await;
            }
        }
        Ok(live)
    }

    /// Its memtables and its runs on flash as a whole, newest first.
    pub fn sources(&self, hint: Hint) -> Vec<Source> {
        let memory = |table| Source::Memory(MemoryCursor::new(table, None));
        let mut sources = vec![memory(self.active())];
        let frozen = self.frozen.borrow();
        sources.extend(frozen.iter().rev().map(|frozen| memory(Rc::clone(&frozen.table))));
        let whole = |run| Source::Run(Box::new(RunCursor::whole(run, STEP_BYTES, hint)));
        sources.extend(self.tree().runs().map(|run| whole(Rc::clone(run))));
        sources
    }
}
