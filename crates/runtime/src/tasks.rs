//! The table of spawned tasks.

use crate::ready::{ReadyQueue, TaskId, TaskWaker};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// A spawned task; taken out of the table while it is polled.
pub(crate) struct Task {
    future: LocalBoxFuture<'static, ()>,
    waker: Waker,
    flag: Arc<TaskWaker>,
}

impl Task {
    /// Polls the task once; true when it has completed.
    pub fn poll(&mut self) -> bool {
        self.flag.left_queue();
        let mut context = std::task::Context::from_waker(&self.waker);
        self.future.as_mut().poll(&mut context).is_ready()
    }
}

enum Slot {
    Free,
    /// The task is being polled.
    Running,
    Waiting(Task),
}

struct Entry {
    generation: u32,
    slot: Slot,
}

/// All tasks that have not completed. Slots are reused; generations distinguish their tasks.
#[derive(Default)]
pub(crate) struct Tasks {
    entries: Vec<Entry>,
    free: Vec<u32>,
    closed: bool,
}

impl Tasks {
    /// Adds a task and queues its first poll. Returns the future if the executor has ended.
    pub fn spawn(
        &mut self,
        future: LocalBoxFuture<'static, ()>,
        ready: &Arc<ReadyQueue>,
    ) -> Option<LocalBoxFuture<'static, ()>> {
        if self.closed {
            return Some(future);
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, slot: Slot::Free });
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        let flag =
            TaskWaker::new(TaskId { index, generation: entry.generation }, Arc::clone(ready));
        flag.wake_by_ref();
        entry.slot = Slot::Waiting(Task { future, waker: Waker::from(Arc::clone(&flag)), flag });
        None
    }

    /// Takes a task out to poll it; none if it has completed or is being polled.
    pub fn take(&mut self, id: TaskId) -> Option<Task> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        match std::mem::replace(&mut entry.slot, Slot::Running) {
            Slot::Waiting(task) => Some(task),
            other => {
                entry.slot = other;
                None
            }
        }
    }

    /// Returns a pending task to its slot. Returns the future if the executor has ended.
    pub fn put_back(&mut self, id: TaskId, task: Task) -> Option<Task> {
        match self.entries.get_mut(id.index as usize) {
            Some(entry) => {
                entry.slot = Slot::Waiting(task);
                None
            }
            None => Some(task),
        }
    }

    /// Frees the slot of a completed task.
    pub fn remove(&mut self, id: TaskId) {
        if let Some(entry) = self.entries.get_mut(id.index as usize) {
            entry.slot = Slot::Free;
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    /// Number of tasks that have not completed.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Refuses new tasks and returns the old ones, so that the caller can drop them while nothing
    /// is borrowed.
    pub fn close(&mut self) -> Vec<Task> {
        self.closed = true;
        self.free.clear();
        let entries = std::mem::take(&mut self.entries).into_iter();
        entries
            .filter_map(|entry| match entry.slot {
                Slot::Waiting(task) => Some(task),
                Slot::Free | Slot::Running => None,
            })
            .collect()
    }
}
