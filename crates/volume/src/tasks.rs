//! The background tasks of a domain: what they are asked for, and their end.

use crate::collection::Collection;
use crate::error::VolumeError;
use crate::on_request::OnRequest;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use softflash_base::Time;
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The tasks of a domain.
pub(crate) struct Tasks {
    runtime: RuntimeHandle,
    flushes: OnRequest,
    checkpoints: OnRequest,
    /// Wakes the task that proves the changes of a flush.
    unproven: Notify,
    collection: Collection,
    stopped: Cell<bool>,
}

impl Tasks {
    pub fn new(runtime: RuntimeHandle, units: u32) -> Tasks {
        Tasks {
            runtime,
            flushes: OnRequest::default(),
            checkpoints: OnRequest::default(),
            unproven: Notify::new(),
            collection: Collection::new(units),
            stopped: Cell::new(false),
        }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.runtime.spawn(Box::pin(task));
    }

    /// Spawns a task whose first part runs at once, up to where it has to wait.
    pub fn spawn_begun(&self, task: impl Future<Output = ()> + 'static) {
        let mut task: LocalBoxFuture<'static, ()> = Box::pin(task);
        if task.as_mut().now_or_never().is_none() {
            self.runtime.spawn(task);
        }
    }

    pub fn runtime(&self) -> RuntimeHandle {
        Rc::clone(&self.runtime)
    }

    pub fn now(&self) -> Time {
        self.runtime.now()
    }

    pub fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()> {
        self.runtime.sleep_until(at)
    }

    /// Fails if the domain was stopped.
    pub fn check_running(&self) -> Result<(), VolumeError> {
        if self.is_stopped() { Err(VolumeError::Stopped) } else { Ok(()) }
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Waits for a flush that begins from now on.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        self.check_running()?;
        self.flushes.run().await
    }

    /// Asks for a flush that nobody waits for.
    pub fn ask_for_flush(&self) {
        self.flushes.ask();
    }

    /// Makes a flush for each request until the domain is stopped.
    pub async fn serve_flushes(&self, flush: impl AsyncFn() -> Result<(), VolumeError>) {
        self.serve(&self.flushes, flush).await;
    }

    /// Waits for a checkpoint that begins from now on.
    pub async fn checkpoint(&self) -> Result<(), VolumeError> {
        self.check_running()?;
        self.checkpoints.run().await
    }

    /// Asks for a checkpoint that nobody waits for.
    pub fn ask_for_checkpoint(&self) {
        self.checkpoints.ask();
    }

    /// Makes a checkpoint for each request until the domain is stopped.
    pub async fn serve_checkpoints(&self, make: impl AsyncFn() -> Result<(), VolumeError>) {
        self.serve(&self.checkpoints, make).await;
    }

    async fn serve(&self, requests: &OnRequest, run: impl AsyncFn() -> Result<(), VolumeError>) {
        loop {
            let asked = requests.next().await;
            if self.is_stopped() {
                return;
            }
            let Some(waiting) = asked else { continue };
            let result = run().await;
            for completion in waiting {
                completion.end(result.clone());
            }
        }
    }

    /// A flush has left changes that are not proven.
    pub fn ask_for_proof(&self) {
        self.unproven.notify_one();
    }

    /// Waits until a flush has left changes that are not proven, and so long after it.
    pub async fn proof_due(&self, after: Duration) {
        self.unproven.notified().await;
        self.sleep_until(self.now() + after).await;
    }

    /// Waits so long, or until the domain is stopped: that is looked at once a second.
    pub async fn pause(&self, time: Duration) {
        let end = self.now() + time;
        while !self.is_stopped() && self.now() < end {
            self.sleep_until(end.min(self.now() + Duration::from_secs(1))).await;
        }
    }

    /// The collection of the units.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Lets all tasks end.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.flushes.stop();
        self.checkpoints.stop();
        self.unproven.notify_one();
        self.collection.wake_all();
    }
}
