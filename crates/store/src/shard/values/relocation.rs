//! Copies live values to other blocks, for the collector.

use super::ValueLog;
use super::writer::Placed;
use crate::error::Result;
use crate::format::reference::Reference;
use crate::format::value::ValueBytes;

impl ValueLog {
    /// Copies values to the blocks of their stream, in as few device writes as possible; `born` is
    /// the value clock of their old block. Calls `placed` with the values of each write and their
    /// new places, before the collector can choose their new block.
    ///
    /// # Errors
    /// [`StoreError::OutOfSpace`](crate::StoreError::OutOfSpace) where the flash has no block for
    /// them: those that were not placed stay where they are.
    pub(super) async fn relocate<'a>(
        &self,
        mut values: &[ValueBytes<'a>],
        born: u64,
        mut placed: impl FnMut(&[ValueBytes<'a>], &[Reference]),
    ) -> Result<()> {
        let inner = &self.inner;
        let age = inner.clock.get().saturating_sub(born);
        let stream = inner.streams.moved(age, inner.short_lifetime.get());
        while !values.is_empty() {
            let count = inner.fitting(stream, values.iter().map(ValueBytes::stored_len)).await?;
            let (part, rest) = values.split_at_checked(count).unwrap_or((values, &[]));
            let Placed { block, pages, places } = inner.place(stream, part).await?;
            let bytes = (pages.len() * inner.blocks.page_bytes()) as u64;
            inner.moved_bytes.set(inner.moved_bytes.get() + bytes);
            placed(part, &places);
            inner.note_complete(stream, block, &pages);
            values = rest;
        }
        Ok(())
    }
}
