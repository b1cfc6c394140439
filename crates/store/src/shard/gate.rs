//! Keeps a shard to one transaction at a time when several shards, or several commands, must change as one.

use crate::store::{Job, Mesh};
use softflash_base::ShardId;
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

/// Holds the gate of a shard, from whichever thread; gives it back when dropped.
pub struct GateGuard {
    shard: ShardId,
    mesh: Mesh,
}

impl GateGuard {
    /// For a gate that has just been taken.
    pub fn new(shard: ShardId, mesh: Mesh) -> GateGuard {
        GateGuard { shard, mesh }
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        let release: Job = Box::new(|store| {
            store.local().gate.release();
            Box::pin(std::future::ready(()))
        });
        // A shard that has stopped needs no gate.
        let _ = self.mesh.send(self.shard, release);
    }
}
