//! A mapped domain: the volumes on some units of a device, and the tasks that keep them. Five kinds
//! of tasks work in the background: flushes, proofs of changes, collection (one for each unit),
//! releases and checkpoints.

use crate::changes::Changes;
use crate::checkpoint;
use crate::classes::predicted::Predicted;
use crate::collector;
use crate::config::DomainConfig;
use crate::core::{Core, Shared};
use crate::counters::DomainCounters;
use crate::domain_map::Beyond;
use crate::draining;
use crate::ending;
use crate::error::VolumeError;
use crate::examination::{self, Examined, Progress};
use crate::flusher;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::operation::Operation;
use crate::frames::Frames;
use crate::image::{Image, ImageId};
use crate::joining;
use crate::latencies::VolumeLatencies;
use crate::listing::{self, VolumeInfo};
use crate::opening::{self, open};
use crate::operations::{Change, check_name, check_size};
use crate::order::Order;
use crate::pair;
use crate::proof;
use crate::recovery::leaves::damaged_copies;
use crate::recovery::nameless::release_free;
use crate::recovery::{Recovered, RecoveryReport, giving_up, recover};
use crate::releases;
use crate::repair::{self, Repaired};
use crate::rewriting;
use crate::settings::{Setting, VolumeSettings};
use crate::tenant::VolumeCounters;
use crate::unit_slots::UnitSlots;
use crate::volume::Volume;
use futures_util::future::LocalBoxFuture;
use serde::Serialize;
use softflash_base::UnitSet;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_device::QueuePair;
use softflash_flash::MountedFlash;
use softflash_ftl::{FtlConfig, Inventory, Owner, Ownership, ProgramBytes, UnitTelemetry};
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;

/// A mapped domain on the units of a queue pair. A clone is the same domain.
#[derive(Clone)]
pub struct Domain {
    pub(crate) core: Shared,
    /// Whether the handle finds volumes that are not the domain's own.
    pub(crate) sees_guests: bool,
}

/// The space of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainSpace {
    /// Bytes that volumes and snapshots hold.
    pub used_bytes: u64,
    /// Bytes that they may hold.
    pub usable_bytes: u64,
    /// Bytes of the flash.
    pub flash_bytes: u64,
    /// Whether writes that take more space are refused.
    pub is_full: bool,
}

/// The figures of a volume for monitors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VolumeFigures {
    /// Its name.
    #[serde(rename = "volume")]
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that the volume and its snapshots hold.
    pub used_bytes: u64,
    /// The most that they may hold.
    pub quota_bytes: Option<u64>,
    /// Counts of its requests.
    #[serde(flatten)]
    pub counters: VolumeCounters,
    /// Latencies of its requests.
    #[serde(skip)]
    pub latencies: VolumeLatencies,
}

/// The superblocks that collection may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedSuperblocks {
    /// How many they are.
    pub superblocks: u32,
    /// Their mapping units, heads of frames included.
    pub units: u64,
    /// Mapping units in them that hold data.
    pub valid: u64,
}

impl Domain {
    /// The owner of a domain's superblocks, for the mount of other layers on the same units.
    pub fn owner(domain: u16) -> Owner {
        opening::owner(domain)
    }

    /// How a domain has its units, for a mount together with those of others.
    pub fn ownership(domain: u16) -> Ownership {
        opening::ownership(domain)
    }

    /// Mounts the domain on the units of a queue pair; an empty one if there is none.
    pub fn mount(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> LocalBoxFuture<'static, Result<(Domain, RecoveryReport), VolumeError>> {
        // Boxed here, recovery is compiled once, and not again in each crate that mounts a domain;
        // so are the others below.
        Box::pin(Domain::mounted(queue, config, runtime))
    }

    /// As [`mount`](Domain::mount), on flash that has been mounted with that of other owners: its
    /// wear policy and its order of dies are those of that mount. It is stopped with the domain,
    /// and where the domain cannot be mounted.
    pub fn mount_on(
        flash: MountedFlash,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> LocalBoxFuture<'static, Result<(Domain, RecoveryReport), VolumeError>> {
        Box::pin(async move { Domain::recovered(opening::on_flash(flash, config, runtime)?).await })
    }

    async fn mounted(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> Result<(Domain, RecoveryReport), VolumeError> {
        let ftl = FtlConfig { wear: config.wear, order: config.order, ..FtlConfig::default() };
        Domain::recovered(open(queue, ftl, config, runtime).await?).await
    }

    async fn recovered(
        (core, inventory): (Core, Inventory),
    ) -> Result<(Domain, RecoveryReport), VolumeError> {
        let flash = core.flash.clone();
        let mounted = Domain::recover(core, &inventory).await;
        if mounted.is_err() {
            flash.stop();
        }
        mounted
    }

    /// Reads everything that the volumes of a domain hold, as far as a mount finds it, and writes
    /// nothing.
    pub fn examine(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
        progress: &Progress,
    ) -> LocalBoxFuture<'_, Result<Examined, VolumeError>> {
        Box::pin(examination::examine(queue, config, runtime, progress))
    }

    /// Repairs a domain in which [`examine`](Domain::examine) has found damage: its map is written
    /// again, without what is lost.
    pub fn repair(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> LocalBoxFuture<'static, Repaired> {
        Box::pin(repair::repair(queue, config, runtime))
    }

    /// The volumes of a domain as the next mount would find them; nothing is written.
    pub fn list_only(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> LocalBoxFuture<'static, Result<Vec<VolumeInfo>, VolumeError>> {
        Box::pin(examination::list(queue, config, runtime))
    }

    /// Gives up all volumes of a domain, also of one that cannot be mounted: it is empty
    /// afterwards. Returns the superblocks that it had.
    pub async fn give_up(
        queue: Box<dyn QueuePair>,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> Result<u32, VolumeError> {
        let (core, inventory) = open(queue, FtlConfig::default(), config, runtime).await?;
        let flash = core.flash.clone();
        let given_up = giving_up::give_up(core, &inventory).await;
        flash.stop();
        given_up
    }

    async fn recover(
        mut core: Core,
        inventory: &Inventory,
    ) -> Result<(Domain, RecoveryReport), VolumeError> {
        let recovered = recover(&core, inventory).await?;
        release_free(&core, inventory);
        core.adopt_settings();
        let frames = Frames::from(recovered.next_sequence, recovered.durable_below);
        let changes = Changes::recovered(recovered.next_change, recovered.proven_below);
        core.order = Order::from(frames, changes);
        let report = recovered.report.clone();
        let domain = Domain { core: Rc::new(core), sees_guests: false };
        // The other tasks start when nothing is uncertain any more.
        let flusher = flusher::run(Rc::clone(&domain.core));
        domain.core.tasks.spawn(flusher);
        match domain.settle(recovered).await {
            Ok(()) => Ok((domain, report)),
            Err(error) => {
                domain.stop();
                Err(error)
            }
        }
    }

    /// Makes the recovered state durable. Nothing is served before: data that this recovery could
    /// read must not be lost in the next one.
    async fn settle(&self, recovered: Recovered) -> Result<(), VolumeError> {
        let core = &self.core;
        let release_all = |blocks: &[u32]| {
            core.roots.retain(|block| !blocks.contains(&block));
            blocks.iter().for_each(|&block| releases::release(core, block));
        };
        release_all(&recovered.useless_map);
        if recovered.needs_proof {
            match checkpoint::prove(core).await {
                // The useless ones are the space: the frame that was read has to do.
                Ok(_) | Err(VolumeError::OutOfSpace { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        release_all(&recovered.useless);
        let is_uncertain = recovered.is_uncertain && !planted::bug(Bug::UncertainTrusted);
        if is_uncertain {
            rewriting::write_again(core, recovered.unstable).await?;
        }
        let moves = rewriting::make_room(core).await;
        rewriting::close(core);
        flusher::flush(core).await?;
        // Data that this recovery could not read must not appear in the next one, and data that
        // were written again must not depend on frames that the next one may not find.
        if is_uncertain || moves.are_some {
            checkpoint::make_of_mount(core).await?;
        } else if recovered.lacks_copy {
            match checkpoint::try_make(core).await {
                // What is there can be read.
                Ok(()) | Err(VolumeError::OutOfSpace { .. } | VolumeError::WornOut) => {}
                Err(error) => return Err(error),
            }
        }
        // Only now are older data not needed any more.
        let empty = recovered.empty.into_iter().filter(|block| !recovered.useless.contains(block));
        core.retiring.add_for_root(empty.chain(moves.emptied));
        releases::release_unneeded(core);
        core.tasks.spawn(checkpoint::run(Rc::clone(core)));
        core.tasks.spawn(releases::run(Rc::clone(core)));
        for unit in core.geometry.numbers() {
            core.tasks.spawn(collector::run(Rc::clone(core), unit));
        }
        core.order.settle();
        core.tasks.spawn(proof::run(Rc::clone(core)));
        Ok(())
    }

    /// Creates a thin volume with the default settings.
    pub async fn create(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        self.create_with(name, size_bytes, &[]).await
    }

    /// Creates a thin volume with these settings, and the default values of others.
    pub async fn create_with(
        &self,
        name: &str,
        size_bytes: u64,
        settings: &[Setting],
    ) -> Result<(), VolumeError> {
        check_name(name)?;
        let size = check_size(size_bytes)?;
        settings.iter().try_for_each(|setting| setting.check())?;
        let settings = VolumeSettings::default().with(settings);
        self.change(|images| {
            if images.volume(name).is_ok() {
                return Err(VolumeError::Exists { name: name.to_owned() });
            }
            let image = images.next_id()?;
            let name = name.to_owned();
            let operation = Operation::Create { image, name, size, settings };
            Ok((Change::Operation(operation), ()))
        })
        .await?;
        self.flush().await
    }

    /// Changes the size of a volume that holds no data beyond it.
    ///
    /// # Errors
    /// [`VolumeError::WouldLose`] where it does.
    pub async fn resize(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        self.resize_to(name, size_bytes, false).await
    }

    /// Changes the size of a volume; data beyond it are discarded.
    pub async fn shrink(&self, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
        self.resize_to(name, size_bytes, true).await
    }

    async fn resize_to(&self, name: &str, bytes: u64, may_lose: bool) -> Result<(), VolumeError> {
        let size = check_size(bytes)?;
        self.change(|images| {
            let image = images.volume(name)?;
            let beyond = self.here().map.borrow().data_beyond(image, size).filter(|_| !may_lose);
            if let Some(Beyond { units, end }) = beyond {
                let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
                let (size, lost, end) = (bytes(size), bytes(units), bytes(end));
                return Err(VolumeError::WouldLose { name: name.to_owned(), size, lost, end });
            }
            Ok((Change::Operation(Operation::Resize { image, size }), ()))
        })
        .await?;
        self.flush().await
    }

    /// Changes some settings of a volume, together. A quota below what the volume holds refuses
    /// writes until it holds less.
    pub async fn set(&self, name: &str, settings: &[Setting]) -> Result<(), VolumeError> {
        settings.iter().try_for_each(|setting| setting.check())?;
        self.change(|images| {
            let image = images.volume(name)?;
            let before = images.get(image).map(|image| image.settings).unwrap_or_default();
            let operation = Operation::Set { image, settings: before.with(settings) };
            Ok((Change::Operation(operation), ()))
        })
        .await?;
        self.flush().await
    }

    /// Deletes a volume without snapshots.
    pub async fn delete(&self, name: &str) -> Result<(), VolumeError> {
        self.change(|images| {
            let image = images.volume(name)?;
            if let Some((_, snapshot)) = images.snapshots_of(image).next() {
                let snapshot = snapshot.name.clone();
                return Err(VolumeError::HasSnapshots { name: name.to_owned(), snapshot });
            }
            Ok((Change::Operation(Operation::Delete { image }), ()))
        })
        .await?;
        self.flush().await
    }

    /// Takes a snapshot of a volume: of all writes that have completed.
    pub async fn snapshot(&self, volume: &str, name: &str) -> Result<(), VolumeError> {
        check_name(name)?;
        self.change(|images| {
            let of = images.volume(volume)?;
            if images.snapshots_of(of).any(|(_, snapshot)| snapshot.name == name) {
                return Err(VolumeError::Exists { name: format!("{volume}@{name}") });
            }
            let image = images.next_id()?;
            let operation = Operation::Snapshot { of, image, name: name.to_owned() };
            Ok((Change::Operation(operation), ()))
        })
        .await?;
        self.flush().await
    }

    /// Deletes a snapshot without clones.
    pub async fn delete_snapshot(&self, volume: &str, name: &str) -> Result<(), VolumeError> {
        self.change(|images| {
            let image = images.snapshot(volume, name)?;
            if let Some((_, clone)) = images.clones_of(image).next() {
                let clone = clone.name.clone();
                return Err(VolumeError::HasClones { name: format!("{volume}@{name}"), clone });
            }
            Ok((Change::Operation(Operation::Delete { image }), ()))
        })
        .await?;
        self.flush().await
    }

    /// Creates a volume that begins with the contents of a snapshot; nothing is copied.
    pub async fn clone_snapshot(
        &self,
        volume: &str,
        snapshot: &str,
        name: &str,
    ) -> Result<(), VolumeError> {
        check_name(name)?;
        self.change(|images| {
            let of = images.snapshot(volume, snapshot)?;
            if images.volume(name).is_ok() {
                return Err(VolumeError::Exists { name: name.to_owned() });
            }
            let image = images.next_id()?;
            let operation = Operation::Clone { of, image, name: name.to_owned() };
            Ok((Change::Operation(operation), ()))
        })
        .await?;
        self.flush().await
    }

    /// Whether the handle finds the volume of this name, if there is one.
    fn sees(&self, name: &str) -> bool {
        self.sees_guests || !self.core.residence().is_guest(name)
    }

    /// The volumes, by name.
    pub fn list(&self) -> Vec<VolumeInfo> {
        if self.is_second() {
            return Vec::new();
        }
        let all = listing::volumes(&self.here().map.borrow());
        all.into_iter().filter(|volume| self.sees(&volume.name)).collect()
    }

    /// Bytes of volumes and snapshots that are lost: reads of them fail until they are written or
    /// discarded.
    pub fn lost_bytes(&self) -> u64 {
        self.core.map.borrow().lost().count() as u64 * cast::wide(MAPPING_UNIT_BYTES)
    }

    /// Opens a volume.
    pub fn volume(&self, name: &str) -> Result<Volume, VolumeError> {
        if self.is_second() || !self.sees(name) {
            return Err(VolumeError::NoVolume { name: name.to_owned() });
        }
        let image = self.here().map.borrow().images.volume(name)?;
        Ok(Volume::new(Rc::clone(&self.core), image))
    }

    /// Opens a snapshot, for reads. They count as those of its volume.
    pub fn open_snapshot(&self, volume: &str, snapshot: &str) -> Result<Volume, VolumeError> {
        if self.is_second() || !self.sees(volume) {
            return Err(VolumeError::NoVolume { name: volume.to_owned() });
        }
        let image = self.here().map.borrow().images.snapshot(volume, snapshot)?;
        Ok(Volume::new(Rc::clone(&self.core), image))
    }

    /// Returns when all completed writes and changes are durable.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        match pair::of(&self.core) {
            None => flusher::flush(&self.core).await,
            Some(pair) => pair.flush().await,
        }
    }

    /// Returns when the loss of what is durable would be known, which otherwise is the case a
    /// second after its flush.
    ///
    /// # Errors
    /// That of the flash, which did not take the proof.
    pub async fn prove(&self) -> Result<(), VolumeError> {
        match pair::of(&self.core) {
            None => proof::prove(&self.core).await,
            // A new epoch of a pair is proven.
            Some(_) if self.is_second() => Ok(()),
            Some(pair) => pair.settle().await,
        }
    }

    /// Moves everything that is in some of its units to the others, under load. Afterwards the
    /// domain uses these units no more, and its next mount can be without them: recovery needs
    /// nothing that is there. Nothing is erased.
    ///
    /// # Errors
    /// [`VolumeError::UnitsNeeded`] where the other units have too little room; after an error, the
    /// units take data as before.
    pub async fn drain(&self, units: &UnitSet) -> Result<(), VolumeError> {
        draining::drain(&self.core, units).await
    }

    /// Takes out units that were [drained](Domain::drain): another queue pair can open them. The
    /// table of sets must not give them to the domain any more.
    ///
    /// # Errors
    /// [`VolumeError::NotDrained`]; [`VolumeError::Unsupported`] where the table gives other units
    /// to the domain.
    pub async fn leave(&self, units: &UnitSet, table: &UnitSlots) -> Result<(), VolumeError> {
        draining::leave(&self.core, units, table).await
    }

    /// Keeps units that were [drained](Domain::drain) after all: they take data again.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] for units of others.
    pub fn keep(&self, units: &UnitSet) -> Result<(), VolumeError> {
        draining::keep(&self.core, units)
    }

    /// Adds the units of a queue pair under load: they are [erased](softflash_flash::erase_units),
    /// and the table of sets gives them to the domain by now.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] where the table says anything else of the domain's units; those
    /// of a mount of the FTL. The domain goes on without the units then.
    pub async fn join(
        &self,
        queue: Box<dyn QueuePair>,
        table: &UnitSlots,
    ) -> Result<(), VolumeError> {
        joining::join(&self.core, queue, table).await
    }

    /// Ends a domain whose set the table does not have any more: another queue pair can open its
    /// units.
    ///
    /// # Errors
    /// Those of the flash, whose units are in use until the end of the process then.
    pub async fn end(&self) -> Result<(), VolumeError> {
        let ended = ending::end(&self.core).await;
        self.stop();
        ended
    }

    /// Bytes of data that are still in units that are [drained](Domain::drain).
    pub fn draining_bytes(&self) -> u64 {
        draining::bytes_left(&self.core)
    }

    /// Makes a checkpoint, from which recovery starts.
    pub async fn checkpoint(&self) -> Result<(), VolumeError> {
        if let Some(pair) = pair::of(&self.core) {
            // A domain at rest makes none.
            pair.settle().await?;
        }
        checkpoint::checkpoint(&self.core).await
    }

    /// Writes everything of the map again of which a copy cannot be read. Returns the copies of
    /// leaves that could not; the next root has all of its copies in any case.
    pub async fn mend_map(&self) -> Result<u32, VolumeError> {
        let damaged = damaged_copies(&self.core).await;
        {
            let mut map = self.core.map.borrow_mut();
            damaged.iter().for_each(|&leaf| map.touch(leaf));
        }
        self.checkpoint().await?;
        Ok(cast::saturating_u32(damaged.len()))
    }

    /// The space in use.
    pub fn space(&self) -> DomainSpace {
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        let own = DomainSpace {
            used_bytes: bytes(self.core.map.borrow().used()),
            usable_bytes: bytes(self.core.space.usable()),
            flash_bytes: bytes(self.core.geometry.slots()),
            is_full: self.core.is_full(),
        };
        self.space_of_pair(own)
    }

    /// The superblocks that collection may choose: all but the free ones, the open ones, those
    /// that wait for their release, and those of the map.
    pub fn closed_superblocks(&self) -> ClosedSuperblocks {
        let geometry = &self.core.geometry;
        let map = self.core.map.borrow();
        let closed = (0..geometry.blocks()).filter(|&block| map.blocks.is_closed(block));
        let (superblocks, valid) = closed.fold((0, 0), |(superblocks, valid), block| {
            (superblocks + 1, valid + u64::from(map.blocks.valid_in(block)))
        });
        let units = u64::from(superblocks) * u64::from(geometry.block_units);
        ClosedSuperblocks { superblocks, units, valid }
    }

    /// Entries of frames after which a checkpoint is made: a recovery replays at most about so
    /// many.
    pub fn checkpoint_entries(&self) -> u64 {
        self.core.checkpoint_entries()
    }

    /// Memory of the map and of the states of superblocks, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.core.map.borrow().memory_bytes()
            + self.core.superblocks.memory_bytes()
            + self.core.clients.classes().predicted().map_or(0, Predicted::memory_bytes)
    }

    /// The state of each unit. Scans the blocks of all units.
    pub fn units(&self) -> Vec<UnitTelemetry> {
        let flash = &self.core.flash;
        flash.units().iter().map(|unit| flash.telemetry(unit)).collect()
    }

    /// Bytes programmed since the mount, by origin. Scans the blocks of all units.
    pub fn programmed(&self) -> ProgramBytes {
        let mut programmed = ProgramBytes::default();
        self.units().iter().for_each(|unit| programmed.add(&unit.programmed));
        programmed
    }

    /// Erases since the mount, each of a block in every plane of a die. Scans the blocks of all
    /// units.
    pub fn erases(&self) -> u64 {
        self.units().iter().map(|unit| unit.erases).sum()
    }

    /// Counters since the mount.
    pub fn counters(&self) -> DomainCounters {
        self.core.counters()
    }

    /// The counters of each volume since the mount, by name.
    pub fn volume_counters(&self) -> Vec<(String, VolumeCounters)> {
        let figures = self.figures().into_iter();
        figures.map(|figures| (figures.name, figures.counters)).collect()
    }

    /// The figures of each volume for monitors, by name.
    pub fn figures(&self) -> Vec<VolumeFigures> {
        if self.is_second() {
            return Vec::new();
        }
        let here = self.here();
        let map = here.map.borrow();
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        let is_shown = |image: &Image| image.is_volume() && self.sees(&image.name);
        let volumes = map.images.iter().filter(|(_, image)| is_shown(image));
        let figures = |(id, image): (ImageId, &Image)| {
            let (counters, latencies) = self.core.clients.figures(id);
            VolumeFigures {
                name: image.name.clone(),
                size_bytes: bytes(image.size),
                used_bytes: bytes(map.held(id)),
                quota_bytes: image.settings.quota_bytes,
                counters,
                latencies,
            }
        };
        let mut all: Vec<_> = volumes.map(figures).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Checks that the parts of the map agree with each other; returns the first difference.
    pub fn check_map(&self) -> Result<(), String> {
        self.core.map.borrow().check()
    }

    /// Ends the tasks of the domain. Writes that were not flushed may be lost.
    pub fn stop(&self) {
        let core = &self.core;
        if let Some(pair) = pair::of(core) {
            pair.stop();
        }
        core.tasks.stop();
        core.order.resume();
        core.retiring.ask();
        core.clients.wake();
        core.space.notify();
        core.flash.stop();
    }
}
