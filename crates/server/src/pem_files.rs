//! Certificates and keys in PEM files.

use crate::tls::TlsError;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};

/// Where systems keep the certificates of the authorities that they trust: Debian, Red Hat, SUSE,
/// BSD. `SSL_CERT_FILE` in the environment names another file, as for OpenSSL.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates in a file, at least one.
///
/// # Errors
/// [`TlsError::File`].
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem_error(path, error))?;
    match found.is_empty() {
        true => Err(file_error(path, "there is no certificate in it".to_owned())),
        false => Ok(found),
    }
}

/// The private key in a file.
///
/// # Errors
/// [`TlsError::File`].
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => file_error(path, "there is no private key in it".to_owned()),
        other => pem_error(path, other),
    })
}

/// The authorities whose certificates are in a file.
///
/// # Errors
/// [`TlsError::File`].
pub fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| file_error(path, error.to_string()))?;
    }
    Ok(roots)
}

/// The authorities that this system trusts.
///
/// # Errors
/// [`TlsError::NoSystemAuthorities`], or [`TlsError::File`] where the file has none.
pub fn system_roots() -> Result<RootCertStore, TlsError> {
    let chosen = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual = SYSTEM_FILES.iter().map(PathBuf::from).find(|path| path.exists());
    let path = chosen.or(usual).ok_or(TlsError::NoSystemAuthorities)?;
    let mut roots = RootCertStore::empty();
    // Some systems trust old certificates that no library can parse any more.
    roots.add_parsable_certificates(certificates(&path)?);
    match roots.is_empty() {
        true => Err(file_error(&path, "no certificate of an authority in it".to_owned())),
        false => Ok(roots),
    }
}

/// An error of a file.
pub(crate) fn file_error(path: &Path, reason: String) -> TlsError {
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
