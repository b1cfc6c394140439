//! The state of flushes under every interleaving of two threads: once a flush has reported a
//! failure, no flush reports success, and all report the same error.

use command::DeviceError;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use settled::Settled;
use std::sync::Arc;

#[path = "../src/file/settled.rs"]
mod settled;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicI32, Ordering};
}

mod command {
    pub(crate) use softflash_device::DeviceError;
}

#[test]
fn nothing_succeeds_after_a_failure_was_told() {
    loom::model(|| {
        let (settled, told) = (Arc::new(Settled::default()), Arc::new(AtomicBool::new(false)));
        let failing = {
            let (settled, told) = (Arc::clone(&settled), Arc::clone(&told));
            thread::spawn(move || {
                assert!(settled.judge(Err(DeviceError::Io { errno: 5 })).is_err());
                told.store(true, Ordering::Release);
            })
        };
        let after = told.load(Ordering::Acquire);
        let judged = settled.judge(Ok(()));
        assert!(!after || judged == Err(DeviceError::Unsettled { errno: 5 }), "{judged:?}");
        failing.join().unwrap();
        assert_eq!(settled.judge(Ok(())), Err(DeviceError::Unsettled { errno: 5 }));
    });
}

#[test]
fn the_first_of_two_failures_is_the_last_word() {
    loom::model(|| {
        let settled = Arc::new(Settled::default());
        let fail = |errno: i32| {
            let settled = Arc::clone(&settled);
            thread::spawn(move || settled.judge(Err(DeviceError::Io { errno })))
        };
        let (one, other) = (fail(5), fail(28));
        let (one, other) = (one.join().unwrap(), other.join().unwrap());
        assert!(one == other && settled.check() == one, "{one:?}, {other:?}");
    });
}
