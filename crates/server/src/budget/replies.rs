//! The budget of replies: a thread makes no more of them at a time than it may hold.
//!
//! How long a reply will be is known only when it is made, so each execution is charged what the
//! largest recent reply came to; this estimate rises at once and falls slowly. What the reply really
//! takes is charged until it has been sent. One execution may always run.

use softflash_protocol::ReplyPermit;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The estimate at the start, when nothing is known: the largest value.
const FIRST_ESTIMATE_BYTES: u64 = softflash_store::value::MAX_VALUE_BYTES as u64;

/// The estimate falls by one part in this many with each smaller reply.
const DECAY: u64 = 32;

/// Replies of a batch that come to no more than this are little.
const LITTLE_BYTES: u64 = 1 << 20;

struct State {
    capacity: u64,
    estimate: Cell<u64>,
    charged: Cell<u64>,
    line: RefCell<VecDeque<Rc<Turn>>>,
}

struct Turn {
    /// What was charged when it came.
    granted: Cell<Option<u64>>,
    waker: RefCell<Waker>,
}

impl State {
    /// Charges one more execution, if there is room for it.
    fn charge(&self) -> Option<u64> {
        let (charged, estimate) = (self.charged.get(), self.estimate.get());
        if charged > 0 && charged + estimate > self.capacity {
            return None;
        }
        self.charged.set(charged + estimate);
        Some(estimate)
    }

    /// Lets those in line go on as far as there is room.
    fn grant(&self) {
        while !self.line.borrow().is_empty() {
            let Some(charged) = self.charge() else { return };
            let next = self.line.borrow_mut().pop_front();
            if let Some(turn) = next {
                turn.granted.set(Some(charged));
                turn.waker.borrow().wake_by_ref();
            }
        }
    }

    fn change(&self, from: u64, to: u64) {
        self.charged.set(self.charged.get() - from + to);
        if to < from {
            self.grant();
        }
    }
}

/// The reply budget of one thread. A clone is the same budget.
#[derive(Clone)]
pub struct ReplyBudget {
    state: Rc<State>,
}

impl ReplyBudget {
    /// A budget of `capacity` bytes.
    pub fn new(capacity: u64) -> ReplyBudget {
        let state = State {
            capacity,
            estimate: Cell::new(FIRST_ESTIMATE_BYTES),
            charged: Cell::new(0),
            line: RefCell::default(),
        };
        ReplyBudget { state: Rc::new(state) }
    }

    /// Bytes charged now.
    #[cfg(test)]
    pub fn charged_bytes(&self) -> u64 {
        self.state.charged.get()
    }

    /// Whether connections wait for others' replies to be sent.
    pub fn is_short(&self) -> bool {
        !self.state.line.borrow().is_empty()
    }

    /// A permission that charges nothing before a reply is made: for few and short ones.
    pub fn begin_little(&self) -> Permit {
        Permit { state: Rc::clone(&self.state), bytes: 0 }
    }

    /// Waits in line for the permission to make a reply. Cancel safe.
    pub fn begin(&self) -> Begin {
        Begin { state: Rc::clone(&self.state), turn: None }
    }
}

/// The future of [`ReplyBudget::begin`].
pub struct Begin {
    state: Rc<State>,
    turn: Option<Rc<Turn>>,
}

impl Future for Begin {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let this = &mut *self;
        if let Some(turn) = &this.turn {
            let Some(bytes) = turn.granted.get() else {
                turn.waker.borrow_mut().clone_from(context.waker());
                return Poll::Pending;
            };
            this.turn = None;
            return Poll::Ready(Permit { state: Rc::clone(&this.state), bytes });
        }
        let nobody_waits = this.state.line.borrow().is_empty();
        if nobody_waits && let Some(bytes) = this.state.charge() {
            return Poll::Ready(Permit { state: Rc::clone(&this.state), bytes });
        }
        let waker = RefCell::new(context.waker().clone());
        let turn = Rc::new(Turn { granted: Cell::new(None), waker });
        this.state.line.borrow_mut().push_back(Rc::clone(&turn));
        this.turn = Some(turn);
        Poll::Pending
    }
}

impl Drop for Begin {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        match turn.granted.get() {
            Some(charged) => self.state.change(charged, 0),
            None => self.state.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &turn)),
        }
    }
}

/// What the largest of some replies may have come to. Where all of them are little, a few times the mean
/// will do; otherwise one may be nearly all of it.
fn largest(bytes: u64, commands: u64) -> u64 {
    match bytes <= LITTLE_BYTES {
        true => bytes.min(bytes / commands * 4 + 64),
        false => bytes,
    }
}

/// What a connection's replies are charged, until they have been sent.
pub struct Permit {
    state: Rc<State>,
    bytes: u64,
}

impl ReplyPermit for Permit {
    fn try_extend(&mut self) -> bool {
        if !self.state.line.borrow().is_empty() {
            return false;
        }
        match self.state.charge() {
            Some(charged) => {
                self.bytes += charged;
                true
            }
            None => false,
        }
    }

    fn expect(&self, bytes: u64) {
        self.state.estimate.set(bytes.min(FIRST_ESTIMATE_BYTES).max(self.state.estimate.get()));
    }

    fn settle(&mut self, bytes: u64, commands: u64) {
        if commands > 0 {
            let estimate = self.state.estimate.get();
            let falling = estimate - estimate / DECAY;
            self.state.estimate.set(largest(bytes, commands).max(falling));
        }
        self.recharge(bytes);
    }

    fn recharge(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.state.change(before, bytes);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.recharge(0);
    }
}
