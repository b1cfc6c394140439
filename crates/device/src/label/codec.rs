//! Encoding and decoding of a label copy.

use super::{BadBlock, COPY_BYTES, Configuration, FORMAT_VERSION, Label};
use softflash_base::checksum64;
use std::collections::BTreeSet;
use std::io;

const MAGIC: [u8; 8] = *b"SFLABEL\x1a";
const HEADER_BYTES: usize = 40;
const CHECKSUM_AT: usize = 32;
const ENTRY_BYTES: usize = 8;

/// Why a copy is not usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// No label was written here, or nothing of it is left.
    NoMagic,
    /// Intact, and of a later version.
    Newer(u32),
    /// Begins with the magic and fails its other checks.
    Damaged(String),
}

/// The bytes of one copy.
///
/// # Errors
/// If configuration and bad blocks exceed the size of a copy (some 65,000 bad blocks).
pub(super) fn encode(label: &Label) -> io::Result<Vec<u8>> {
    let configuration = toml::to_string(&label.configuration).map_err(io::Error::other)?;
    let table = label.bad_blocks.len() * ENTRY_BYTES;
    if HEADER_BYTES + configuration.len() + table > COPY_BYTES {
        let bad = label.bad_blocks.len();
        return Err(io::Error::other(format!("{bad} bad blocks do not fit in the device label")));
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + configuration.len() + table);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&length(configuration.len()));
    bytes.extend_from_slice(&label.sequence.to_le_bytes());
    bytes.extend_from_slice(&length(label.bad_blocks.len()));
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&[0; HEADER_BYTES - CHECKSUM_AT]);
    bytes.extend_from_slice(configuration.as_bytes());
    for bad in &label.bad_blocks {
        bytes.extend_from_slice(&bad.unit.to_le_bytes());
        bytes.extend_from_slice(&[bad.die, bad.plane]);
        bytes.extend_from_slice(&bad.block.to_le_bytes());
    }
    seal(&mut bytes);
    Ok(bytes)
}

/// A length inside a copy always fits: a copy has 512 KiB.
fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

/// Writes the checksum of all other bytes to its place.
pub(super) fn seal(bytes: &mut [u8]) {
    let sum = checksum(bytes).to_le_bytes();
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum);
}

/// The checksum of a copy that is at least a header long.
fn checksum(bytes: &[u8]) -> u64 {
    let mut covered = bytes[..CHECKSUM_AT].to_vec();
    covered.extend_from_slice(&bytes[HEADER_BYTES..]);
    checksum64(u64::from_le_bytes(MAGIC), &covered)
}

/// Decodes a copy from any bytes.
pub(super) fn decode(bytes: &[u8]) -> Result<Label, Fault> {
    if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
        return Err(Fault::NoMagic);
    }
    let version = u32_at(bytes, 8);
    let configuration_bytes = u32_at(bytes, 12) as usize;
    let bad_blocks = u32_at(bytes, 24) as usize;
    let end = bad_blocks
        .checked_mul(ENTRY_BYTES)
        .and_then(|table| table.checked_add(configuration_bytes)?.checked_add(HEADER_BYTES))
        .filter(|end| *end <= bytes.len().min(COPY_BYTES))
        .ok_or_else(|| Fault::Damaged("its length exceeds its place".to_owned()))?;
    let bytes = &bytes[..end];
    if checksum(bytes) != u64_at(bytes, CHECKSUM_AT) {
        return Err(Fault::Damaged("its checksum does not match".to_owned()));
    }
    if version > FORMAT_VERSION {
        return Err(Fault::Newer(version));
    }
    if version == 0 {
        return Err(Fault::Damaged("format version 0 never existed".to_owned()));
    }
    let (configuration, table) = bytes[HEADER_BYTES..].split_at(configuration_bytes);
    Ok(Label {
        sequence: u64_at(bytes, 16),
        configuration: parse(configuration)?,
        bad_blocks: table.chunks_exact(ENTRY_BYTES).map(entry).collect::<BTreeSet<_>>(),
    })
}

fn parse(bytes: &[u8]) -> Result<Configuration, Fault> {
    let text = str::from_utf8(bytes).map_err(|error| Fault::Damaged(error.to_string()))?;
    toml::from_str(text).map_err(|error| Fault::Damaged(error.to_string()))
}

fn entry(bytes: &[u8]) -> BadBlock {
    BadBlock {
        unit: u16::from_le_bytes([bytes[0], bytes[1]]),
        die: bytes[2],
        plane: bytes[3],
        block: u32_at(bytes, 4),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
