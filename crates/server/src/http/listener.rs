//! The connections of HTTP, which has no login: few at a time, and none without a request for long.
//!
//! A client that is served within milliseconds needs no old connection, so a new one takes the
//! place of the one that has waited longest.

use crate::listener::pause_after;
use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// Maximum number of connections.
pub(super) const MOST_CONNECTIONS: usize = 64;

/// Time limit for a whole request, from the beginning of the connection or the last bytes of a
/// reply on, and for a client that receives nothing of a reply.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Accepts connections within these limits.
pub(super) struct Listener {
    listener: TcpListener,
    places: Arc<Places>,
}

impl Listener {
    pub fn new(listener: TcpListener) -> Listener {
        Listener { listener, places: Arc::default() }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((socket, peer)) => return (Connection::new(socket, &self.places), peer),
                Err(error) => pause_after(error).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The connections, the one that has waited longest first.
#[derive(Default)]
struct Places {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    taken: BTreeMap<u64, Arc<Place>>,
}

/// One connection, as others see it.
#[derive(Default)]
struct Place {
    /// It has to make room.
    is_lost: AtomicBool,
    waker: AtomicWaker,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a connection at the end; the first one makes room where there are too many.
    fn enter(&self, place: &Arc<Place>) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.taken.insert(number, Arc::clone(place));
        let surplus = state.taken.len() > MOST_CONNECTIONS;
        if let Some((_, first)) = surplus.then(|| state.taken.pop_first()).flatten() {
            first.is_lost.store(true, Ordering::Release);
            first.waker.wake();
        }
        number
    }

    fn leave(&self, number: u64) {
        self.lock().taken.remove(&number);
    }
}

/// A connection.
pub(super) struct Connection {
    socket: TcpStream,
    places: Arc<Places>,
    place: Arc<Place>,
    number: u64,
    limit: Pin<Box<Sleep>>,
}

impl Connection {
    fn new(socket: TcpStream, places: &Arc<Places>) -> Connection {
        let place = Arc::<Place>::default();
        let number = places.enter(&place);
        let limit = Box::pin(sleep(TIME_LIMIT));
        Connection { socket, places: Arc::clone(places), place, number, limit }
    }

    /// Whether the connection must end: it has lost its place, or its time is up.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.place.waker.register(context.waker());
        self.place.is_lost.load(Ordering::Acquire) || self.limit.as_mut().poll(context).is_ready()
    }

    /// The client has received a part of a reply.
    fn renew(&mut self) {
        self.limit.as_mut().reset(Instant::now() + TIME_LIMIT);
        let is_lost = self.place.is_lost.load(Ordering::Acquire);
        if !is_lost {
            self.places.leave(self.number);
            self.number = self.places.enter(&self.place);
        }
    }

    /// The end of what was tried, or of the connection.
    fn or_over<T>(
        &mut self,
        tried: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match tried {
            Poll::Pending if self.is_over(context) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            tried => tried,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.places.leave(self.number);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.socket).poll_read(context, buffer);
        this.or_over(read, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            this.renew();
        }
        this.or_over(written, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}
