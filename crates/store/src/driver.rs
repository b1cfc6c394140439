//! The flash as tasks await it: turns the FTL's requests into futures.
//!
//! One *pump* task per shard polls the FTL and sleeps until the device has something to tell. Requests
//! are submitted at once, in the order in which they are made; the pump starts them together when the
//! tasks that are ready have run, so one system call serves many.

use crate::error::{Result, StoreError};
use futures_util::future::{Either, select};
use softflash_base::IoBuf;
use softflash_device::{DeviceError, QueuePair, Wake};
use softflash_ftl::{
    Done, Ftl, FtlConfig, FtlError, Hint, Inventory, OwnerTag, RequestId, SpaceAccount, Superblock,
    UnitTelemetry,
};
use softflash_runtime::{Notify, RuntimeHandle, yield_now};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A shard's flash. A clone is the same flash.
#[derive(Clone)]
pub struct Flash {
    inner: Rc<Inner>,
}

struct Inner {
    ftl: RefCell<Ftl>,
    runtime: RuntimeHandle,
    requests: RefCell<Requests>,
    submitted: Notify,
    stopped: Cell<bool>,
}

/// A request on its way: who waits for it, or what came of it.
enum Pending {
    Free,
    Unasked,
    /// Nobody waits any more.
    Forgotten,
    Awaited(Waker),
    Finished(Done),
}

/// Pages that were read.
pub struct ReadPages {
    /// Their contents.
    pub bytes: IoBuf,
    /// Read retries of the page that needed most.
    pub retries: u8,
}

/// What a finished append gives back: its buffer, with the outcome.
pub type Outcome = (Result<(), FtlError>, Option<IoBuf>);

/// What reading a page shows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageState {
    Readable,
    Uncorrectable,
    Erased,
}

impl Flash {
    /// Mounts the units of a queue pair and starts the pump.
    pub async fn mount(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        runtime: RuntimeHandle,
    ) -> Result<(Flash, Inventory)> {
        let mut mounting = Ftl::mount(queue, config);
        let (ftl, inventory) = loop {
            if let Some(mounted) = mounting.poll(runtime.now()) {
                break mounted?;
            }
            wait(&runtime, mounting.wake(), None).await;
        };
        let inner = Rc::new(Inner {
            ftl: RefCell::new(ftl),
            runtime,
            requests: RefCell::default(),
            submitted: Notify::new(),
            stopped: Cell::new(false),
        });
        let pump = Rc::clone(&inner);
        inner.runtime.spawn(Box::pin(async move { pump.pump().await }));
        Ok((Flash { inner }, inventory))
    }

    /// Lets the pump end; requests under way are not awaited.
    pub fn stop(&self) {
        self.inner.stopped.set(true);
        self.inner.submitted.notify_one();
    }

    /// Takes a free superblock of `unit`.
    pub fn allocate(&self, unit: u16, tag: OwnerTag, hint: Hint) -> Result<Superblock, FtlError> {
        let now = self.inner.runtime.now();
        let superblock =
            self.inner.ftl.borrow_mut().allocate(now, softflash_base::UnitId(unit), tag, hint);
        self.inner.submitted.notify_one();
        superblock
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
        let now = self.inner.runtime.now();
        let (request, first_page) =
            self.inner.ftl.borrow_mut().append(now, superblock, data, durable, hint)?;
        let done = self.done(request);
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
        let done = {
            let now = self.inner.runtime.now();
            let mut ftl = self.inner.ftl.borrow_mut();
            let bytes = pages as usize * ftl.page_bytes() as usize;
            let buffer = ftl.buffers().take(bytes);
            let request = ftl
                .read(now, superblock, first_page, pages, buffer, hint)
                .map_err(|(error, _)| error)?;
            drop(ftl);
            self.done(request)
        };
        let Done { result, buffer, retries, .. } = done.await;
        match (result, buffer) {
            (Ok(()), Some(bytes)) => Ok(ReadPages { bytes, retries }),
            (Ok(()), None) => Err(FtlError::Damaged {
                unit: superblock.unit,
                reason: "a read came back without its buffer".into(),
            }),
            (Err(error), _) => Err(error),
        }
    }

    /// Completes when all that was completed before survives a power cut.
    pub async fn flush(&self, hint: Hint) -> Result<(), FtlError> {
        let request = self.inner.ftl.borrow_mut().flush(self.inner.runtime.now(), hint);
        self.done(request).await.result
    }

    /// Ends the appends to a superblock.
    pub fn seal(&self, superblock: &Superblock) {
        self.inner.ftl.borrow_mut().seal(superblock);
    }

    /// Gives a superblock's space back.
    pub fn release(&self, superblock: &Superblock) {
        let now = self.inner.runtime.now();
        self.inner.ftl.borrow_mut().release(now, superblock);
        self.inner.submitted.notify_one();
    }

    /// A buffer for an append.
    pub fn buffer(&self, bytes: usize) -> IoBuf {
        self.inner.ftl.borrow().buffers().take(bytes)
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.inner.ftl.borrow().page_bytes() as usize
    }

    /// Bytes of a superblock that its owner can write.
    pub fn payload_bytes(&self) -> usize {
        let ftl = self.inner.ftl.borrow();
        ftl.payload_pages() as usize * ftl.page_bytes() as usize
    }

    /// How many pages of a superblock must be appended until a power cut in a later append cannot take any of the
    /// first `pages` along.
    pub fn safe_after(&self, pages: u32) -> u32 {
        self.inner.ftl.borrow().safe_after(pages)
    }

    /// Whether a page of a superblock was whole once and has been lost since: ECC cannot correct it, and what is
    /// programmed only behind it is there. A power cut leaves behind what looks the same in the last pages alone.
    pub async fn has_lost(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool, FtlError> {
        if self.page_state(superblock, page, hint).await? != PageState::Uncorrectable {
            return Ok(false);
        }
        let successors = self.inner.ftl.borrow().successors(superblock, page);
        for later in successors {
            if self.page_state(superblock, later, hint).await? != PageState::Erased {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a superblock has been written up to page `page` and on, as far as blocks tell that have room left: one whose
    /// erase was cut off reads like one that was full. Nor does a page tell that a program has gone astray to.
    pub async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool, FtlError> {
        let blocks: Vec<(u32, u32)> = self.inner.ftl.borrow().rest_of_blocks(page).collect();
        for before in 0..page {
            if self.page_state(superblock, before, hint).await? == PageState::Erased {
                return Ok(false);
            }
        }
        for (first, last) in blocks {
            if self.page_state(superblock, first, hint).await? == PageState::Erased {
                return Ok(false);
            }
            if self.page_state(superblock, last, hint).await? == PageState::Erased {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn page_state(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<PageState, FtlError> {
        match self.read(superblock, page, 1, hint).await {
            Ok(_) => Ok(PageState::Readable),
            Err(FtlError::Device { error: DeviceError::Uncorrectable, .. }) => {
                Ok(PageState::Uncorrectable)
            }
            Err(
                FtlError::Device { error: DeviceError::Erased { .. }, .. }
                | FtlError::Unwritten { .. },
            ) => Ok(PageState::Erased),
            Err(error) => Err(error),
        }
    }

    /// The shard's units.
    pub fn units(&self) -> Range<u16> {
        self.inner.ftl.borrow().units()
    }

    /// A unit's queue length.
    pub fn load(&self, unit: u16) -> u32 {
        self.inner.ftl.borrow().load(softflash_base::UnitId(unit))
    }

    /// A unit's superblocks by state.
    pub fn space(&self, unit: u16) -> SpaceAccount {
        self.inner.ftl.borrow().space(softflash_base::UnitId(unit))
    }

    /// The greatest generation that a header on the unit's flash bears.
    pub fn newest_generation(&self, unit: u16) -> u64 {
        self.inner.ftl.borrow().newest_generation(softflash_base::UnitId(unit))
    }

    /// A unit's state.
    pub fn telemetry(&self, unit: u16) -> UnitTelemetry {
        self.inner.ftl.borrow().telemetry(softflash_base::UnitId(unit))
    }

    fn done(&self, request: RequestId) -> impl Future<Output = Done> + use<> {
        let inner = Rc::clone(&self.inner);
        let slot = inner.requests.borrow_mut().add(request);
        inner.submitted.notify_one();
        let mut waiter = Waiter { inner, slot: Some(slot) };
        poll_fn(move |context| match waiter.poll(context.waker()) {
            Some(done) => Poll::Ready(done),
            None => Poll::Pending,
        })
    }
}

/// Who waits for a request; gives it up when dropped.
struct Waiter {
    inner: Rc<Inner>,
    slot: Option<usize>,
}

impl Waiter {
    fn poll(&mut self, waker: &Waker) -> Option<Done> {
        let done = self.inner.requests.borrow_mut().poll(self.slot?, waker)?;
        self.slot = None;
        Some(done)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.inner.requests.borrow_mut().give_up(slot);
        }
    }
}

/// The requests on their way. A slot is kept until its waiter has the outcome, which may be after the FTL has
/// used the request's place again.
#[derive(Default)]
struct Requests {
    slots: Vec<Pending>,
    free: Vec<usize>,
    /// The slot of the request at each of the FTL's places.
    by_place: Vec<usize>,
}

impl Requests {
    fn add(&mut self, request: RequestId) -> usize {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Pending::Free);
        }
        self.set(slot, Pending::Unasked);
        if self.by_place.len() <= request.place() {
            self.by_place.resize(request.place() + 1, usize::MAX);
        }
        if let Some(place) = self.by_place.get_mut(request.place()) {
            *place = slot;
        }
        slot
    }

    fn set(&mut self, slot: usize, pending: Pending) -> Pending {
        match self.slots.get_mut(slot) {
            Some(place) => std::mem::replace(place, pending),
            None => Pending::Free,
        }
    }

    fn free(&mut self, slot: usize) {
        self.set(slot, Pending::Free);
        self.free.push(slot);
    }

    fn poll(&mut self, slot: usize, waker: &Waker) -> Option<Done> {
        match self.set(slot, Pending::Awaited(waker.clone())) {
            Pending::Finished(done) => {
                self.free(slot);
                Some(done)
            }
            _ => None,
        }
    }

    fn give_up(&mut self, slot: usize) {
        if let Pending::Finished(_) = self.set(slot, Pending::Forgotten) {
            self.free(slot);
        }
    }

    /// Returns whom to wake.
    fn finish(&mut self, done: Done) -> Option<Waker> {
        let slot = self.by_place.get(done.request.place()).copied()?;
        match self.set(slot, Pending::Finished(done)) {
            Pending::Awaited(waker) => Some(waker),
            // Its buffer returns to the pool.
            Pending::Forgotten => {
                self.free(slot);
                None
            }
            _ => None,
        }
    }
}

impl Inner {
    async fn pump(&self) {
        let mut done = Vec::new();
        while !self.stopped.get() {
            let wake = {
                let mut ftl = self.ftl.borrow_mut();
                ftl.poll(self.runtime.now(), &mut done);
                ftl.wake()
            };
            if done.is_empty() {
                wait(&self.runtime, wake, Some(&self.submitted)).await;
            } else {
                for done in done.drain(..) {
                    let waker = self.requests.borrow_mut().finish(done);
                    waker.into_iter().for_each(Waker::wake);
                }
                // What they wake submits its next requests before the device is asked again.
                yield_now().await;
            }
        }
    }
}

/// Waits for what the device waits for, or for a submission.
async fn wait(runtime: &RuntimeHandle, wake: Wake, submitted: Option<&Notify>) {
    let device = match wake {
        Wake::Now => return yield_now().await,
        Wake::At(time) => Some(runtime.sleep_until(time)),
        Wake::Readable(descriptor) => Some(runtime.readable(descriptor)),
        Wake::Idle => None,
    };
    match (device, submitted) {
        (Some(device), Some(submitted)) => match select(device, pin!(submitted.notified())).await {
            Either::Left(_) | Either::Right(_) => {}
        },
        (Some(device), None) => device.await,
        (None, Some(submitted)) => submitted.notified().await,
        (None, None) => yield_now().await,
    }
}

/// Errors of the FTL that mean lost or damaged data rather than a full or misused device.
pub fn is_data_loss(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::DataLoss(_)
            | StoreError::Flash(FtlError::Device { .. } | FtlError::Damaged { .. })
    )
}
