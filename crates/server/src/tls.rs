//! TLS: loads certificates from files, and reloads them.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// No certificate is requested.
    No,
    /// A certificate is optional, but must be valid if there is one.
    Optional,
    /// A valid certificate is required.
    #[default]
    Required,
}

/// Settings of TLS.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// Address; port 0 chooses a free port.
    pub address: SocketAddr,
    /// PEM file of the server's certificate and the intermediate certificates.
    pub certificate: PathBuf,
    /// PEM file of the certificate's private key.
    pub key: PathBuf,
    /// PEM file of the certificate authorities for clients' certificates.
    pub authorities: Option<PathBuf>,
    /// Whether clients must show a certificate.
    pub client_auth: ClientAuth,
}

/// Why TLS cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read or is invalid.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The certificate and its key do not match, or rustls refuses them.
    #[error("{} with {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// The error of rustls.
        source: rustls::Error,
    },
    /// Client certificates are required, but no authority is given.
    #[error(
        "--tls-client-auth needs --tls-ca: the PEM file of the authorities that sign clients' certificates"
    )]
    NoAuthorities,
}

/// The TLS configuration for new connections, which can be replaced while the server runs.
#[derive(Debug)]
pub(crate) struct Tls {
    settings: TlsSettings,
    current: Mutex<Arc<ServerConfig>>,
}

impl Tls {
    /// Loads the files.
    pub fn new(settings: TlsSettings) -> Result<Tls, TlsError> {
        let current = Mutex::new(load(&settings)?);
        Ok(Tls { settings, current })
    }

    /// The configuration for a new connection.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reloads the files for new connections; if they are invalid, the old configuration stays.
    pub fn reload(&self) {
        match load(&self.settings) {
            Ok(config) => {
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = config;
                tracing::info!("certificates reloaded");
            }
            Err(error) => {
                tracing::error!(%error, "certificates not reloaded; the old ones stay in use")
            }
        }
    }
}

fn load(settings: &TlsSettings) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsSettings { certificate, key, authorities, client_auth, .. } = settings;
    let chain = certificates(certificate)?;
    let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound => file_error(key, "there is no private key in it".to_owned()),
        other => pem_error(key, other),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| pair_error(settings, source))?;
    let builder = match (client_auth, authorities) {
        (ClientAuth::No, _) => builder.with_no_client_auth(),
        (_, None) => return Err(TlsError::NoAuthorities),
        (_, Some(path)) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
            let verifier = match client_auth {
                ClientAuth::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier = verifier.build().map_err(|error| file_error(path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(chain, private_key)
        .map_err(|source| pair_error(settings, source))?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem_error(path, error))?;
    match found.is_empty() {
        true => Err(file_error(path, "there is no certificate in it".to_owned())),
        false => Ok(found),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| file_error(path, error.to_string()))?;
    }
    Ok(roots)
}

fn file_error(path: &Path, reason: String) -> TlsError {
    TlsError::File { path: path.to_owned(), reason }
}

/// The parser's error message could quote a line of the file, possibly of a private key.
fn pem_error(path: &Path, error: pem::Error) -> TlsError {
    let reason = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it contains no usable item".to_owned(),
        _ => "it is not a well-formed PEM file".to_owned(),
    };
    file_error(path, reason)
}

fn pair_error(settings: &TlsSettings, source: rustls::Error) -> TlsError {
    let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
    TlsError::Pair { certificate, key, source }
}
