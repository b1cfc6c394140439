//! A client that has chosen an export, on its way to the thread of the volume.

use crate::stream::Detached;
use softflash_nbd::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A client after its handshake.
pub(crate) struct Client {
    pub connection: Detached,
    pub session: Session,
    /// What was received after the handshake.
    pub received: Vec<u8>,
    pub place: Place,
}

/// A place among the NBD connections; given back on drop.
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
}

impl Place {
    /// Takes a place if fewer than `most` are taken.
    pub fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Place> {
        let take = |count: usize| (count < most).then_some(count + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Place { taken: Arc::clone(taken) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
