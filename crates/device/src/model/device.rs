//! An open model device.

use super::channels::Channels;
use super::config::{Contents, ModelConfig};
use super::group::{Group, factory_bad};
use super::medium::{Medium, RamMedium};
use super::persisted::{FileMedium, file_bytes};
use super::queue_pair::{ModelQueuePair, lock};
use crate::access::Access;
use crate::backends::{Backend, Capabilities};
use crate::claims::{Claim, Claims};
use crate::file::{FileCalls, ScratchFile};
use crate::geometry::DeviceInfo;
use crate::label::{LabelStore, open_label};
use crate::queue_pair::{Device, OpenError, QueuePair};
use crate::size::check_size;
use softflash_base::checksum::identity;
use softflash_base::{Time, UnitSet};
use softflash_nand::{InjectedFaults, PowerCutReport};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The backend in the registry.
pub(crate) static BACKEND: Backend = Backend {
    name: "model",
    capabilities: Capabilities {
        open_blocks: None,
        placement_ids: 0,
        native_bad_blocks: true,
        label_in_place: true,
        // Its file has the records of all blocks before the pages.
        more_units: false,
    },
    open: |label, note, options| {
        Ok(Arc::new(ModelDevice::from_label(label, note, options.access)?))
    },
    bytes: |configuration| bytes_of(&configuration.options),
};

/// The state that all queue pairs of a device share.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) config: ModelConfig,
    path: PathBuf,
    pub(super) medium: Arc<dyn Medium>,
    contents: Contents,
    /// Counters of the faults injected into arrays of closed queue pairs.
    pub(super) past_injected: Mutex<InjectedFaults>,
    last_cut: Mutex<Option<PowerCutReport>>,
    /// The arrays of the open queue pairs.
    pub(super) groups: Mutex<Vec<Arc<Mutex<Group>>>>,
    /// Holds the lock on the file.
    label: Mutex<Option<LabelStore>>,
}

impl Shared {
    /// Cuts the power of every queue pair.
    pub(super) fn power_cut(&self, at: Time, seed: u64) -> io::Result<PowerCutReport> {
        let mut whole = PowerCutReport::default();
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        for group in groups.iter() {
            add(&mut whole, &lock(group).power_cut(at, seed)?);
        }
        *self.last_cut.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole);
        Ok(whole)
    }

    /// Removes the array of a closed queue pair; its fault counters are kept.
    pub(super) fn forget(&self, group: &Arc<Mutex<Group>>) {
        let injected = lock(group).array.injected();
        self.past_injected.lock().unwrap_or_else(PoisonError::into_inner).add(&injected);
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|other| !Arc::ptr_eq(other, group));
    }
}

/// A simulated device. Its state outlives its queue pairs, and in a file also the process.
pub struct ModelDevice {
    shared: Arc<Shared>,
    claims: Claims,
}

impl ModelDevice {
    /// A new device in memory that keeps all bytes. Its uuid follows from the seed.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where the configuration cannot be built.
    pub fn in_memory(config: ModelConfig) -> Result<ModelDevice, OpenError> {
        ModelDevice::in_memory_keeping(config, Contents::Bytes)
    }

    /// As [`in_memory`](ModelDevice::in_memory), with a choice of the stored contents.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where the configuration cannot be built.
    pub fn in_memory_keeping(
        config: ModelConfig,
        contents: Contents,
    ) -> Result<ModelDevice, OpenError> {
        config.unit_geometry()?;
        let medium = RamMedium::new(&config.array.geometry, contents);
        record_factory_bad(&config, &medium)
            .map_err(|error| OpenError::Geometry(error.to_string()))?;
        let half = |part| u128::from(identity(&[config.seed, part]));
        let uuid = half(0) << 64 | half(1);
        let medium = (Arc::new(medium) as Arc<dyn Medium>, contents);
        ModelDevice::new(config, uuid, "in memory".to_owned(), medium, None)
    }

    /// Opens the device in the file at `path` and locks it.
    ///
    /// # Errors
    /// [`OpenError`] names the failed check.
    pub fn open(path: &Path) -> Result<ModelDevice, OpenError> {
        let access = Access::Write;
        let (label, note) = open_label(path, access)?;
        ModelDevice::from_label(label, note, access)
    }

    /// Opens a device whose label has been read.
    pub(crate) fn from_label(
        label: LabelStore,
        label_note: Option<String>,
        access: Access,
    ) -> Result<ModelDevice, OpenError> {
        let path = label.path().to_owned();
        let damaged = |reason| OpenError::DamagedLabel { path: path.clone(), reason };
        let io_error = |source| OpenError::Io { path: path.clone(), source };
        let configuration = &label.label().configuration;
        let config = config_of(&configuration.options).map_err(damaged)?;
        let expected = file_bytes(&config.array.geometry);
        let cut = check_size(label.file(), &path, expected, access)?;
        let file = label.file().try_clone().map_err(io_error)?;
        let file: Box<dyn FileCalls> = match access {
            Access::Write => Box::new(file),
            // An array changes with every read, too.
            Access::Look => Box::new(ScratchFile::over(file)),
            Access::Scratch => Box::new(ScratchFile::extending(file)),
        };
        let medium: Arc<dyn Medium> = Arc::new(FileMedium::new(file, &config.array.geometry));
        let medium = (medium, Contents::Bytes);
        let notes = label_note.into_iter().chain(cut);
        let detail: Vec<String> = ["in a file".to_owned()].into_iter().chain(notes).collect();
        ModelDevice::new(config, configuration.uuid, detail.join(", "), medium, Some(label))
    }

    fn new(
        config: ModelConfig,
        uuid: u128,
        detail: String,
        (medium, contents): (Arc<dyn Medium>, Contents),
        label: Option<LabelStore>,
    ) -> Result<ModelDevice, OpenError> {
        let info = DeviceInfo {
            backend: BACKEND.name.to_owned(),
            uuid,
            units: config.units()?,
            geometry: config.unit_geometry()?,
            detail,
        };
        let path = label.as_ref().map_or(PathBuf::from("(memory)"), |l| l.path().to_owned());
        let shared = Shared {
            info,
            config,
            path,
            medium,
            contents,
            past_injected: Mutex::default(),
            last_cut: Mutex::default(),
            groups: Mutex::default(),
            label: Mutex::new(label),
        };
        Ok(ModelDevice { shared: Arc::new(shared), claims: Claims::default() })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Claims units: no queue pair can open them while the claim is held.
    pub(super) fn claim(&self, units: &UnitSet) -> Result<Claim, OpenError> {
        self.claims.claim(units, self.shared.info.units)
    }

    pub(super) fn io_error(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.shared.path.clone(), source }
    }

    /// The configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.shared.config
    }

    /// Cuts the power of the whole device at `at`, a time on the clock of its queue pairs, or at
    /// their current time if that is later. Completed operations are durable; the outcome of
    /// operations in progress is random, drawn from `seed`. Their commands and all later ones fail
    /// with `ENODEV`. Drop the queue pairs, then open new ones on the surviving state.
    ///
    /// # Errors
    /// If the state cannot be written to the device's file.
    pub fn power_cut(&self, at: Time, seed: u64) -> io::Result<PowerCutReport> {
        self.shared.power_cut(at, seed)
    }

    /// The report of the last power cut of the whole device, planned or not.
    pub fn last_power_cut(&self) -> Option<PowerCutReport> {
        *self.shared.last_cut.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The configuration in a label's options, checked before its numbers are used.
fn config_of(options: &toml::Table) -> Result<ModelConfig, String> {
    let config: Result<ModelConfig, _> = toml::Value::Table(options.clone()).try_into();
    let config = config.map_err(|error| error.to_string())?;
    config.unit_geometry().map_err(|error| error.to_string())?;
    Ok(config)
}

/// The size of the file of a device with these options in its label.
fn bytes_of(options: &toml::Table) -> Option<u64> {
    config_of(options).ok().map(|config| file_bytes(&config.array.geometry))
}

/// Adds the report of one group to the whole.
fn add(whole: &mut PowerCutReport, part: &PowerCutReport) {
    whole.commands_lost += part.commands_lost;
    whole.pages_untouched += part.pages_untouched;
    whole.pages_torn += part.pages_torn;
    whole.pages_shorn += part.pages_shorn;
    whole.pages_whole += part.pages_whole;
    whole.pages_unstable += part.pages_unstable;
    whole.pages_lost_with_pair += part.pages_lost_with_pair;
    whole.blocks_untouched += part.blocks_untouched;
    whole.blocks_partly_erased += part.blocks_partly_erased;
    whole.blocks_erased += part.blocks_erased;
    whole.blocks_look_erased += part.blocks_look_erased;
    whole.blocks_part_old += part.blocks_part_old;
}

/// Writes the records of a new device's factory-bad blocks.
pub(super) fn record_factory_bad(config: &ModelConfig, medium: &dyn Medium) -> io::Result<()> {
    let bad = factory_bad(config).map_err(io::Error::other)?;
    bad.iter().try_for_each(|(block, record)| medium.save_record(*block, record))
}

impl Device for ModelDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn check_units(&self, units: &UnitSet) -> Result<(), OpenError> {
        self.config().channels_of(units).map(|_| ())
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claim(units)?;
        let Shared { config, medium, contents, .. } = &*self.shared;
        let channels = Channels::new(config.channels_of(claim.units())?, &config.array.geometry);
        let group = Group::new(config, channels, medium, *contents)
            .map_err(|source| self.io_error(source))?;
        let group = Arc::new(Mutex::new(group));
        let mut groups = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push(Arc::clone(&group));
        Ok(Box::new(ModelQueuePair::new(Arc::clone(&self.shared), group, claim)))
    }

    fn mend_label(&self) -> Result<(), OpenError> {
        let mut label = self.shared.label.lock().unwrap_or_else(PoisonError::into_inner);
        label.as_mut().map_or(Ok(()), LabelStore::mend)
    }
}
