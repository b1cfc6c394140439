//! The queue of ready tasks, and the wakers that fill it, also from other threads.

use crate::alarm::Alarm;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Wake;

/// Identifies a task; a later task in the same slot has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskId {
    /// Slot in the task table.
    pub index: u32,
    /// Number of earlier tasks in the slot.
    pub generation: u32,
}

impl TaskId {
    /// The future given to `block_on`; it is not in the task table.
    pub const ROOT: TaskId = TaskId { index: u32::MAX, generation: 0 };
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<TaskId>,
    /// The executor's thread waits in the kernel and must be woken through the alarm.
    parked: bool,
}

/// Tasks to poll, in FIFO order.
pub(crate) struct ReadyQueue {
    queue: Mutex<Queue>,
    /// Interrupts the executor's wait in the kernel; none if it never waits there.
    alarm: Option<Alarm>,
}

impl ReadyQueue {
    /// A queue for an executor that never waits in the kernel.
    pub fn new() -> ReadyQueue {
        ReadyQueue { queue: Mutex::new(Queue::default()), alarm: None }
    }

    /// A queue that can interrupt its executor's wait in the kernel.
    pub fn with_alarm(alarm: Alarm) -> ReadyQueue {
        ReadyQueue { queue: Mutex::new(Queue::default()), alarm: Some(alarm) }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics while it holds the lock, so a poisoned queue is still valid.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, task: TaskId) {
        let mut queue = self.lock();
        queue.ready.push_back(task);
        let sleeping = std::mem::take(&mut queue.parked);
        drop(queue);
        if sleeping && let Some(alarm) = &self.alarm {
            alarm.sound();
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

    /// Announces that the executor is about to wait for the alarm. False if a task has become ready
    /// meanwhile, so that it must not wait.
    pub fn park(&self) -> bool {
        let mut queue = self.lock();
        queue.parked = queue.ready.is_empty();
        queue.parked
    }

    /// The executor runs again.
    pub fn unpark(&self) {
        self.lock().parked = false;
        if let Some(alarm) = &self.alarm {
            alarm.silence();
        }
    }

    /// Sounded when a task is woken while the executor is parked.
    pub fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_ref()
    }
}

/// Wakes one task; cloned by the futures that the task polls.
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

    /// Called just before the task is polled: later wakes queue it again.
    pub fn left_queue(&self) {
        // Not a plain store: a thread that found the task queued, and so did not queue it, had made
        // its changes before, and the poll must see them.
        self.queued.swap(false, Ordering::AcqRel);
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
