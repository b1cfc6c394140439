//! A TLS client.

use super::certificates::{Authority, Identity};
use super::resp::encode;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsClient {
    /// Connects to a server whose certificate `authority` has signed, and shows `identity`, if any.
    pub fn connect(
        address: SocketAddr,
        authority: &Authority,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> TlsClient {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(&authority.certificate).expect("a certificate");
        roots.add(root).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions that go with the provider")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let certificate =
                    CertificateDer::from_pem_file(certificate).expect("a certificate");
                let key = PrivateKeyDer::from_pem_file(key).expect("a key");
                builder.with_client_auth_cert(vec![certificate], key).expect("a pair")
            }
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let socket = TcpStream::connect(address).expect("the server accepts connections");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        TlsClient { stream: StreamOwned::new(connection, socket) }
    }

    /// Sends a command and returns the part of the reply that arrives first.
    pub fn call(&mut self, parts: &[&[u8]]) -> io::Result<String> {
        self.stream.write_all(&encode(parts))?;
        self.stream.flush()?;
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(String::from_utf8_lossy(&buffer[..count]).into_owned()),
        }
    }

    /// Sends bytes and receives exactly this many.
    pub fn exchange(&mut self, bytes: &[u8], count: usize) -> io::Result<Vec<u8>> {
        self.stream.write_all(bytes)?;
        self.stream.flush()?;
        let mut received = vec![0; count];
        self.stream.read_exact(&mut received)?;
        Ok(received)
    }

    /// The certificate of the server.
    pub fn server_certificate(&self) -> Vec<u8> {
        let shown = self.stream.conn.peer_certificates().expect("the handshake is over");
        shown.first().expect("a certificate").to_vec()
    }
}
