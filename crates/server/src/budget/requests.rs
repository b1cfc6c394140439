//! The budget of request bodies: a connection waits here before it receives a large argument.
//!
//! A request has one reservation, which may grow as further arguments are declared, and as a
//! transaction queues commands. Reservations that hold nothing wait in FIFO order. Reservations
//! that hold memory have priority, because they release it only when their request is done. If all
//! memory is held by reservations that wait for more, they would deadlock. Then the first of them
//! gets its memory beyond the budget, and keeps this right until its request is done. So the memory
//! held never exceeds the budget plus one request.
//!
//! What sessions keep between their requests (queues of transactions, watched keys) never waits: it
//! gets its memory at once or is refused, and takes at most half of the budget.

use softflash_protocol::KeptMemory;
use softflash_store::memory::SpareMemory;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use thiserror::Error;

/// A large value is in memory twice before its request is done: as it was received, and in the
/// log's next write.
const COPIES: u64 = 2;

/// A request larger than the whole budget: waiting cannot help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "request too large: {bytes} bytes in one request, the maximum with this memory is {limit}; send less at once or raise --memory"
)]
pub struct RequestTooLarge {
    /// Size of the request so far.
    pub bytes: u64,
    /// Maximum size of a request.
    pub limit: u64,
}

/// The budget, shared by all connections of all threads.
#[derive(Debug, Clone)]
pub struct RequestBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    capacity: u64,
    /// Where the held bytes come from.
    spare: SpareMemory,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes held by all reservations and kept by sessions.
    held: u64,
    /// Bytes kept by sessions.
    kept: u64,
    /// Bytes held by the reservations in `growing`.
    held_by_waiting: u64,
    /// Reservations that hold memory and wait for more, in FIFO order.
    growing: VecDeque<Waiter>,
    /// Reservations that hold nothing and wait, in FIFO order.
    starting: VecDeque<Waiter>,
    /// The reservation that may exceed the budget until it is done.
    privileged: Option<u64>,
    ids: u64,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    bytes: u64,
    holds: u64,
    waker: Waker,
}

impl State {
    /// Grants memory to the first waiters as far as possible. The caller wakes them after it has
    /// unlocked the state.
    fn grant(&mut self, capacity: u64) -> Vec<Waker> {
        let mut woken = Vec::new();
        loop {
            let fits = |waiter: &Waiter| self.held + waiter.bytes <= capacity;
            let line = if let Some(first) = self.growing.front() {
                let stuck = self.held == self.held_by_waiting;
                if !fits(first) {
                    if !stuck {
                        return woken;
                    }
                    self.privileged = Some(first.id);
                }
                self.held_by_waiting -= first.holds;
                &mut self.growing
            } else {
                match self.starting.front() {
                    Some(first) if fits(first) || self.held == 0 => {}
                    _ => return woken,
                }
                &mut self.starting
            };
            if let Some(waiter) = line.pop_front() {
                self.held += waiter.bytes;
                woken.push(waiter.waker);
            }
        }
    }

    fn find(&mut self, id: u64) -> Option<&mut Waiter> {
        self.growing.iter_mut().chain(&mut self.starting).find(|waiter| waiter.id == id)
    }
}

impl RequestBudget {
    /// A budget of `capacity` bytes, which are taken from `spare`.
    pub fn new(capacity: u64, spare: SpareMemory) -> RequestBudget {
        RequestBudget { shared: Arc::new(Shared { capacity, spare, state: Mutex::default() }) }
    }

    /// Bytes held by all reservations.
    pub fn held_bytes(&self) -> u64 {
        self.shared.lock().held
    }

    /// The number of requests that wait for memory.
    pub fn waiting(&self) -> usize {
        let state = self.shared.lock();
        state.growing.len() + state.starting.len()
    }

    /// An empty reservation for one connection.
    pub fn reservation(&self) -> Reservation {
        let mut state = self.shared.lock();
        state.ids += 1;
        Reservation { shared: Arc::clone(&self.shared), id: state.ids, held: 0 }
    }
}

/// A share of the budget for what sessions keep: one part in this many.
const KEPT_SHARE: u64 = 2;

impl KeptMemory for RequestBudget {
    fn try_take(&self, bytes: u64, received: u64) -> bool {
        let capacity = self.shared.capacity;
        let mut is_granted = false;
        self.shared.change(|state| {
            let has_share = state.kept + bytes <= capacity / KEPT_SHARE;
            is_granted = has_share && state.held + bytes.saturating_sub(received) <= capacity;
            if is_granted {
                state.kept += bytes;
                state.held += bytes;
            }
        });
        is_granted
    }

    fn give_back(&self, bytes: u64) {
        self.shared.change(|state| {
            state.kept -= bytes;
            state.held -= bytes;
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, grants memory that became free, and wakes the waiters.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        let before = state.held;
        change(&mut state);
        let woken = state.grant(self.capacity);
        self.spare.change(COPIES * before, COPIES * state.held);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A connection's share of the budget; released on drop.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<Shared>,
    id: u64,
    held: u64,
}

impl Reservation {
    /// Bytes held.
    pub fn held_bytes(&self) -> u64 {
        self.held
    }

    /// Waits until `bytes` more may be received. Cancel safe.
    ///
    /// # Errors
    /// [`RequestTooLarge`], immediately, if the reservation would exceed the whole budget.
    pub async fn grow(&mut self, bytes: u64) -> Result<(), RequestTooLarge> {
        let (limit, total) = (self.shared.capacity, self.held + bytes);
        if total > limit {
            return Err(RequestTooLarge { bytes: total, limit });
        }
        Grow { reservation: self, bytes, waits: false, done: false }.await;
        Ok(())
    }

    /// Releases `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.held);
        if bytes == 0 {
            return;
        }
        self.held -= bytes;
        let (id, done) = (self.id, self.held == 0);
        self.shared.change(|state| {
            state.held -= bytes;
            if done && state.privileged == Some(id) {
                state.privileged = None;
            }
        });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.held);
    }
}

/// The future of [`Reservation::grow`].
struct Grow<'a> {
    reservation: &'a mut Reservation,
    bytes: u64,
    waits: bool,
    done: bool,
}

impl Future for Grow<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (id, holds, bytes) = (this.reservation.id, this.reservation.held, this.bytes);
        let shared = Arc::clone(&this.reservation.shared);
        if !this.waits {
            this.waits = true;
            let waiter = Waiter { id, bytes, holds, waker: context.waker().clone() };
            shared.change(|state| {
                if holds == 0 {
                    state.starting.push_back(waiter);
                    return;
                }
                state.held_by_waiting += holds;
                // Only one reservation may exceed the budget: it has priority.
                match state.privileged == Some(id) {
                    true => state.growing.push_front(waiter),
                    false => state.growing.push_back(waiter),
                }
            });
        }
        let mut state = shared.lock();
        if let Some(waiter) = state.find(id) {
            waiter.waker.clone_from(context.waker());
            return Poll::Pending;
        }
        drop(state);
        this.reservation.held += bytes;
        this.done = true;
        Poll::Ready(())
    }
}

impl Drop for Grow<'_> {
    fn drop(&mut self) {
        if !self.waits || self.done {
            return;
        }
        let (id, holds, bytes) = (self.reservation.id, self.reservation.held, self.bytes);
        self.reservation.shared.change(|state| {
            if state.find(id).is_none() {
                // Granted, but dropped before it was polled.
                state.held -= bytes;
                return;
            }
            state.starting.retain(|waiter| waiter.id != id);
            let before = state.growing.len();
            state.growing.retain(|waiter| waiter.id != id);
            if state.growing.len() < before {
                state.held_by_waiting -= holds;
            }
        });
    }
}
