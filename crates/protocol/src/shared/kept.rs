//! The memory of what a session keeps between its requests: the queue of a transaction and the
//! watched keys. It counts as requests in flight do.

use crate::resp::request::FREE_REQUEST_BYTES;
use std::fmt;
use std::sync::Arc;

/// Grants memory for what sessions keep; shared by all connections.
pub trait KeptMemory: Send + Sync {
    /// Takes `bytes`, if they are free now. `received` more are held already for the request with
    /// which the bytes came, and are released after it.
    fn try_take(&self, bytes: u64, received: u64) -> bool;

    /// Gives bytes back.
    fn give_back(&self, bytes: u64);
}

/// Memory without a limit: for a program that serves only itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnlimitedMemory;

impl KeptMemory for UnlimitedMemory {
    fn try_take(&self, _bytes: u64, _received: u64) -> bool {
        true
    }

    fn give_back(&self, _bytes: u64) {}
}

/// The bytes that one session keeps for one purpose; given back on drop. As of a request, the first
/// ones need no reservation, so that small transactions run whatever others keep.
pub(crate) struct Kept {
    memory: Arc<dyn KeptMemory>,
    bytes: u64,
}

impl Kept {
    /// Nothing yet.
    pub fn new(memory: &Arc<dyn KeptMemory>) -> Kept {
        Kept { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Keeps `bytes` more, of a request for which `received` bytes are held; false where there is
    /// no room for them.
    pub fn try_grow(&mut self, bytes: u64, received: u64) -> bool {
        let whole = self.bytes + bytes;
        let more = reserved(whole) - self.reserved_bytes();
        let is_granted = more == 0 || self.memory.try_take(more, received);
        if is_granted {
            self.bytes = whole;
        }
        is_granted
    }

    /// Bytes that are reserved.
    pub fn reserved_bytes(&self) -> u64 {
        reserved(self.bytes)
    }

    /// Keeps nothing.
    pub fn clear(&mut self) {
        let reserved = self.reserved_bytes();
        self.bytes = 0;
        if reserved > 0 {
            self.memory.give_back(reserved);
        }
    }
}

fn reserved(bytes: u64) -> u64 {
    bytes.saturating_sub(FREE_REQUEST_BYTES)
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Room for so many bytes.
    struct Room(AtomicU64);

    impl KeptMemory for Room {
        fn try_take(&self, bytes: u64, _received: u64) -> bool {
            let less = |free: u64| free.checked_sub(bytes);
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn little_is_free_more_is_reserved_and_all_is_given_back() {
        let room = Arc::new(Room(AtomicU64::new(100)));
        let memory: Arc<dyn KeptMemory> = Arc::clone(&room) as _;
        let mut kept = Kept::new(&memory);
        assert!(kept.try_grow(FREE_REQUEST_BYTES, 0) && room.0.load(Ordering::Relaxed) == 100);
        assert!(kept.try_grow(60, 0) && room.0.load(Ordering::Relaxed) == 40);
        assert!(!kept.try_grow(41, 0) && kept.try_grow(40, 0));
        kept.clear();
        assert_eq!((room.0.load(Ordering::Relaxed), kept.reserved_bytes()), (100, 0));
        assert!(kept.try_grow(FREE_REQUEST_BYTES + 7, 0));
        drop(kept);
        assert_eq!(room.0.load(Ordering::Relaxed), 100);
    }
}
