//! Log events. In the stream, an event is its length (u32), a kind (u8) and a body.

use super::VERSION;
use crate::format::FormatError;
use crate::format::codec::Reader;
use crate::format::record::MAX_FRAGMENT_BYTES;
use crate::format::version::{Checksums, Content, Version};
use crate::value::{Entry, MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
use bytes::{BufMut, Bytes};
use softflash_base::cast::{index, saturating_u16, saturating_u32};
use softflash_blocks::{GroupChange, ParityGroup, UnitMark};

mod groups;
mod references;
#[cfg(test)]
mod tests;

pub use references::Unfilled;

const WHAT: &str = "a log event";
/// Bytes of an event's length.
pub const LENGTH_BYTES: usize = 4;

/// One entry of a batch: a key, and its new version, whose sequence number is that of the batch.
pub type KeyChange = (Bytes, Version);

/// A patch as the manifest lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchEntry {
    /// Its block.
    pub block: u64,
    /// Its level.
    pub level: u8,
    /// Its run in the level.
    pub run: u64,
}

/// A change of a slice's tree. It is idempotent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The slice.
    pub slice: u16,
    /// Patches added to the tree.
    pub added: Vec<PatchEntry>,
    /// Blocks of patches removed from the tree.
    pub removed: Vec<u64>,
    /// All writes of the slice up to this sequence number are in the tree.
    pub flushed_seq: u64,
    /// Live keys in the tree, an estimate.
    pub live_keys: u64,
    /// The first segment of the log that recovery needs after the edit.
    pub log_start: u64,
    /// Patches in lower blocks that no tree lists are dead; patches from this block on may be
    /// pending outputs.
    pub unlisted_from: u64,
}

/// A slice in a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceState {
    /// The slice.
    pub slice: u16,
    /// Its tree.
    pub patches: Vec<PatchEntry>,
    /// All writes of the slice up to this sequence number are in the tree.
    pub flushed_seq: u64,
    /// Live keys in the tree, an estimate.
    pub live_keys: u64,
}

/// The state of a shard at the start of a segment: earlier segments are needed only for memtables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Shards of the store.
    pub shards: u16,
    /// Slices of the whole store.
    pub slices: u16,
    /// The last sequence number assigned.
    pub seq: u64,
    /// The next block id.
    pub next_block: u64,
    /// The next transaction's number, at the coordinator.
    pub next_transaction: u64,
    /// The first segment of the log that recovery needs.
    pub log_start: u64,
    /// As in an [`Edit`].
    pub unlisted_from: u64,
    /// Transactions whose commit a participant may ask for.
    pub commits: Vec<u64>,
    /// The shard's slices.
    pub states: Vec<SliceState>,
    /// Parity groups; empty where the store keeps none.
    pub groups: Vec<ParityGroup>,
}

/// An event to be written.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Changes of keys of this shard, all or none.
    Batch {
        /// Their sequence number.
        seq: u64,
        /// All keys are removed first.
        clear: bool,
        /// The changes.
        entries: &'a [KeyChange],
    },
    /// This shard's part of a transaction over several shards.
    Prepare {
        /// The transaction.
        transaction: u64,
        /// The changes' sequence number.
        seq: u64,
        /// All keys are removed first.
        clear: bool,
        /// The changes.
        entries: &'a [KeyChange],
    },
    /// A transaction is committed.
    Commit(u64),
    /// A tree has changed.
    Edit(&'a Edit),
    /// The state of the shard.
    Checkpoint(&'a Checkpoint),
    /// The greatest generation of each unit; only with redundancy.
    Units(&'a [UnitMark]),
    /// Parity groups have changed.
    Groups(&'a GroupChange),
}

/// A decoded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// A batch, or this shard's part of a transaction.
    Batch {
        /// The transaction, if it is part of one.
        transaction: Option<u64>,
        /// The changes' sequence number.
        seq: u64,
        /// All keys are removed first.
        clear: bool,
        /// The changes.
        entries: Vec<KeyChange>,
    },
    /// A transaction is committed.
    Commit(u64),
    /// A tree has changed.
    Edit(Edit),
    /// The state of the shard.
    Checkpoint(Checkpoint),
    /// The greatest generation of each unit.
    Units(Vec<UnitMark>),
    /// Parity groups have changed.
    Groups(GroupChange),
}

const BATCH: u8 = 1;
const PREPARE: u8 = 2;
const COMMIT: u8 = 3;
const EDIT: u8 = 4;
const CHECKPOINT: u8 = 5;
const UNITS: u8 = 6;
const GROUPS: u8 = 7;
/// A checkpoint that ends with parity groups.
const CHECKPOINT_OF_GROUPS: u8 = 8;
/// A batch, or a prepare, with separated values.
const BATCH_OF_REFERENCES: u8 = 9;
const PREPARE_OF_REFERENCES: u8 = 10;

const DELETE: u8 = 0;
const PUT: u8 = 1;
const REFERENCE: u8 = 2;

/// The fewest bytes of a change: the length of an empty key, the kind of a deletion, and a
/// checksum.
const MIN_CHANGE_BYTES: usize = 13;
/// The fewest bytes of a fragment: a checksum and a length.
const MIN_FRAGMENT_BYTES: usize = 12;
/// The count of fragments has 16 bits.
const MAX_FRAGMENTS: usize = 65_535;
const PATCH_BYTES: usize = 17;
const MIN_STATE_BYTES: usize = 22;
const UNIT_BYTES: usize = 10;

/// Appends an event to a stream. Lengths have 32 bits: keys and values are far shorter, and the
/// memory for requests bounds a batch. A longer event gets the greatest length, with which the
/// reader refuses it. Separated values must be written.
pub fn encode(event: &Event<'_>, stream: &mut Vec<u8>) {
    let mut unfilled = Vec::new();
    encode_unfilled(event, stream, &mut unfilled);
    for reference in unfilled {
        let filled = reference.fill(stream);
        assert!(filled.is_ok(), "a separated value is not written: {filled:?}");
    }
}

/// As [`encode`], but the references of separated values are only noted in `unfilled`: they have to
/// be [filled in](Unfilled::fill) before the stream is written.
pub fn encode_unfilled(event: &Event<'_>, stream: &mut Vec<u8>, unfilled: &mut Vec<Unfilled>) {
    let start = stream.len();
    stream.put_u32_le(0);
    match event {
        Event::Batch { seq, clear, entries } => {
            stream.put_u8(if has_references(entries) { BATCH_OF_REFERENCES } else { BATCH });
            encode_changes(*seq, *clear, entries, stream, unfilled);
        }
        Event::Prepare { transaction, seq, clear, entries } => {
            stream.put_u8(if has_references(entries) { PREPARE_OF_REFERENCES } else { PREPARE });
            stream.put_u64_le(*transaction);
            encode_changes(*seq, *clear, entries, stream, unfilled);
        }
        Event::Commit(transaction) => {
            stream.put_u8(COMMIT);
            stream.put_u64_le(*transaction);
        }
        Event::Edit(edit) => encode_edit(edit, stream),
        Event::Checkpoint(checkpoint) => encode_checkpoint(checkpoint, stream),
        Event::Units(units) => {
            stream.put_u8(UNITS);
            put_len(units.len(), stream);
            for UnitMark { unit, generation } in *units {
                stream.put_u16_le(*unit);
                stream.put_u64_le(*generation);
            }
        }
        Event::Groups(change) => {
            stream.put_u8(GROUPS);
            groups::encode(&change.added, stream);
            encode_numbers(&change.removed, stream);
        }
    }
    let len = saturating_u32(stream.len() - start - LENGTH_BYTES);
    if let Some(place) = stream.get_mut(start..start + LENGTH_BYTES) {
        place.copy_from_slice(&len.to_le_bytes());
    }
}

/// Appends a length or a count.
fn put_len(len: usize, stream: &mut Vec<u8>) {
    stream.put_u32_le(saturating_u32(len));
}

fn has_references(entries: &[KeyChange]) -> bool {
    entries.iter().any(|(_, version)| version.as_separated().is_some())
}

fn encode_changes(
    seq: u64,
    clear: bool,
    entries: &[KeyChange],
    stream: &mut Vec<u8>,
    unfilled: &mut Vec<Unfilled>,
) {
    stream.put_u64_le(seq);
    stream.put_u8(u8::from(clear));
    put_len(entries.len(), stream);
    for (key, version) in entries {
        put_len(key.len(), stream);
        stream.put_slice(key);
        match version.content() {
            Content::Separated(separated) => {
                stream.put_u8(REFERENCE);
                references::encode(key, seq, separated, stream, unfilled);
            }
            Content::Deletion => {
                stream.put_u8(DELETE);
                version.checksums().iter().for_each(|checksum| stream.put_u64_le(*checksum));
            }
            Content::Inline(entry) => {
                stream.put_u8(PUT);
                stream.put_u64_le(entry.expires_at_ms);
                put_len(version.checksums().len(), stream);
                for (piece, checksum) in entry.value.fragments().iter().zip(version.checksums()) {
                    stream.put_u64_le(*checksum);
                    put_len(piece.len(), stream);
                    stream.put_slice(piece);
                }
            }
        }
    }
}

fn encode_edit(edit: &Edit, stream: &mut Vec<u8>) {
    stream.put_u8(EDIT);
    stream.put_u16_le(edit.slice);
    stream.put_u64_le(edit.flushed_seq);
    stream.put_u64_le(edit.live_keys);
    stream.put_u64_le(edit.log_start);
    stream.put_u64_le(edit.unlisted_from);
    encode_patches(&edit.added, stream);
    encode_numbers(&edit.removed, stream);
}

fn encode_checkpoint(checkpoint: &Checkpoint, stream: &mut Vec<u8>) {
    let has_groups = !checkpoint.groups.is_empty();
    stream.put_u8(if has_groups { CHECKPOINT_OF_GROUPS } else { CHECKPOINT });
    stream.put_u16_le(checkpoint.shards);
    stream.put_u16_le(checkpoint.slices);
    stream.put_u64_le(checkpoint.seq);
    stream.put_u64_le(checkpoint.next_block);
    stream.put_u64_le(checkpoint.next_transaction);
    stream.put_u64_le(checkpoint.log_start);
    stream.put_u64_le(checkpoint.unlisted_from);
    encode_numbers(&checkpoint.commits, stream);
    stream.put_u16_le(saturating_u16(checkpoint.states.len()));
    for state in &checkpoint.states {
        stream.put_u16_le(state.slice);
        stream.put_u64_le(state.flushed_seq);
        stream.put_u64_le(state.live_keys);
        encode_patches(&state.patches, stream);
    }
    if has_groups {
        groups::encode(&checkpoint.groups, stream);
    }
}

fn encode_numbers(numbers: &[u64], stream: &mut Vec<u8>) {
    put_len(numbers.len(), stream);
    numbers.iter().for_each(|number| stream.put_u64_le(*number));
}

fn encode_patches(patches: &[PatchEntry], stream: &mut Vec<u8>) {
    put_len(patches.len(), stream);
    for patch in patches {
        stream.put_u64_le(patch.block);
        stream.put_u8(patch.level);
        stream.put_u64_le(patch.run);
    }
}

/// Decodes an event without its length: kind and body, all of `bytes`. Keys and values are slices
/// of `bytes`.
///
/// # Errors
/// [`FormatError::UnknownEvent`] for a kind of a newer version, [`FormatError::Checksum`] for a
/// record that does not match its checksum, other errors for bytes that are not an event.
pub fn decode(bytes: &Bytes) -> Result<Replayed, FormatError> {
    let mut body = Reader::new(bytes, WHAT);
    let event = match body.u8()? {
        kind @ (BATCH | BATCH_OF_REFERENCES) => {
            decode_changes(None, kind == BATCH_OF_REFERENCES, &mut body, bytes)?
        }
        kind @ (PREPARE | PREPARE_OF_REFERENCES) => {
            let transaction = body.u64()?;
            decode_changes(Some(transaction), kind == PREPARE_OF_REFERENCES, &mut body, bytes)?
        }
        COMMIT => Replayed::Commit(body.u64()?),
        EDIT => Replayed::Edit(Edit {
            slice: body.u16()?,
            flushed_seq: body.u64()?,
            live_keys: body.u64()?,
            log_start: body.u64()?,
            unlisted_from: body.u64()?,
            added: decode_patches(&mut body)?,
            removed: decode_numbers(&mut body)?,
        }),
        kind @ (CHECKPOINT | CHECKPOINT_OF_GROUPS) => Replayed::Checkpoint(Checkpoint {
            shards: body.u16()?,
            slices: body.u16()?,
            seq: body.u64()?,
            next_block: body.u64()?,
            next_transaction: body.u64()?,
            log_start: body.u64()?,
            unlisted_from: body.u64()?,
            commits: decode_numbers(&mut body)?,
            states: decode_states(&mut body)?,
            groups: match kind {
                CHECKPOINT => Vec::new(),
                _ => groups::decode_some(&mut body)?,
            },
        }),
        GROUPS => Replayed::Groups(GroupChange {
            added: groups::decode(&mut body)?,
            removed: decode_numbers(&mut body)?,
        }),
        UNITS => Replayed::Units(list(&mut body, UNIT_BYTES, |body| {
            Ok(UnitMark { unit: body.u16()?, generation: body.u64()? })
        })?),
        kind => return Err(FormatError::UnknownEvent { kind, version: VERSION }),
    };
    body.expect_end()?;
    Ok(event)
}

fn decode_changes(
    transaction: Option<u64>,
    may_refer: bool,
    body: &mut Reader<'_>,
    bytes: &Bytes,
) -> Result<Replayed, FormatError> {
    let seq = body.u64()?;
    let clear = match body.u8()? {
        0 => false,
        1 => true,
        _ => return Err(body.malformed("a flag is neither set nor clear")),
    };
    let entries = list(body, MIN_CHANGE_BYTES, |body| {
        let key = bytes.slice(blob(body, MAX_KEY_BYTES)?);
        let version = match body.u8()? {
            DELETE => Version::sealed(seq, None, Checksums::from_buf([body.u64()?])),
            PUT => decode_put(seq, body, bytes)?,
            REFERENCE if may_refer => {
                return Ok((key.clone(), references::decode(&key, seq, body)?));
            }
            _ => return Err(body.malformed("a change is neither a value nor a deletion")),
        };
        version.records(&key).try_for_each(|record| record.verify())?;
        Ok((key, version))
    })?;
    if may_refer && !has_references(&entries) {
        return Err(body.malformed("an event of separated values has none"));
    }
    Ok(Replayed::Batch { transaction, seq, clear, entries })
}

fn decode_put(seq: u64, body: &mut Reader<'_>, bytes: &Bytes) -> Result<Version, FormatError> {
    let expires_at_ms = body.u64()?;
    let pieces = list(body, MIN_FRAGMENT_BYTES, |body| {
        Ok((body.u64()?, bytes.slice(blob(body, MAX_FRAGMENT_BYTES)?)))
    })?;
    let (checksums, pieces): (Checksums, Vec<Bytes>) = pieces.into_iter().unzip();
    if pieces.is_empty() || pieces.len() > MAX_FRAGMENTS {
        return Err(body.malformed("a value has no fragment, or too many"));
    }
    let value = Value::from_fragments(pieces);
    if value.len() > MAX_VALUE_BYTES {
        return Err(body.malformed("a value exceeds its limit"));
    }
    Ok(Version::sealed(seq, Some(Entry { value, expires_at_ms }), checksums))
}

fn decode_states(body: &mut Reader<'_>) -> Result<Vec<SliceState>, FormatError> {
    let count = usize::from(body.u16()?);
    items(body, count, MIN_STATE_BYTES, |body| {
        Ok(SliceState {
            slice: body.u16()?,
            flushed_seq: body.u64()?,
            live_keys: body.u64()?,
            patches: decode_patches(body)?,
        })
    })
}

fn decode_patches(body: &mut Reader<'_>) -> Result<Vec<PatchEntry>, FormatError> {
    list(body, PATCH_BYTES, |body| {
        Ok(PatchEntry { block: body.u64()?, level: body.u8()?, run: body.u64()? })
    })
}

fn decode_numbers(body: &mut Reader<'_>) -> Result<Vec<u64>, FormatError> {
    list(body, 8, Reader::u64)
}

fn blob(body: &mut Reader<'_>, limit: usize) -> Result<std::ops::Range<usize>, FormatError> {
    let len = index(body.u32()?);
    if len > limit {
        return Err(body.malformed("a key or fragment exceeds its limit"));
    }
    body.range(len)
}

fn list<'a, T>(
    body: &mut Reader<'a>,
    item_bytes: usize,
    item: impl Fn(&mut Reader<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let count = index(body.u32()?);
    items(body, count, item_bytes, item)
}

/// `count` items of at least `item_bytes` each. A count that the bytes cannot hold is refused
/// before the allocation.
fn items<'a, T>(
    body: &mut Reader<'a>,
    count: usize,
    item_bytes: usize,
    item: impl Fn(&mut Reader<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    if count > body.remaining() / item_bytes {
        return Err(FormatError::Truncated { what: WHAT });
    }
    (0..count).map(|_| item(body)).collect()
}
