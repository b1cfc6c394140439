//! The pump: polls the FTL, and hands completions to the tasks that wait for them.

use crate::requests::Requests;
use crate::view::View;
use crate::waiting::DeviceWaits;
use softflash_base::Time;
use softflash_ftl::{Done, Ftl, FtlError, Hint, RequestId};
use softflash_runtime::{Notify, yield_now};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// An FTL with its requests under way.
pub(crate) struct Driver {
    /// Before the FTL, which has the device: the fields drop in this order.
    waits: DeviceWaits,
    pub(crate) ftl: RefCell<Ftl>,
    /// Rings when the FTL has commands to submit.
    pub(crate) submitted: Notify,
    requests: RefCell<Requests>,
    /// The views that are in use. The pump ends with the last one.
    views: Cell<usize>,
    /// A view has left in good order: the pump ends when all requests have.
    completes: Cell<bool>,
}

impl Driver {
    /// A driver for so many views.
    pub(crate) fn new(ftl: Ftl, waits: DeviceWaits, views: usize) -> Driver {
        Driver {
            waits,
            ftl: RefCell::new(ftl),
            submitted: Notify::new(),
            requests: RefCell::default(),
            views: Cell::new(views),
            completes: Cell::new(false),
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Time {
        self.waits.runtime().now()
    }

    /// A view is used no more.
    pub(crate) fn view_ended(&self) {
        let views = self.views.get();
        assert!(views > 0, "a view of flash ends that no one has");
        self.views.set(views - 1);
        self.submitted.notify_one();
    }

    /// The units of a view have left: it is used no more once its requests have completed.
    pub(crate) fn view_left(&self) {
        self.completes.set(true);
        self.view_ended();
    }

    fn is_needed(&self) -> bool {
        self.views.get() > 0 || (self.completes.get() && !self.ftl.borrow().idle())
    }

    /// Requests a flush.
    pub(crate) fn flush(
        self: &Rc<Self>,
        view: &Rc<View>,
        hint: Hint,
    ) -> impl Future<Output = Result<(), FtlError>> + use<> {
        let request = self.ftl.borrow_mut().flush(self.now(), hint);
        let done = self.done(view, request);
        async move { done.await.result }
    }

    /// The completion of a request of a view that was just submitted. There is none once the view
    /// is stopped.
    pub(crate) fn done(
        self: &Rc<Self>,
        view: &Rc<View>,
        request: RequestId,
    ) -> impl Future<Output = Done> + use<> {
        let (driver, view) = (Rc::clone(self), Rc::clone(view));
        let slot = driver.requests.borrow_mut().add(request);
        driver.submitted.notify_one();
        let mut waiter = Waiter { driver, slot: Some(slot) };
        poll_fn(move |context| match waiter.poll(context.waker()) {
            Some(done) if !view.is_stopped() => Poll::Ready(done),
            _ => Poll::Pending,
        })
    }

    /// Polls the FTL and wakes the tasks whose requests have completed, until the last view is
    /// stopped or has left.
    pub(crate) async fn pump(&self) {
        let mut done = Vec::new();
        while self.is_needed() {
            let wake = {
                let mut ftl = self.ftl.borrow_mut();
                ftl.poll(self.now(), &mut done);
                ftl.wake()
            };
            if done.is_empty() {
                // The last command may have ended without a request.
                if self.is_needed() {
                    self.waits.wait(wake, Some(&self.submitted)).await;
                }
            } else {
                for done in done.drain(..) {
                    let waker = self.requests.borrow_mut().finish(done);
                    waker.into_iter().for_each(Waker::wake);
                }
                // Lets the woken tasks submit their next requests before the device is polled
                // again.
                yield_now().await;
            }
        }
    }
}

/// Waits for one request; abandons it when dropped.
struct Waiter {
    driver: Rc<Driver>,
    slot: Option<usize>,
}

impl Waiter {
    fn poll(&mut self, waker: &Waker) -> Option<Done> {
        let done = self.driver.requests.borrow_mut().poll(self.slot?, waker)?;
        self.slot = None;
        Some(done)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.driver.requests.borrow_mut().abandon(slot);
        }
    }
}
