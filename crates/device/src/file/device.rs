//! An open file device: its handles, its label, and the facilities of the operating system that it
//! uses.

use super::calls::FileCalls;
use super::extent;
use super::growth;
use super::options::{Discard, OpenOptions, Use};
use super::plan::Planner;
use super::queue_pair::{Engine, FileQueuePair};
use super::ring::Ring;
use super::scratch::ScratchFile;
use super::settled::Settled;
use super::setup::{MAX_ENTRIES, make_ring};
use super::sqe::Registered;
use super::sync::SyncEngine;
use crate::access::Access;
use crate::backends::{Backend, Capabilities};
use crate::claims::{Claim, Claims};
use crate::geometry::DeviceInfo;
use crate::growth_error::GrowthError;
use crate::label::{Configuration, LabelStore, open_label};
use crate::queue_pair::{Device, OpenError, QueuePair};
use crate::size::check_size;
use rustix::fs::{Advice, fadvise};
use softflash_base::{BufferPool, IoBuf, UnitSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The backend in the registry.
pub(crate) static BACKEND: Backend = Backend {
    name: "file",
    capabilities: Capabilities {
        open_blocks: None,
        placement_ids: 0,
        native_bad_blocks: false,
        label_in_place: true,
        more_units: true,
    },
    open: |label, note, options| Ok(Arc::new(FileDevice::from_label(label, note, options)?)),
    bytes: |configuration| check_configuration(configuration).ok(),
};

/// The state that all queue pairs of a device share.
#[derive(Clone)]
pub(super) struct Shared {
    info: DeviceInfo,
    discard: Discard,
    options: OpenOptions,
    /// The calls that tests use instead of the file's.
    instead: Option<Arc<dyn FileCalls>>,
    direct: bool,
    settled: Arc<Settled>,
    /// Holds the lock on the file.
    label: Arc<Mutex<LabelStore>>,
}

impl Shared {
    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn instead(&self) -> Option<&dyn FileCalls> {
        self.instead.as_deref()
    }

    /// A separate handle for a queue pair: the operating system reports a failed flush once to each
    /// handle.
    fn own_handle(&self) -> io::Result<File> {
        let path = self.label().path().to_owned();
        open_data(&path, &self.options, &mut Vec::new()).map(|(file, _)| file)
    }

    pub(super) fn settled(&self) -> &Settled {
        &self.settled
    }

    pub(super) fn label(&self) -> MutexGuard<'_, LabelStore> {
        self.label.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device whose units are extents of a file or block device. Locked against other processes as
/// long as it, or a queue pair of it, lives.
pub struct FileDevice {
    shared: Arc<Shared>,
    claims: Claims,
}

impl FileDevice {
    /// Opens the device at `path` and locks it. Writes nothing.
    ///
    /// # Errors
    /// [`OpenError`] names the failed check; [`OpenError::Busy`] while another handle has the file
    /// open.
    pub fn open(path: &Path, options: OpenOptions) -> Result<FileDevice, OpenError> {
        let (label, note) = open_label(path, options.access)?;
        FileDevice::from_label(label, note, options)
    }

    /// As [`open`](FileDevice::open), with `calls` instead of the file's calls, except for the
    /// label: for tests.
    ///
    /// # Errors
    /// As [`open`](FileDevice::open).
    pub fn open_over(path: &Path, calls: Arc<dyn FileCalls>) -> Result<FileDevice, OpenError> {
        let options =
            OpenOptions { io_uring: Use::Off, direct: Use::Off, ..OpenOptions::default() };
        let (label, note) = open_label(path, options.access)?;
        FileDevice::over(label, note, options, Some(calls))
    }

    /// Opens a device whose label has been read.
    pub(crate) fn from_label(
        store: LabelStore,
        label_note: Option<String>,
        options: OpenOptions,
    ) -> Result<FileDevice, OpenError> {
        if options.access != Access::Scratch {
            return FileDevice::over(store, label_note, options, None);
        }
        let failed = |source| OpenError::Io { path: store.path().to_owned(), source };
        let file = store.file().try_clone().map_err(failed)?;
        let options = OpenOptions { io_uring: Use::Off, direct: Use::Off, ..options };
        FileDevice::over(store, label_note, options, Some(Arc::new(ScratchFile::extending(file))))
    }

    fn over(
        store: LabelStore,
        label_note: Option<String>,
        options: OpenOptions,
        instead: Option<Arc<dyn FileCalls>>,
    ) -> Result<FileDevice, OpenError> {
        let path = store.path().to_owned();
        let io_error = |source| OpenError::Io { path: path.clone(), source };
        let configuration = store.label().configuration.clone();
        let (geometry, units) = (configuration.geometry, configuration.units);
        let damaged = |reason| OpenError::DamagedLabel { path: path.clone(), reason };
        let bytes = check_configuration(&configuration).map_err(damaged)?;
        let discard = discard_of(&configuration.options).map_err(damaged)?;
        let cut = check_size(store.file(), &path, bytes, options.access)?;

        let mut notes = Vec::new();
        let (data, direct) = open_data(&path, &options, &mut notes).map_err(io_error)?;
        if !direct {
            drop_cached(&data);
        }
        try_ring(&data, &options, &mut notes);
        notes.extend(label_note.into_iter().chain(cut));
        let info = DeviceInfo {
            backend: configuration.backend,
            uuid: configuration.uuid,
            units,
            geometry,
            detail: notes.join(", "),
        };
        let label = Arc::new(Mutex::new(store));
        let settled = Arc::default();
        let shared = Shared { info, discard, options, instead, direct, settled, label };
        Ok(FileDevice { shared: Arc::new(shared), claims: Claims::default() })
    }

    fn planner(&self, claim: &Claim) -> Planner {
        let units = claim.units().clone();
        let label = self.shared.label();
        let bad = label.label().bad_blocks.iter().filter(|bad| units.contains(bad.unit));
        Planner {
            geometry: self.shared.info.geometry,
            discard: self.shared.discard,
            direct: self.shared.direct,
            bad_blocks: bad.copied().collect(),
            units,
        }
    }

    /// The engine for a queue pair; the pool gets its registered buffers.
    fn engine(&self, data: &File, capacity: usize, pool: &BufferPool) -> Engine {
        let options = &self.shared.options;
        if options.io_uring == Use::Off {
            return Engine::Sync(SyncEngine::default());
        }
        match make_ring(capacity, data.as_raw_fd()) {
            Ok(ring) => {
                let (count, bytes) = (options.registered_buffers, options.registered_buffer_bytes);
                let (registered, outcome) = Registered::add(&ring.ring, pool, count, bytes);
                if let Err(error) = outcome {
                    tracing::warn!(
                        %error,
                        "buffers are not registered, which costs processor time; RLIMIT_MEMLOCK (ulimit -l) may be too low"
                    );
                }
                Engine::Ring(Box::new(Ring::new(ring, registered)))
            }
            Err(error) => {
                tracing::warn!(%error, "no io_uring for this queue pair; I/O is synchronous");
                Engine::Sync(SyncEngine::default())
            }
        }
    }
}

impl Device for FileDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.shared.info.units)?;
        let planner = self.planner(&claim);
        // Room for full dies, and for flushes and marks.
        let depth = usize::from(planner.geometry.die_queue_depth) + 1;
        let capacity = (depth * claim.units().len() + 1).min(MAX_ENTRIES as usize);
        let pool = BufferPool::new(self.shared.options.retained_bytes);
        let data = self.shared.own_handle().map_err(|source| OpenError::Io {
            path: self.shared.label().path().to_owned(),
            source,
        })?;
        let engine = self.engine(&data, capacity, &pool);
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(FileQueuePair::new(engine, data, planner, capacity, pool, shared, claim)))
    }

    fn enlarge(&self, units: u16) -> Result<Arc<dyn Device>, GrowthError> {
        if self.shared.options.access != Access::Write {
            return Err(GrowthError::ReadOnly);
        }
        if units < self.shared.info.units {
            let has = self.shared.info.units;
            let reason = format!("the device has {has} units; it cannot be cut to {units}");
            return Err(GrowthError::Geometry(reason));
        }
        let label = self.shared.label();
        growth::reserve(label.file(), label.path(), &label.label().configuration, units)?;
        drop(label);
        let info = DeviceInfo { units, ..self.shared.info.clone() };
        let shared = Shared { info, ..(*self.shared).clone() };
        Ok(Arc::new(FileDevice { shared: Arc::new(shared), claims: self.claims.clone() }))
    }

    fn record_units(&self) -> Result<(), GrowthError> {
        let mut label = self.shared.label();
        let failed = GrowthError::io(label.path());
        label.set_units(self.shared.info.units).map_err(failed)
    }

    fn give_back_room(&self) -> Result<(), GrowthError> {
        let mut label = self.shared.label();
        let failed = GrowthError::io(label.path());
        // Room that one of the copies of the label names is not given back: the device would be cut
        // short.
        label.take_back().map_err(&failed)?;
        growth::give_back(label.file(), &label.label().configuration).map_err(failed)
    }

    fn mend_label(&self) -> Result<(), OpenError> {
        self.shared.label().mend()
    }
}

/// The size in bytes of the device that a label describes, or the reason why it is impossible.
pub(crate) fn check_configuration(configuration: &Configuration) -> Result<u64, String> {
    let (geometry, units) = (&configuration.geometry, configuration.units);
    match extent::unsuitable(geometry, units) {
        Some(reason) => Err(reason),
        None => Ok(extent::device_bytes(geometry, units)),
    }
}

/// The discard mode in the label's options.
fn discard_of(options: &toml::Table) -> Result<Discard, String> {
    match options.get("discard") {
        None => Ok(Discard::None),
        Some(value) => value.clone().try_into().map_err(|error| format!("discard: {error}")),
    }
}

/// Tries io_uring and the registration of one queue pair's buffers, and notes the outcome.
///
/// The ring has only the data handle: the kernel releases a ring's files some time after the ring
/// is closed, and a lock held by such a file would outlive the device.
fn try_ring(data: &File, options: &OpenOptions, notes: &mut Vec<String>) {
    if options.io_uring == Use::Off {
        notes.push("synchronous I/O as io_uring is switched off".to_owned());
        return;
    }
    match make_ring(1, data.as_raw_fd()) {
        Err(error) => notes.push(format!("synchronous I/O as io_uring is refused ({error})")),
        Ok(ring) => {
            notes.push("io_uring".to_owned());
            let (count, bytes) = (options.registered_buffers, options.registered_buffer_bytes);
            let trial = BufferPool::default();
            match Registered::add(&ring.ring, &trial, count, bytes) {
                (_, Err(error)) => notes.push(format!(
                    "buffers not registered ({error}; RLIMIT_MEMLOCK may be too low)"
                )),
                // At once, so that the trial does not count against the queue pairs' limit.
                (_, Ok(())) if count > 0 => {
                    if let Err(error) = ring.ring.submitter().unregister_buffers() {
                        tracing::debug!(%error, "buffers of the trial ring stay until it is gone");
                    }
                }
                _ => {}
            }
        }
    }
}

/// Opens the file for data, with O_DIRECT if that works.
fn open_data(
    path: &Path,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> io::Result<(File, bool)> {
    let mut opening = fs::OpenOptions::new();
    opening.read(true).write(options.access == Access::Write);
    if options.direct == Use::Off {
        notes.push("O_DIRECT switched off, through the page cache".to_owned());
        return Ok((opening.open(path)?, false));
    }
    match opening.clone().custom_flags(libc::O_DIRECT).open(path).and_then(try_direct_read) {
        Ok(file) => {
            notes.push("O_DIRECT".to_owned());
            Ok((file, true))
        }
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            notes.push("O_DIRECT refused by the file system, through the page cache".to_owned());
            Ok((opening.open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Drops the file's page cache, so that the data is read again: after a failed flush in an earlier
/// process, the contents of the page cache may differ from those of the medium.
fn drop_cached(file: &File) {
    // Dirty pages would be kept, so they are written first. If that fails, later reads still return
    // the contents of the medium.
    let _ = file.sync_data();
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Some file systems accept the flag and fail the first transfer.
fn try_direct_read(file: File) -> io::Result<File> {
    let mut page = IoBuf::zeroed(4096);
    file.read_exact_at(&mut page, 0)?;
    Ok(file)
}
