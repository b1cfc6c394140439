//! A task that works on request: one run serves all that wait when it begins.

use crate::error::VolumeError;
use crate::frames::Completion;
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};

/// The requests for the runs of a task.
#[derive(Default)]
pub(crate) struct OnRequest {
    wake: Notify,
    is_asked: Cell<bool>,
    waiters: RefCell<Vec<Completion>>,
}

impl OnRequest {
    /// Asks for a run that nobody waits for.
    pub fn ask(&self) {
        self.is_asked.set(true);
        self.wake.notify_one();
    }

    /// Asks for a run that begins from now on, and waits for its result.
    pub async fn run(&self) -> Result<(), VolumeError> {
        let completion = Completion::default();
        self.waiters.borrow_mut().push(completion.clone());
        self.ask();
        completion.wait().await
    }

    /// Waits for the next request, or until the task is woken; returns those that wait for the run,
    /// or nothing if none was asked for.
    pub async fn next(&self) -> Option<Vec<Completion>> {
        self.wake.notified().await;
        self.is_asked.replace(false).then(|| self.waiters.take())
    }

    /// Wakes the task, which ends; nobody waits for it any more.
    pub fn stop(&self) {
        self.wake.notify_one();
        self.waiters.take().into_iter().for_each(|waiter| waiter.end(Err(VolumeError::Stopped)));
    }
}
