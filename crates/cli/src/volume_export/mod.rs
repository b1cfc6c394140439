//! The stream of a volume export: volumes, snapshots and clones in checksummed frames
//! (`docs/volume-export-format.md`).
//!
//! Independent of domains: encodes and decodes descriptions and changes.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

mod description;
mod position;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use description::{Base, Beginning, Described, Digest};
pub use position::Totals;
pub use reader::{Change, ExportReader};
pub use writer::ExportWriter;

use softflash_base::UserError;
use softflash_base::checksum::{checksum64, identity};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The newest supported version, which is the one written.
pub const FORMAT_VERSION: u32 = 1;

/// The most data of a frame.
pub const MOST_DATA_BYTES: u64 = 1 << 20;

/// The first bytes of a stream.
pub const MAGIC: [u8; 8] = *b"SFVOLX\x1a\n";
/// Magic, version, number of volumes, a zero word, checksum.
const HEADER_BYTES: usize = 32;
/// Length, kind, checksum.
const FRAME_HEADER_BYTES: usize = 16;
/// Maximum length of a frame: the description of a volume with a million snapshots.
const MAX_FRAME_BYTES: usize = 80 << 20;

/// The description of a volume.
const VOLUME: u32 = 1;
/// A range with its data.
const DATA: u32 = 2;
/// A range that reads as zeros.
const ZEROS: u32 = 3;
/// An image is complete.
const END_OF_IMAGE: u32 = 4;
/// The stream is complete.
const END: u32 = u32::MAX;

/// Why an export cannot be read or written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// Not an export.
    #[error("not an export of volumes; give a file that `softflash volume export` wrote")]
    NotAnExport,
    /// Written by a later version.
    #[error(
        "export version {found} is newer than {FORMAT_VERSION}, the newest that this program reads; use a newer softflash"
    )]
    NewerVersion {
        /// Its version.
        found: u32,
    },
    /// A damaged frame.
    #[error("damaged at byte {offset} ({reason}); export the volumes again")]
    Damaged {
        /// Offset of the frame.
        offset: u64,
        /// The problem.
        reason: &'static str,
    },
    /// A description is longer than readers accept.
    #[error("volume `{name}` has too many snapshots to be exported; delete some")]
    TooManySnapshots {
        /// The volume.
        name: String,
    },
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An error of the export at a path.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct ExportFileError {
    path: PathBuf,
    error: ExportError,
}

impl UserError for ExportFileError {}

impl ExportError {
    /// An error of the file at `path`.
    pub fn at(path: &Path) -> impl FnOnce(ExportError) -> ExportFileError {
        let path = path.to_owned();
        move |error| ExportFileError { path, error }
    }
}

/// Checksum of a frame, bound to its place, so that frames cannot be exchanged.
fn frame_checksum(index: u64, length: u32, kind: u32, payload: &[u8]) -> u64 {
    let seed = identity(&[u64::from_le_bytes(MAGIC), index, u64::from(length), u64::from(kind)]);
    checksum64(seed, payload)
}

/// The header of a stream of so many volumes.
fn header(version: u32, volumes: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&volumes.to_le_bytes());
    let checksum = checksum64(u64::from_le_bytes(MAGIC), &header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}
