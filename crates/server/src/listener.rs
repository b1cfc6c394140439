//! Listening, and dealing connections to threads.
//!
//! One task accepts for all threads: with few connections the kernel's own spreading over several
//! listeners is uneven. Each connection goes to the thread that has the fewest.

use crate::error::ServerError;
use crate::telemetry::ThreadCounters;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use softflash_protocol::Counters;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 1024;

/// After an error that will not pass at once, such as too many open files.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// What a client hears when there are too many, as from Redis.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Opens a listening socket; must be called inside a tokio runtime.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let open = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    open().map_err(|source| ServerError::Listen { address, source })
}

/// A thread that connections can be dealt to.
pub(crate) struct Seat {
    /// Takes a connection; false where the thread has ended.
    pub deal: Box<dyn Fn(std::net::TcpStream) -> bool>,
    /// Knows how many it has.
    pub counters: Arc<ThreadCounters>,
    /// Connections dealt to it since the start.
    pub dealt: u64,
}

/// Accepts until the future is dropped.
pub(crate) async fn accept(
    listener: &TcpListener,
    mut seats: Vec<Seat>,
    max_clients: usize,
    counters: &Counters,
) {
    let mut turn = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // A connection that died in the queue is the client's affair; the rest may pass.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
                continue;
            }
        };
        let connected: u64 = seats.iter().map(Seat::load).sum();
        if connected >= max_clients as u64 {
            counters.rejected_connections.fetch_add(1, Ordering::Relaxed);
            reject(stream);
            continue;
        }
        turn = (turn + 1) % seats.len();
        // The least loaded; among equals the next in turn.
        let order = |index: &usize| (index + seats.len() - turn) % seats.len();
        let least = (0..seats.len()).min_by_key(|index| (seats[*index].load(), order(index)));
        let Some(seat) = least.and_then(|index| seats.get_mut(index)) else { return };
        let given = prepare(stream).map(|stream| (seat.deal)(stream));
        match given {
            Ok(true) => seat.dealt += 1,
            Ok(false) => return,
            Err(error) => tracing::debug!(%error, "connection lost before it began"),
        }
    }
}

impl Seat {
    /// Connections of the thread, those on their way to it included.
    fn load(&self) -> u64 {
        let left = self.counters.left.load(Ordering::Relaxed);
        self.dealt.saturating_sub(left)
    }
}

/// Replies must leave at once: the loop writes whole batches.
fn prepare(stream: TcpStream) -> io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_keepalive(true)?;
    stream.into_std()
}

fn reject(stream: TcpStream) {
    // A fresh socket takes this without waiting; a client that is gone already needs no answer.
    let _ = stream.try_write(TOO_MANY);
}
