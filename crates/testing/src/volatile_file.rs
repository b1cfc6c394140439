//! A file behind a volatile write cache, for tests of file devices: at a power cut, any unflushed
//! writes may be lost, in any order; calls can fail; and a failed flush drops the pending writes,
//! as operating systems do.

use softflash_base::random::Rng;
use softflash_device::FileCalls;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The unit of atomic writes.
const SECTOR_BYTES: usize = 4096;

/// Failure rates of calls: one in this many, 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFaults {
    /// Reads, with EIO.
    pub reads: u64,
    /// Writes: ENOSPC, or EIO after a partial write.
    pub writes: u64,
    /// Flushes and durable writes, with EIO.
    pub flushes: u64,
}

/// The file behind its cache.
pub struct VolatileFile(Mutex<State>);

struct State {
    file: File,
    rng: Rng,
    faults: CallFaults,
    /// Sectors in the cache only, oldest first, and whether a later flush still writes them.
    cached: Vec<Cached>,
    /// Number of failed calls.
    failed: u64,
}

struct Cached {
    offset: u64,
    bytes: Vec<u8>,
    dirty: bool,
}

impl VolatileFile {
    /// The file at `path`, with an empty cache.
    pub fn open(path: &Path, rng: Rng, faults: CallFaults) -> VolatileFile {
        let file = File::options().read(true).write(true).open(path).unwrap();
        VolatileFile(Mutex::new(State { file, rng, faults, cached: Vec::new(), failed: 0 }))
    }

    /// Cuts the power: of the pending writes in the cache, any subset reaches the file, in any
    /// order; the rest is lost.
    pub fn cut(&self) {
        let state = &mut *self.state();
        for cached in std::mem::take(&mut state.cached) {
            if cached.dirty && state.rng.chance(0.5) {
                state.file.write_all_at(&cached.bytes, cached.offset).unwrap();
            }
        }
    }

    /// Number of failed calls so far.
    pub fn failed(&self) -> u64 {
        self.state().failed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether this call fails.
    fn fails(&mut self, one_in: u64) -> bool {
        let fails = one_in > 0 && self.rng.below(one_in) == 0;
        self.failed += u64::from(fails);
        fails
    }

    fn cache(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        self.cached.retain(|cached| !(offset..end).contains(&cached.offset));
        let sectors = bytes.chunks(SECTOR_BYTES).zip((offset..).step_by(SECTOR_BYTES));
        let cached =
            sectors.map(|(bytes, offset)| Cached { offset, bytes: bytes.to_vec(), dirty: true });
        self.cached.extend(cached);
    }

    /// Flushes the pending writes of this range. After a failure they are no longer pending: they
    /// stay in the cache and are never written.
    fn flush(&mut self, range: std::ops::Range<u64>) -> io::Result<()> {
        let fails = self.fails(self.faults.flushes);
        let mut kept = Vec::new();
        for mut cached in std::mem::take(&mut self.cached) {
            // A failed partial flush may affect any data in the drive's cache.
            let meant = range.contains(&cached.offset) || fails;
            match meant && cached.dirty {
                true if !fails || self.rng.chance(0.5) => {
                    self.file.write_all_at(&cached.bytes, cached.offset)?;
                }
                true => {
                    cached.dirty = false;
                    kept.push(cached);
                }
                false => kept.push(cached),
            }
        }
        self.cached = kept;
        if fails { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl FileCalls for VolatileFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let state = &mut *self.state();
        if state.fails(state.faults.reads) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        state.file.read_exact_at(bytes, offset)?;
        let end = offset + bytes.len() as u64;
        for cached in &state.cached {
            let cached_end = cached.offset + cached.bytes.len() as u64;
            let (from, to) = (offset.max(cached.offset), end.min(cached_end));
            if from < to {
                let source =
                    &cached.bytes[(from - cached.offset) as usize..(to - cached.offset) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let state = &mut *self.state();
        if state.fails(state.faults.writes) {
            if state.rng.chance(0.5) {
                return Err(io::Error::from_raw_os_error(ENOSPC));
            }
            let sectors = state.rng.below(1 + (bytes.len() / SECTOR_BYTES) as u64) as usize;
            state.cache(&bytes[..sectors * SECTOR_BYTES], offset);
            return Err(io::Error::from_raw_os_error(EIO));
        }
        state.cache(bytes, offset);
        Ok(())
    }

    fn write_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.state().flush(offset..offset + bytes.len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        self.state().flush(0..u64::MAX)
    }

    fn allocate(&self, _mode: i32, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}
