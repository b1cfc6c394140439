//! Run-length encoding of pages by 64-bit words, which compresses the synthetic data of
//! simulations.
//!
//! An encoded page is a sequence of tokens. A token has 16 bits, little-endian: the lowest bit is 0
//! for literal words, all of which follow, and 1 for a run of equal words, of which one follows;
//! the other bits are the number of words. Bytes after the last whole word are at the end,
//! unencoded.

use super::{PageStore, StoreFailure};
use crate::address::{BlockIndex, PageIndex};
use crate::geometry::Geometry;

/// Bytes in a word.
const WORD: usize = size_of::<u64>();
/// The shortest run of equal words that gets its own token.
const SHORTEST_RUN: usize = 4;
/// The most words of one token.
const LONGEST: usize = (u16::MAX >> 1) as usize;

/// The pages of one block, run-length encoded. A page of one repeated word takes 14 bytes.
#[derive(Debug, Clone, Default)]
pub struct PackedPages {
    codes: Vec<u8>,
    /// The end of each encoded page; a skipped page has no code.
    ends: Vec<u32>,
}

impl PackedPages {
    /// Appends a page. Pages must come in ascending order.
    ///
    /// # Panics
    /// If the page, or a later one, is stored already.
    pub fn push(&mut self, page: usize, data: &[u8]) {
        assert!(self.ends.len() <= page, "pages of a block are written in order, each once");
        self.ends.resize(page, self.codes.len() as u32);
        pack(data, &mut self.codes);
        self.ends.push(self.codes.len() as u32);
    }

    /// Reads a page, or its first bytes if `into` is shorter (then a multiple of eight bytes).
    /// Returns false if the page is not stored or is shorter than `into`.
    #[must_use]
    pub fn read(&self, page: usize, into: &mut [u8]) -> bool {
        let start = page.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
        let (Some(&start), Some(&end)) = (start, self.ends.get(page)) else { return false };
        let code = self.codes.get(start as usize..end as usize);
        code.is_some_and(|code| !code.is_empty() && unpack(code, into).is_some())
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.codes.capacity() + self.ends.capacity() * size_of::<u32>()) as u64
    }
}

fn pack(data: &[u8], codes: &mut Vec<u8>) {
    let (words, tail) = data.as_chunks::<WORD>();
    let mut literals = 0;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let run = words[at..].iter().take(LONGEST).take_while(|next| *next == word).count();
        if run >= SHORTEST_RUN {
            put_literals(&words[literals..at], codes);
            put_token(run, true, codes);
            codes.extend_from_slice(word);
            literals = at + run;
        }
        at += run;
    }
    put_literals(&words[literals..], codes);
    codes.extend_from_slice(tail);
}

fn put_literals(words: &[[u8; WORD]], codes: &mut Vec<u8>) {
    for piece in words.chunks(LONGEST) {
        put_token(piece.len(), false, codes);
        codes.extend_from_slice(piece.as_flattened());
    }
}

fn put_token(words: usize, equal: bool, codes: &mut Vec<u8>) {
    let token = (words as u16) << 1 | u16::from(equal);
    codes.extend_from_slice(&token.to_le_bytes());
}

/// Decodes a page, or its beginning; `None` if the code is too short.
fn unpack(mut code: &[u8], mut into: &mut [u8]) -> Option<()> {
    while into.len() >= WORD {
        let (token, rest) = code.split_first_chunk::<2>()?;
        let token = u16::from_le_bytes(*token);
        let bytes = usize::from(token >> 1) * WORD;
        let (words, left) = into.split_at_mut(bytes.min(into.len()));
        if token & 1 == 1 {
            let (word, rest) = rest.split_first_chunk::<WORD>()?;
            fill(words, word);
            code = rest;
        } else {
            let (literal, rest) = rest.split_at_checked(bytes)?;
            words.copy_from_slice(&literal[..words.len()]);
            code = rest;
        }
        into = left;
    }
    into.copy_from_slice(code.get(..into.len())?);
    Some(())
}

/// Most runs repeat one byte, usually zero: the processor fills bytes several times as fast as
/// words.
fn fill(words: &mut [u8], word: &[u8; WORD]) {
    match word.iter().all(|byte| *byte == word[0]) {
        true => words.fill(word[0]),
        false => words.as_chunks_mut().0.fill(*word),
    }
}

/// [`Storage::Packed`](super::Storage::Packed).
pub(crate) struct PackedStore {
    pages_per_block: u64,
    blocks: Vec<PackedPages>,
}

impl PackedStore {
    pub(crate) fn new(geometry: &Geometry) -> PackedStore {
        PackedStore {
            pages_per_block: u64::from(geometry.pages_per_block),
            blocks: vec![PackedPages::default(); geometry.blocks() as usize],
        }
    }

    fn place(&self, page: PageIndex) -> (usize, usize) {
        let (block, page) = (page.0 / self.pages_per_block, page.0 % self.pages_per_block);
        (block as usize, page as usize)
    }
}

impl PageStore for PackedStore {
    fn write(&mut self, page: PageIndex, data: &[u8]) -> Result<(), StoreFailure> {
        let (block, page) = self.place(page);
        self.blocks[block].push(page, data);
        Ok(())
    }

    fn read(&mut self, page: PageIndex, into: &mut [u8]) -> Result<(), StoreFailure> {
        let (block, page) = self.place(page);
        if self.blocks[block].read(page, into) { Ok(()) } else { Err(StoreFailure::NO_DATA) }
    }

    fn erase(&mut self, block: BlockIndex) -> Result<(), StoreFailure> {
        self.blocks[block.index()] = PackedPages::default();
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let table = self.blocks.capacity() * size_of::<PackedPages>();
        table as u64 + self.blocks.iter().map(PackedPages::memory_bytes).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use softflash_base::random::Rng;

    /// A random page of runs, noise and almost-runs of arbitrary lengths.
    fn made_up(rng: &mut Rng, bytes: usize) -> Vec<u8> {
        let mut page = Vec::new();
        while page.len() < bytes {
            let piece = 1 + rng.below(300) as usize;
            let (kind, byte) = (rng.below(3), rng.below(256) as u8);
            for at in 0..piece {
                page.push(match kind {
                    0 => byte,
                    1 => rng.below(256) as u8,
                    _ => (at % 8) as u8,
                });
            }
        }
        page.truncate(bytes);
        page
    }

    #[test]
    fn pages_come_back_whatever_they_hold() {
        let mut rng = Rng::seeded(5);
        for bytes in [1, 7, 8, 31, 4096, 4099, 16_384] {
            for _ in 0..50 {
                let (first, second) = (made_up(&mut rng, bytes), made_up(&mut rng, bytes));
                let mut pages = PackedPages::default();
                pages.push(0, &first);
                pages.push(2, &second);
                let mut page = vec![0; bytes];
                assert!(pages.read(0, &mut page));
                assert_eq!(page, first);
                assert!(pages.read(2, &mut page));
                assert_eq!(page, second);
                let beginning = bytes / 2 / WORD * WORD;
                page.fill(0);
                assert!(pages.read(0, &mut page[..beginning]));
                assert_eq!(page[..beginning], first[..beginning]);
                assert!(page[beginning..].iter().all(|byte| *byte == 0));
                assert!(!pages.read(1, &mut page), "left out");
                assert!(!pages.read(3, &mut page), "never written");
            }
        }
    }

    #[test]
    fn runs_longer_than_a_token_come_back_too() {
        let page: Vec<u8> = (0..(LONGEST + 100) * WORD).map(|at| (at / 300_000) as u8).collect();
        let mut pages = PackedPages::default();
        pages.push(0, &page);
        let mut back = vec![1; page.len()];
        assert!(pages.read(0, &mut back));
        assert!(back == page);
        assert!(pages.codes.len() < 100);
    }

    #[test]
    fn a_repeated_word_takes_a_few_bytes_and_an_erase_gives_all_back() {
        let mut store = PackedStore::new(&presets::small().geometry);
        let empty = store.memory_bytes();
        for page in 0..16 {
            store.write(PageIndex(5 * 16 + page), &b"8 bytes!".repeat(512)).unwrap();
        }
        assert!(store.memory_bytes() - empty <= 16 * 32, "{}", store.memory_bytes() - empty);
        let mut page = [0; 4096];
        store.read(PageIndex(5 * 16 + 9), &mut page).unwrap();
        assert_eq!(page[..], b"8 bytes!".repeat(512));
        store.erase(BlockIndex(5)).unwrap();
        assert_eq!(store.read(PageIndex(5 * 16), &mut page), Err(StoreFailure::NO_DATA));
        assert_eq!(store.memory_bytes(), empty);
    }
}
