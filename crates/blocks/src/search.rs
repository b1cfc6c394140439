//! Reads of pages that may not exist: the log after a crash, and the end of a block of unknown
//! length.

use crate::copy_reader::{CopyReader, Extent};
use crate::damage::Damage;
use crate::directory::Directory;
use crate::error::Result;
use crate::pools::Pools;
use crate::tag::BlockId;
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint};
use std::rc::Rc;

/// The results of reading each copy of a block.
#[derive(Default)]
struct Findings {
    readings: SmallVec<[Option<IoBuf>; 2]>,
    failure: Option<FtlError>,
    /// The error of the last copy on a dead die, and the number of such copies.
    dead: Option<FtlError>,
    dead_copies: usize,
}

impl Findings {
    /// Adds the result of a read: `None` where the flash reports that the pages are lost or were
    /// never written.
    fn take(&mut self, read: Result<IoBuf, FtlError>) -> Result<()> {
        let reading = match read {
            Ok(bytes) => Some(bytes),
            Err(FtlError::Unwritten { .. }) => None,
            Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                self.failure.get_or_insert(error);
                None
            }
            Err(error @ FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                self.dead = Some(error);
                self.dead_copies += 1;
                None
            }
            Err(FtlError::Device { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        self.readings.push(reading);
        Ok(())
    }

    fn are_some(&self) -> bool {
        self.readings.iter().any(Option::is_some)
    }

    /// The reading of each copy.
    fn readings(self, extent: Extent, is_half: bool) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        // Perhaps only one of two copies was begun: then nothing in it was acknowledged, or other
        // blocks record it.
        if is_half {
            return Ok(self.readings);
        }
        let all_dead = self.dead_copies == self.readings.len();
        match (self.failure, self.dead) {
            // An I/O error does not show that pages are lost: counting them as lost would drop
            // readable data.
            (Some(error), _) if self.readings.iter().all(Option::is_none) => Err(error.into()),
            // A power cut damages pages but no die: the block was whole.
            (None, Some(error)) if all_dead => Err(extent.lost(&error)),
            _ => Ok(self.readings),
        }
    }
}

/// Searches blocks for pages.
pub(crate) struct Search {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    damage: Rc<Damage>,
    copy_reader: Rc<CopyReader>,
}

impl Search {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        damage: &Rc<Damage>,
        copy_reader: &Rc<CopyReader>,
    ) -> Search {
        Search {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            damage: Rc::clone(damage),
            copy_reader: Rc::clone(copy_reader),
        }
    }

    /// The pages from the first copy that has them: `None` where a page is lost or unwritten.
    pub(crate) async fn any_copy(&self, extent: Extent) -> Result<Option<IoBuf>> {
        let Extent { id, .. } = extent;
        let Ok((copies, on_log)) = self.copy_reader.copies_to_read(id) else { return Ok(None) };
        let mut findings = Findings::default();
        for copy in &copies {
            findings.take(self.copy_reader.read_raw(extent, copy, on_log).await)?;
            if findings.are_some() {
                break;
            }
        }
        let readings = findings.readings(extent, self.directory.is_half(id))?;
        let is_degraded = readings.len() > 1 && readings.last().is_some_and(Option::is_some);
        if is_degraded {
            self.damage.note_degraded(id);
        }
        Ok(readings.into_iter().flatten().next())
    }

    /// The reading of each copy of the block, in the same order for all its pages.
    pub(crate) async fn each_copy(&self, extent: Extent) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        let Extent { id, .. } = extent;
        let Ok((mut copies, on_log)) = self.copy_reader.copies_to_read(id) else {
            return Ok(SmallVec::new());
        };
        copies.sort_unstable_by_key(|copy| copy.unit.0);
        let mut findings = Findings::default();
        for copy in &copies {
            findings.take(self.copy_reader.read_raw(extent, copy, on_log).await)?;
        }
        findings.readings(extent, self.directory.is_half(id))
    }

    /// Whether every copy of a page was whole once and is lost, as far as reads of the flash show.
    pub(crate) async fn has_lost(&self, id: BlockId, page: u32, hint: Hint) -> Result<bool> {
        let Ok((copies, on_log)) = self.copy_reader.copies_to_read(id) else { return Ok(false) };
        let (is_half, mut unknown) = (self.directory.is_half(id), None);
        for copy in &copies {
            match self.pools.of(on_log).flash().has_lost(copy, page, hint).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(FtlError::Device {
                    error: DeviceError::DeadDie | DeviceError::Io { .. },
                    ..
                }) if is_half => return Ok(false),
                // A power cut damages pages but no die: the block was whole.
                Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => {}
                // Another copy may show that the page was never whole.
                Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                    unknown = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        unknown.map_or(Ok(true), |error| Err(error.into()))
    }
}
