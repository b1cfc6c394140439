//! Aligned buffers for device reads and programs.
//!
//! An [`IoBuf`] is the only owner of its bytes. It can be split into parts for different dies and
//! joined again without copying. The memory returns to its pool when the last part is dropped.

#![expect(unsafe_code, reason = "aligned allocation, and disjoint ranges of one allocation")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::{Rc, Weak};

/// Alignment of every buffer, to which the pool also rounds up lengths: the strictest requirement
/// of O_DIRECT on common devices.
pub const ALIGNMENT: usize = 4096;

/// A block of aligned memory, alive while an [`IoBuf`] covers a part of it.
struct Allocation {
    start: NonNull<u8>,
    capacity: usize,
    registration: Option<u16>,
    pool: Weak<RefCell<FreeList>>,
}

impl Allocation {
    fn new(capacity: usize, pool: Weak<RefCell<FreeList>>) -> Allocation {
        let start = allocate(capacity);
        Allocation { start, capacity, registration: None, pool }
    }
}

fn layout(capacity: usize) -> Layout {
    match Layout::from_size_align(capacity, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => unreachable!("a buffer of {capacity} bytes exceeds the address space"),
    }
}

fn allocate(capacity: usize) -> NonNull<u8> {
    let layout = layout(capacity.max(ALIGNMENT));
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let memory =
            Memory { start: self.start, capacity: self.capacity, registration: self.registration };
        match self.pool.upgrade() {
            Some(free_list) => free_list.borrow_mut().put_back(memory),
            None => memory.free(),
        }
    }
}

/// Unused memory.
struct Memory {
    start: NonNull<u8>,
    capacity: usize,
    registration: Option<u16>,
}

impl Memory {
    fn free(self) {
        // SAFETY: allocated in `allocate` with the same layout, and no buffer covers it any more.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity.max(ALIGNMENT))) }
    }
}

/// The unused memory of a pool.
#[derive(Default)]
struct FreeList {
    /// Unused memory by capacity; few sizes are in use at a time, so a list is enough.
    free: Vec<(usize, Vec<Memory>)>,
    free_registered: Vec<Memory>,
    registered_capacity: usize,
    retained_bytes: usize,
    retained_limit: usize,
}

impl FreeList {
    fn take(&mut self, capacity: usize) -> Option<Memory> {
        if capacity <= self.registered_capacity
            && let Some(memory) = self.free_registered.pop()
        {
            return Some(memory);
        }
        let (_, list) = self.free.iter_mut().find(|(size, _)| *size == capacity)?;
        let memory = list.pop()?;
        self.retained_bytes -= memory.capacity;
        Some(memory)
    }

    fn put_back(&mut self, memory: Memory) {
        if memory.registration.is_some() {
            self.free_registered.push(memory);
        } else if self.retained_bytes + memory.capacity > self.retained_limit {
            memory.free();
        } else {
            self.retained_bytes += memory.capacity;
            let capacity = memory.capacity;
            match self.free.iter_mut().find(|(size, _)| *size == capacity) {
                Some((_, list)) => list.push(memory),
                None => self.free.push((capacity, vec![memory])),
            }
        }
    }
}

impl Drop for FreeList {
    fn drop(&mut self) {
        let free = std::mem::take(&mut self.free).into_iter().flat_map(|(_, list)| list);
        for memory in free.chain(std::mem::take(&mut self.free_registered)) {
            memory.free();
        }
    }
}

/// Maximum unused memory in a thread's own pool.
const RETAINED_BY_THREAD: usize = 64 << 20;

thread_local! {
    static OF_THIS_THREAD: BufferPool = BufferPool::new(RETAINED_BY_THREAD);
}

/// Allocates aligned buffers and reuses their memory. Belongs to one thread; a clone is the same
/// pool.
#[derive(Clone, Default)]
pub struct BufferPool {
    free_list: Rc<RefCell<FreeList>>,
}

impl BufferPool {
    /// A pool that keeps at most `retained_limit` bytes of unused memory.
    pub fn new(retained_limit: usize) -> BufferPool {
        let pool = BufferPool::default();
        pool.free_list.borrow_mut().retained_limit = retained_limit;
        pool
    }

    /// The pool of this thread, for short-lived devices, which then reuse memory.
    pub fn of_this_thread() -> BufferPool {
        OF_THIS_THREAD.with(BufferPool::clone)
    }

    /// A zeroed or reused buffer of exactly `len` bytes; its contents are unspecified.
    pub fn take(&self, len: usize) -> IoBuf {
        // Few different sizes, so that memory can be reused: new memory costs a page fault every 4
        // KiB.
        let capacity = len.max(ALIGNMENT).next_power_of_two();
        let memory = self.free_list.borrow_mut().take(capacity);
        let allocation = match memory {
            Some(Memory { start, capacity, registration }) => {
                Allocation { start, capacity, registration, pool: Rc::downgrade(&self.free_list) }
            }
            None => Allocation::new(capacity, Rc::downgrade(&self.free_list)),
        };
        IoBuf { allocation: Rc::new(allocation), offset: 0, len }
    }

    /// Allocates `count` blocks of `capacity` bytes that a device may register with the kernel:
    /// block `i` has registration `i`. They serve all requests up to that size while one is free,
    /// and live as long as the pool. Returns each block's start and length.
    pub fn add_registered(&self, count: u16, capacity: usize) -> Vec<(NonNull<u8>, usize)> {
        let capacity = capacity.next_multiple_of(ALIGNMENT);
        let mut free_list = self.free_list.borrow_mut();
        free_list.registered_capacity = capacity;
        (0..count)
            .map(|index| {
                let start = allocate(capacity);
                free_list.free_registered.push(Memory {
                    start,
                    capacity,
                    registration: Some(index),
                });
                (start, capacity)
            })
            .collect()
    }
}

/// An aligned buffer, or a part of one; the only owner of its bytes.
pub struct IoBuf {
    allocation: Rc<Allocation>,
    offset: usize,
    len: usize,
}

impl IoBuf {
    /// A zeroed buffer outside any pool.
    pub fn zeroed(len: usize) -> IoBuf {
        let capacity = len.max(1).next_multiple_of(ALIGNMENT);
        IoBuf { allocation: Rc::new(Allocation::new(capacity, Weak::new())), offset: 0, len }
    }

    /// Splits off the first `at` bytes and keeps the rest.
    ///
    /// # Panics
    /// If `at` is beyond the end.
    pub fn split_to(&mut self, at: usize) -> IoBuf {
        assert!(at <= self.len, "split at {at} of a buffer of {} bytes", self.len);
        let front = IoBuf { allocation: Rc::clone(&self.allocation), offset: self.offset, len: at };
        self.offset += at;
        self.len -= at;
        front
    }

    /// Joins `next`, which must follow this part directly.
    ///
    /// # Panics
    /// If the two are not neighbours in one allocation.
    pub fn unsplit(&mut self, next: IoBuf) {
        assert!(
            Rc::ptr_eq(&self.allocation, &next.allocation) && self.offset + self.len == next.offset,
            "parts to join must be neighbours"
        );
        self.len += next.len;
    }

    /// Shortens the buffer to `len` bytes; the rest stays unused until the memory is released.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The index under which a device registered the memory, if any.
    pub fn registration(&self) -> Option<u16> {
        self.allocation.registration
    }
}

impl Deref for IoBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: inside the allocation, initialised, and no other `IoBuf` covers these bytes.
        unsafe {
            let start = self.allocation.start.as_ptr().add(self.offset);
            std::slice::from_raw_parts(start, self.len)
        }
    }
}

impl DerefMut for IoBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe {
            let start = self.allocation.start.as_ptr().add(self.offset);
            std::slice::from_raw_parts_mut(start, self.len)
        }
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_split_and_join_without_copying() {
        let pool = BufferPool::new(1 << 20);
        let mut whole = pool.take(3 * ALIGNMENT);
        let start = whole.as_ptr();
        let mut front = whole.split_to(ALIGNMENT);
        front.fill(1);
        whole.fill(2);
        front.unsplit(whole);
        assert_eq!((front.len(), front.as_ptr()), (3 * ALIGNMENT, start));
        assert_eq!((front[ALIGNMENT - 1], front[ALIGNMENT]), (1, 2));
    }

    #[test]
    fn memory_returns_to_its_pool_and_is_bounded() {
        let pool = BufferPool::new(ALIGNMENT);
        let first = pool.take(100);
        let start = first.as_ptr();
        drop(first);
        assert_eq!(pool.take(10).as_ptr(), start, "memory is reused");
        let (a, b) = (pool.take(1), pool.take(1));
        drop((a, b));
        assert_eq!(pool.free_list.borrow().retained_bytes, ALIGNMENT);
    }

    #[test]
    fn registered_memory_serves_small_requests_first() {
        let pool = BufferPool::new(0);
        let blocks = pool.add_registered(1, 2 * ALIGNMENT);
        let small = pool.take(ALIGNMENT);
        assert_eq!(small.registration(), Some(0));
        assert_eq!(small.as_ptr(), blocks[0].0.as_ptr().cast_const());
        assert_eq!(pool.take(ALIGNMENT).registration(), None, "the only block is taken");
        drop(small);
        assert_eq!(pool.take(3 * ALIGNMENT).registration(), None, "too large for a block");
        assert_eq!(pool.take(1).registration(), Some(0));
    }
}
