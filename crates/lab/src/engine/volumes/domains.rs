//! The domains of a run: one on all units, or a pair of them on channels of their own, with a copy
//! each of the volume.

use super::disk::{LEAST_SPARE_PERCENT, SERVED_OP_PERCENT, failed};
use crate::engine::units::hardware::Hardware;
use crate::error::LabError;
use crate::layout::{Sets, Units};
use softflash_base::UnitSet;
use softflash_device::QueuePair;
use softflash_drive::spec::DeviceSpec;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Owners, ProgramBytes};
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, DomainCounters, PairFigures};
use std::time::Duration;

/// The number of the pair. A run has one.
const PAIR: u64 = 1;

/// How the domains of a run are made.
pub(super) struct Making<'a> {
    pub(super) hardware: &'a Hardware,
    pub(super) layout: &'a Units,
    pub(super) sets: &'a Sets,
    /// Whether the size of the volume leaves the spare space, and not the domains.
    pub(super) is_spare_given: bool,
    pub(super) seed: u64,
}

/// The domains: the volume is one of the first.
pub(super) struct Domains(Vec<Domain>);

/// Refuses sets that volumes cannot have.
pub(super) fn check(device: &DeviceSpec, sets: &Sets) -> Result<(), LabError> {
    let refused = |problem: String| Err(LabError::Parameter(problem));
    if sets.pressure != 0.0 {
        return refused(format!(
            "pressure = {}: volumes limit writes by themselves; remove it, or use a page-mapped layout",
            sets.pressure
        ));
    }
    if !sets.are_used() {
        return Ok(());
    }
    if (sets.sets, sets.copies) != (2, 2) {
        return refused(format!(
            "sets = {}, copies = {}{}: volumes are on one set, or have two copies on two sets; write \
             sets = 2 and copies = 2, or use a page-mapped layout",
            sets.sets,
            sets.copies,
            if sets.window_ms > 0 { ", with window_ms" } else { "" },
        ));
    }
    let channels = device.geometry.channels;
    if !channels.is_multiple_of(sets.sets) {
        return refused(format!(
            "sets = {}: a set has whole channels, and all sets equally many; `{}` has {channels}",
            sets.sets, device.name
        ));
    }
    Ok(())
}

impl Domains {
    /// Makes the domains on new units.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the units cannot have them.
    pub(super) async fn make(
        making: &Making<'_>,
        runtime: RuntimeHandle,
    ) -> Result<Domains, LabError> {
        let device = making.hardware.device();
        let all = device.info().all_units();
        let queue = device
            .open_queue_pair(&all)
            .map_err(|error| LabError::Simulation(error.to_string()))?;
        match making.sets.are_used() {
            false => {
                let mounted = Domain::mount(queue, making.config(1), runtime).await;
                let (domain, _) =
                    mounted.map_err(|error| LabError::Parameter(error.to_string()))?;
                Ok(Domains(vec![domain]))
            }
            true => {
                let all: Vec<u16> = all.iter().collect();
                let of_set = all.len() / usize::from(making.sets.sets);
                let of_sets = all.chunks_exact(of_set).map(|units| units.iter().copied().collect());
                Domains::make_pair(making, queue, of_sets.collect(), runtime).await
            }
        }
    }

    /// Makes a pair of empty domains, as a server does: on one FTL, which has all units.
    async fn make_pair(
        making: &Making<'_>,
        queue: Box<dyn QueuePair>,
        of_sets: Vec<UnitSet>,
        runtime: RuntimeHandle,
    ) -> Result<Domains, LabError> {
        let numbered = || (1_u16..).zip(&of_sets);
        let owners = numbered().map(|(number, units)| (units.clone(), Domain::ownership(number)));
        let DomainConfig { wear, order, .. } = making.config(1);
        let config = FtlConfig { wear, order, ..FtlConfig::default() };
        let owners = Owners::new(owners.collect());
        let views = Flash::mount_for(queue, config, owners, runtime.clone()).await;
        let views = views.map_err(|error| LabError::Parameter(error.to_string()))?;
        let mut domains = Domains(Vec::new());
        for ((number, _), view) in numbered().zip(views) {
            match Domain::mount_on(view, making.config(number), runtime.clone()).await {
                Ok((domain, _)) => domains.0.push(domain),
                Err(error) => {
                    domains.stop();
                    return Err(LabError::Parameter(error.to_string()));
                }
            }
        }
        if let [first, second] = domains.0.as_slice()
            && let Err(error) = first.pair(second, PAIR, None).await
        {
            domains.stop();
            return Err(failed(error));
        }
        Ok(domains)
    }

    /// The domain with the volume.
    pub(super) fn first(&self) -> &Domain {
        &self.0[0]
    }

    /// The number of copies.
    pub(super) fn copies(&self) -> u64 {
        self.0.len() as u64
    }

    /// The largest volume, with the least spare that the domains need.
    pub(super) fn most_bytes(&self) -> f64 {
        self.first().space().usable_bytes as f64 / (1.0 + LEAST_SPARE_PERCENT / 100.0)
    }

    /// One of a pair programs and erases at a time from now on, in turns of this length.
    pub(super) async fn begin_windows(&self, length: Duration) -> Result<(), LabError> {
        self.first().set_window(Some(length)).await.map_err(failed)
    }

    /// The counts of a pair; none of one domain.
    pub(super) fn pair(&self) -> Option<PairFigures> {
        self.first().pair_figures()
    }

    /// The counts of all domains together.
    pub(super) fn counters(&self) -> DomainCounters {
        let counters = self.0.iter().map(Domain::counters);
        counters.fold(DomainCounters::default(), |sum, one| by_field(sum, one, |a, b| a + b))
    }

    /// Bytes programmed for any cause, headers of superblocks included.
    pub(super) fn programmed_bytes(&self) -> u64 {
        self.0.iter().map(Domain::programmed).map(|bytes: ProgramBytes| bytes.total()).sum()
    }

    /// Erases, each of a block in every plane of a die.
    pub(super) fn erases(&self) -> u64 {
        self.0.iter().map(Domain::erases).sum()
    }

    /// Memory of the maps, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.0.iter().map(Domain::memory_bytes).sum()
    }

    /// Checks that no mapping unit is lost or mapped twice, and that both copies are equal.
    pub(super) async fn check(&self) -> Result<(), LabError> {
        self.0.iter().try_for_each(Domain::check_map).map_err(LabError::Simulation)?;
        match self.first().compare_copies().await.map_err(failed)? {
            None => Ok(()),
            Some(difference) => {
                Err(LabError::Simulation(format!("the copies of the volume differ: {difference}")))
            }
        }
    }

    /// Ends their tasks.
    pub(super) fn stop(&self) {
        self.0.iter().for_each(Domain::stop);
    }
}

impl Making<'_> {
    fn config(&self, domain: u16) -> DomainConfig {
        DomainConfig {
            domain,
            op_percent: if self.is_spare_given { 0.0 } else { SERVED_OP_PERCENT },
            victim: self.layout.victim,
            lifetime: self.layout.lifetime,
            order: self.layout.order,
            placement: self.layout.scheduler,
            seed: self.seed,
            ..DomainConfig::default()
        }
    }
}

/// Combines the counts of domains field by field.
pub(super) fn by_field(
    one: DomainCounters,
    other: DomainCounters,
    of: impl Fn(u64, u64) -> u64,
) -> DomainCounters {
    DomainCounters {
        written: of(one.written, other.written),
        read: of(one.read, other.read),
        collected: of(one.collected, other.collected),
        map: of(one.map, other.map),
        overhead: of(one.overhead, other.overhead),
        map_overhead: of(one.map_overhead, other.map_overhead),
        frames: of(one.frames, other.frames),
        released: of(one.released, other.released),
        checkpoints: of(one.checkpoints, other.checkpoints),
        flushes: of(one.flushes, other.flushes),
        lost: of(one.lost, other.lost),
        refused: of(one.refused, other.refused),
    }
}
