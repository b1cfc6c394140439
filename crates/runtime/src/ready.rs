//! The queue of tasks that can run, and the wakers that feed it, also from other threads.

use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// Names a task for as long as it lives; a later task in the same place has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskId {
    /// Place in the task table.
    pub index: u32,
    /// How many tasks had the place before.
    pub generation: u32,
}

impl TaskId {
    /// The future that `block_on` was given; it is not in the task table.
    pub const ROOT: TaskId = TaskId { index: u32::MAX, generation: 0 };
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<TaskId>,
    /// The executor's thread waits in the kernel and must be woken through the alarm.
    parked: bool,
}

/// Tasks to poll, first come, first served.
pub(crate) struct ReadyQueue {
    queue: Mutex<Queue>,
    /// Interrupts the executor's wait in the kernel; none where it never waits there.
    alarm: Option<OwnedFd>,
}

impl ReadyQueue {
    /// A queue for an executor that never waits in the kernel.
    pub fn new() -> ReadyQueue {
        ReadyQueue { queue: Mutex::default(), alarm: None }
    }

    /// A queue that can interrupt its executor's wait in the kernel.
    pub fn with_alarm() -> io::Result<ReadyQueue> {
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(ReadyQueue { queue: Mutex::default(), alarm: Some(alarm) })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock, so a poisoned queue is still whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, task: TaskId) {
        let mut queue = self.lock();
        queue.ready.push_back(task);
        let sleeping = std::mem::take(&mut queue.parked);
        drop(queue);
        if sleeping {
            self.sound_alarm();
        }
    }

    pub fn pop(&self) -> Option<TaskId> {
        self.lock().ready.pop_front()
    }

    pub fn len(&self) -> usize {
        self.lock().ready.len()
    }

    pub fn clear(&self) {
        self.lock().ready.clear();
    }

    /// Announces that the executor is about to wait for the alarm. False where a task became ready
    /// in the meantime and it must not wait.
    pub fn park(&self) -> bool {
        let mut queue = self.lock();
        queue.parked = queue.ready.is_empty();
        queue.parked
    }

    /// The executor is awake again.
    pub fn unpark(&self) {
        self.lock().parked = false;
        if let Some(alarm) = &self.alarm {
            // Not readable (no alarm was sounded) is as good as drained.
            let _ = rustix::io::read(alarm, &mut [0_u8; 8]);
        }
    }

    /// The descriptor that becomes readable when a task is woken while the executor is parked.
    pub fn alarm(&self) -> Option<BorrowedFd<'_>> {
        self.alarm.as_ref().map(AsFd::as_fd)
    }

    fn sound_alarm(&self) {
        if let Some(alarm) = &self.alarm {
            // The only failure is a counter that is full, and then the alarm sounds already.
            let _ = rustix::io::write(alarm, &1_u64.to_ne_bytes());
        }
    }
}

/// Wakes one task; cloned into whatever the task waits for.
pub(crate) struct TaskWaker {
    task: TaskId,
    queued: AtomicBool,
    queue: Arc<ReadyQueue>,
}

impl TaskWaker {
    /// A waker for `task`, which is not queued yet.
    pub fn new(task: TaskId, queue: Arc<ReadyQueue>) -> Arc<TaskWaker> {
        Arc::new(TaskWaker { task, queued: AtomicBool::new(false), queue })
    }

    /// Called just before the task is polled: wakes from now on queue it again.
    pub fn left_queue(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.queue.push(self.task);
        }
    }
}
