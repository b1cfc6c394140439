//! TLS: certificates from files, and again when they have changed.

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
    /// They are not asked for one.
    No,
    /// Who shows one must show one that the authority has signed.
    Optional,
    /// They must show one that the authority has signed.
    #[default]
    Required,
}

/// Settings of TLS.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// Where to listen; port 0 takes any that is free.
    pub address: SocketAddr,
    /// PEM file of the server's certificate and those between it and the authority.
    pub certificate: PathBuf,
    /// PEM file of the certificate's private key.
    pub key: PathBuf,
    /// PEM file of the authorities that sign clients' certificates.
    pub authorities: Option<PathBuf>,
    /// Whether clients must show a certificate.
    pub client_auth: ClientAuth,
}

/// Why TLS cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read or is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The certificate and its key do not fit each other, or rustls does not take them.
    #[error("{} with {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// What rustls says.
        source: rustls::Error,
    },
    /// Clients shall show certificates, and nobody is named who signs them.
    #[error(
        "--tls-client-auth needs --tls-ca: the PEM file of the authorities that sign clients' certificates"
    )]
    NoAuthorities,
}

/// What new connections are served with; it can be replaced while the server runs.
#[derive(Debug)]
pub(crate) struct Tls {
    settings: TlsSettings,
    current: Mutex<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    pub fn new(settings: TlsSettings) -> Result<Tls, TlsError> {
        let current = Mutex::new(load(&settings)?);
        Ok(Tls { settings, current })
    }

    /// For a connection that begins now.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again. What they hold is for new connections; if it is no good, all stays as it was.
    pub fn reload(&self) {
        match load(&self.settings) {
            Ok(config) => {
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = config;
                tracing::info!("certificates read again");
            }
            Err(error) => tracing::error!(%error, "certificates not read again; those before stay"),
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

/// The parser's own words may quote a line of the file, and that may be a key's.
fn pem_error(path: &Path, error: pem::Error) -> TlsError {
    let reason = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "there is nothing in it that could be used".to_owned(),
        _ => "it is not a well-formed PEM file".to_owned(),
    };
    file_error(path, reason)
}

fn pair_error(settings: &TlsSettings, source: rustls::Error) -> TlsError {
    let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
    TlsError::Pair { certificate, key, source }
}
