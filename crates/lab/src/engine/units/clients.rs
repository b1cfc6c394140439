//! Clients, with one request each at a time.

use super::bed::BedHandle;
use crate::cell::Control;
use crate::engine::caps::Caps;
use crate::engine::tally::Tally;
use crate::error::LabError;
use crate::layout::Scheduler;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, IoBuf, Time};
use softflash_workload::{Access, BlockSource, BlockWorkload};
use std::cell::{Cell, RefCell};

/// Which units a client works on.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// One of its own.
    Own(usize),
    /// All: reads go where their data are, writes where the scheduler says.
    Any(Scheduler),
}

/// The state that all clients of a phase share.
pub struct Phase<'a> {
    /// The device.
    pub bed: &'a BedHandle,
    /// Takes down what counts; nothing does during a warm-up.
    pub tally: Option<&'a Tally>,
    /// Asked now and then whether to stop.
    pub control: &'a Control<'a>,
    /// The caps on bytes a second.
    pub caps: &'a RefCell<Caps>,
    /// Called after each request.
    pub told: &'a dyn Fn(),
}

/// A client with one request at a time.
pub struct Client {
    /// The units of its requests.
    place: Place,
    /// Its requests; offsets are those of one unit.
    source: RefCell<BlockSource>,
    /// Chooses units.
    rng: RefCell<Rng>,
    buffer: Cell<Option<IoBuf>>,
}

impl Client {
    /// A client that has asked nothing yet.
    pub fn new(place: Place, source: BlockSource, rng: Rng) -> Client {
        Client {
            place,
            source: RefCell::new(source),
            rng: RefCell::new(rng),
            buffer: Cell::new(None),
        }
    }

    /// Makes one request and waits for its end. One that is held back to `until` or later is not
    /// made.
    pub async fn request(&self, phase: &Phase<'_>, until: Option<Time>) -> Result<(), LabError> {
        let (bed, access) = (phase.bed, self.source.borrow_mut().next());
        let held = phase.caps.borrow_mut().hold(access.kind, access.bytes.into(), bed.now());
        if let Some(at) = held {
            bed.runtime.sleep_until(until.map_or(at, |until| at.min(until))).await;
            if until.is_some_and(|until| at >= until) {
                return Ok(());
            }
        }
        let made_at = bed.now();
        if let Some(tally) = phase.tally {
            tally.submitted();
        }
        let bytes = match access.kind {
            AccessKind::Read => self.read(bed, &access).await?,
            AccessKind::Write => self.write(bed, &access).await?,
            AccessKind::Trim => return Err(no_trims()),
        };
        if let Some(tally) = phase.tally {
            tally.completed(access.kind, made_at, bed.now(), bytes);
        }
        (phase.told)();
        Ok(())
    }

    async fn read(&self, bed: &BedHandle, access: &Access) -> Result<u64, LabError> {
        let unit = match self.place {
            Place::Own(unit) => unit,
            Place::Any(_) => bed.any(&mut self.rng.borrow_mut()),
        };
        let bytes = u64::from(access.bytes);
        bed.read(unit, access.offset_bytes, bytes).await?;
        Ok(bytes)
    }

    /// Writes a whole superblock; what counts is the payload.
    async fn write(&self, bed: &BedHandle, access: &Access) -> Result<u64, LabError> {
        let payload = bed.flash.payload_bytes() as u64;
        check_write(access.bytes.into(), payload)?;
        let unit = match self.place {
            Place::Own(unit) => unit,
            Place::Any(Scheduler::RoundRobin) => bed.next_unit(),
            Place::Any(Scheduler::LoadAware) => bed.least_loaded(),
        };
        let data = self.buffer.take().unwrap_or_else(|| bed.buffer());
        let data = bed.overwrite(unit, data).await?;
        self.buffer.set(Some(data));
        Ok(payload)
    }
}

/// Whether units take such a workload: known before they are filled, which takes long.
pub fn check_workload(workload: &BlockWorkload, payload: u64) -> Result<(), LabError> {
    if workload.trim_fraction > 0.0 && workload.trim_fraction < 1.0 {
        return Err(no_trims());
    }
    workload.bytes_of_writes().into_iter().try_for_each(|bytes| check_write(bytes.into(), payload))
}

/// How much longer than its payload a write may be called: headers take two pages of it.
const HEADER_SHARE: u64 = 16;

fn check_write(bytes: u64, payload: u64) -> Result<(), LabError> {
    if bytes >= payload && bytes - payload <= payload / HEADER_SHARE {
        return Ok(());
    }
    Err(LabError::Parameter(format!(
        "a write of {bytes} bytes: a unit is written in whole superblocks of {payload} bytes of payload; \
         make write_size that, or the next round number above"
    )))
}

fn no_trims() -> LabError {
    LabError::Parameter(
        "units are erased before every write and take no trims but alone: make trim_fraction 0, or 1 to measure erases"
            .to_owned(),
    )
}

/// The end of a warm-up that begins now.
pub fn warm_up_end(now: Time, warm_up_ns: u64) -> Option<Time> {
    (warm_up_ns > 0).then(|| now + warm_up_ns)
}
