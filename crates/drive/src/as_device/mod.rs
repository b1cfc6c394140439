//! A drive as a device of units: what a store runs on where the flash is behind firmware.
//!
//! As with a file, a unit is a range of the drive's bytes, cut into extents that take the place of
//! superblocks: one die, one plane, one command for as many pages as it covers. Programs are
//! writes, reads are reads. An erase is a trim of the extent, or nothing but a promise not to read
//! it again, and then the firmware goes on moving what lies there until it is overwritten.
//!
//! The drive keeps times only; the bytes lie packed beside it, one page after another, and the
//! rules of flash hold for them as on any modelled device: a read of pages that were not written
//! fails.
//!
//! **Durability.** A program ends when the drive acknowledges it. Where there is a write buffer,
//! that is when the data are in it: the buffer is taken to be protected against power loss, as in
//! drives for servers, so a durable program and a flush cost nothing more. A program that was under
//! way when its queue pair was dropped is there as a whole.
//!
//! **Time.** All queue pairs share the drive, and so one virtual time, which is that of the queue
//! pair that has come furthest.

mod contents;
mod queue_pair;
mod state;

use crate::drive::Drive;
use crate::error::DriveError;
use contents::Contents;
use queue_pair::DriveQueuePair;
use softflash_base::checksum::identity;
use softflash_device::backend::Claims;
use softflash_device::{Device, DeviceInfo, OpenError, QueuePair, UnitGeometry};
use state::State;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a drive is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Units, all of the same size; together they are the whole drive but for a rest.
    pub units: u16,
    /// Bytes of an extent: what is written front to back and erased as a whole.
    pub extent_bytes: u64,
    /// Commands that a unit has under way at most.
    pub queue_depth: u16,
    /// Whether an erase trims the extent.
    pub trim: bool,
}

/// The commands that a unit of a file has at most under way, here too.
const QUEUE_DEPTH: u16 = 64;

impl Default for Extents {
    /// Extents of 8 MiB in one unit, without trim: as `softflash format` lays out a drive.
    fn default() -> Extents {
        Extents { units: 1, extent_bytes: 8 << 20, queue_depth: QUEUE_DEPTH, trim: false }
    }
}

/// The state that all queue pairs share.
struct Shared {
    info: DeviceInfo,
    trim: bool,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A conventional drive behind the interface of units.
pub struct DriveDevice {
    shared: Arc<Shared>,
    claims: Claims,
}

impl DriveDevice {
    /// Cuts a drive into units. Whatever state it is in, nothing of it can be read before it is
    /// written here. The uuid follows from the seed.
    ///
    /// # Errors
    /// [`DriveError::Extents`] where the drive cannot be cut so.
    pub fn new(drive: Drive, cut: &Extents, seed: u64) -> Result<DriveDevice, DriveError> {
        let geometry = geometry(&drive, cut)?;
        let half = |part| u128::from(identity(&[seed, part]));
        let info = DeviceInfo {
            backend: "drive".to_owned(),
            uuid: half(0) << 64 | half(1),
            units: cut.units,
            geometry,
            detail: "a simulated drive with firmware of its own".to_owned(),
        };
        let contents = Contents::new(&geometry, cut.units);
        let state = Mutex::new(State::new(drive, contents));
        let shared = Arc::new(Shared { info, trim: cut.trim, state });
        Ok(DriveDevice { shared, claims: Claims::default() })
    }

    /// Looks at the drive, as it is at the time that was reached.
    pub fn with_drive<T>(&self, look: impl FnOnce(&mut Drive) -> T) -> T {
        look(&mut self.shared.state().drive)
    }
}

fn geometry(drive: &Drive, cut: &Extents) -> Result<UnitGeometry, DriveError> {
    let Extents { units, extent_bytes, queue_depth, .. } = *cut;
    let (capacity_bytes, page_bytes) = (drive.capacity_bytes(), drive.page_bytes());
    let refused = DriveError::Extents { units, extent_bytes, capacity_bytes, page_bytes };
    let pages = extent_bytes / u64::from(page_bytes);
    let extents = capacity_bytes / extent_bytes.max(1) / u64::from(units.max(1));
    match (u32::try_from(extents), u32::try_from(pages)) {
        (Ok(blocks_per_plane @ 1..), Ok(pages_per_block @ 1..))
            if extent_bytes.is_multiple_of(page_bytes.into()) && units > 0 =>
        {
            let die_queue_depth = queue_depth.max(1);
            let one = UnitGeometry {
                dies: 1,
                planes: 1,
                blocks_per_plane,
                pages_per_block,
                page_bytes,
                die_queue_depth,
            };
            Ok(one)
        }
        _ => Err(refused),
    }
}

impl Device for DriveDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn open_queue_pair(&self, units: Range<u16>) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.shared.info.units)?;
        Ok(Box::new(DriveQueuePair::new(Arc::clone(&self.shared), claim)))
    }
}
