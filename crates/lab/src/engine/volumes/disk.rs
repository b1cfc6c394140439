//! A volume over all usable space of simulated units, with the requests of a block device.

use super::domains::{Domains, Making, by_field};
use crate::error::LabError;
use softflash_base::{AccessKind, Time};
use softflash_runtime::RuntimeHandle;
use softflash_volume::{DomainCounters, Volume, VolumeError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of a mapping unit.
pub(super) const SECTOR: u64 = softflash_volume::MAPPING_UNIT_BYTES as u64;

/// Spare of a domain in percent of its usable space, as of the domains that `serve` has.
pub(super) const SERVED_OP_PERCENT: f64 = 7.0;

/// The least of it. With less, collection moves nearly everything for each write.
pub(super) const LEAST_SPARE_PERCENT: f64 = 1.0;

/// The name of the volume.
const NAME: &str = "disk";

/// A volume.
pub(super) struct Disk {
    /// Clock and executor.
    pub(super) runtime: RuntimeHandle,
    /// Its size.
    pub(super) capacity_bytes: u64,
    /// What keeps it.
    pub(super) domains: Domains,
    volume: Volume,
    /// Zeros, as long as the longest write so far. The contents of writes matter to nobody.
    zeros: RefCell<Rc<[u8]>>,
    /// Mapping units of the writes that have completed. The domain counts discards, too.
    written: Cell<u64>,
    /// Buffers of reads that have ended.
    buffers: RefCell<Vec<Vec<u8>>>,
}

/// Counts of the domains and of their flash up to some time.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// Mapping units of clients' writes.
    pub(super) written: u64,
    /// Counts of the domains.
    pub(super) domain: DomainCounters,
    /// Bytes programmed for any cause, headers of superblocks included.
    pub(super) programmed_bytes: u64,
    /// Erases, each of a block in every plane of a die.
    pub(super) erases: u64,
}

impl Disk {
    /// Makes a volume of all usable space of new domains, or of as much as leaves so many percent
    /// of it spare.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the units cannot have domains, or leave no room for data.
    pub(super) async fn open(
        making: Making<'_>,
        op_percent: Option<f64>,
        runtime: RuntimeHandle,
    ) -> Result<Disk, LabError> {
        let flash_bytes = making.hardware.flash_bytes() / u64::from(making.sets.copies.max(1));
        let wanted_bytes = op_percent.map(|op| size_of(flash_bytes, op)).transpose()?;
        // The size of the volume leaves the spare that is asked for.
        let making = Making { is_spare_given: wanted_bytes.is_some(), ..making };
        let domains = Domains::make(&making, runtime.clone()).await?;
        let capacity_bytes = wanted_bytes.unwrap_or_else(|| domains.first().space().usable_bytes);
        let volume = async {
            if wanted_bytes.is_some() {
                check_size(capacity_bytes, domains.most_bytes(), flash_bytes)?;
            }
            domains.first().create(NAME, capacity_bytes).await.map_err(failed)?;
            domains.first().volume(NAME).map_err(failed)
        };
        match volume.await {
            Ok(volume) => Ok(Disk {
                runtime,
                capacity_bytes,
                domains,
                volume,
                zeros: RefCell::new(Rc::from(Vec::new())),
                written: Cell::new(0),
                buffers: RefCell::default(),
            }),
            Err(error) => {
                domains.stop();
                Err(error)
            }
        }
    }

    /// The time.
    pub(super) fn now(&self) -> Time {
        self.runtime.now()
    }

    /// Counts up to now.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            written: self.written.get(),
            domain: self.domains.counters(),
            programmed_bytes: self.domains.programmed_bytes(),
            erases: self.domains.erases(),
        }
    }

    /// Makes a request. A write or read that does not cover whole mapping units reads and writes
    /// those of its ends as a whole; a trim leaves them as they are.
    pub(super) async fn request(
        &self,
        kind: AccessKind,
        offset_bytes: u64,
        bytes: u64,
    ) -> Result<(), LabError> {
        let end = offset_bytes.saturating_add(bytes);
        let (first, last) = (offset_bytes / SECTOR * SECTOR, end.next_multiple_of(SECTOR));
        match kind {
            AccessKind::Read => self.read(first, last).await,
            AccessKind::Write => {
                if first < offset_bytes {
                    self.read(first, first + SECTOR).await?;
                }
                let tail = last - SECTOR;
                if end < last && (tail > first || first == offset_bytes) {
                    self.read(tail, last).await?;
                }
                let zeros = self.zeros(last - first);
                let data = zeros.get(..(last - first) as usize).unwrap_or(&zeros);
                self.volume.write(first, data).await.map_err(failed)?;
                self.written.set(self.written.get() + (last - first) / SECTOR);
                Ok(())
            }
            AccessKind::Trim => {
                let whole = offset_bytes.next_multiple_of(SECTOR)..end / SECTOR * SECTOR;
                match whole.is_empty() {
                    true => Ok(()),
                    false => {
                        let bytes = whole.end - whole.start;
                        self.volume.discard(whole.start, bytes).await.map_err(failed)
                    }
                }
            }
        }
    }

    /// Makes everything that has completed durable.
    pub(super) async fn flush(&self) -> Result<(), LabError> {
        self.volume.flush().await.map_err(failed)
    }

    async fn read(&self, first: u64, end: u64) -> Result<(), LabError> {
        let mut buffer = self.buffers.borrow_mut().pop().unwrap_or_default();
        buffer.resize((end - first) as usize, 0);
        self.volume.read(first, &mut buffer).await.map_err(failed)?;
        self.buffers.borrow_mut().push(buffer);
        Ok(())
    }

    fn zeros(&self, bytes: u64) -> Rc<[u8]> {
        let mut zeros = self.zeros.borrow_mut();
        if (zeros.len() as u64) < bytes {
            *zeros = Rc::from(vec![0; bytes as usize]);
        }
        Rc::clone(&zeros)
    }
}

/// Bytes that the host can address where `op_percent` of them are spare, in whole mapping units.
fn size_of(flash_bytes: u64, op_percent: f64) -> Result<u64, LabError> {
    if !op_percent.is_finite() || op_percent < 0.0 {
        return Err(LabError::Parameter(format!(
            "over-provisioning of {op_percent} %: use a percentage from 0 up"
        )));
    }
    let bytes = (flash_bytes as f64 / (1.0 + op_percent / 100.0)) as u64;
    Ok(bytes / SECTOR * SECTOR)
}

/// Checks that a volume of this size has data, and leaves what the domain needs for itself.
fn check_size(bytes: u64, most: f64, flash_bytes: u64) -> Result<(), LabError> {
    if bytes as f64 > most {
        let least = 100.0 * (flash_bytes as f64 / most - 1.0);
        return Err(LabError::Parameter(format!(
            "a volume on these units needs an over-provisioning of at least {:.1} %, as its domain keeps \
             superblocks of each unit free: use more, or more blocks a plane",
            (least * 10.0).ceil() / 10.0
        )));
    }
    if bytes < SECTOR {
        return Err(LabError::Parameter(
            "the over-provisioning leaves no room for data: use less".to_owned(),
        ));
    }
    Ok(())
}

impl Counts {
    /// Mapping units programmed, for any cause.
    pub(super) fn programmed(&self) -> u64 {
        self.programmed_bytes / SECTOR
    }

    /// Mapping units programmed for each one that clients wrote; 0 if they wrote none.
    pub(super) fn waf(&self) -> f64 {
        match self.written {
            0 => 0.0,
            written => self.programmed() as f64 / written as f64,
        }
    }

    /// The counts since then.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            written: self.written - before.written,
            domain: by_field(self.domain, before.domain, |after, base| after - base),
            programmed_bytes: self.programmed_bytes - before.programmed_bytes,
            erases: self.erases - before.erases,
        }
    }
}

/// Converts an error of volumes to one of the laboratory.
pub(super) fn failed(error: VolumeError) -> LabError {
    match error {
        VolumeError::BeyondEnd { .. } => LabError::Parameter(error.to_string()),
        other => LabError::Simulation(other.to_string()),
    }
}
