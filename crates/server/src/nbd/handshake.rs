//! The handshake of a client, on the main thread.

use super::client::Client;
use super::exports::View;
use crate::tls::Tls;
use crate::transport::Transport;
use crate::volumes::Volumes;
use softflash_nbd::{HandshakeLimits, Negotiation, Session, Step, TlsMode, Transmission};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// A client that sends options for longer sees changes of the volumes.
const VIEW_LIFETIME: Duration = Duration::from_millis(100);

const READ_BYTES: usize = 4096;

/// A handshake under way.
pub(super) struct Handshake {
    transport: Transport,
    negotiation: Negotiation,
    tls: Option<Arc<Tls>>,
    volumes: Volumes,
}

/// The end of a handshake without an error.
enum End {
    Session { session: Session, received: Vec<u8> },
    Closed,
}

impl Handshake {
    pub fn new(
        socket: TcpStream,
        mode: TlsMode,
        tls: Option<Arc<Tls>>,
        volumes: Volumes,
    ) -> Handshake {
        let negotiation = Negotiation::new(mode, HandshakeLimits::default());
        Handshake { transport: Transport::new(socket, None), negotiation, tls, volumes }
    }

    /// Negotiates; returns the client and its shard if it has chosen an export.
    pub async fn run(
        mut self,
        permit: OwnedSemaphorePermit,
    ) -> io::Result<Option<(usize, Client)>> {
        self.transport.write_all(&self.negotiation.greeting()).await?;
        match self.negotiate().await? {
            End::Session { session, received } => {
                let shard = usize::try_from(session.export().id).unwrap_or(usize::MAX);
                let connection = self.transport.detach()?;
                let (transmission, begun) = (Transmission::new(session), None);
                let client = Client { connection, transmission, received, begun, permit };
                Ok(Some((shard, client)))
            }
            End::Closed => {
                self.transport.shutdown().await?;
                Ok(None)
            }
        }
    }

    async fn negotiate(&mut self) -> io::Result<End> {
        let mut buffer = [0; READ_BYTES];
        let mut view: Option<(View, Instant)> = None;
        loop {
            let count = self.transport.read(&mut buffer).await?;
            let mut input = buffer.get(..count).unwrap_or_default();
            if input.is_empty() {
                return Ok(End::Closed);
            }
            let seen = match view.take() {
                Some((view, since)) if since.elapsed() < VIEW_LIFETIME => (view, since),
                _ => (self.view().await?, Instant::now()),
            };
            while !input.is_empty() {
                let mut output = Vec::new();
                let step = self.negotiation.advance(&mut input, &seen.0, &mut output);
                self.transport.write_all(&output).await?;
                self.transport.flush().await?;
                match step {
                    Step::Continue => {}
                    Step::StartTls => self.start_tls(&mut input).await?,
                    Step::Begin(session) => {
                        return Ok(End::Session { session, received: input.to_vec() });
                    }
                    Step::Close(reason) => {
                        tracing::debug!(%reason, "no NBD export was chosen");
                        return Ok(End::Closed);
                    }
                }
            }
            view = Some(seen);
        }
    }

    async fn view(&self) -> io::Result<View> {
        self.volumes.exports().await.map(View::of).map_err(io::Error::other)
    }

    /// Begins TLS on the socket. What came in plain text behind the request for it may be from
    /// someone else than the client, and a client does not send anything before the answer.
    async fn start_tls(&mut self, input: &mut &[u8]) -> io::Result<()> {
        let config = self.tls.as_ref().map(|tls| tls.current());
        let transport = std::mem::replace(&mut self.transport, Transport::Failed);
        let (true, Some(config), Transport::Plain(socket)) = (input.is_empty(), config, transport)
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        self.transport = Transport::new(socket, Some(config));
        self.transport.handshake().await?;
        self.negotiation.tls_started();
        Ok(())
    }
}
