//! The kill switch under every interleaving of two threads. A missed throw makes the model wait for
//! ever, which loom reports.

use kill::KillSwitch;
use loom::future::block_on;
use loom::thread;
use std::sync::Arc;

#[path = "../src/shared/kill.rs"]
mod kill;

mod shared {
    pub(crate) mod sync {
        pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
        use std::task::Waker;

        /// loom's waker, with the signature of the other one.
        #[derive(Debug)]
        pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

        impl AtomicWaker {
            pub(crate) fn new() -> AtomicWaker {
                AtomicWaker(loom::future::AtomicWaker::new())
            }

            pub(crate) fn register(&self, waker: &Waker) {
                self.0.register_by_ref(waker);
            }

            pub(crate) fn wake(&self) {
                self.0.wake();
            }
        }
    }
}

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
