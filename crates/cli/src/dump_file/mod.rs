//! The dump file: all keys of a store in a stream of checksummed frames (`docs/dump-format.md`).
//!
//! Independent of stores and sockets: encodes and decodes records.

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

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::DumpReader;
pub use writer::DumpWriter;

use bytes::Bytes;
use softflash_base::UserError;
use softflash_base::checksum::{checksum64, identity};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The newest supported version, which is the one written.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SFDUMP\x1a\n";
/// Magic, version, a zero word, time, checksum.
const HEADER_BYTES: usize = 32;
/// Length, number of records, checksum.
const FRAME_HEADER_BYTES: usize = 16;
/// In place of the record count: this frame ends the file and holds the count of all records.
const END: u32 = u32::MAX;
/// A frame is closed when its records reach this length.
const FRAME_BYTES: usize = 1 << 20;
/// Maximum length of a frame: a key and a value of maximum length, and their header.
const MAX_FRAME_BYTES: usize = FRAME_BYTES
    + softflash_store::value::MAX_VALUE_BYTES
    + softflash_store::value::MAX_KEY_BYTES
    + RECORD_HEADER_BYTES;
/// Key length, value length, expiry.
const RECORD_HEADER_BYTES: usize = 16;

/// A key with its value and expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
    /// Expiry in milliseconds since the Unix epoch; 0 for none.
    pub expires_at_ms: u64,
}

/// Why a dump file cannot be read or written.
#[derive(Debug, Error)]
pub enum DumpError {
    /// Not a dump file.
    #[error("not a SoftFlash dump; give a file that `softflash dump` wrote")]
    NotADump,
    /// Written by a later version.
    #[error(
        "dump version {found} is newer than {FORMAT_VERSION}, the newest that this program reads; use a newer softflash"
    )]
    NewerVersion {
        /// Its version.
        found: u32,
    },
    /// A damaged frame.
    #[error("damaged at byte {offset} ({reason}); the {records} records before it are intact")]
    Damaged {
        /// Offset of the frame.
        offset: u64,
        /// The problem.
        reason: &'static str,
        /// Number of records before it.
        records: u64,
    },
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An error of the dump file at a path.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct DumpFileError {
    path: PathBuf,
    error: DumpError,
}

impl UserError for DumpFileError {}

impl DumpError {
    /// An error of the file at `path`.
    pub fn at(path: &Path) -> impl FnOnce(DumpError) -> DumpFileError {
        let path = path.to_owned();
        move |error| DumpFileError { path, error }
    }
}

/// Checksum of a frame, bound to its offset, so that frames cannot be exchanged.
fn frame_checksum(index: u64, length: u32, records: u32, payload: &[u8]) -> u64 {
    let seed = identity(&[u64::from_le_bytes(MAGIC), index, u64::from(length), u64::from(records)]);
    checksum64(seed, payload)
}

/// The header of a file created at `created_at_ms`.
fn header(version: u32, created_at_ms: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[16..24].copy_from_slice(&created_at_ms.to_le_bytes());
    let checksum = checksum64(u64::from_le_bytes(MAGIC), &header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}
