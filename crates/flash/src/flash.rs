//! The handle of an owner's flash. Each method submits a request at once.

use crate::pump::Driver;
use crate::view::View;
use crate::waiting::DeviceWaits;
use futures_util::future::try_join_all;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, UnitId, UnitSet};
use softflash_device::{Device, QueuePair};
use softflash_ftl::{
    Done, Ftl, FtlConfig, FtlError, Hint, Inventory, OwnerTag, Owners, Ownership, SpaceAccount,
    Superblock, UnitTelemetry,
};
use softflash_runtime::RuntimeHandle;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

/// The flash of a shard as one of its owners has it: a view of the owner's units. A clone is the
/// same view. The views that are mounted together share an FTL; others [join](Flash::join) with
/// theirs.
#[derive(Clone)]
pub struct Flash {
    pub(crate) driver: Rc<Driver>,
    pub(crate) view: Rc<View>,
}

/// A view that has just been mounted.
pub struct MountedFlash {
    /// The view.
    pub flash: Flash,
    /// The superblocks that the mount found in its units.
    pub inventory: Inventory,
}

/// Flash to open something on.
pub enum FlashSource {
    /// A device: its units are still to be mounted.
    Device(Arc<dyn Device>),
    /// Units that have been mounted together with those of other owners.
    Mounted(MountedFlash),
}

impl FlashSource {
    /// Ends flash on which nothing is opened.
    pub fn stop(&self) {
        if let FlashSource::Mounted(mounted) = self {
            mounted.flash.stop();
        }
    }
}

/// Pages that were read.
pub struct ReadPages {
    /// Their contents.
    pub bytes: IoBuf,
    /// The most read retries of any of the pages.
    pub retries: u8,
}

/// The result of an append, and its buffer.
pub type Outcome = (Result<(), FtlError>, Option<IoBuf>);

impl Flash {
    /// Mounts the units of a queue pair for the block layer, and starts the pump.
    ///
    /// # Errors
    /// Those of a mount of the FTL.
    pub async fn mount(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        runtime: RuntimeHandle,
    ) -> Result<(Flash, Inventory), FtlError> {
        Flash::mount_of(queue, config, Ownership::BLOCKS, runtime).await
    }

    /// As [`mount`](Flash::mount), for another owner.
    ///
    /// # Errors
    /// Those of a mount of the FTL.
    pub async fn mount_of(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        ownership: Ownership,
        runtime: RuntimeHandle,
    ) -> Result<(Flash, Inventory), FtlError> {
        let owners = Owners::one(queue.units().clone(), ownership);
        Flash::mount_one(queue, config, owners, runtime).await
    }

    /// As [`mount`](Flash::mount), for owners of which one view has all units.
    ///
    /// # Errors
    /// Those of a mount of the FTL.
    ///
    /// # Panics
    /// If the units of the queue pair are not those of the owners.
    pub async fn mount_one(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        owners: Owners,
        runtime: RuntimeHandle,
    ) -> Result<(Flash, Inventory), FtlError> {
        let units = queue.units().clone();
        let (driver, inventory) = Flash::start(queue, config, owners, 1, runtime).await?;
        Ok((Flash { driver, view: Rc::new(View::new(units)) }, inventory))
    }

    /// Mounts the units of a queue pair for several owners, and starts the pump. Returns a view for
    /// each, in their order; each has to be [stopped](Flash::stop).
    ///
    /// # Errors
    /// Those of a mount of the FTL, of any unit.
    ///
    /// # Panics
    /// If the units of the queue pair are not those of the owners.
    pub async fn mount_for(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        owners: Owners,
        runtime: RuntimeHandle,
    ) -> Result<Vec<MountedFlash>, FtlError> {
        let sets: Vec<UnitSet> = owners.sets().cloned().collect();
        let (driver, mut inventory) =
            Flash::start(queue, config, owners, sets.len(), runtime).await?;
        let view = |units: UnitSet| {
            let inventory = inventory.split_off(&units);
            let flash = Flash { driver: Rc::clone(&driver), view: Rc::new(View::new(units)) };
            MountedFlash { flash, inventory }
        };
        Ok(sets.into_iter().map(view).collect())
    }

    async fn start(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        owners: Owners,
        views: usize,
        runtime: RuntimeHandle,
    ) -> Result<(Rc<Driver>, Inventory), FtlError> {
        let mut mounting = Ftl::mount_for(queue, config, owners);
        let waits = DeviceWaits::new(runtime.clone());
        let (ftl, inventory) = loop {
            if let Some(mounted) = mounting.poll(runtime.now()) {
                break mounted?;
            }
            waits.wait(mounting.wake(), None).await;
        };
        let driver = Rc::new(Driver::new(ftl, waits, views));
        let pump = Rc::clone(&driver);
        runtime.spawn(Box::pin(async move { pump.pump().await }));
        Ok((driver, inventory))
    }

    /// Ends the view without waiting for its requests under way, which never complete. The pump
    /// ends with the last view.
    pub fn stop(&self) {
        if self.view.stop() {
            self.view.drivers(&self.driver).iter().for_each(|driver| driver.view_ended());
        }
    }

    /// Calls `call` with the driver of a unit.
    #[inline]
    pub(crate) fn with_driver<T>(&self, unit: UnitId, call: impl FnOnce(&Rc<Driver>) -> T) -> T {
        match self.view.joined_driver(unit) {
            Some(driver) => call(&driver),
            None => call(&self.driver),
        }
    }

    /// Asks the FTL of a unit. The answer about a unit that has left with its FTL is the default.
    fn ask<T: Default>(&self, unit: u16, ask: impl FnOnce(&Ftl, UnitId) -> T) -> T {
        let unit = UnitId(unit);
        self.with_driver(unit, |driver| {
            let ftl = driver.ftl.borrow();
            match self.view.has_changed() && !ftl.units().contains(unit.0) {
                true => T::default(),
                false => ask(&ftl, unit),
            }
        })
    }

    /// Allocates a free superblock of `unit`.
    pub fn allocate(&self, unit: u16, tag: OwnerTag, hint: Hint) -> Result<Superblock, FtlError> {
        let id = UnitId(unit);
        if !self.view.contains(unit) {
            return Err(FtlError::NotOurs { unit: id });
        }
        self.with_driver(id, |driver| {
            let now = driver.now();
            let superblock = driver.ftl.borrow_mut().allocate(now, id, tag, hint);
            driver.submitted.notify_one();
            superblock
        })
    }

    /// Appends whole pages; returns the first page's number at once and the outcome when they are
    /// programmed. Appends take effect in the order of the calls.
    pub fn append(
        &self,
        superblock: &Superblock,
        data: IoBuf,
        durable: bool,
        hint: Hint,
    ) -> Result<(u32, impl Future<Output = Outcome> + use<>), (FtlError, IoBuf)> {
        let (first_page, done) = self.with_driver(superblock.unit, |driver| {
            let now = driver.now();
            let mut ftl = driver.ftl.borrow_mut();
            let (request, first_page) = ftl.append(now, superblock, data, durable, hint)?;
            Ok((first_page, driver.done(&self.view, request)))
        })?;
        Ok((first_page, async move {
            let Done { result, buffer, .. } = done.await;
            (result, buffer)
        }))
    }

    /// Reads whole pages.
    pub async fn read(
        &self,
        superblock: &Superblock,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<ReadPages, FtlError> {
        let done = self.with_driver(superblock.unit, |driver| {
            let now = driver.now();
            let mut ftl = driver.ftl.borrow_mut();
            let bytes = pages as usize * ftl.page_bytes() as usize;
            let buffer = ftl.buffers().take(bytes);
            let request = ftl
                .read(now, superblock, first_page, pages, buffer, hint)
                .map_err(|(error, _)| error)?;
            Ok(driver.done(&self.view, request))
        })?;
        let Done { result, buffer, retries, .. } = done.await;
        match (result, buffer) {
            (Ok(()), Some(bytes)) => Ok(ReadPages { bytes, retries }),
            (Ok(()), None) => Err(FtlError::Damaged {
                unit: superblock.unit,
                reason: "a read completed without its buffer".into(),
            }),
            (Err(error), _) => Err(error),
        }
    }

    /// Completes when every append that completed before is durable.
    pub async fn flush(&self, hint: Hint) -> Result<(), FtlError> {
        if !self.view.has_changed() {
            return self.driver.flush(&self.view, hint).await;
        }
        let mut drivers = self.view.drivers(&self.driver);
        if planted::bug(Bug::JoinedUnitNotFlushed) {
            drivers.truncate(1);
        }
        let flushes = drivers.iter().map(|driver| driver.flush(&self.view, hint));
        try_join_all(flushes).await.map(drop)
    }

    /// Ends the appends to a superblock.
    pub fn seal(&self, superblock: &Superblock) {
        self.with_driver(superblock.unit, |driver| driver.ftl.borrow_mut().seal(superblock));
    }

    /// Releases a superblock.
    pub fn release(&self, superblock: &Superblock) {
        self.with_driver(superblock.unit, |driver| {
            driver.ftl.borrow_mut().release(driver.now(), superblock);
            driver.submitted.notify_one();
        });
    }

    /// Completes when all free superblocks of a unit are erased, and that is durable.
    pub async fn erase_free(&self, unit: u16) -> Result<(), FtlError> {
        let id = UnitId(unit);
        let done = self.with_driver(id, |driver| {
            let request = driver.ftl.borrow_mut().erase_free(driver.now(), id)?;
            Ok(driver.done(&self.view, request))
        })?;
        done.await.result
    }

    /// Starts no erase ahead of need on a unit from now on, or some again. A unit that has left
    /// starts none anyway.
    pub fn hold_erases(&self, unit: u16, is_held: bool) {
        self.with_driver(UnitId(unit), |driver| {
            driver.ftl.borrow_mut().hold_erases(UnitId(unit), is_held).ok();
            driver.submitted.notify_one();
        });
    }

    /// Whether a unit programs or erases, or will soon.
    pub fn is_changing(&self, unit: u16) -> bool {
        self.ask(unit, Ftl::is_changing)
    }

    /// A buffer for an append.
    pub fn buffer(&self, bytes: usize) -> IoBuf {
        self.driver.ftl.borrow().buffers().take(bytes)
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.driver.ftl.borrow().page_bytes() as usize
    }

    /// Bytes of a superblock that its owner can write.
    pub fn payload_bytes(&self) -> usize {
        let ftl = self.driver.ftl.borrow();
        ftl.payload_pages() as usize * ftl.page_bytes() as usize
    }

    /// Pages of a superblock that its dies and planes program side by side: once a page is
    /// programmed that is so many pages further on, a program was complete.
    pub fn row_pages(&self) -> u32 {
        self.driver.ftl.borrow().row_pages()
    }

    /// The number of appended pages from which on a power cut in a later append cannot damage any
    /// of the first `pages` pages.
    pub fn safe_after(&self, pages: u32) -> u32 {
        self.driver.ftl.borrow().safe_after(pages)
    }

    /// The owner's units. They change when a unit [leaves](Flash::leave) or others
    /// [join](Flash::join).
    pub fn units(&self) -> UnitSet {
        self.view.units()
    }

    /// The device's identity.
    pub fn device_uuid(&self) -> u128 {
        self.driver.ftl.borrow().device_uuid()
    }

    /// A unit's queue length.
    pub fn load(&self, unit: u16) -> u32 {
        self.ask(unit, Ftl::load)
    }

    /// A unit's superblocks by state.
    pub fn space(&self, unit: u16) -> SpaceAccount {
        self.ask(unit, Ftl::space)
    }

    /// The greatest generation in a header on the unit's flash.
    pub fn newest_generation(&self, unit: u16) -> u64 {
        self.ask(unit, Ftl::newest_generation)
    }

    /// Erases of the most worn block of a unit.
    pub fn most_erases(&self, unit: u16) -> u32 {
        self.ask(unit, Ftl::most_erases)
    }

    /// The superblock of a unit that its owner should rewrite elsewhere, because its data are cold
    /// while other blocks wear out: of those whose index it `can_move`. Scans the superblocks of
    /// the unit.
    pub fn worth_moving(&self, unit: u16, can_move: impl Fn(u32) -> bool) -> Option<Superblock> {
        self.ask(unit, |ftl, unit| ftl.worth_moving(unit, can_move))
    }

    /// A unit's state.
    pub fn telemetry(&self, unit: u16) -> UnitTelemetry {
        self.ask(unit, |ftl, unit| Some(ftl.telemetry(unit)))
            .unwrap_or_else(|| UnitTelemetry { unit: UnitId(unit), ..UnitTelemetry::default() })
    }
}
