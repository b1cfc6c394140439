//! The traits between the flash translation layer and the hardware.

use crate::command::{Command, Completion};
use crate::geometry::{DeviceInfo, UnitGeometry};
use crate::growth_error::GrowthError;
use softflash_base::{BufferPool, Time, UnitId, UnitSet, UserError};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A formatted device. Shared between threads; each opens queue pairs of its own.
pub trait Device: Send + Sync {
    /// Name, identity and geometry.
    fn info(&self) -> &DeviceInfo;

    /// Opens a queue pair over `units`, to be used on the calling thread only. A unit has at most
    /// one queue pair, until that one is dropped or has [given the unit up](QueuePair::give_up).
    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError>;

    /// Whether a queue pair can have `units` and no others, also while they are in use.
    ///
    /// # Errors
    /// [`OpenError::Geometry`] where they share a part of the device with others.
    fn check_units(&self, units: &UnitSet) -> Result<(), OpenError> {
        let _ = units;
        Ok(())
    }

    /// This device with units added at its end until it has `units`; their room is reserved, and a
    /// restart still finds the device as it was. Queue pairs of both handles can be used at the
    /// same time, each over units of its handle.
    ///
    /// # Errors
    /// [`GrowthError`] names what is in the way; then the device is as before.
    fn enlarge(&self, units: u16) -> Result<Arc<dyn Device>, GrowthError> {
        let _ = units;
        Err(GrowthError::Fixed { backend: self.info().backend.clone() })
    }

    /// Records the number of units of this handle: the device has them durably.
    ///
    /// # Errors
    /// Those of the operating system; a restart finds either number of units.
    fn record_units(&self) -> Result<(), GrowthError> {
        Ok(())
    }

    /// Gives back the room of units that are not recorded.
    ///
    /// # Errors
    /// Those of the operating system.
    fn give_back_room(&self) -> Result<(), GrowthError> {
        Ok(())
    }

    /// Repairs a damaged copy of the label from the other one. To be called once everything else
    /// about the device has been accepted: until then nothing of it is changed.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    fn mend_label(&self) -> Result<(), OpenError> {
        Ok(())
    }
}

/// The description of a queue pair: what it drives, and how.
pub trait Described {
    /// The geometry of every unit.
    fn geometry(&self) -> &UnitGeometry;

    /// The identity of the device, part of the identity of everything written to it.
    fn device_uuid(&self) -> u128;

    /// The units that this queue pair was opened for.
    fn units(&self) -> &UnitSet;

    /// The number of pages of a block that must be programmed until no later program in it can
    /// destroy page `page` or one before it: on flash with several bits per cell, a power cut in
    /// the program of a page can damage pages programmed earlier into the same cells (paired
    /// pages).
    fn safe_after(&self, page: u32) -> u32 {
        page + 1
    }

    /// The smallest part of a page that can be read: its first bytes; a whole page if that is
    /// unknown.
    fn sector_bytes(&self) -> u32 {
        self.geometry().page_bytes
    }

    /// Blocks of a unit marked bad, at the factory or since, as `(die, plane, block)` in ascending
    /// order.
    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)>;

    /// The pool of buffers for commands; other buffers work too but may be slower.
    fn buffers(&self) -> &BufferPool;
}

/// Submission and completion of commands on some units of a device.
pub trait QueuePair: Described {
    /// Accepts a command, or returns it if the queue is full. The device may start it at once or at
    /// the next [`poll`](QueuePair::poll).
    fn submit(&mut self, now: Time, command: Command) -> Submit;

    /// Starts the submitted commands and collects the completions up to `now`.
    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>);

    /// The event to wait for before the next poll.
    fn wake(&self) -> Wake;

    /// Another queue pair can open the unit from now on. No command for it is under way, and none
    /// follows. [`units`](Described::units) still has it, so that the positions of the others stay.
    fn give_up(&mut self, unit: UnitId);
}

/// A queue pair around another one, whose description it has.
pub trait Decorator {
    /// The queue pair that it wraps.
    fn inner(&self) -> &dyn QueuePair;
}

/// Everything: a decorator cannot forget a part.
impl<D: Decorator> Described for D {
    fn geometry(&self) -> &UnitGeometry {
        self.inner().geometry()
    }

    fn device_uuid(&self) -> u128 {
        self.inner().device_uuid()
    }

    fn units(&self) -> &UnitSet {
        self.inner().units()
    }

    fn safe_after(&self, page: u32) -> u32 {
        self.inner().safe_after(page)
    }

    fn sector_bytes(&self) -> u32 {
        self.inner().sector_bytes()
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        self.inner().bad_blocks(unit)
    }

    fn buffers(&self) -> &BufferPool {
        self.inner().buffers()
    }
}

/// The result of a submission.
#[derive(Debug)]
#[must_use]
pub enum Submit {
    /// The command is accepted; a completion follows.
    Accepted,
    /// The queue is full; try again after a completion.
    Full(Command),
}

/// When a queue pair must be polled next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// No command is in progress.
    Idle,
    /// At this time, not earlier: for devices in virtual time.
    At(Time),
    /// When this descriptor becomes readable.
    Readable(RawFd),
    /// As soon as the caller has made its submissions: requests or completions wait for the poll.
    Now,
}

/// Why a device or queue pair cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file does not exist.
    #[error("{}: no such device; mount the file system that has it, or restore it from a backup", path.display())]
    Missing {
        /// The path tried.
        path: PathBuf,
    },
    /// The file exists and is not a device.
    #[error("{}: not a SoftFlash device ({reason}); name the right file, or restore its first MiB from a backup", path.display())]
    NotADevice {
        /// The path tried.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file is a device, and its label fails its checks.
    #[error("{}: the device label is damaged ({reason}); restore the first MiB of the device from a backup", path.display())]
    DamagedLabel {
        /// The path tried.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file ends before the device does.
    #[error("{}: cut short: its label says {expected} bytes, and it has {found}; `softflash dump --salvage` reads what is left, and `softflash check --repair` extends it and names what is lost", path.display())]
    CutShort {
        /// The path tried.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// Its size according to the label.
        expected: u64,
    },
    /// Written by a later version.
    #[error("{}: format version {found} is newer than {supported}, the newest this program reads; use a newer softflash", path.display())]
    NewerVersion {
        /// The path tried.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version supported.
        supported: u32,
    },
    /// Another process uses it.
    #[error("{}: in use by another process; stop that one first", path.display())]
    Busy {
        /// The path tried.
        path: PathBuf,
    },
    /// The geometry or the set of units is not possible.
    #[error("{0}")]
    Geometry(String),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path tried.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
}

impl UserError for OpenError {}
