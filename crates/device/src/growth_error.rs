//! Why a device gets no more units.

use crate::geometry::UnitGeometry;
use crate::queue_pair::OpenError;
use softflash_base::UserError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a device gets no more units.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GrowthError {
    /// The backend cannot add units.
    #[error(
        "a `{backend}` device keeps the units that it was made with; make a larger directory with \
         `softflash format`, and move the data: keys by `softflash dump` and `load`, volumes by \
         `softflash volume export` and `import`"
    )]
    Fixed {
        /// The backend.
        backend: String,
    },
    /// The handle was opened to look only.
    #[error("the device was opened only to be read; open it for writing")]
    ReadOnly,
    /// The file system has not enough space.
    #[error(
        "{}: no space for {bytes} bytes more on this file system; make room there, or give a smaller size",
        path.display()
    )]
    NoSpace {
        /// The path of the device.
        path: PathBuf,
        /// Bytes that it would take in addition.
        bytes: u64,
    },
    /// The block device ends before the last unit does.
    #[error(
        "{}: the block device has {found} bytes, and {needed} are needed; enlarge the partition or the \
         logical volume first, or give a smaller size",
        path.display()
    )]
    DriveTooSmall {
        /// The path of the device.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// Bytes that are needed.
        needed: u64,
    },
    /// So many units are not possible.
    #[error("{0}")]
    Geometry(String),
    /// The label cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the device.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl UserError for GrowthError {}

impl GrowthError {
    /// An error of the operating system at this device.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> GrowthError + use<> {
        let path = path.to_owned();
        move |source| GrowthError::Io { path: path.clone(), source }
    }

    /// The error of a device that no file can hold.
    pub(crate) fn too_large(units: u16, geometry: &UnitGeometry) -> GrowthError {
        let each = geometry.unit_bytes();
        GrowthError::Geometry(format!(
            "{units} units of {each} bytes are more than a device can have; give a smaller size"
        ))
    }
}
