//! A one-shot signal from any thread to one task.

use crate::shared::sync::{AtomicBool, AtomicWaker, Ordering};
use std::future::poll_fn;
use std::task::Poll;

#[derive(Debug)]
pub(crate) struct KillSwitch {
    thrown: AtomicBool,
    waker: AtomicWaker,
}

impl KillSwitch {
    pub fn new() -> KillSwitch {
        KillSwitch { thrown: AtomicBool::new(false), waker: AtomicWaker::new() }
    }

    pub fn throw(&self) {
        self.thrown.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn is_thrown(&self) -> bool {
        self.thrown.load(Ordering::Acquire)
    }

    /// Completes when the switch is thrown.
    pub async fn thrown(&self) {
        poll_fn(|context| {
            // Register first, so that a concurrent throw is not missed.
            self.waker.register(context.waker());
            if self.is_thrown() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
