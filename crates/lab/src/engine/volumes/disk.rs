//! A volume over all usable space of simulated units, with the requests of a block device.

use crate::engine::units::hardware::Hardware;
use crate::error::LabError;
use crate::layout::Units;
use softflash_base::{AccessKind, Time};
use softflash_ftl::ProgramBytes;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, DomainCounters, Volume, VolumeError};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of a mapping unit.
pub(super) const SECTOR: u64 = softflash_volume::MAPPING_UNIT_BYTES as u64;

/// The name of the volume.
const NAME: &str = "disk";

/// A volume.
pub(super) struct Disk {
    /// Clock and executor.
    pub(super) runtime: RuntimeHandle,
    /// Its size.
    pub(super) capacity_bytes: u64,
    domain: Domain,
    volume: Volume,
    /// Zeros, as long as the longest write so far. The contents of writes matter to nobody.
    zeros: RefCell<Rc<[u8]>>,
    /// Buffers of reads that have ended.
    buffers: RefCell<Vec<Vec<u8>>>,
}

/// Counts of a domain and of its flash up to some time.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// Counts of the domain.
    pub(super) domain: DomainCounters,
    /// Bytes programmed for any cause, headers of superblocks included.
    pub(super) programmed_bytes: u64,
    /// Erases, each of a block in every plane of a die.
    pub(super) erases: u64,
}

impl Disk {
    /// Makes a domain on new units, and a volume of all of its usable space.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the units cannot have a domain, or leave no room for data.
    pub(super) async fn open(
        hardware: &Hardware,
        layout: &Units,
        op_percent: f64,
        seed: u64,
        runtime: RuntimeHandle,
    ) -> Result<Disk, LabError> {
        let device = hardware.device();
        let queue = device
            .open_queue_pair(&device.info().all_units())
            .map_err(|error| LabError::Simulation(error.to_string()))?;
        let config = DomainConfig {
            op_percent,
            victim: layout.victim,
            order: layout.order,
            placement: layout.scheduler,
            seed,
            ..DomainConfig::default()
        };
        let mounted = Domain::mount(queue, config, runtime.clone()).await;
        let (domain, _) = mounted.map_err(|error| LabError::Parameter(error.to_string()))?;
        let capacity_bytes = domain.space().usable_bytes;
        let volume = async {
            if capacity_bytes == 0 {
                return Err(LabError::Parameter(
                    "the units leave no room for the data of a volume: use more blocks a plane, or \
                     less over-provisioning"
                        .to_owned(),
                ));
            }
            domain.create(NAME, capacity_bytes).await.map_err(failed)?;
            domain.volume(NAME).map_err(failed)
        };
        match volume.await {
            Ok(volume) => Ok(Disk {
                runtime,
                capacity_bytes,
                domain,
                volume,
                zeros: RefCell::new(Rc::from(Vec::new())),
                buffers: RefCell::default(),
            }),
            Err(error) => {
                domain.stop();
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
        let programmed: ProgramBytes = self.domain.programmed();
        Counts {
            domain: self.domain.counters(),
            programmed_bytes: programmed.total(),
            erases: self.domain.erases(),
        }
    }

    /// Counts of the domain up to now.
    pub(super) fn domain_counts(&self) -> DomainCounters {
        self.domain.counters()
    }

    /// Memory of the map, in bytes.
    pub(super) fn map_bytes(&self) -> u64 {
        self.domain.memory_bytes()
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
                self.volume.write(first, data).await.map_err(failed)
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

    /// Checks that no mapping unit is lost or mapped twice.
    pub(super) fn check(&self) -> Result<(), LabError> {
        self.domain.check_map().map_err(LabError::Simulation)
    }

    /// Ends the tasks of the domain.
    pub(super) fn stop(&self) {
        self.domain.stop();
    }
}

impl Counts {
    /// The counts since then.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        let (after, base) = (self.domain, before.domain);
        Counts {
            domain: since(after, base),
            programmed_bytes: self.programmed_bytes - before.programmed_bytes,
            erases: self.erases - before.erases,
        }
    }
}

/// The counts of a domain since some others.
pub(super) fn since(after: DomainCounters, base: DomainCounters) -> DomainCounters {
    DomainCounters {
        written: after.written - base.written,
        read: after.read - base.read,
        collected: after.collected - base.collected,
        map: after.map - base.map,
        overhead: after.overhead - base.overhead,
        map_overhead: after.map_overhead - base.map_overhead,
        frames: after.frames - base.frames,
        released: after.released - base.released,
        checkpoints: after.checkpoints - base.checkpoints,
        flushes: after.flushes - base.flushes,
        lost: after.lost - base.lost,
        refused: after.refused - base.refused,
    }
}

/// Converts an error of volumes to one of the laboratory.
pub(super) fn failed(error: VolumeError) -> LabError {
    match error {
        VolumeError::BeyondEnd { .. } => LabError::Parameter(error.to_string()),
        other => LabError::Simulation(other.to_string()),
    }
}
