//! Units leave a view, and others join it, while it is in use.

use crate::flash::Flash;
use softflash_base::UnitId;
use softflash_ftl::{Done, FtlError};
use std::future::Future;
use std::rc::Rc;

impl Flash {
    /// Takes a unit out of the view at once, and completes when another queue pair can open it:
    /// commands for it that are under way end first. If it was the last unit of the view in its
    /// FTL, the view needs that FTL no more: its pump ends once all requests there have completed.
    ///
    /// # Errors
    /// [`InUse`](FtlError::InUse) if its superblocks are not all released: the unit stays.
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn leave(&self, unit: u16) -> impl Future<Output = Result<(), FtlError>> + use<> {
        let done = self.take_out(unit);
        async move { done?.await.result }
    }

    fn take_out(&self, unit: u16) -> Result<impl Future<Output = Done> + use<>, FtlError> {
        let id = UnitId(unit);
        if !self.view.contains(unit) {
            return Err(FtlError::NotOurs { unit: id });
        }
        let done = self.with_driver(id, |driver| {
            let request = driver.ftl.borrow_mut().leave(id)?;
            Ok(driver.done(&self.view, request))
        })?;
        let unused = self.view.take_out(&self.driver, unit);
        if let Some(driver) = unused.filter(|_| !self.view.is_stopped()) {
            driver.view_left();
        }
        Ok(done)
    }

    /// The units of another view become units of this one: `other` has none afterwards, and need
    /// not be stopped. Its requests under way complete. Both views run on one thread, and their
    /// units have the same owner.
    ///
    /// # Errors
    /// [`Unsupported`](FtlError::Unsupported) if its flash is of another device or geometry:
    /// `other` is stopped.
    ///
    /// # Panics
    /// If one of the views is stopped, or both have a unit.
    pub fn join(&self, other: Flash) -> Result<(), FtlError> {
        let stopped = [self, &other].map(|flash| flash.view.is_stopped());
        assert_eq!(stopped, [false; 2], "units join a view that is in use, from one that is");
        if let Some(reason) = self.unlike(&other) {
            other.stop();
            return Err(FtlError::Unsupported { reason });
        }
        let shared = self.units().shared_with(&other.units());
        assert!(shared.is_none(), "a unit of both views: {shared:?}");
        self.view.take_over(&other.view, Rc::clone(&other.driver));
        Ok(())
    }

    /// The difference between two views that keeps the units of one from joining the other.
    fn unlike(&self, other: &Flash) -> Option<String> {
        let (ours, theirs) = (self.driver.ftl.borrow(), other.driver.ftl.borrow());
        if ours.device_uuid() != theirs.device_uuid() {
            return Some("units of another device cannot join".to_owned());
        }
        let shapes = [&ours, &theirs].map(|ftl| (*ftl.geometry(), ftl.payload_pages()));
        let [(ours, our_pages), (theirs, their_pages)] = shapes;
        ((ours, our_pages) != (theirs, their_pages))
            .then(|| format!("units of {theirs:?} cannot join units of {ours:?}"))
    }
}
