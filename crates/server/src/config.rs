//! What a server is started with.

use crate::budget::MIN_MEMORY_BYTES;
use crate::error::ServerError;
use softflash_store::StoreOptions;
use std::net::SocketAddr;
use std::time::Duration;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen for RESP; port 0 takes any that is free.
    pub resp: SocketAddr,
    /// Where to listen for HTTP, if at all.
    pub http: Option<SocketAddr>,
    /// Memory and durability.
    pub options: StoreOptions,
    /// What clients must authenticate with, if anything.
    pub password: Option<String>,
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
            resp: SocketAddr::from(([127, 0, 0, 1], 6379)),
            http: None,
            options: StoreOptions::default(),
            password: None,
            max_clients: 10_000,
            pin_threads: false,
            drain_timeout: Duration::from_secs(10),
            idle_timeout: None,
        }
    }
}

impl ServerConfig {
    /// Refuses what would be unsafe or cannot work, before anything is opened.
    ///
    /// # Errors
    /// [`ServerError::Unprotected`], [`ServerError::UnprotectedHttp`] and [`ServerError::Memory`].
    pub fn check(&self) -> Result<(), ServerError> {
        if !self.resp.ip().is_loopback() && self.password.is_none() {
            return Err(ServerError::Unprotected { address: self.resp });
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
