//! Accepts connections and assigns them to threads.
//!
//! One task accepts for all threads, because with few connections the kernel's distribution over
//! several listeners is uneven. Each connection goes to the thread with the fewest connections.

use crate::error::ServerError;
use crate::network::{UnauthenticatedLimit, UnauthenticatedSlot};
use crate::seldom::Seldom;
use crate::telemetry::ThreadCounters;
use crate::tls::Tls;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use softflash_protocol::Context;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Maximum number of connections that the kernel queues before they are accepted.
const BACKLOG: i32 = 1024;

/// Pause after an error that may persist, such as too many open files.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// Reply where there are too many clients, as in Redis.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Reply where there are too many unauthenticated clients.
const TOO_MANY_UNAUTHENTICATED: &[u8] =
    b"-ERR max number of clients reached that have not authenticated\r\n";

/// Reply in protected mode.
const DENIED: &[u8] = b"-DENIED running in protected mode: no password is set for the default user, and in \
this mode connections are only accepted from the loopback interface. Give the user 'default' a password, or start \
the server with --protected-mode no.\r\n";

/// Opens a listening socket.
pub(crate) fn bind(address: SocketAddr) -> Result<std::net::TcpListener, ServerError> {
    let open = || -> io::Result<std::net::TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|source| ServerError::Listen { address, source })
}

/// A new connection.
pub(crate) struct Arrival {
    pub socket: std::net::TcpStream,
    /// The TLS configuration, if the connection uses TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Its slot in the limit of unauthenticated clients.
    pub slot: Option<UnauthenticatedSlot>,
}

/// The listening sockets.
pub(crate) struct Listeners {
    pub plain: Option<TcpListener>,
    pub encrypted: Option<(TcpListener, Arc<Tls>)>,
}

impl Listeners {
    /// The next connection, and the TLS settings if it uses TLS.
    async fn next(&self) -> (io::Result<(TcpStream, SocketAddr)>, Option<&Tls>) {
        let plain = async {
            match &self.plain {
                Some(listener) => listener.accept().await,
                None => pending().await,
            }
        };
        let encrypted = async {
            match &self.encrypted {
                Some((listener, tls)) => (listener.accept().await, Some(&**tls)),
                None => pending().await,
            }
        };
        tokio::select! {
            accepted = plain => (accepted, None),
            accepted = encrypted => accepted,
        }
    }
}

/// Decides which connections are admitted.
pub(crate) struct ConnectionAdmission {
    pub max_clients: usize,
    pub unauthenticated: Arc<UnauthenticatedLimit>,
    /// Whether connections from other machines are refused while `default` has no password.
    pub protected: bool,
    pub context: Arc<Context>,
}

impl ConnectionAdmission {
    /// Admits a client, with its slot if it must authenticate; or returns the refusal.
    fn admit(
        &self,
        peer: SocketAddr,
        uses_tls: bool,
    ) -> Result<Option<UnauthenticatedSlot>, &'static [u8]> {
        let asks_for_password = self.context.needs_password();
        if self.protected && !asks_for_password && !peer.ip().to_canonical().is_loopback() {
            return Err(DENIED);
        }
        match asks_for_password || uses_tls {
            true => self.unauthenticated.enter(peer.ip()).map(Some).ok_or(TOO_MANY_UNAUTHENTICATED),
            false => Ok(None),
        }
    }
}

/// A shard's thread as a target of connections.
pub(crate) struct Worker {
    /// Hands a connection to the thread; false where the thread has ended.
    pub assign: Box<dyn Fn(Arrival) -> bool>,
    /// Counts the connections of the thread.
    pub counters: Arc<ThreadCounters>,
    /// Connections assigned to it since the start.
    pub assigned: u64,
}

/// Accepts until the future is dropped.
pub(crate) async fn accept(
    listeners: &Listeners,
    mut workers: Vec<Worker>,
    admission: &ConnectionAdmission,
) {
    let mut cursor = 0;
    loop {
        let (accepted, tls) = listeners.next().await;
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(error).await;
                continue;
            }
        };
        let connected: u64 = workers.iter().map(Worker::load).sum();
        let admitted = match connected >= admission.max_clients as u64 {
            true => Err(TOO_MANY),
            false => admission.admit(peer, tls.is_some()),
        };
        let slot = match admitted {
            Ok(slot) => slot,
            Err(reason) => {
                let rejected = &admission.context.counters.rejected_connections;
                rejected.fetch_add(1, Ordering::Relaxed);
                // A TLS client could not parse the reply.
                reject(stream, if tls.is_some() { b"" } else { reason });
                continue;
            }
        };
        cursor = (cursor + 1) % workers.len();
        // The least loaded thread; round-robin among equals.
        let order = |index: &usize| (index + workers.len() - cursor) % workers.len();
        let least = (0..workers.len()).min_by_key(|index| (workers[*index].load(), order(index)));
        let Some(worker) = least.and_then(|index| workers.get_mut(index)) else { return };
        let tls = tls.map(Tls::current);
        let given = prepare(stream).map(|socket| (worker.assign)(Arrival { socket, tls, slot }));
        match given {
            Ok(true) => worker.assigned += 1,
            Ok(false) => return,
            Err(error) => tracing::debug!(%error, "connection lost before it began"),
        }
    }
}

impl Worker {
    /// Connections of the thread, including those still being handed over.
    fn load(&self) -> u64 {
        let left = self.counters.left.load(Ordering::Relaxed);
        self.assigned.saturating_sub(left)
    }
}

/// Reports an error of accepting, and waits if it may persist.
pub(crate) async fn pause_after(error: io::Error) {
    // The client has closed this connection; later ones may succeed.
    if error.kind() != io::ErrorKind::ConnectionAborted {
        static LINE: Seldom = Seldom::new();
        if let Some(more_before) = LINE.line() {
            tracing::warn!(%error, more_before, "cannot accept a connection");
        }
        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
    }
}

fn prepare(stream: TcpStream) -> io::Result<std::net::TcpStream> {
    set_options(&stream)?;
    stream.into_std()
}

/// Without Nagle's delay, because replies are written in whole batches.
pub(crate) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_keepalive(true)
}

fn reject(stream: TcpStream, reason: &[u8]) {
    // A new socket has buffer space for this; a client that has disconnected needs no reply.
    let _ = stream.try_write(reason);
}
