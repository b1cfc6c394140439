//! TLS towards a server.

use super::address::ServerAddress;
use super::io_error;
use super::verifier::Verifier;
use clap::Args;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use softflash_console::CliError;
use softflash_server::pem_files::{certificates, private_key, roots, system_roots};
use softflash_server::{ServerError, TlsError};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

/// Options for a server that is reached by TLS.
#[derive(Debug, Clone, Args)]
pub struct TlsClientArguments {
    /// Connect to the server by TLS, and verify its certificate
    #[arg(long)]
    tls: bool,
    /// PEM file of the certificate authorities for the server's certificate, or of that certificate
    /// itself; by default the authorities of the system
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_ca: Option<PathBuf>,
    /// PEM file of the certificate to show to the server, if it requires one
    #[arg(long, value_name = "FILE", requires = "tls", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file of the private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Name that the server's certificate must have; by default the host of the server's address
    #[arg(long, value_name = "NAME", requires = "tls")]
    tls_name: Option<String>,
}

impl TlsClientArguments {
    /// Whether TLS is requested.
    pub fn is_requested(&self) -> bool {
        self.tls
    }

    /// The settings, if TLS is requested.
    ///
    /// # Errors
    /// A file that cannot be read or has not what it should.
    pub fn config(&self) -> Result<Option<Arc<ClientConfig>>, CliError> {
        if !self.tls {
            return Ok(None);
        }
        let (authorities, trusted) = match &self.tls_ca {
            Some(path) => (roots(path).map_err(file)?, certificates(path).map_err(file)?),
            None => (system_roots().map_err(file)?, Vec::new()),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(authorities, trusted, Arc::clone(&provider))
            .map_err(|error| CliError::Failed(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CliError::Failed(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                let pair =
                    (certificates(certificate).map_err(file)?, private_key(key).map_err(file)?);
                let built = builder.with_client_auth_cert(pair.0, pair.1);
                built.map_err(|source| {
                    let (certificate, key) = (certificate.clone(), key.clone());
                    file(TlsError::Pair { certificate, key, source })
                })?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Some(Arc::new(config)))
    }

    /// Agrees on a session with the server and verifies its certificate.
    ///
    /// # Errors
    /// A name that cannot be one, or the handshake fails.
    pub fn handshake(
        &self,
        config: Arc<ClientConfig>,
        address: &ServerAddress,
        mut socket: TcpStream,
    ) -> Result<StreamOwned<ClientConnection, TcpStream>, CliError> {
        let name = self.tls_name.as_ref().unwrap_or(&address.host);
        let name = ServerName::try_from(name.clone())
            .map_err(|_| CliError::Usage(format!("--tls-name {name}: it is not a host name")))?;
        let mut session = ClientConnection::new(config, name)
            .map_err(|error| CliError::Failed(format!("{address}: {error}")))?;
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|error| io_error(address.socket, error))?;
        }
        Ok(StreamOwned::new(session, socket))
    }
}

fn file(error: TlsError) -> CliError {
    ServerError::from(error).into()
}
