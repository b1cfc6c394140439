//! The address of a running server.

use crate::cmd::serve::parse_address;
use std::fmt;
use std::net::SocketAddr;

/// An address, and the host as it was written, which the certificate of a TLS server must name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The address of the socket.
    pub socket: SocketAddr,
    /// A name or an IP address.
    pub host: String,
}

impl ServerAddress {
    /// Parses `HOST:PORT`; a name is resolved.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<ServerAddress, String> {
        let socket = parse_address(text)?;
        let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(ServerAddress { socket, host })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_that_which_was_written() {
        let host = |text: &str| ServerAddress::parse(text).map(|address| address.host);
        assert_eq!(host("127.0.0.1:6379"), Ok("127.0.0.1".to_owned()));
        assert_eq!(host("localhost:1"), Ok("localhost".to_owned()));
        assert_eq!(host("[::1]:6379"), Ok("::1".to_owned()));
        assert!(host("localhost").is_err(), "no port");
    }
}
