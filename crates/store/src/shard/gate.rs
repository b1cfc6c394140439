//! Keeps a shard to one transaction at a time when several shards, or several commands, must change as one.

use softflash_base::planted::{self, Bug};
use softflash_runtime::Event;
use std::cell::Cell;

/// Open to all, or held by one.
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
    /// Whether nobody holds it.
    pub fn is_open(&self) -> bool {
        !self.held.get()
    }

    /// Waits until nobody holds it.
    pub async fn pass(&self) {
        while self.held.get() {
            self.open.wait().await;
        }
    }

    /// Takes it.
    pub async fn hold(&self) {
        self.pass().await;
        self.held.set(true);
        self.open.reset();
    }

    /// Gives it back.
    pub fn release(&self) {
        self.held.set(false);
        if !planted::bug(Bug::GateStaysShut) {
            self.open.set();
        }
    }
}
