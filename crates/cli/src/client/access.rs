//! How a command reaches a running server: password and TLS.

use super::address::ServerAddress;
use super::tls::TlsClientArguments;
use super::{Client, Transport};
use crate::password::PasswordSource;
use clap::Args;
use softflash_console::CliError;
use std::net::TcpStream;
use std::time::Duration;

/// Time limit for a reply.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Options for the connection to a running server.
#[derive(Debug, Clone, Args)]
pub struct Access {
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    tls: TlsClientArguments,
}

impl Access {
    /// Whether an option is given.
    pub fn is_given(&self) -> bool {
        self.tls.is_requested() || self.password.is_given()
    }

    /// Connects, and authenticates if there is a password.
    ///
    /// # Errors
    /// A file that cannot be read, or the server cannot be reached or refuses.
    pub fn connect(&self, address: &ServerAddress) -> Result<Client, CliError> {
        let password = self.password.read()?;
        let config = self.tls.config()?;
        let failed = |source| super::io_error(address.socket, source);
        // A name may have several addresses, and the server listens on some of them.
        let all = (address.host.as_str(), address.socket.port());
        let socket = TcpStream::connect(all).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let transport: Box<dyn Transport> = match config {
            Some(config) => Box::new(self.tls.handshake(config, address, socket)?),
            None => Box::new(socket),
        };
        let mut client = Client::new(address.socket, transport);
        if let Some(password) = password {
            client.ask(&[b"AUTH", password.as_bytes()])?;
        }
        Ok(client)
    }
}
