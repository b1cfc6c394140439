//! A lock that limits a shard to one transaction while several shards, or several commands, change
//! atomically.

use softflash_base::planted::{self, Bug};
use softflash_runtime::{BytePermit, ByteSemaphore, Event};
use std::cell::{Cell, RefCell};

/// Open, or held by one task.
///
/// Tasks that only pass go before those that wait to hold it: however many of these there are, a
/// short command waits for one. They pass in no time, so the next holder does not wait for long.
pub struct Gate {
    held: Cell<bool>,
    open: Event,
    /// The line of the holders.
    line: ByteSemaphore,
    holder: RefCell<Option<BytePermit>>,
}

impl Default for Gate {
    /// An open gate.
    fn default() -> Gate {
        let open = Event::new();
        open.set();
        let line = ByteSemaphore::new(1);
        Gate { held: Cell::new(false), open, line, holder: RefCell::new(None) }
    }
}

impl Gate {
    /// Whether no task holds it.
    pub fn is_open(&self) -> bool {
        !self.held.get()
    }

    /// Waits until no task holds it.
    pub async fn pass(&self) {
        while self.held.get() {
            self.open.wait().await;
        }
    }

    /// Waits in line until the gate is open, and holds it.
    pub async fn hold(&self) {
        let holder = self.line.acquire(1).await;
        assert!(!self.held.get(), "a gate is given to a second holder");
        self.held.set(true);
        self.open.reset();
        *self.holder.borrow_mut() = Some(holder);
    }

    /// Opens the gate: for those who wait to pass it, and then for the next holder.
    pub fn release(&self) {
        self.held.set(false);
        if !planted::bug(Bug::GateStaysShut) {
            self.open.set();
        }
        drop(self.holder.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_runtime::{VirtualExecutor, yield_now};
    use std::rc::Rc;

    #[test]
    fn who_passes_waits_for_one_holder_however_many_wait_to_hold_the_gate() {
        let executor = VirtualExecutor::new(1);
        let runtime = executor.handle();
        let held = executor.block_on(async {
            let (gate, held) = (Rc::new(Gate::default()), Rc::new(Cell::new(0)));
            for _ in 0..100 {
                let (gate, held) = (Rc::clone(&gate), Rc::clone(&held));
                runtime.spawn(Box::pin(async move {
                    gate.hold().await;
                    held.set(held.get() + 1);
                    yield_now().await;
                    gate.release();
                }));
            }
            // Until the first of them holds it.
            while gate.is_open() {
                yield_now().await;
            }
            gate.pass().await;
            let before = held.get();
            while held.get() < 100 {
                yield_now().await;
            }
            before
        });
        assert!((1..=2).contains(&held), "{held} of 100 holders came first");
    }
}
