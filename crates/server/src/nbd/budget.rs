//! The memory of the requests of an export, and who waits for it.
//!
//! Reads and writes have budgets of their own, because a read keeps its memory until the client has
//! received the reply, and a write until it is done. A small request that would have to wait takes
//! its memory from what its connection has for itself: so clients that leave their replies unread
//! do not hold up the small requests of others.

use softflash_runtime::{BytePermit, ByteSemaphore};
use std::cell::Cell;
use std::rc::Rc;

/// Maximum bytes of the data of all reads of an export under way, and as many of all writes. Each
/// export has its own, so that requests that wait for the limits or the weight of a volume hold up
/// no other volume. They are not part of `--memory`, as the maps of the domains are not.
const SHARED_BYTES: u64 = 32 << 20;

/// What a connection has for small requests, and the largest of these.
const OWN_BYTES: u64 = 256 << 10;
const LITTLE_BYTES: u64 = 64 << 10;

/// The shared budgets of an export. A clone is the same budgets.
#[derive(Clone)]
pub(super) struct ExportBudget {
    reads: ByteSemaphore,
    writes: ByteSemaphore,
    /// Reads that wait.
    waiting: Rc<Cell<usize>>,
}

impl ExportBudget {
    pub fn new() -> ExportBudget {
        let (reads, writes) = (ByteSemaphore::new(SHARED_BYTES), ByteSemaphore::new(SHARED_BYTES));
        ExportBudget { reads, writes, waiting: Rc::default() }
    }

    /// The number of reads that wait for others to be received by their clients.
    pub fn waiting_reads(&self) -> usize {
        self.waiting.get()
    }

    /// The budget of one connection to the export.
    pub fn of_connection(&self) -> RequestMemory {
        RequestMemory { shared: self.clone(), own: ByteSemaphore::new(OWN_BYTES) }
    }
}

/// The memory of the requests of one connection. A clone is the same.
#[derive(Clone)]
pub(super) struct RequestMemory {
    shared: ExportBudget,
    own: ByteSemaphore,
}

/// Counts a read that waits.
struct Waits(Rc<Cell<usize>>);

impl Waits {
    fn new(count: &Rc<Cell<usize>>) -> Waits {
        count.set(count.get() + 1);
        Waits(Rc::clone(count))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl RequestMemory {
    /// Waits for the memory of a read.
    pub async fn read(&self, bytes: u64) -> BytePermit {
        if let Some(permit) = self.shared.reads.try_acquire(bytes) {
            return permit;
        }
        if bytes <= LITTLE_BYTES {
            return self.own.acquire(bytes).await;
        }
        let _waits = Waits::new(&self.shared.waiting);
        self.shared.reads.acquire(bytes).await
    }

    /// Waits for the memory of a write.
    pub async fn write(&self, bytes: u64) -> BytePermit {
        match self.shared.writes.try_acquire(bytes) {
            Some(permit) => permit,
            None if bytes <= LITTLE_BYTES => self.own.acquire(bytes).await,
            None => self.shared.writes.acquire(bytes).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn small_requests_do_not_wait_for_the_replies_of_others() {
        let export = ExportBudget::new();
        let (greedy, other) = (export.of_connection(), export.of_connection());
        let unread = greedy.read(SHARED_BYTES).now_or_never();
        assert!(unread.is_some());
        let mut large = Box::pin(other.read(LITTLE_BYTES + 1));
        assert!((&mut large).now_or_never().is_none());
        assert_eq!(export.waiting_reads(), 1);
        assert!(other.read(4096).now_or_never().is_some(), "a small one");
        assert!(other.write(SHARED_BYTES).now_or_never().is_some(), "a write");
        drop(unread);
        assert!(large.now_or_never().is_some());
        assert_eq!(export.waiting_reads(), 0);
    }

    #[test]
    fn what_a_connection_has_for_itself_is_bounded() {
        let export = ExportBudget::new();
        let (greedy, mut held) = (export.of_connection(), Vec::new());
        held.extend(greedy.read(SHARED_BYTES).now_or_never());
        while let Some(permit) = greedy.read(LITTLE_BYTES).now_or_never() {
            held.push(permit);
        }
        assert_eq!(held.iter().skip(1).map(BytePermit::bytes).sum::<u64>(), OWN_BYTES);
        assert!(
            export.of_connection().read(4096).now_or_never().is_some(),
            "another one's is free"
        );
    }
}
