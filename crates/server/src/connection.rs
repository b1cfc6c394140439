//! The socket loop of one connection: read, advance, write.
//!
//! [`softflash_protocol::Connection`] processes the bytes.

use crate::admission::{Budgets, ServerAdmission};
use crate::network::UnauthenticatedSlot;
use crate::registry::{Phase, Registered};
use crate::seldom::Seldom;
use softflash_base::Time;
use softflash_ftl::Hint;
use softflash_protocol::{Connection, Context, Step, TURN};
use softflash_store::Store;
use std::future::Future;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// A connection that waits after reads smaller than this frees its read buffer meanwhile.
const BUSY_READ_BYTES: usize = 8 << 10;

/// After a final error reply, input is discarded for this long, so that the client can read the
/// reply before it notices the end.
const LINGER: Duration = Duration::from_millis(500);

/// The hint of clients' requests, by RESP or NBD: the protocols carry none, and a client waits for
/// each.
pub(crate) const CLIENT_HINT: Hint = Hint::FOREGROUND;

/// Services shared by all connections of a thread.
#[derive(Clone)]
pub(crate) struct Services {
    pub store: Store,
    pub context: Arc<Context>,
    pub budgets: Budgets,
    /// Larger replies to one batch end the connection.
    pub max_output_bytes: usize,
}

/// Serves a connection until it ends.
pub(crate) async fn run(
    registered: Registered,
    slot: Option<UnauthenticatedSlot>,
    services: Services,
) {
    let (peer, local) = registered.socket.addresses();
    let Services { store, context, budgets, .. } = &services;
    let admission = ServerAdmission::new(store.clone(), budgets);
    let connection = Connection::new(Arc::clone(context), peer, local, store.now_ms(), admission);
    registered.peer.set_client(connection.session().client());
    let turn_began = store.runtime().now();
    let mut served =
        Served { registered, slot, services, connection, last_read_bytes: 0, turn_began };
    if let Err(error) = served.serve().await {
        tracing::debug!(%error, "connection lost");
    }
}

struct Served {
    registered: Registered,
    /// Its slot in the limit of unauthenticated clients.
    slot: Option<UnauthenticatedSlot>,
    services: Services,
    connection: Connection<ServerAdmission>,
    last_read_bytes: usize,
    /// When the connection last waited for its client, or let others run.
    turn_began: Time,
}

impl Served {
    async fn serve(&mut self) -> io::Result<()> {
        self.registered.socket.handshake().await?;
        self.report();
        let mut step = Step::Read;
        loop {
            if step == Step::Read
                && (self.registered.registry().is_draining() || !self.read().await?)
            {
                return Ok(());
            }
            self.take_turns().await;
            step = self.connection.advance(&self.services.store).await;
            self.report();
            self.write().await?;
            match step {
                Step::Read | Step::Again => {}
                Step::Close => return self.shut_down().await,
                Step::Refuse => {
                    self.log_refusal();
                    self.shut_down().await?;
                    return self.linger().await;
                }
            }
        }
    }

    /// Lets others run if the client has not let this connection wait for long.
    async fn take_turns(&mut self) {
        let runtime = self.services.store.runtime();
        if Duration::from_nanos(runtime.now().since_ns(self.turn_began)) > TURN {
            runtime.turn().await;
            self.turn_began = runtime.now();
        }
    }

    /// Receives input; false at its end.
    async fn read(&mut self) -> io::Result<bool> {
        let Registered { peer, socket, .. } = &mut self.registered;
        peer.step(Phase::Reading);
        let client = Arc::clone(self.connection.session().client());
        let mut killed = pin!(client.killed());
        let mut has_waited = false;
        if self.connection.is_between_requests() && self.last_read_bytes < BUSY_READ_BYTES {
            let is_alive = poll_fn(|context| {
                if let Poll::Ready(ready) = socket.poll_readable(context) {
                    return Poll::Ready(ready.map(|()| true));
                }
                if !has_waited {
                    self.connection.free_read_buffer();
                    has_waited = true;
                }
                killed.as_mut().poll(context).map(|()| Ok(false))
            });
            if !is_alive.await? {
                return Ok(false);
            }
        }
        let mut target = self.connection.read_target();
        let mut reading = pin!(socket.read_buf(&mut target));
        let count = poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => {
                has_waited = true;
                killed.as_mut().poll(context).map(|()| Ok(0))
            }
        })
        .await?;
        self.last_read_bytes = count;
        peer.step(Phase::Working);
        let Services { store, context, .. } = &self.services;
        let now = store.runtime().now();
        if has_waited {
            self.turn_began = now;
        }
        context.counters.count_input(count as u64, now);
        Ok(count > 0)
    }

    /// Reports the connection's state to the registry and to the limit of unauthenticated clients.
    fn report(&mut self) {
        let peer = &self.registered.peer;
        let is_authenticated = self.connection.session().is_authenticated();
        peer.set_authenticated(is_authenticated);
        peer.set_holds_memory(self.connection.admission().holds_memory());
        peer.set_keeps_memory(self.connection.session().kept_bytes() > 0);
        if is_authenticated {
            self.slot = None;
        }
    }

    /// Sends all replies.
    async fn write(&mut self) -> io::Result<()> {
        let Registered { peer, socket, .. } = &mut self.registered;
        let bytes = self.connection.output().len();
        if bytes > self.services.max_output_bytes {
            let limit = self.services.max_output_bytes;
            static LINE: Seldom = Seldom::new();
            if let Some(more_before) = LINE.line() {
                let client = self.connection.session().client().address.as_str();
                tracing::warn!(
                    client,
                    bytes,
                    limit,
                    more_before,
                    "replies too large, connection closed"
                );
            }
            return Err(io::Error::other("replies exceed the limit of the output buffer"));
        }
        if !self.connection.output().is_empty() {
            peer.step(Phase::Writing);
        }
        while !self.connection.output().is_empty() {
            let sent = socket.write_buf(self.connection.output()).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            peer.sent(sent);
            self.connection.has_sent();
        }
        // TLS may have buffered the last part.
        socket.flush().await?;
        peer.step(Phase::Working);
        let Services { store, context, .. } = &self.services;
        context.counters.count_output(bytes as u64, store.runtime().now());
        Ok(())
    }

    /// Logs why the connection is closed.
    fn log_refusal(&self) {
        static LINE: Seldom = Seldom::new();
        if let Some(more_before) = LINE.line() {
            let client = self.connection.session().client().address.as_str();
            let reason = self.connection.refusal();
            tracing::warn!(client, reason, more_before, "connection closed");
        }
    }

    async fn shut_down(&mut self) -> io::Result<()> {
        let Registered { peer, socket, .. } = &mut self.registered;
        // TLS sends a final record.
        peer.step(Phase::Writing);
        socket.shutdown().await
    }

    /// Discards input of a client that has not noticed the end.
    async fn linger(&mut self) -> io::Result<()> {
        let socket = &mut self.registered.socket;
        let discard = async {
            let mut ignored = [0; 4096];
            while matches!(socket.read(&mut ignored).await, Ok(count) if count > 0) {}
        };
        // A client that continues to send is disconnected.
        let _ = timeout(LINGER, discard).await;
        Ok(())
    }
}
