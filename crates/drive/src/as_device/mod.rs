//! A drive as a device of units, for stores on flash behind firmware.
//!
//! As in the file backend, a unit is a range of the drive's bytes, divided into extents in place of
//! superblocks: with one die, one plane, and one request for all pages of a command. Programs are
//! writes, reads are reads. An erase trims the extent. Without trim, it sends nothing: the extent
//! is not read again, but the firmware goes on moving the old data until they are overwritten.
//!
//! The drive simulates times only. The data are stored beside it, packed page by page, with the
//! rules of flash as on any modelled device: a read of unwritten pages fails.
//!
//! **Lifetimes.** A write names the placement identifier of its lifetime class, if the drive has
//! the placement `by-hint`.
//!
//! **Durability.** A program completes when the drive acknowledges it: with a write buffer, when
//! the data are in the buffer. The buffer is assumed to be protected against power loss, as in
//! drives for servers, so a durable program and a flush cost nothing more. A program that was under
//! way when its queue pair was dropped is executed as a whole.
//!
//! **Time.** All queue pairs share the drive and its virtual time, which is that of the most
//! advanced queue pair.

mod contents;
mod queue_pair;
mod state;

use crate::drive::Drive;
use crate::error::DriveError;
use contents::Contents;
use queue_pair::DriveQueuePair;
use softflash_base::UnitSet;
use softflash_base::checksum::identity;
use softflash_device::backend::Claims;
use softflash_device::{Device, DeviceInfo, OpenError, QueuePair, UnitGeometry};
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The division of a drive into units and extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Units, all of the same size; together they are the whole drive except for a remainder.
    pub units: u16,
    /// Bytes of an extent, which is written front to back and erased as a whole.
    pub extent_bytes: u64,
    /// The most commands that a unit has under way.
    pub queue_depth: u16,
    /// Whether an erase trims the extent.
    pub trim: bool,
}

/// The queue depth of a unit, the same as in the file backend.
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
    /// Classes of data that its firmware keeps apart.
    placement_ids: u16,
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
    /// Divides a drive into units. Its earlier data cannot be read: only pages that are written
    /// here can be. The uuid is derived from the seed.
    ///
    /// # Errors
    /// [`DriveError::Extents`] if the drive cannot be divided so.
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
        let placement_ids = drive.placement_ids();
        let state = Mutex::new(State::new(drive, contents));
        let shared = Arc::new(Shared { info, trim: cut.trim, placement_ids, state });
        Ok(DriveDevice { shared, claims: Claims::default() })
    }

    /// Gives `look` access to the drive at its current time.
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

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.shared.info.units)?;
        Ok(Box::new(DriveQueuePair::new(Arc::clone(&self.shared), claim)))
    }
}
