//! The connections of one thread: who is slow, and how to end them all.
//!
//! A connection says with a few plain cells what it is doing and that it has come on; it never asks for
//! the time. A sweep, twice a second, sees who has not come on and shuts those sockets, which ends the
//! connection's own wait.

#![expect(unsafe_code, reason = "sockets are shut from outside the task that owns them")]

use crate::stream::Stream;
use crate::telemetry::{ThreadCounters, count};
use rustix::net::{Shutdown, shutdown};
use softflash_base::Time;
use softflash_runtime::Event;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Time between two sweeps.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// A client that must authenticate has this long.
pub(crate) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// A client that has begun a large request, or a transaction that holds one, may pause this long.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that does not take its replies is given up after this long ...
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// ... and after this long where others wait for the memory.
const SHORT_REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the client to send.
    Reading,
    /// Working, or waiting for others.
    Working,
    /// Waiting for the client to take its replies.
    Writing,
}

/// What a sweep needs to know of a connection.
pub(crate) struct Peer {
    socket: RawFd,
    authenticated: Cell<bool>,
    /// Since when it has been one that has not authenticated, as far as that was seen.
    unauthenticated_since: Cell<Option<Time>>,
    phase: Cell<Phase>,
    /// Changes with everything that it does.
    steps: Cell<u32>,
    /// Whether it holds some of the budget of request bodies.
    holds_memory: Cell<bool>,
    /// What the last sweep saw, and when that was new.
    seen: Cell<(u32, Time)>,
}

impl Peer {
    /// The connection goes on to something else, or on with the same.
    pub fn step(&self, phase: Phase) {
        self.phase.set(phase);
        self.steps.set(self.steps.get().wrapping_add(1));
    }

    /// Whether the client has authenticated, or need not.
    pub fn set_authenticated(&self, authenticated: bool) {
        self.authenticated.set(authenticated);
    }

    /// Whether request bodies of the connection hold memory that others may want.
    pub fn set_holds_memory(&self, holds: bool) {
        self.holds_memory.set(holds);
    }

    /// How long the client has had to authenticate.
    fn unauthenticated_for(&self, now: Time) -> Duration {
        let since = self.unauthenticated_since.get().unwrap_or(now);
        self.unauthenticated_since.set((!self.authenticated.get()).then_some(since));
        if self.authenticated.get() { Duration::ZERO } else { now - since }
    }

    fn shut(&self, how: Shutdown) {
        // SAFETY: a peer leaves the registry, and with it the reach of this function, before its
        // socket is closed (`Registered` drops in that order).
        let socket = unsafe { BorrowedFd::borrow_raw(self.socket) };
        // A socket that the client has reset is as good as shut.
        let _ = shutdown(socket, how);
    }

    /// How long the connection has not come on.
    fn pause(&self, now: Time) -> Duration {
        let (steps, since) = self.seen.get();
        if steps == self.steps.get() {
            return now - since;
        }
        self.seen.set((self.steps.get(), now));
        Duration::ZERO
    }

    /// Whether the client's time is over.
    fn is_overdue(&self, now: Time, idle: Option<Duration>, replies_are_short: bool) -> bool {
        let pause = self.pause(now);
        let unauthenticated_for = self.unauthenticated_for(now);
        match self.phase.get() {
            // Its password is being tried.
            Phase::Working => false,
            _ if unauthenticated_for >= AUTHENTICATION_TIMEOUT => true,
            Phase::Writing if replies_are_short => pause >= SHORT_REPLY_TIMEOUT,
            Phase::Writing => pause >= REPLY_TIMEOUT,
            Phase::Reading if self.holds_memory.get() => pause >= BODY_TIMEOUT,
            Phase::Reading => idle.is_some_and(|idle| pause >= idle),
        }
    }
}

/// All connections of a thread. A clone is the same registry.
#[derive(Clone)]
pub(crate) struct Registry {
    state: Rc<State>,
}

struct State {
    peers: RefCell<HashMap<u64, Rc<Peer>>>,
    next: Cell<u64>,
    draining: Cell<bool>,
    empty: Event,
    counters: Arc<ThreadCounters>,
}

impl Registry {
    /// A registry without connections.
    pub fn new(counters: Arc<ThreadCounters>) -> Registry {
        let empty = Event::new();
        empty.set();
        let (peers, next, draining) = (RefCell::default(), Cell::new(0), Cell::new(false));
        Registry { state: Rc::new(State { peers, next, draining, empty, counters }) }
    }

    /// Enters a connection; it leaves when the result is dropped.
    pub fn enter(&self, socket: Stream, now: Time, authenticated: bool) -> Registered {
        let peer = Rc::new(Peer {
            socket: socket.as_raw_fd(),
            authenticated: Cell::new(authenticated),
            unauthenticated_since: Cell::new((!authenticated).then_some(now)),
            phase: Cell::new(Phase::Reading),
            steps: Cell::new(0),
            holds_memory: Cell::new(false),
            seen: Cell::new((0, now)),
        });
        let key = self.state.next.get();
        self.state.next.set(key + 1);
        let mut peers = self.state.peers.borrow_mut();
        peers.insert(key, Rc::clone(&peer));
        self.state.empty.reset();
        drop(peers);
        Registered { membership: Membership { registry: self.clone(), key }, peer, socket }
    }

    /// Whether connections shall end with what they have received.
    pub fn is_draining(&self) -> bool {
        self.state.draining.get()
    }

    /// Tells all connections to end with what they have received.
    pub fn drain(&self) {
        self.state.draining.set(true);
        self.state.peers.borrow().values().for_each(|peer| peer.shut(Shutdown::Read));
    }

    /// Cuts all connections off.
    pub fn cut(&self) {
        self.state.peers.borrow().values().for_each(|peer| peer.shut(Shutdown::Both));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.state.peers.borrow().len()
    }

    /// Completes when there are none.
    pub async fn emptied(&self) {
        while self.len() > 0 {
            self.state.empty.wait().await;
        }
    }

    /// Cuts off those whose time is over.
    pub fn sweep(&self, now: Time, idle: Option<Duration>, replies_are_short: bool) {
        for peer in self.state.peers.borrow().values() {
            if peer.is_overdue(now, idle, replies_are_short) {
                tracing::debug!(phase = ?peer.phase.get(), "connection timed out");
                count(&self.state.counters.timeouts, 1);
                peer.shut(Shutdown::Both);
            }
        }
    }
}

/// A connection's place in the registry, and its socket. The fields drop in order: the place first.
pub(crate) struct Registered {
    membership: Membership,
    pub peer: Rc<Peer>,
    pub socket: Stream,
}

impl Registered {
    /// The registry that the connection is in.
    pub fn registry(&self) -> &Registry {
        &self.membership.registry
    }
}

struct Membership {
    registry: Registry,
    key: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let state = &self.registry.state;
        let mut peers = state.peers.borrow_mut();
        peers.remove(&self.key);
        count(&state.counters.left, 1);
        if peers.is_empty() {
            state.empty.set();
        }
    }
}
