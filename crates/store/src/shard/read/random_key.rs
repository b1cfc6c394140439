//! Random keys.

use super::lookup::Reader;
use super::scan::Scanner;
use crate::error::Result;
use crate::shard::Shard;
use crate::shard::slices::Slices;
use crate::value::Wanted;
use bytes::Bytes;
use softflash_ftl::Hint;

/// Random picks before the search falls back to the first live key.
const RANDOM_TRIES: u64 = 32;

/// Chooses random keys.
pub(crate) struct RandomKeys<'a> {
    slices: &'a Slices,
    reader: Reader<'a>,
    scanner: Scanner<'a>,
    hint: Hint,
}

impl RandomKeys<'_> {
    /// The keys of a shard.
    pub(crate) fn of(shard: &Shard, hint: Hint) -> RandomKeys<'_> {
        let (reader, scanner) = (Reader::of(shard, hint), Scanner::of(shard, hint));
        RandomKeys { slices: &shard.slices, reader, scanner, hint }
    }

    /// A live key, chosen by `random`.
    pub(crate) async fn pick_live(&self, random: u64) -> Result<Option<Bytes>> {
        for attempt in 0..RANDOM_TRIES {
            let random = softflash_base::checksum::identity(&[random, attempt]);
            if let Some(key) = self.pick(random).await?
                && self.reader.read(&key, false, Wanted::Keys).await?.entry.is_some()
            {
                return Ok(Some(key));
            }
        }
        // Few keys are live: take the first one.
        for slice in self.slices {
            if let Some((key, _)) =
                self.scanner.scan(slice.id, None, 1, Wanted::Keys).await?.items.pop()
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The key of a random record; memtables and patches are weighted by their records.
    async fn pick(&self, random: u64) -> Result<Option<Bytes>> {
        let Some(slice) = self.slices.get(random as usize % self.slices.len().max(1)) else {
            return Ok(None);
        };
        let random = random >> 8;
        let tree = slice.tree();
        let on_flash: u64 = tree
            .patches()
            .map(|(.., patch)| patch.index().map_or(0, |index| index.entries()))
            .sum();
        let active = slice.active();
        let in_memory = active.borrow().len() as u64;
        let mut place = random % (on_flash + in_memory).max(1);
        if place < in_memory {
            let table = active.borrow();
            return Ok(table.newest_after(None).nth(place as usize).map(|(key, ..)| key.clone()));
        }
        place -= in_memory;
        for (.., patch) in tree.patches() {
            let index = patch.index()?;
            if place < index.entries() {
                let number = (place * index.block_count() as u64 / index.entries()) as usize;
                let block = patch.read_block(number, self.hint).await?;
                let offset = index.block_range(number).start;
                let keys: Vec<Bytes> = block
                    .into_records()
                    .map(|record| record.map(|record| record.key))
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|error| patch.damaged(offset, &error))?;
                return Ok(keys.get(random as usize % keys.len().max(1)).cloned());
            }
            place -= index.entries();
        }
        Ok(None)
    }
}
