//! Admission of NBD clients, and the need of TLS. NBD has no passwords, so a certificate is the
//! only credential of a client.

use super::NbdSettings;
use crate::config::ServerConfig;
use crate::error::ServerError;
use crate::network::{UnauthenticatedLimit, UnauthenticatedSlot};
use crate::seldom::Seldom;
use crate::tls::{ClientAuth, Tls};
use softflash_nbd::TlsMode;
use softflash_protocol::Context;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of NBD connections, even if RESP may have more: each may use much memory.
const MOST_CONNECTIONS: usize = 1024;

/// Decides which connections are admitted.
pub(crate) struct NbdAdmission {
    rules: Rules,
    pub tls: Option<Arc<Tls>>,
    context: Arc<Context>,
    unauthenticated: Arc<UnauthenticatedLimit>,
    /// One permit for each connection that may be open.
    permits: Arc<Semaphore>,
}

/// The settings that matter here.
#[derive(Debug, Clone, Copy)]
struct Rules {
    open: bool,
    /// RESP refuses other machines without a password.
    protected: bool,
    /// TLS is served, and whether clients must show a certificate.
    tls: Option<ClientAuth>,
    /// RESP is served in plain text.
    plain: bool,
}

/// An admitted connection.
pub(crate) struct Admitted {
    pub tls: TlsMode,
    pub permit: OwnedSemaphorePermit,
    /// Its slot in the limit of clients that have not chosen an export.
    pub slot: UnauthenticatedSlot,
}

impl Rules {
    fn of(config: &ServerConfig, nbd: NbdSettings) -> Rules {
        Rules {
            open: nbd.open,
            protected: config.protected,
            tls: config.tls.as_ref().map(|tls| tls.client_auth),
            plain: config.resp.is_some(),
        }
    }

    /// The TLS mode of a client; none if it is not admitted.
    fn mode(self, needs_password: bool, peer: IpAddr) -> Option<TlsMode> {
        let is_near = peer.to_canonical().is_loopback();
        let is_anyone_welcome = self.open || (!needs_password && (is_near || !self.protected));
        match (is_anyone_welcome, self.tls) {
            (true, None) => Some(TlsMode::Off),
            (true, Some(_)) if self.plain => Some(TlsMode::Optional),
            (true, Some(_)) | (false, Some(ClientAuth::Required)) => Some(TlsMode::Required),
            (false, _) => None,
        }
    }
}

impl NbdAdmission {
    pub fn new(
        config: &ServerConfig,
        nbd: NbdSettings,
        tls: Option<Arc<Tls>>,
        context: Arc<Context>,
        unauthenticated: Arc<UnauthenticatedLimit>,
    ) -> NbdAdmission {
        NbdAdmission {
            rules: Rules::of(config, nbd),
            tls,
            context,
            unauthenticated,
            permits: Arc::new(Semaphore::new(config.max_clients.min(MOST_CONNECTIONS))),
        }
    }

    /// Refuses an address for whose clients no rule of admission holds.
    pub fn check(
        config: &ServerConfig,
        nbd: NbdSettings,
        needs_password: bool,
    ) -> Result<(), ServerError> {
        let address = nbd.address;
        match Rules::of(config, nbd).mode(needs_password, address.ip()) {
            Some(_) => Ok(()),
            None => Err(ServerError::UnprotectedNbd { address }),
        }
    }

    /// Counts and logs a client that is not admitted. There is no reply for this in the protocol:
    /// it sees the end of the connection.
    pub fn refused(&self, peer: SocketAddr, reason: &str) {
        static LINE: Seldom = Seldom::new();
        self.context.counters.rejected_connections.fetch_add(1, Ordering::Relaxed);
        if let Some(more_before) = LINE.line() {
            tracing::warn!(%peer, reason, more_before, "an NBD connection is refused");
        }
    }

    /// Admits a client, or gives the reason why not.
    pub fn admit(&self, peer: SocketAddr) -> Result<Admitted, &'static str> {
        let mode = self.rules.mode(self.context.needs_password(), peer.ip());
        let tls = mode.ok_or("clients must show a certificate, see `softflash serve --help`")?;
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| "too many NBD connections")?;
        let slot = self.unauthenticated.enter(peer.ip());
        let slot = slot.ok_or("too many connections that have not chosen an export")?;
        Ok(Admitted { tls, permit, slot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const RULES: Rules = Rules { open: false, protected: true, tls: None, plain: true };

    #[test]
    fn plain_connections_need_a_server_without_password_or_nbd_open() {
        assert_eq!(RULES.mode(false, NEAR), Some(TlsMode::Off));
        assert_eq!(RULES.mode(true, NEAR), None);
        assert_eq!(RULES.mode(false, FAR), None);
        assert_eq!(Rules { protected: false, ..RULES }.mode(false, FAR), Some(TlsMode::Off));
        assert_eq!(Rules { open: true, ..RULES }.mode(true, FAR), Some(TlsMode::Off));
    }

    #[test]
    fn a_required_certificate_is_as_good_as_a_password_and_an_optional_one_is_not() {
        let with = |tls| Rules { tls: Some(tls), ..RULES };
        assert_eq!(with(ClientAuth::Required).mode(true, FAR), Some(TlsMode::Required));
        assert_eq!(with(ClientAuth::Optional).mode(true, NEAR), None);
        assert_eq!(with(ClientAuth::No).mode(true, NEAR), None);
        assert_eq!(with(ClientAuth::No).mode(false, NEAR), Some(TlsMode::Optional));
    }

    #[test]
    fn tls_is_required_where_plain_text_is_not_served() {
        let rules = Rules { tls: Some(ClientAuth::No), plain: false, ..RULES };
        assert_eq!(rules.mode(false, NEAR), Some(TlsMode::Required));
        assert_eq!(Rules { open: true, ..rules }.mode(true, FAR), Some(TlsMode::Required));
    }
}
