//! The budget of request bodies: whoever declares a large argument waits here before reading it.
//!
//! A request begins with one reservation and may need more as further arguments are declared; so does
//! a transaction as it queues commands. Those that hold nothing wait in line. Those that hold something
//! go first, since nothing they hold comes back before they are done. If all that is held belongs to
//! requests that wait for more, nobody could ever go on: then the one at the head is given what it asks
//! for beyond the budget, and keeps that right until it is done. So the memory held never exceeds
//! the budget and one request.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use thiserror::Error;

/// A request larger than the whole budget, which no waiting can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "request too large: {bytes} bytes in one request or transaction, and {limit} is the most with this much memory; send less at once or raise --memory"
)]
pub struct RequestTooLarge {
    /// What it has come to.
    pub bytes: u64,
    /// What a request may hold.
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes held by all.
    held: u64,
    /// Bytes among them that are held by those in `growing`.
    held_by_waiting: u64,
    /// Those that hold something and wait for more, in order.
    growing: VecDeque<Waiter>,
    /// Those that hold nothing and wait, in order.
    starting: VecDeque<Waiter>,
    /// Who may exceed the budget until it is done.
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
    /// Gives to those at the heads of the lines what can be given. Their wakers are called by the caller
    /// when the state is unlocked.
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
    /// A budget of `capacity` bytes.
    pub fn new(capacity: u64) -> RequestBudget {
        RequestBudget { shared: Arc::new(Shared { capacity, state: Mutex::default() }) }
    }

    /// Bytes held by all requests.
    pub fn held_bytes(&self) -> u64 {
        self.shared.lock().held
    }

    /// A reservation of nothing, for one connection.
    pub fn reservation(&self) -> Reservation {
        let mut state = self.shared.lock();
        state.ids += 1;
        Reservation { shared: Arc::clone(&self.shared), id: state.ids, held: 0 }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, grants what that makes possible and wakes those concerned.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let woken = state.grant(self.capacity);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// What one connection holds of the budget; it goes back when this is dropped.
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
    /// [`RequestTooLarge`] at once where what is held would come to more than the whole budget.
    pub async fn grow(&mut self, bytes: u64) -> Result<(), RequestTooLarge> {
        let (limit, total) = (self.shared.capacity, self.held + bytes);
        if total > limit {
            return Err(RequestTooLarge { bytes: total, limit });
        }
        Grow { reservation: self, bytes, waits: false, done: false }.await;
        Ok(())
    }

    /// Gives `bytes` back.
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
                // Only one may exceed the budget: it goes on before the others.
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
                // Granted, and nobody came to take it.
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
