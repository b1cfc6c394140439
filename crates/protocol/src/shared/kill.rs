//! A one-shot signal from any thread to one task.

#[cfg(not(feature = "loom"))]
use futures_util::task::AtomicWaker;
#[cfg(feature = "loom")]
use loom::{
    future::AtomicWaker,
    sync::atomic::{AtomicBool, Ordering},
};
use std::future::poll_fn;
#[cfg(not(feature = "loom"))]
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

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

    #[cfg(not(feature = "loom"))]
    fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    #[cfg(feature = "loom")]
    fn register(&self, waker: &Waker) {
        self.waker.register(waker.clone());
    }

    /// Completes when the switch is thrown.
    pub async fn thrown(&self) {
        poll_fn(|context| {
            // Register first, so that a concurrent throw is not missed.
            self.register(context.waker());
            if self.is_thrown() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Under every interleaving of two threads. A missed throw makes the model wait for ever, which
/// loom reports.
#[cfg(all(test, feature = "loom"))]
mod model {
    use super::KillSwitch;
    use loom::future::block_on;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn a_waiting_task_is_woken() {
        loom::model(|| {
            let switch = Arc::new(KillSwitch::new());
            let killer = {
                let switch = Arc::clone(&switch);
                thread::spawn(move || switch.throw())
            };
            block_on(switch.thrown());
            assert!(switch.is_thrown());
            killer.join().unwrap();
        });
    }
}
