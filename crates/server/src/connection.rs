//! One connection: read, run what is whole, write, again.
//!
//! One read takes in as many requests as the client has sent, one run executes them together, one
//! vectored write sends all replies.

use crate::budget::{ReplyBudget, ReplyPermit, RequestBudget, RequestTooLarge, Reservation};
use crate::network::Visit;
use crate::registry::{Phase, Registered};
use softflash_protocol::{Context, Parsed, RequestParser, Session};
use softflash_store::Store;
use std::future::Future;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Commands of the first batch, and of every batch of a client that has not authenticated; each batch with little to reply doubles it.
const FIRST_WINDOW: u64 = 8;
const MAX_WINDOW: u64 = 1 << 16;
/// Replies of a batch that come to no more than this are little.
const LITTLE_REPLY_BYTES: usize = 256 << 10;

/// A connection that waits after reads smaller than this gives its read buffer back meanwhile.
const BUSY_READ_BYTES: usize = 8 << 10;

/// A body of this size may be larger than the store's memtables: it is not received before the store has
/// flushed what it has. The store alone cannot see to that, as it takes any value when it is empty,
/// each shard by itself.
const LARGE_BODY_BYTES: u64 = 4 << 20;

/// How often it is looked, and how often at most: a store that cannot flush says so itself.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const MAX_LOOKS: u32 = 2000;

/// After a connection is refused further service, input is thrown away for this long, so that the client
/// reads the reason before it notices the end.
const LINGER: Duration = Duration::from_millis(500);

/// What all connections of a thread use.
#[derive(Clone)]
pub(crate) struct Services {
    pub store: Store,
    pub context: Arc<Context>,
    pub requests: RequestBudget,
    pub replies: ReplyBudget,
    /// Replies to one batch above this end the connection.
    pub max_output_bytes: usize,
    /// With less than this in its memtables the store has nothing to flush.
    pub calm_store_bytes: u64,
}

/// Serves a connection until it ends.
pub(crate) async fn run(registered: Registered, visit: Option<Visit>, services: Services) {
    let (peer, local) = registered.socket.addresses();
    let now_ms = services.store.now_ms();
    let session = Session::new(Arc::clone(&services.context), peer, local, now_ms);
    let reservation = services.requests.reservation();
    let mut connection = Connection {
        registered,
        visit,
        services,
        session,
        parser: RequestParser::new(),
        reservation,
        transaction_bytes: 0,
        window: FIRST_WINDOW,
        between_requests: true,
        last_read_bytes: 0,
    };
    match connection.serve().await {
        Ok(()) => {}
        Err(error) => tracing::debug!(%error, "connection lost"),
    }
}

/// What to do after a batch has been run and its replies sent.
enum Next {
    Read,
    Again,
    Reserve(u64),
    Close,
    /// Close after telling why.
    Refuse(Vec<u8>),
}

struct Connection {
    registered: Registered,
    /// Its place among those that have not authenticated.
    visit: Option<Visit>,
    services: Services,
    session: Session,
    parser: RequestParser,
    /// Memory for request bodies.
    reservation: Reservation,
    /// How much of it belongs to commands that a transaction has queued.
    transaction_bytes: u64,
    /// Commands that the next batch may have: a connection that begins to get large replies gets few of
    /// them at a time.
    window: u64,
    /// Nothing is left in the parser, not even the beginning of a request.
    between_requests: bool,
    last_read_bytes: usize,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        self.registered.socket.handshake().await?;
        self.note_identity();
        let mut next = Next::Read;
        loop {
            match next {
                Next::Read => {
                    if self.registered.registry().is_draining() || !self.read().await? {
                        return Ok(());
                    }
                }
                Next::Again => {}
                Next::Reserve(bytes) => {
                    if let Err(too_large) = self.reserve(bytes).await {
                        return self.refuse(too_large.to_string().as_bytes()).await;
                    }
                }
                Next::Close => return self.registered.socket.shutdown().await,
                Next::Refuse(reason) => return self.refuse(&reason).await,
            }
            // Before there is a permit, since a password may wait long for its turn.
            self.session.attend(&self.services.store).await;
            let mut permit = match self.session.is_authenticated() {
                true => self.services.replies.begin().await,
                false => self.services.replies.begin_little(),
            };
            next = self.run_batch(&mut permit).await;
            self.release();
            self.write(&mut permit).await?;
        }
    }

    /// Takes in what the client has sent; false where it has no more.
    async fn read(&mut self) -> io::Result<bool> {
        let Registered { peer, socket, .. } = &mut self.registered;
        peer.step(Phase::Reading);
        let mut killed = pin!(self.session.client().killed());
        if self.between_requests && self.last_read_bytes < BUSY_READ_BYTES {
            let mut gave_back = false;
            let is_alive = poll_fn(|context| {
                if let Poll::Ready(ready) = socket.poll_readable(context) {
                    return Poll::Ready(ready.map(|()| true));
                }
                if !gave_back {
                    self.parser = RequestParser::new();
                    gave_back = true;
                }
                killed.as_mut().poll(context).map(|()| Ok(false))
            });
            if !is_alive.await? {
                return Ok(false);
            }
        }
        if self.visit.is_some() {
            self.parser.read_little();
        }
        let mut target = self.parser.read_target();
        let mut reading = pin!(socket.read_buf(&mut target));
        let count = poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => killed.as_mut().poll(context).map(|()| Ok(0)),
        })
        .await?;
        self.last_read_bytes = count;
        peer.step(Phase::Working);
        let counters = &self.services.context.counters;
        counters.input_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count > 0)
    }

    /// Waits for memory for the argument that comes next.
    async fn reserve(&mut self, bytes: u64) -> Result<(), RequestTooLarge> {
        self.reservation.grow(bytes).await?;
        if bytes >= LARGE_BODY_BYTES {
            self.wait_for_a_calm_store().await;
        }
        self.parser.admit();
        self.registered.peer.set_holds_memory(true);
        Ok(())
    }

    async fn wait_for_a_calm_store(&self) {
        let Services { store, calm_store_bytes, .. } = &self.services;
        for _ in 0..MAX_LOOKS {
            match store.stats().await {
                Ok(stats) if stats.memtable_bytes > *calm_store_bytes => {}
                // A store that gives no answer will give one to the request itself.
                Ok(_) | Err(_) => return,
            }
            store.runtime().sleep_until(store.runtime().now() + LOOK_AGAIN).await;
        }
    }

    /// Runs the requests that are whole, as many as replies may be made for at a time.
    async fn run_batch(&mut self, permit: &mut ReplyPermit) -> Next {
        let Connection { services, session, parser, transaction_bytes, window, .. } = self;
        let mut next = Next::Read;
        let mut commands = 0;
        let mut is_between = self.between_requests && parser.buffered_bytes() == 0;
        let is_stranger = !session.is_authenticated();
        let more = session
            .run(&services.store, |authenticated| {
                // The first request is covered by the permit as it came.
                let is_covered = commands == 0 || parser.buffered_bytes() == 0;
                let is_enough = match is_stranger {
                    true => commands >= FIRST_WINDOW,
                    false => !is_covered && (commands >= *window || !permit.try_extend()),
                };
                if is_enough {
                    next = Next::Again;
                    return None;
                }
                match parser.next(authenticated) {
                    Ok(Parsed::Request(request)) => {
                        commands += 1;
                        is_between = parser.buffered_bytes() == 0;
                        if request.admitted_bytes > 0 {
                            permit.expect(request.admitted_bytes);
                        }
                        *transaction_bytes += request.admitted_bytes;
                        return Some(request);
                    }
                    Ok(Parsed::Incomplete) => {}
                    Ok(Parsed::Need { bytes }) => next = Next::Reserve(bytes),
                    Err(error) => next = Next::Refuse(error.text()),
                }
                None
            })
            .await;
        if session.queued_bytes() == 0 {
            *transaction_bytes = 0;
        }
        self.between_requests = is_between;
        let reply_bytes = session.output().len();
        *window = match reply_bytes <= LITTLE_REPLY_BYTES {
            true => (*window * 2).min(MAX_WINDOW),
            false => FIRST_WINDOW,
        };
        match is_stranger {
            true => permit.recharge(reply_bytes as u64),
            false => permit.settle(reply_bytes as u64, commands),
        }
        if session.is_closing() {
            Next::Close
        } else if more {
            Next::Again
        } else {
            next
        }
    }

    /// Gives back the memory of requests that have been run.
    fn release(&mut self) {
        if !self.note_identity() {
            return;
        }
        let peer = &self.registered.peer;
        let held = self.reservation.held_bytes();
        if held > 0 {
            let used = self.transaction_bytes + self.parser.admitted_bytes();
            self.reservation.shrink(held.saturating_sub(used));
            peer.set_holds_memory(self.reservation.held_bytes() > 0);
        }
    }

    /// Tells those who watch over strangers whether this is one.
    fn note_identity(&mut self) -> bool {
        let is_authenticated = self.session.is_authenticated();
        self.registered.peer.set_authenticated(is_authenticated);
        if is_authenticated {
            self.visit = None;
        }
        is_authenticated
    }

    /// Sends all replies.
    async fn write(&mut self, permit: &mut ReplyPermit) -> io::Result<()> {
        let Registered { peer, socket, .. } = &mut self.registered;
        let output = self.session.output();
        let bytes = output.len();
        if bytes > self.services.max_output_bytes {
            let limit = self.services.max_output_bytes;
            tracing::warn!(bytes, limit, "replies too large, connection closed");
            return Err(io::Error::other("replies exceed the limit of the output buffer"));
        }
        while !output.is_empty() {
            peer.step(Phase::Writing);
            if socket.write_buf(output).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            permit.recharge(output.len() as u64);
        }
        // TLS may have kept the end of it.
        socket.flush().await?;
        peer.step(Phase::Working);
        self.services.context.counters.output_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Says why, and ends.
    async fn refuse(&mut self, reason: &[u8]) -> io::Result<()> {
        let output = self.session.output();
        output.error_text(&[b"ERR ", reason].concat());
        let Registered { peer, socket, .. } = &mut self.registered;
        peer.step(Phase::Writing);
        while !output.is_empty() {
            socket.write_buf(output).await?;
        }
        socket.flush().await?;
        socket.shutdown().await?;
        let discard = async {
            let mut ignored = [0; 4096];
            while matches!(socket.read(&mut ignored).await, Ok(count) if count > 0) {}
        };
        // Who goes on sending is cut off.
        let _ = timeout(LINGER, discard).await;
        Ok(())
    }
}
