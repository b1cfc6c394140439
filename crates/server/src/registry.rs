//! The connections of one thread: detects slow clients, and ends all connections when the server
//! stops.
//!
//! A connection records its phase and its progress in plain cells; it never reads the clock. A
//! sweep, twice a second, finds connections without progress and shuts down their sockets, which
//! ends the connection's own wait; and it notices clients that left while their requests wait.

#![expect(unsafe_code, reason = "the sweep shuts down sockets that other tasks own")]

use crate::telemetry::{ThreadCounters, count};
use crate::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use softflash_base::Time;
use softflash_protocol::Client;
use softflash_runtime::Event;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Time between two sweeps.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Time limit for authentication.
pub(crate) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit without progress for a client that has begun a large request, and for one that keeps
/// memory in a transaction or for watched keys while others wait for it.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that takes its replies makes progress with each so many bytes of them, and at their
/// end.
pub(crate) const PROGRESS_BYTES: usize = 64 << 10;
/// Time limit for a client that does not receive its replies ...
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// ... and the limit while one other connection waits for this memory. Each of those that wait may
/// be such a client too, and the last waits for all of them: the more wait, the shorter the limit.
const SHORT_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The limit however many wait: a client behind a lossy network is silent for about a second.
const SHORTEST_REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for a client that does not receive its replies, while this many connections wait.
pub(crate) fn reply_timeout(waiting: usize) -> Duration {
    match u32::try_from(waiting).unwrap_or(u32::MAX) {
        0 => REPLY_TIMEOUT,
        waiting => (SHORT_REPLY_TIMEOUT / waiting).max(SHORTEST_REPLY_TIMEOUT),
    }
}

/// The numbers of connections that wait for memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// For that of replies.
    pub for_replies: usize,
    /// For that of requests.
    pub for_requests: usize,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for input.
    Reading,
    /// Working, or waiting for a shared resource.
    Working,
    /// Waiting for the client to receive its replies.
    Writing,
}

/// A connection's state for the sweep.
pub(crate) struct Peer {
    socket: RawFd,
    /// Set when its connection begins.
    client: OnceCell<Arc<Client>>,
    authenticated: Cell<bool>,
    /// When the sweep first saw the connection unauthenticated.
    unauthenticated_since: Cell<Option<Time>>,
    phase: Cell<Phase>,
    /// Incremented by any progress.
    steps: Cell<u32>,
    /// Bytes sent since the last progress.
    sent_bytes: Cell<usize>,
    /// Whether it holds memory of the budget of request bodies.
    holds_memory: Cell<bool>,
    /// Whether it keeps memory of that budget between its requests ...
    keeps_memory: Cell<bool>,
    /// ... and when the sweep first saw that.
    keeps_since: Cell<Option<Time>>,
    /// The progress counter at the last sweep that saw it change, and the time of that sweep.
    seen: Cell<(u32, Time)>,
}

impl Peer {
    /// Records progress, and the current phase.
    pub fn step(&self, phase: Phase) {
        self.phase.set(phase);
        self.steps.set(self.steps.get().wrapping_add(1));
    }

    /// Records that the client has received some of its replies.
    pub fn sent(&self, bytes: usize) {
        let sent = self.sent_bytes.get() + bytes;
        self.sent_bytes.set(sent % PROGRESS_BYTES);
        if sent >= PROGRESS_BYTES {
            self.step(Phase::Writing);
        }
    }

    /// Records the client, when its connection begins.
    pub fn set_client(&self, client: &Arc<Client>) {
        self.client.get_or_init(|| Arc::clone(client));
    }

    /// Records whether the client has authenticated, or need not.
    pub fn set_authenticated(&self, authenticated: bool) {
        self.authenticated.set(authenticated);
    }

    /// Records whether the connection's request bodies hold shared memory.
    pub fn set_holds_memory(&self, holds: bool) {
        self.holds_memory.set(holds);
    }

    /// Records whether the connection keeps shared memory between its requests.
    pub fn set_keeps_memory(&self, keeps: bool) {
        self.keeps_memory.set(keeps);
    }

    /// How long the client has kept memory.
    fn keeps_for(&self, now: Time) -> Duration {
        let since = self.keeps_since.get().unwrap_or(now);
        self.keeps_since.set(self.keeps_memory.get().then_some(since));
        if self.keeps_memory.get() { now - since } else { Duration::ZERO }
    }

    /// How long the client has been unauthenticated.
    fn unauthenticated_for(&self, now: Time) -> Duration {
        let since = self.unauthenticated_since.get().unwrap_or(now);
        self.unauthenticated_since.set((!self.authenticated.get()).then_some(since));
        if self.authenticated.get() { Duration::ZERO } else { now - since }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        // SAFETY: a peer leaves the registry, which is the only caller of this function, before its
        // socket is closed (`Registered` drops in that order).
        unsafe { BorrowedFd::borrow_raw(self.socket) }
    }

    fn shut(&self, how: Shutdown) {
        // A socket that the client has reset is closed anyway.
        let _ = shutdown(self.socket(), how);
    }

    /// Tells the client's requests that nobody receives their replies, if its connection was reset
    /// while they wait. A client that has only ended its requests still receives.
    fn notice_reset(&self) {
        let Some(client) = self.client.get() else { return };
        let mut events = [PollFd::from_borrowed_fd(self.socket(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut events, Some(&now)).is_ok_and(|count| count > 0)
            && events[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
        {
            client.note_reset();
        }
    }

    /// Time without progress.
    fn pause(&self, now: Time) -> Duration {
        let (steps, since) = self.seen.get();
        if steps == self.steps.get() {
            return now - since;
        }
        self.seen.set((self.steps.get(), now));
        Duration::ZERO
    }

    /// Whether a time limit has expired.
    fn is_overdue(&self, now: Time, idle: Option<Duration>, waiting: Waiting) -> bool {
        let pause = self.pause(now);
        let keeps_too_long = self.keeps_for(now) >= BODY_TIMEOUT && waiting.for_requests > 0;
        let unauthenticated_for = self.unauthenticated_for(now);
        match self.phase.get() {
            // Its password is being checked.
            Phase::Working => false,
            _ if unauthenticated_for >= AUTHENTICATION_TIMEOUT => true,
            Phase::Writing => pause >= reply_timeout(waiting.for_replies),
            Phase::Reading if keeps_too_long => true,
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

    /// Adds a connection; it is removed when the result is dropped.
    pub fn enter(&self, socket: Transport, now: Time, authenticated: bool) -> Registered {
        let peer = Rc::new(Peer {
            socket: socket.as_raw_fd(),
            client: OnceCell::new(),
            authenticated: Cell::new(authenticated),
            unauthenticated_since: Cell::new((!authenticated).then_some(now)),
            phase: Cell::new(Phase::Reading),
            steps: Cell::new(0),
            sent_bytes: Cell::new(0),
            holds_memory: Cell::new(false),
            keeps_memory: Cell::new(false),
            keeps_since: Cell::new(None),
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

    /// Whether connections must end after the input received so far.
    pub fn is_draining(&self) -> bool {
        self.state.draining.get()
    }

    /// Ends all connections after the input received so far.
    pub fn drain(&self) {
        self.state.draining.set(true);
        self.state.peers.borrow().values().for_each(|peer| peer.shut(Shutdown::Read));
    }

    /// Disconnects all clients.
    pub fn cut(&self) {
        self.state.peers.borrow().values().for_each(|peer| peer.shut(Shutdown::Both));
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.state.peers.borrow().len()
    }

    /// Completes when there are no connections.
    pub async fn emptied(&self) {
        while self.len() > 0 {
            self.state.empty.wait().await;
        }
    }

    /// Disconnects clients whose time limit has expired, while others wait for memory, and notices
    /// those that have left.
    pub fn sweep(&self, now: Time, idle: Option<Duration>, waiting: Waiting) {
        for peer in self.state.peers.borrow().values() {
            if peer.phase.get() == Phase::Working {
                peer.notice_reset();
            }
            if peer.is_overdue(now, idle, waiting) {
                tracing::debug!(phase = ?peer.phase.get(), "connection timed out");
                count(&self.state.counters.timeouts, 1);
                peer.shut(Shutdown::Both);
            }
        }
    }
}

/// A connection's entry in the registry, and its socket. The fields drop in order: the entry first.
pub(crate) struct Registered {
    membership: Membership,
    pub peer: Rc<Peer>,
    pub socket: Transport,
}

impl Registered {
    /// The connection's registry.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_connections_wait_the_shorter_is_the_limit() {
        let limits = [0, 1, 2, 5, 12, usize::MAX].map(|waiting| reply_timeout(waiting).as_secs());
        assert_eq!(limits, [60, 10, 5, 2, 2, 2]);
    }

    #[test]
    fn the_last_of_twelve_waits_for_less_than_a_minute() {
        let wait: Duration = (1..=12).map(|waiting| reply_timeout(waiting) + SWEEP_INTERVAL).sum();
        assert!(wait < Duration::from_secs(60), "{wait:?}");
    }
}
