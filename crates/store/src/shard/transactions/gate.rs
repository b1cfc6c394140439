//! A lock that limits a shard to one transaction while several shards, or several commands, change
//! atomically.

use softflash_base::planted::{self, Bug};
use softflash_runtime::Event;
use std::cell::Cell;

/// Open, or held by one task.
pub struct Gate {
    held: Cell<bool>,
    open: Event,
}

impl Default for Gate {
    /// An open gate.
    fn default() -> Gate {
        let open = Event::new();
        open.set();
        Gate { held: Cell::new(false), open }
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

    /// Waits until the gate is open, and holds it.
    pub async fn hold(&self) {
        self.pass().await;
        self.held.set(true);
        self.open.reset();
    }

    /// Opens the gate.
    pub fn release(&self) {
        self.held.set(false);
        if !planted::bug(Bug::GateStaysShut) {
            self.open.set();
        }
    }
}
