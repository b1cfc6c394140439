//! Clients, with one request each at a time.

use super::testbed::TestbedHandle;
use crate::cell::Control;
use crate::engine::caps::Caps;
use crate::engine::tally::Tally;
use crate::error::LabError;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, IoBuf, Time};
use softflash_policy::PlacementPolicy;
use softflash_workload::{Access, BlockSource, BlockWorkload};
use std::cell::{Cell, RefCell};

/// The units that a client uses.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Its own unit.
    Own(usize),
    /// All units: a read goes to the unit of its data, a write to the unit that the policy
    /// chooses.
    Any(PlacementPolicy),
}

/// The state that all clients of a phase share.
pub struct Phase<'a> {
    /// The device.
    pub testbed: &'a TestbedHandle,
    /// Records the requests; `None` during a warm-up, which is not measured.
    pub tally: Option<&'a Tally>,
    /// Checked periodically for a stop.
    pub control: &'a Control<'a>,
    /// The bandwidth caps.
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
    /// A client without requests so far.
    pub fn new(place: Place, source: BlockSource, rng: Rng) -> Client {
        Client {
            place,
            source: RefCell::new(source),
            rng: RefCell::new(rng),
            buffer: Cell::new(None),
        }
    }

    /// Submits one request and waits for its completion. A request that a cap holds back to `until`
    /// or later is not submitted.
    pub async fn request(&self, phase: &Phase<'_>, until: Option<Time>) -> Result<(), LabError> {
        let (testbed, access) = (phase.testbed, self.source.borrow_mut().next());
        let held = phase.caps.borrow_mut().hold(access.kind, access.bytes.into(), testbed.now());
        if let Some(at) = held {
            testbed.runtime.sleep_until(until.map_or(at, |until| at.min(until))).await;
            if until.is_some_and(|until| at >= until) {
                return Ok(());
            }
        }
        let made_at = testbed.now();
        if let Some(tally) = phase.tally {
            tally.submitted();
        }
        let bytes = match access.kind {
            AccessKind::Read => self.read(testbed, &access).await?,
            AccessKind::Write => self.write(testbed, &access).await?,
            AccessKind::Trim => return Err(no_trims()),
        };
        if let Some(tally) = phase.tally {
            tally.completed(access.kind, made_at, testbed.now(), bytes);
        }
        (phase.told)();
        Ok(())
    }

    async fn read(&self, testbed: &TestbedHandle, access: &Access) -> Result<u64, LabError> {
        let unit = match self.place {
            Place::Own(unit) => unit,
            Place::Any(_) => testbed.any(&mut self.rng.borrow_mut()),
        };
        let bytes = u64::from(access.bytes);
        testbed.read(unit, access.offset_bytes, bytes).await?;
        Ok(bytes)
    }

    /// Writes a whole superblock; only the payload counts.
    async fn write(&self, testbed: &TestbedHandle, access: &Access) -> Result<u64, LabError> {
        let payload = testbed.flash.payload_bytes() as u64;
        check_write(access.bytes.into(), payload)?;
        let unit = match self.place {
            Place::Own(unit) => unit,
            Place::Any(policy) => testbed.place(policy),
        };
        let data = self.buffer.take().unwrap_or_else(|| testbed.buffer());
        let data = testbed.overwrite(unit, data).await?;
        self.buffer.set(Some(data));
        Ok(payload)
    }
}

/// Checks whether units support a workload, before they are filled, which takes long.
pub fn check_workload(workload: &BlockWorkload, payload: u64) -> Result<(), LabError> {
    if workload.trim_fraction > 0.0 && workload.trim_fraction < 1.0 {
        return Err(no_trims());
    }
    if workload.writers > 0 {
        return Err(LabError::Parameter(format!(
            "writers = {}: units have no threads beside those of the load; use read_fraction, or a page-mapped layout",
            workload.writers
        )));
    }
    workload.bytes_of_writes().into_iter().try_for_each(|bytes| check_write(bytes.into(), payload))
}

/// The nominal size of a write may exceed the payload by one part in this many, as two pages of a
/// superblock are headers.
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

/// The end of a warm-up that begins now, if there is one.
pub fn warm_up_end(now: Time, warm_up_ns: u64) -> Option<Time> {
    (warm_up_ns > 0).then(|| now + warm_up_ns)
}
