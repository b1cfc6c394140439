//! An open file device: its handles, label and what of the operating system it can use.

use super::extent;
use super::options::{Discard, OpenOptions, Use};
use super::plan::Planner;
use super::queue_pair::{Engine, FileQueuePair};
use super::ring::Ring;
use super::setup::{MAX_ENTRIES, make_ring};
use super::sqe::Registered;
use super::sync::SyncEngine;
use crate::claims::{Claim, Claims};
use crate::geometry::DeviceInfo;
use crate::label::{LabelStore, open_label};
use crate::queue_pair::{Device, OpenError, QueuePair};
use softflash_base::{BufferPool, IoBuf};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all queue pairs of a device share.
pub(super) struct Shared {
    info: DeviceInfo,
    discard: Discard,
    options: OpenOptions,
    /// Past the page cache, unless that was refused.
    data: File,
    direct: bool,
    /// Holds the lock on the file.
    label: Mutex<LabelStore>,
}

impl Shared {
    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn data(&self) -> &File {
        &self.data
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
    /// Opens the device at `path` and locks it. A damaged label copy is repaired from the other
    /// unless the options forbid it.
    ///
    /// # Errors
    /// [`OpenError`] says which check the file fails; [`OpenError::Busy`] while another handle has
    /// it open.
    pub fn open(path: &Path, options: OpenOptions) -> Result<FileDevice, OpenError> {
        let (label, note) = open_label(path, options.repair_label)?;
        FileDevice::from_label(label, note, options)
    }

    /// Goes on where the label has been read.
    pub(crate) fn from_label(
        store: LabelStore,
        repair_note: Option<String>,
        options: OpenOptions,
    ) -> Result<FileDevice, OpenError> {
        let path = store.path().to_owned();
        let io_error = |source| OpenError::Io { path: path.clone(), source };
        let configuration = store.label().configuration.clone();
        let (geometry, units) = (configuration.geometry, configuration.units);
        if let Some(reason) = extent::unsuitable(&geometry, units) {
            return Err(OpenError::DamagedLabel { path, reason });
        }
        let discard = discard_of(&configuration.options)
            .map_err(|reason| OpenError::DamagedLabel { path: path.clone(), reason })?;
        check_size(store.file(), &path, extent::device_bytes(&geometry, units))?;

        let mut notes = Vec::new();
        let (data, direct) = open_data(&path, &options, &mut notes).map_err(io_error)?;
        try_ring(&data, &options, &mut notes);
        notes.extend(repair_note);
        let info = DeviceInfo {
            backend: configuration.backend,
            uuid: configuration.uuid,
            units,
            geometry,
            detail: notes.join(", "),
        };
        let label = Mutex::new(store);
        let shared = Shared { info, discard, options, data, direct, label };
        Ok(FileDevice { shared: Arc::new(shared), claims: Claims::default() })
    }

    fn planner(&self, claim: &Claim) -> Planner {
        let units = claim.units();
        let label = self.shared.label();
        let bad = label.label().bad_blocks.iter().filter(|bad| units.contains(&bad.unit));
        Planner {
            geometry: self.shared.info.geometry,
            discard: self.shared.discard,
            direct: self.shared.direct,
            bad_blocks: bad.copied().collect(),
            units,
        }
    }

    /// The engine for a queue pair; the pool gets its registered buffers.
    fn engine(&self, capacity: usize, pool: &BufferPool) -> Engine {
        let options = &self.shared.options;
        if options.io_uring == Use::Off {
            return Engine::Sync(SyncEngine::default());
        }
        match make_ring(capacity, self.shared.data.as_raw_fd()) {
            Ok(ring) => {
                let (count, bytes) = (options.registered_buffers, options.registered_buffer_bytes);
                let (registered, outcome) = Registered::add(&ring.ring, pool, count, bytes);
                if let Err(error) = outcome {
                    tracing::warn!(%error, "buffers of this queue pair are not registered");
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

    fn open_queue_pair(&self, units: Range<u16>) -> Result<Box<dyn QueuePair>, OpenError> {
        let claim = self.claims.claim(units, self.shared.info.units)?;
        let planner = self.planner(&claim);
        // Beside full dies there is room for flushes and marks.
        let depth = usize::from(planner.geometry.die_queue_depth) + 1;
        let capacity = (depth * claim.units().len() + 1).min(MAX_ENTRIES as usize);
        let pool = BufferPool::new(self.shared.options.retained_bytes);
        let engine = self.engine(capacity, &pool);
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(FileQueuePair::new(engine, planner, capacity, pool, shared, claim)))
    }
}

/// The discard mode in the label's options.
fn discard_of(options: &toml::Table) -> Result<Discard, String> {
    match options.get("discard") {
        None => Ok(Discard::None),
        Some(value) => value.clone().try_into().map_err(|error| format!("discard: {error}")),
    }
}

/// Bytes that a file or block device holds.
pub(super) fn size_of(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

fn check_size(file: &File, path: &Path, expected: u64) -> Result<(), OpenError> {
    let path = path.to_owned();
    match size_of(file) {
        Ok(size) if size >= expected => Ok(()),
        Ok(size) => Err(OpenError::NotADevice {
            path,
            reason: format!("its label says {expected} bytes, and it has {size}: cut short?"),
        }),
        Err(source) => Err(OpenError::Io { path, source }),
    }
}

/// Tries out io_uring and the registration of one queue pair's buffers, and notes the outcome.
///
/// The ring knows the data handle only: the kernel lets go of a ring's files some time after the
/// ring is closed, and a lock held by such a file would outlive the device.
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

/// Opens the file for data, past the page cache where that works.
fn open_data(
    path: &Path,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> io::Result<(File, bool)> {
    let mut opening = fs::OpenOptions::new();
    opening.read(true).write(true);
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

/// Some file systems accept the flag and fail the first transfer.
fn try_direct_read(file: File) -> io::Result<File> {
    let mut page = IoBuf::zeroed(4096);
    file.read_exact_at(&mut page, 0)?;
    Ok(file)
}
