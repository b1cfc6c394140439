//! The listening sockets of a server. They are bound before its data are opened or created, so that
//! a server that cannot serve leaves nothing behind.

use crate::config::ServerConfig;
use crate::error::ServerError;
use crate::listener::{Listeners, bind};
use crate::tls::Tls;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::net::TcpListener as TokioListener;

/// The addresses of a server, with the actual ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// RESP in plain text, if served.
    pub resp: Option<SocketAddr>,
    /// RESP over TLS, if served.
    pub tls: Option<SocketAddr>,
    /// NBD, if served.
    pub nbd: Option<SocketAddr>,
    /// HTTP, if served.
    pub http: Option<SocketAddr>,
}

/// The sockets of a server. Clients that connect wait until it is ready.
#[derive(Debug)]
pub struct Endpoints {
    /// The addresses that they have.
    pub addresses: Addresses,
    resp: Option<TcpListener>,
    tls: Option<(TcpListener, Arc<Tls>)>,
    nbd: Option<TcpListener>,
    http: Option<TcpListener>,
}

/// The sockets as tasks use them.
pub(crate) struct Open {
    pub resp: Listeners,
    pub nbd: Option<TokioListener>,
    pub http: Option<TokioListener>,
}

impl Endpoints {
    /// Loads the certificates and binds the addresses of a server with these settings.
    ///
    /// # Errors
    /// [`ServerError`]: invalid settings, a certificate that cannot be used, an address in use.
    pub fn bind(config: &ServerConfig) -> Result<Endpoints, ServerError> {
        config.check()?;
        let certificates = config.tls.clone().map(Tls::new).transpose()?.map(Arc::new);
        let resp = config.resp.map(bind).transpose()?;
        let tls = match (&config.tls, certificates) {
            (Some(settings), Some(tls)) => Some((bind(settings.address)?, tls)),
            _ => None,
        };
        let nbd = config.nbd.map(|nbd| bind(nbd.address)).transpose()?;
        let http = config.http.map(bind).transpose()?;
        let addresses = Addresses {
            resp: resp.as_ref().map(address).transpose()?,
            tls: tls.as_ref().map(|(listener, _)| address(listener)).transpose()?,
            nbd: nbd.as_ref().map(address).transpose()?,
            http: http.as_ref().map(address).transpose()?,
        };
        Ok(Endpoints { addresses, resp, tls, nbd, http })
    }

    /// The certificates, if TLS is served.
    pub(crate) fn certificates(&self) -> Option<Arc<Tls>> {
        self.tls.as_ref().map(|(_, tls)| Arc::clone(tls))
    }

    /// Gives the sockets to the tokio runtime inside which it is called.
    pub(crate) fn open(self) -> Result<Open, ServerError> {
        let open = |listener: TcpListener| TokioListener::from_std(listener).map_err(failed);
        let encrypted = match self.tls {
            Some((listener, tls)) => Some((open(listener)?, tls)),
            None => None,
        };
        let resp = Listeners { plain: self.resp.map(open).transpose()?, encrypted };
        let (nbd, http) = (self.nbd.map(open).transpose()?, self.http.map(open).transpose()?);
        Ok(Open { resp, nbd, http })
    }
}

fn address(listener: &TcpListener) -> Result<SocketAddr, ServerError> {
    listener.local_addr().map_err(failed)
}

fn failed(source: io::Error) -> ServerError {
    ServerError::Io { what: "using a listening socket", source }
}
