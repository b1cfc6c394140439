//! TLS options of the command line.

use crate::cmd::serve::parse_address;
use clap::{Args, ValueEnum};
use softflash_console::CliError;
use softflash_server::{ClientAuth, TlsSettings};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options for RESP over TLS.
#[derive(Debug, Args)]
pub struct TlsArguments {
    /// Address for Redis clients over TLS: a port on the host of --resp, or HOST:PORT; 0 chooses a
    /// free port
    #[arg(long, value_name = "[HOST:]PORT", requires = "tls_cert", requires = "tls_key")]
    tls_port: Option<String>,
    /// PEM file of the server's certificate and the intermediate certificates
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    tls_key: Option<PathBuf>,
    /// PEM file of the certificate authorities for clients' certificates
    #[arg(long, value_name = "FILE", requires = "tls_port")]
    tls_ca: Option<PathBuf>,
    /// Whether clients must show a certificate; by default `required` with --tls-ca, else `no`
    #[arg(long, value_name = "no|optional|required", requires = "tls_port")]
    tls_client_auth: Option<Whether>,
}

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Whether {
    No,
    Optional,
    Required,
}

impl TlsArguments {
    /// The settings, if TLS is requested; a port alone is combined with the host of `resp`.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn settings(self, resp: Option<SocketAddr>) -> Result<Option<TlsSettings>, CliError> {
        let (Some(port), Some(certificate), Some(key)) =
            (self.tls_port, self.tls_cert, self.tls_key)
        else {
            return Ok(None);
        };
        let host = resp.map_or([127, 0, 0, 1].into(), |resp| resp.ip());
        let address = match port.parse() {
            Ok(port) => SocketAddr::new(host, port),
            Err(_) => parse_address(&port)
                .map_err(|reason| CliError::Usage(format!("--tls-port {port}: {reason}")))?,
        };
        let client_auth = match (self.tls_client_auth, &self.tls_ca) {
            (Some(Whether::No), _) | (None, None) => ClientAuth::No,
            (Some(Whether::Optional), _) => ClientAuth::Optional,
            (Some(Whether::Required), _) | (None, Some(_)) => ClientAuth::Required,
        };
        let authorities = self.tls_ca;
        Ok(Some(TlsSettings { address, certificate, key, authorities, client_auth }))
    }
}
