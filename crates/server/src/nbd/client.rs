//! A client that has chosen an export, on its way to the thread of the volume.

use crate::transport::Detached;
use softflash_nbd::Session;
use tokio::sync::OwnedSemaphorePermit;

/// A client after its handshake.
pub(crate) struct Client {
    pub connection: Detached,
    pub session: Session,
    /// What was received after the handshake.
    pub received: Vec<u8>,
    /// Held while it counts among the NBD connections.
    pub permit: OwnedSemaphorePermit,
}
