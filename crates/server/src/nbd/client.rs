//! A client that has chosen an export, on its way to the thread of the volume.

use crate::transport::Detached;
use softflash_nbd::{Request, Transmission};
use tokio::sync::OwnedSemaphorePermit;

/// A client after its handshake, or between two threads: none of its requests is under way.
pub(crate) struct Client {
    pub connection: Detached,
    pub transmission: Transmission,
    /// What was received and not parsed yet.
    pub received: Vec<u8>,
    /// A write of which a part was received.
    pub begun: Option<BegunWrite>,
    /// Held while it counts among the NBD connections.
    pub permit: OwnedSemaphorePermit,
}

impl Client {
    /// The name of its export.
    pub fn export(&self) -> &str {
        &self.transmission.session().export().name
    }
}

/// A write, and what was received of its payload.
pub(crate) struct BegunWrite {
    pub request: Request,
    pub payload: Vec<u8>,
}
