//! Submission queue entries for the requests of this device.

#![expect(unsafe_code, reason = "registering memory with the kernel")]

use super::plan::Kind;
use io_uring::IoUring;
use io_uring::opcode::{Fallocate, Fsync, Read, ReadFixed, Write, WriteFixed};
use io_uring::squeue::Entry;
use io_uring::types::{Fixed, FsyncFlags};
use softflash_base::BufferPool;
use std::io;

/// The device's file is the only one registered with the ring.
const FILE: Fixed = Fixed(0);

/// `RWF_DSYNC` of `pwritev2`: complete when the data is durable.
const WRITE_DURABLE: i32 = libc::RWF_DSYNC;

/// Memory of a request: `len` bytes from `start`, inside registered block `registration`, if any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) start: *mut u8,
    pub(super) len: u32,
    pub(super) registration: Option<u16>,
}

/// The entry for one request. `memory` is used for reads and writes only, `len` for discards.
pub(super) fn build(kind: Kind, offset: u64, len: u64, memory: Memory) -> Entry {
    let Memory { start, len: bytes, registration } = memory;
    match (kind, registration) {
        (Kind::Read, Some(block)) => {
            ReadFixed::new(FILE, start, bytes, block).offset(offset).build()
        }
        (Kind::Read, None) => Read::new(FILE, start, bytes).offset(offset).build(),
        (Kind::Write { durable }, Some(block)) => WriteFixed::new(FILE, start, bytes, block)
            .offset(offset)
            .rw_flags(flags(durable))
            .build(),
        (Kind::Write { durable }, None) => {
            Write::new(FILE, start, bytes).offset(offset).rw_flags(flags(durable)).build()
        }
        (Kind::Discard { mode }, _) => Fallocate::new(FILE, len).offset(offset).mode(mode).build(),
        (Kind::Sync, _) => Fsync::new(FILE).flags(FsyncFlags::DATASYNC).build(),
    }
}

fn flags(durable: bool) -> i32 {
    if durable { WRITE_DURABLE } else { 0 }
}

/// Registered memory, in ascending order of registration: start and length of each block.
#[derive(Debug, Default)]
pub(super) struct Registered(Vec<(usize, usize)>);

impl Registered {
    /// Adds `count` blocks of `capacity` bytes to the pool and registers them. If the kernel
    /// refuses, the pool keeps them as ordinary buffers and the error is returned, too.
    pub(super) fn add(
        ring: &IoUring,
        pool: &BufferPool,
        count: u16,
        capacity: usize,
    ) -> (Registered, io::Result<()>) {
        if count == 0 {
            return (Registered::default(), Ok(()));
        }
        let blocks = pool.add_registered(count, capacity);
        let vectors: Vec<libc::iovec> = blocks
            .iter()
            .map(|(start, len)| libc::iovec { iov_base: start.as_ptr().cast(), iov_len: *len })
            .collect();
        // SAFETY: the blocks are valid memory of that length. The kernel holds the pages itself
        // from here on, so the pool may free them at any time; requests that use them are awaited
        // by the ring's owner.
        match unsafe { ring.submitter().register_buffers(&vectors) } {
            Ok(()) => {
                let ranges = blocks.iter().map(|(start, len)| (start.addr().get(), *len));
                (Registered(ranges.collect()), Ok(()))
            }
            Err(error) => (Registered::default(), Err(error)),
        }
    }

    /// The registration to use for `len` bytes from `start`: none unless they are inside that
    /// block, as a buffer of another queue pair's pool is not.
    pub(super) fn find(&self, registration: Option<u16>, start: usize, len: usize) -> Option<u16> {
        let index = registration?;
        let (block, capacity) = self.0.get(usize::from(index))?;
        let inside = start >= *block && start + len <= block + capacity;
        inside.then_some(index)
    }
}
