//! What a server is started with.

use crate::budget::MIN_MEMORY_BYTES;
use crate::error::ServerError;
use crate::tls::TlsSettings;
use softflash_store::StoreOptions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen for RESP in the clear, if at all; port 0 takes any that is free.
    pub resp: Option<SocketAddr>,
    /// Where to listen for RESP through TLS, if at all, and with what.
    pub tls: Option<TlsSettings>,
    /// Where to listen for HTTP, if at all.
    pub http: Option<SocketAddr>,
    /// Memory and durability.
    pub options: StoreOptions,
    /// The one password of the user `default`, whatever the file of users says.
    pub password: Option<String>,
    /// The file of users; none: `users.acl` in the data directory.
    pub acl_file: Option<PathBuf>,
    /// Whether clients of other machines are refused while `default` has no password.
    pub protected: bool,
    /// Connections of one network that have not authenticated.
    pub max_unauthenticated: usize,
    /// Connections at a time.
    pub max_clients: usize,
    /// Whether each shard's thread stays on a core of its own.
    pub pin_threads: bool,
    /// How long requests under way may take to end when the server stops.
    pub drain_timeout: Duration,
    /// Connections that ask for nothing this long are closed; none: never.
    pub idle_timeout: Option<Duration>,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            resp: Some(SocketAddr::from(([127, 0, 0, 1], 6379))),
            tls: None,
            http: None,
            options: StoreOptions::default(),
            password: None,
            acl_file: None,
            protected: true,
            max_unauthenticated: 256,
            max_clients: 10_000,
            pin_threads: false,
            drain_timeout: Duration::from_secs(10),
            idle_timeout: None,
        }
    }
}

impl ServerConfig {
    /// Where clients of Redis connect.
    pub fn listens_on(&self) -> impl Iterator<Item = SocketAddr> {
        self.resp.into_iter().chain(self.tls.as_ref().map(|tls| tls.address))
    }

    /// Refuses what would let everybody in from everywhere. `is_open` is whether `default` has no password.
    ///
    /// # Errors
    /// [`ServerError::Unprotected`].
    pub fn check_protection(&self, is_open: bool) -> Result<(), ServerError> {
        match self.listens_on().find(|address| !address.ip().is_loopback()) {
            Some(address) if is_open && self.protected => Err(ServerError::Unprotected { address }),
            _ => Ok(()),
        }
    }

    /// Refuses what would be unsafe or cannot work, before anything is opened.
    ///
    /// # Errors
    /// [`ServerError::NoAddress`], [`ServerError::UnprotectedHttp`] and [`ServerError::Memory`].
    pub fn check(&self) -> Result<(), ServerError> {
        if self.listens_on().next().is_none() {
            return Err(ServerError::NoAddress);
        }
        // HTTP asks for no password, so it stays on this machine.
        if let Some(address) = self.http.filter(|address| !address.ip().is_loopback()) {
            return Err(ServerError::UnprotectedHttp { address });
        }
        match self.options.memory_bytes {
            bytes if bytes < MIN_MEMORY_BYTES => {
                Err(ServerError::Memory { bytes, least: MIN_MEMORY_BYTES })
            }
            _ => Ok(()),
        }
    }
}
