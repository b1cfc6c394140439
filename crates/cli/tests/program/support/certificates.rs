//! A certificate authority for tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};

/// An authority whose files are in a directory.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
    /// Its own certificate.
    pub certificate: PathBuf,
}

/// A certificate and its key, as PEM files.
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new(directory: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let path = directory.join(format!("{name}.crt"));
        fs::write(&path, certificate.pem()).expect("a file");
        let issuer = Issuer::new(params, key);
        Authority { issuer, directory: directory.to_owned(), certificate: path }
    }

    /// Signs a certificate for this machine.
    pub fn sign(&self, name: &str) -> Identity {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let path = |kind: &str| self.directory.join(format!("{name}.{kind}"));
        let identity = Identity { certificate: path("crt"), key: path("key") };
        fs::write(&identity.certificate, certificate.pem()).expect("a file");
        fs::write(&identity.key, key.serialize_pem()).expect("a file");
        identity
    }
}

/// A certificate for this machine that signs itself; with `is_authority`, as OpenSSL makes them.
pub fn self_signed(directory: &Path, name: &str, is_authority: bool) -> Identity {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, name);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let path = |kind: &str| directory.join(format!("{name}.{kind}"));
    let identity = Identity { certificate: path("crt"), key: path("key") };
    fs::write(&identity.certificate, certificate.pem()).expect("a file");
    fs::write(&identity.key, key.serialize_pem()).expect("a file");
    identity
}
