//! The ready queue under every interleaving: no wake from another thread is lost, and the executor
//! waits only when no task is ready. A lost wake makes the model wait for ever, which loom reports.

#![expect(clippy::unwrap_used, reason = "a model ends at the first error")]

use alarm::Alarm;
use loom::model::Builder;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use ready::{ReadyQueue, TaskId, TaskWaker};
use std::sync::Arc;
use std::task::Waker;

#[path = "../src/ready.rs"]
#[allow(dead_code, reason = "the executor uses the rest")]
mod ready;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

mod alarm {
    use loom::sync::{Condvar, Mutex};
    use std::sync::PoisonError;

    /// An alarm whose wait is visible to the model.
    #[derive(Default)]
    pub(crate) struct Alarm {
        sounds: Mutex<bool>,
        bell: Condvar,
    }

    impl Alarm {
        pub fn sound(&self) {
            *self.sounds.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.bell.notify_one();
        }

        pub fn silence(&self) {
            *self.sounds.lock().unwrap_or_else(PoisonError::into_inner) = false;
        }

        /// Like the kernel's wait: returns when the alarm sounds.
        pub fn wait(&self) {
            let mut sounds = self.sounds.lock().unwrap_or_else(PoisonError::into_inner);
            while !*sounds {
                sounds = self.bell.wait(sounds).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

const PREEMPTIONS: usize = 3;
const TASK: TaskId = TaskId { index: 0, generation: 0 };

/// Runs one task like an executor, until the task has seen `events`; each thread produces one.
fn run(events: usize) {
    let queue = Arc::new(ReadyQueue::with_alarm(Alarm::default()));
    let waker = TaskWaker::new(TASK, Arc::clone(&queue));
    let brought = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..events)
        .map(|_| {
            let (waker, brought) = (Waker::from(Arc::clone(&waker)), Arc::clone(&brought));
            thread::spawn(move || {
                brought.fetch_add(1, Ordering::Release);
                waker.wake();
            })
        })
        .collect();
    let mut seen = 0;
    while seen < events {
        while let Some(task) = queue.pop() {
            assert_eq!(task, TASK);
            waker.left_queue();
            seen = brought.load(Ordering::Acquire);
        }
        if seen < events && queue.park() {
            queue.alarm().unwrap().wait();
            queue.unpark();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(queue.len() <= 1, "a task is queued once at a time");
}

#[test]
fn no_wake_of_another_thread_is_lost() {
    loom::model(|| run(1));
}

#[test]
fn no_wake_of_two_threads_is_lost() {
    // All interleavings with this many preemptions; all possible ones would take minutes.
    let mut model = Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(|| run(2));
}
