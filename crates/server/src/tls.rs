//! TLS: loads certificates from files, and reloads them.

use crate::pem_files::{certificates, file_error, private_key, roots, system_roots};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::UnixTime;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, OtherError, RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
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
    /// A client is to trust the authorities of the system, and that has none.
    #[error("this system has no file of trusted authorities; name one with --tls-ca")]
    NoSystemAuthorities,
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
    let private_key = private_key(key)?;
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

/// How a client on this machine can verify the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By this file: that of the authorities for clients, if one of them has signed it, too, or the
    /// certificate itself, if it is self-signed.
    File(PathBuf),
    /// By the authorities that the system trusts.
    System,
    /// By an authority that the server does not know.
    Unknown,
}

/// How a client on this machine can verify the certificate of a server with these settings.
pub fn trust_in(settings: &TlsSettings) -> Trust {
    let Ok(chain) = certificates(&settings.certificate) else { return Trust::Unknown };
    let Some((own, intermediates)) = chain.split_first() else { return Trust::Unknown };
    let verify = |roots: Result<RootCertStore, TlsError>| {
        let roots = roots.map_err(|error| rustls::Error::General(error.to_string()))?;
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let (parsed, now) = (ParsedCertificate::try_from(own)?, UnixTime::now());
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &roots,
            intermediates,
            now,
            algorithms.all,
        )
    };
    if let Some(path) = settings.authorities.as_ref().filter(|path| verify(roots(path)).is_ok()) {
        return Trust::File(path.clone());
    }
    let by_itself = verify(roots(&settings.certificate));
    let is_self_signed = by_itself.is_ok() || by_itself.is_err_and(|error| is_of_authority(&error));
    if is_self_signed && intermediates.is_empty() {
        return Trust::File(settings.certificate.clone());
    }
    if verify(system_roots()).is_ok() { Trust::System } else { Trust::Unknown }
}

/// Whether a certificate was refused because it is that of an authority. A self-signed one often
/// is, and other TLS libraries accept it if it is trusted itself.
pub fn is_of_authority(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) => {
            reason.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

fn pair_error(settings: &TlsSettings, source: rustls::Error) -> TlsError {
    let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
    TlsError::Pair { certificate, key, source }
}
