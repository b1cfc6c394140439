//! A connection's bytes, in plain text or over TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// A connection between two threads: its socket belongs to no runtime.
pub(crate) struct Detached {
    socket: std::net::TcpStream,
    tls: Option<Box<rustls::ServerConnection>>,
}

impl Detached {
    /// Makes it a connection of the current runtime.
    pub async fn attach(self) -> io::Result<Transport> {
        let socket = TcpStream::from_std(self.socket)?;
        let Some(tls) = self.tls else { return Ok(Transport::Plain(socket)) };
        // There is no other way to put a running session on a socket: accept a connection, and
        // exchange its session before anything is received.
        let acceptor = TlsAcceptor::from(Arc::new(placeholder()?));
        let stream = acceptor.accept_with(socket, |session| *session = *tls).await?;
        Ok(Transport::Tls(Box::new(stream)))
    }
}

/// A configuration that serves nobody.
fn placeholder() -> io::Result<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let nobody = Arc::new(rustls::server::ResolvesServerCertUsingSni::new());
    Ok(builder.with_no_client_auth().with_cert_resolver(nobody))
}

/// Transport of a connection. The socket stays in place for the whole connection, handshake
/// included, because the registry may shut it down meanwhile.
pub(crate) enum Transport {
    Plain(TcpStream),
    Handshake(Box<Accept<TcpStream>>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake has failed.
    Failed,
}

impl Transport {
    /// Plain text or TLS, as the client connected.
    pub fn new(socket: TcpStream, tls: Option<Arc<rustls::ServerConfig>>) -> Transport {
        match tls {
            Some(config) => {
                Transport::Handshake(Box::new(TlsAcceptor::from(config).accept(socket)))
            }
            None => Transport::Plain(socket),
        }
    }

    /// Whether the TLS handshake is incomplete.
    pub fn is_handshaking(&self) -> bool {
        matches!(self, Transport::Handshake(_))
    }

    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Transport::Plain(socket) => Some(socket),
            Transport::Handshake(accept) => accept.get_ref(),
            Transport::Tls(tls) => Some(tls.get_ref().0),
            Transport::Failed => None,
        }
    }

    /// The client's address and the server's, as text.
    pub fn addresses(&self) -> (String, String) {
        let text = |address: Option<io::Result<SocketAddr>>| {
            address.and_then(Result::ok).map(|address| address.to_string()).unwrap_or_default()
        };
        let socket = self.socket();
        (text(socket.map(TcpStream::peer_addr)), text(socket.map(TcpStream::local_addr)))
    }

    /// Completes the TLS handshake, if the connection uses TLS.
    pub async fn handshake(&mut self) -> io::Result<()> {
        let tls = match self {
            Transport::Handshake(accept) => {
                poll_fn(|context| Pin::new(&mut **accept).poll(context)).await
            }
            _ => return Ok(()),
        };
        let (stream, done) = match tls {
            Ok(tls) => (Transport::Tls(Box::new(tls)), Ok(())),
            Err(error) => (Transport::Failed, Err(error)),
        };
        *self = stream;
        done
    }

    /// Takes the connection from its runtime, so that it can move to another thread.
    pub fn detach(self) -> io::Result<Detached> {
        match self {
            Transport::Plain(socket) => Ok(Detached { socket: socket.into_std()?, tls: None }),
            Transport::Tls(tls) => {
                let (socket, session) = tls.into_inner();
                let tls = Some(Box::new(session));
                Ok(Detached { socket: socket.into_std()?, tls })
            }
            Transport::Handshake(_) | Transport::Failed => Err(not_open()),
        }
    }

    /// Whether there are data to read, or the end.
    pub fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Plain(socket) => socket.poll_read_ready(context),
            Transport::Tls(tls) => {
                ready!(Pin::new(&mut **tls).poll_fill_buf(context))?;
                Poll::Ready(Ok(()))
            }
            Transport::Handshake(_) | Transport::Failed => Poll::Ready(Err(not_open())),
        }
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        self.socket().map_or(-1, AsRawFd::as_raw_fd)
    }
}

fn not_open() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Transport::Tls(tls) => Pin::new(&mut **tls).poll_read(context, buffer),
            Transport::Handshake(_) | Transport::Failed => Poll::Ready(Err(not_open())),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_write_vectored(context, pieces),
            Transport::Tls(tls) => Pin::new(&mut **tls).poll_write_vectored(context, pieces),
            Transport::Handshake(_) | Transport::Failed => Poll::Ready(Err(not_open())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_flush(context),
            Transport::Tls(tls) => Pin::new(&mut **tls).poll_flush(context),
            Transport::Handshake(_) | Transport::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Transport::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(context),
            Transport::Handshake(_) | Transport::Failed => Poll::Ready(Ok(())),
        }
    }
}
