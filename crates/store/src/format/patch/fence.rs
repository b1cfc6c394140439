//! Fences: for each block of a patch its start, and a short key that separates it from the previous
//! block.

use crate::format::FormatError;
use crate::format::codec::{Reader, put_varint};
use softflash_base::cast::{index, saturating_u32, wide};
use std::ops::Range;

const WHAT: &str = "the fences of a patch";

/// Flag in a block's place: the block begins with the last key of the previous block.
const CONTINUED: u32 = 1 << 31;
/// Offsets in the data section must fit beside the flag.
pub(super) const MAX_DATA_BYTES: usize = index(CONTINUED) - 1;

/// Collects fences while blocks are built.
#[derive(Debug, Default)]
pub(super) struct FenceBuilder {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    blocks: Vec<u32>,
}

impl FenceBuilder {
    /// A block starts at `offset` with `first_key`; the previous block ended with `last_key`.
    pub fn push(&mut self, offset: u32, last_key: &[u8], first_key: &[u8]) {
        if self.blocks.is_empty() {
            return self.blocks.push(offset);
        }
        let continued = last_key == first_key;
        let common = last_key.iter().zip(first_key).take_while(|(a, b)| a == b).count();
        let len = if continued { first_key.len() } else { common + 1 };
        self.keys.extend_from_slice(first_key.get(..len).unwrap_or(first_key));
        self.key_ends.push(saturating_u32(self.keys.len()));
        self.blocks.push(if continued { offset | CONTINUED } else { offset });
    }

    /// An upper bound of the bytes of the fences on flash.
    pub fn encoded_bound(&self) -> usize {
        // A separator's length is a varint of at most three bytes, a block's place takes four.
        16 + self.keys.len() + 3 * self.key_ends.len() + 4 * self.blocks.len()
    }

    /// The fences of a data section of `data_len` bytes.
    pub fn finish(self, data_len: u32) -> Fences {
        let key = |number: usize| {
            let start = number.checked_sub(1).map_or(0, |before| index(self.key_ends[before]));
            self.keys.get(start..index(self.key_ends[number])).unwrap_or_default()
        };
        let count = self.key_ends.len();
        // Separators ascend, so the common prefix of the first and the last is common to all.
        let prefix = match count {
            0 | 1 => 0,
            _ => key(0).iter().zip(key(count - 1)).take_while(|(a, b)| a == b).count(),
        };
        let mut arena = Vec::with_capacity(self.keys.len() + prefix - prefix * count.min(1));
        arena.extend_from_slice(if count > 0 { &key(0)[..prefix] } else { &[] });
        let mut ends = Vec::with_capacity(count);
        for number in 0..count {
            arena.extend_from_slice(&key(number)[prefix..]);
            ends.push(saturating_u32(arena.len()));
        }
        Fences {
            arena: arena.into(),
            prefix: saturating_u32(prefix),
            ends: ends.into(),
            blocks: self.blocks.into(),
            data_len,
        }
    }
}

/// The fences of a patch, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fences {
    /// The prefix that all separators share, then the rest of each.
    arena: Box<[u8]>,
    prefix: u32,
    /// The end of each separator in the arena; the first belongs to block 1.
    ends: Box<[u32]>,
    blocks: Box<[u32]>,
    data_len: u32,
}

impl Fences {
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub fn data_len(&self) -> u32 {
        self.data_len
    }

    pub fn memory_bytes(&self) -> usize {
        self.arena.len() + 4 * (self.ends.len() + self.blocks.len())
    }

    /// The place of block `number` in the data section; an empty range at its end for a number
    /// beyond the last.
    pub fn block_range(&self, number: usize) -> Range<u32> {
        let start = |number| self.blocks.get(number).map_or(self.data_len, |at| at & !CONTINUED);
        start(number)..start(number + 1)
    }

    /// Whether block `number` begins with the last key of the previous block.
    pub fn is_continued(&self, number: usize) -> bool {
        self.blocks.get(number).is_some_and(|at| at & CONTINUED != 0)
    }

    fn shared_prefix(&self) -> &[u8] {
        self.arena.get(..index(self.prefix)).unwrap_or_default()
    }

    /// The separator in front of block `number + 1`, without the shared prefix.
    fn suffix(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = index(start.map_or(self.prefix, |end| *end));
        let end = self.ends.get(number).map_or(start, |end| index(*end));
        self.arena.get(start..end).unwrap_or_default()
    }

    /// The number of separators below `key`, and whether the next one equals it.
    fn place(&self, key: &[u8]) -> (usize, bool) {
        let Some(rest) = key.strip_prefix(self.shared_prefix()) else {
            let all = if key < self.shared_prefix() { 0 } else { self.ends.len() };
            return (all, false);
        };
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.suffix(middle) < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, low < self.ends.len() && self.suffix(low) == rest)
    }

    /// The first block that can hold `key`, or the block after which it would be inserted.
    pub fn first_candidate(&self, key: &[u8]) -> usize {
        match self.place(key) {
            // The key is the first key of the next block, and also the last key of this block where
            // the next one continues it.
            (below, true) if !self.is_continued(below + 1) => below + 1,
            (below, _) => below,
        }
    }

    /// Whether the fences show that all keys of block `number` are above `key`.
    pub fn starts_after(&self, number: usize, key: &[u8]) -> bool {
        let Some(separator) = number.checked_sub(1) else { return false };
        match key.strip_prefix(self.shared_prefix()) {
            _ if separator >= self.ends.len() => true,
            Some(rest) => self.suffix(separator) > rest,
            None => self.shared_prefix() > key,
        }
    }

    /// Appends the encoded fences.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.prefix.into());
        out.extend_from_slice(self.shared_prefix());
        for (number, block) in self.blocks.iter().enumerate() {
            if let Some(separator) = number.checked_sub(1) {
                put_varint(out, wide(self.suffix(separator).len()));
                out.extend_from_slice(self.suffix(separator));
            }
            out.extend_from_slice(&block.to_le_bytes());
        }
    }

    /// Decodes the fences of `count` blocks that fill `data_len` bytes; each block has more than
    /// `min_block` bytes.
    pub fn decode(
        bytes: &[u8],
        count: usize,
        data_len: u32,
        min_block: u32,
    ) -> Result<Fences, FormatError> {
        let mut reader = Reader::new(bytes, WHAT);
        if count == 0 || count > reader.remaining() / 4 {
            return Err(reader.malformed("the number of blocks is impossible"));
        }
        let prefix: u32 = reader.varint_as()?;
        // The remaining bytes without places, and without lengths, which mostly take one byte.
        let keys_len = reader.remaining().saturating_sub(5 * count - 1);
        let mut arena = Vec::with_capacity(keys_len);
        arena.extend_from_slice(reader.take(index(prefix))?);
        let (mut ends, mut blocks) = (Vec::with_capacity(count - 1), Vec::with_capacity(count));
        let (mut before, mut ascend): (&[u8], _) = (&[], true);
        for number in 0..count {
            if number > 0 {
                let len: usize = reader.varint_as()?;
                let suffix = reader.take(len)?;
                ascend &= before <= suffix;
                before = suffix;
                arena.extend_from_slice(suffix);
                let end = u32::try_from(arena.len());
                ends.push(end.map_err(|_| reader.malformed("the keys are too long"))?);
            }
            blocks.push(reader.u32()?);
        }
        reader.expect_end()?;
        let fences = Fences {
            arena: arena.into(),
            prefix,
            ends: ends.into(),
            blocks: blocks.into(),
            data_len,
        };
        if !ascend || fences.is_continued(0) {
            return Err(reader.malformed("keys are not in order"));
        }
        fences.check_places(&reader, min_block)?;
        Ok(fences)
    }

    fn check_places(&self, reader: &Reader<'_>, min_block: u32) -> Result<(), FormatError> {
        let mut expected = 0;
        for number in 0..self.block_count() {
            let range = self.block_range(number);
            let in_place = range.start >= expected && (number > 0 || range.start == 0);
            if !in_place || range.end <= range.start.saturating_add(min_block) {
                return Err(reader.malformed("blocks are out of place"));
            }
            expected = range.end;
        }
        Ok(())
    }
}
