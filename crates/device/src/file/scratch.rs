//! A file whose changes stay in memory: what is written is kept beside the file, which is only
//! read.

use super::calls::FileCalls;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;

type Pages = BTreeMap<u64, Box<[u8; PAGE]>>;

/// A file and the pages that differ from it.
#[derive(Debug)]
pub(crate) struct ScratchFile {
    file: File,
    changed: Mutex<Pages>,
    /// Reads beyond the end of the file find zeros, as if it had been extended.
    is_extended: bool,
}

/// A part of a range inside one page: the page, and where the part begins in it and in the range.
struct Part {
    page: u64,
    at: usize,
    from: usize,
    len: usize,
}

fn parts(offset: u64, len: usize) -> impl Iterator<Item = Part> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = offset + from as u64;
        let at = usize::try_from(start % PAGE as u64).unwrap_or(0);
        let part = Part { page: start / PAGE as u64, at, from, len: (PAGE - at).min(len - from) };
        from += part.len;
        (part.len > 0).then_some(part)
    })
}

impl ScratchFile {
    /// Nothing has changed yet.
    pub(crate) fn over(file: File) -> ScratchFile {
        ScratchFile { file, changed: Mutex::default(), is_extended: false }
    }

    /// As [`over`](ScratchFile::over). A file that was cut short has zeros behind its end, as it
    /// has once a repair has extended it.
    pub(crate) fn extending(file: File) -> ScratchFile {
        ScratchFile { is_extended: true, ..ScratchFile::over(file) }
    }

    fn changed(&self) -> MutexGuard<'_, Pages> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of the file; zeros beyond its end.
    fn page(&self, page: u64) -> io::Result<Box<[u8; PAGE]>> {
        let mut bytes = Box::new([0; PAGE]);
        self.fill(&mut bytes[..], page * PAGE as u64)?;
        Ok(bytes)
    }

    /// Reads up to the end of the file; returns how much there is.
    fn fill(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(&self.file, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Reads what has not changed.
    fn read_file(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.is_extended {
            return self.file.read_exact_at(bytes, offset);
        }
        let filled = self.fill(bytes, offset)?;
        bytes.iter_mut().skip(filled).for_each(|byte| *byte = 0);
        Ok(())
    }
}

impl FileCalls for ScratchFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let changed = self.changed();
        let end = (offset + bytes.len() as u64).div_ceil(PAGE as u64);
        if changed.range(offset / PAGE as u64..end).next().is_none() {
            drop(changed);
            return self.read_file(bytes, offset);
        }
        for Part { page, at, from, len } in parts(offset, bytes.len()) {
            let Some(into) = bytes.get_mut(from..from + len) else { break };
            match changed.get(&page).and_then(|page| page.get(at..at + len)) {
                Some(kept) => into.copy_from_slice(kept),
                None => self.read_file(into, page * PAGE as u64 + at as u64)?,
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut changed = self.changed();
        for Part { page, at, from, len } in parts(offset, bytes.len()) {
            let kept = match changed.entry(page) {
                Entry::Occupied(kept) => kept.into_mut(),
                Entry::Vacant(place) => place.insert(self.page(page)?),
            };
            if let (Some(kept), Some(part)) =
                (kept.get_mut(at..at + len), bytes.get(from..from + len))
            {
                kept.copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn write_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// What was there stays: space that is freed or zeroed is not read before it is written.
    fn allocate(&self, _mode: i32, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_written_is_read_back_and_the_file_stays_as_it_was() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let whole: Vec<u8> = (0..3 * PAGE).map(|at| (at / 7) as u8).collect();
        file.write_all(&whole).unwrap();
        let scratch = ScratchFile::over(file.reopen().unwrap());
        let mut expected = whole.clone();
        // Within a page, over an edge of pages, and beyond the end.
        for (offset, len) in [(100, 50), (PAGE - 3, 7), (3 * PAGE - 1, 5000)] {
            let new = vec![0xa5; len];
            scratch.write_at(&new, offset as u64).unwrap();
            expected.resize(expected.len().max(offset + len), 0);
            expected[offset..offset + len].copy_from_slice(&new);
        }
        let mut read = vec![0; expected.len()];
        scratch.read_at(&mut read, 0).unwrap();
        assert!(read == expected);
        let mut part = vec![0; 10];
        scratch.read_at(&mut part, (PAGE - 5) as u64).unwrap();
        assert_eq!(part, expected[PAGE - 5..PAGE + 5]);
        assert_eq!(std::fs::read(file.path()).unwrap(), whole);
        let beyond = scratch.read_at(&mut part, 20 * PAGE as u64).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof, "the file was cut short");
    }

    #[test]
    fn a_file_that_is_extended_has_zeros_behind_its_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 10]).unwrap();
        let scratch = ScratchFile::extending(file.reopen().unwrap());
        let mut read = [1; 20];
        for behind in [3 * PAGE as u64, 10] {
            scratch.read_at(&mut read, behind).unwrap();
            assert_eq!(read, [0; 20]);
        }
        scratch.write_at(&[9; 2], PAGE as u64 - 1).unwrap();
        let mut over = vec![1; 2 * PAGE];
        scratch.read_at(&mut over, 0).unwrap();
        let mut expected = vec![0; 2 * PAGE];
        expected[..10].fill(7);
        expected[PAGE - 1..=PAGE].fill(9);
        assert!(over == expected);
        assert_eq!(file.as_file().metadata().unwrap().len(), 10);
    }
}
