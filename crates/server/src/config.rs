//! Settings of a server.

use crate::budget::MIN_MEMORY_BYTES;
use crate::error::ServerError;
use crate::nbd::NbdSettings;
use crate::tls::TlsSettings;
use softflash_policy::Chosen;
use softflash_store::StoreOptions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address for RESP in plain text, if any; port 0 chooses a free port.
    pub resp: Option<SocketAddr>,
    /// TLS settings and address for RESP over TLS, if any.
    pub tls: Option<TlsSettings>,
    /// Settings and address of NBD, if volumes are served.
    pub nbd: Option<NbdSettings>,
    /// Address for HTTP, if any.
    pub http: Option<SocketAddr>,
    /// Memory and durability.
    pub options: StoreOptions,
    /// The policies of the domains of volumes.
    pub policies: Chosen,
    /// The only password of the user `default`, regardless of the file of users.
    pub password: Option<String>,
    /// The file of users; none: `users.acl` in the data directory.
    pub acl_file: Option<PathBuf>,
    /// Whether connections from other machines are refused while `default` has no password.
    pub protected: bool,
    /// Maximum number of unauthenticated connections from one network.
    pub max_unauthenticated: usize,
    /// Maximum number of connections.
    pub max_clients: usize,
    /// Whether each shard's thread is pinned to a core of its own.
    pub pin_threads: bool,
    /// Time limit for requests in progress when the server stops.
    pub drain_timeout: Duration,
    /// Connections without requests for this long are closed; none: never.
    pub idle_timeout: Option<Duration>,
    /// Whether a signal has asked for the end before the server handles signals itself.
    pub was_signalled: fn() -> bool,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            resp: Some(SocketAddr::from(([127, 0, 0, 1], 6379))),
            tls: None,
            nbd: None,
            http: None,
            options: StoreOptions::default(),
            policies: Chosen::default(),
            password: None,
            acl_file: None,
            protected: true,
            max_unauthenticated: 256,
            max_clients: 10_000,
            pin_threads: false,
            drain_timeout: Duration::from_secs(10),
            idle_timeout: None,
            was_signalled: || false,
        }
    }
}

impl ServerConfig {
    /// The addresses for Redis clients.
    pub fn listens_on(&self) -> impl Iterator<Item = SocketAddr> {
        self.resp.into_iter().chain(self.tls.as_ref().map(|tls| tls.address))
    }

    /// Refuses settings that would give everyone access without a password. `is_open` is whether
    /// `default` has no password.
    ///
    /// # Errors
    /// [`ServerError::Unprotected`].
    pub fn check_protection(&self, is_open: bool) -> Result<(), ServerError> {
        match self.listens_on().find(|address| !address.ip().is_loopback()) {
            Some(address) if is_open && self.protected => Err(ServerError::Unprotected { address }),
            _ => Ok(()),
        }
    }

    /// Refuses settings that are unsafe or cannot work, before anything is opened.
    ///
    /// # Errors
    /// [`ServerError::NoAddress`], [`ServerError::UnprotectedHttp`] and [`ServerError::Memory`].
    pub fn check(&self) -> Result<(), ServerError> {
        if self.listens_on().next().is_none() {
            return Err(ServerError::NoAddress);
        }
        // HTTP has no authentication, so it is allowed on the loopback interface only.
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
