//! Hand-written logs: frame by frame, in forms that no writer produces, on a device with injected
//! read errors.

use super::*;
use crate::format::log::FrameHeader;
use crate::format::log::FrameRole;
use crate::format::log::event::{self, Checkpoint, Edit, Event, KeyChange, PatchEntry};
use crate::format::log::frame;
use crate::format::version::Version;
use crate::options::{ClockSource, StoreOptions};
use crate::value::Entry;
use bytes::Bytes;
use softflash_base::IoBuf;
use softflash_blocks::Redundancy;
use softflash_device::{Command, Device, DeviceError, Target};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint};
use softflash_runtime::{RealExecutor, RuntimeHandle};
use softflash_testing::Testbed;
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use std::sync::Arc;

pub(in crate::shard) const SHARD: ShardId = ShardId(0);

/// Header pages of a superblock before the pages of its block.
const HEADER_PAGES: u32 = 2;

/// A frame to write.
pub(in crate::shard) struct Draft {
    role: FrameRole,
    payload: Vec<u8>,
    durable_before: Option<u64>,
    is_lost: bool,
}

impl Draft {
    /// Sets the sequence below which the frame records frames as durable; the default is its own
    /// sequence.
    pub(in crate::shard) fn durable_before(self, sequence: u64) -> Draft {
        Draft { durable_before: Some(sequence), ..self }
    }

    /// Makes the frame unreadable; it keeps its position and its sequence.
    pub(in crate::shard) fn lost(self) -> Draft {
        Draft { is_lost: true, ..self }
    }
}

/// A one-page frame with these events.
pub(in crate::shard) fn frame(role: FrameRole, events: &[Event<'_>]) -> Draft {
    let mut payload = Vec::new();
    events.iter().for_each(|event| event::encode(event, &mut payload));
    Draft { role, payload, durable_before: None, is_lost: false }
}

/// A frame of the stream.
pub(in crate::shard) fn stream(events: &[Event<'_>]) -> Draft {
    frame(FrameRole::Stream, events)
}

/// A frame with bytes that are not an event.
pub(in crate::shard) fn bytes(role: FrameRole, len: usize) -> Draft {
    Draft { role, payload: vec![7; len], durable_before: None, is_lost: false }
}

/// The opening of a segment, with `log_start` as the first needed segment.
pub(in crate::shard) fn opening(log_start: u64) -> Draft {
    let checkpoint = Checkpoint { shards: 1, slices: 2, log_start, ..Checkpoint::default() };
    frame(FrameRole::Opening, &[Event::Checkpoint(&checkpoint)])
}

pub(in crate::shard) fn entries() -> Vec<KeyChange> {
    let key = Bytes::from_static(b"key");
    let value = Entry::new(Bytes::from_static(b"value"));
    vec![(key.clone(), Version::seal(&key, 5, Some(value)).unwrap())]
}

/// A frame with a batch.
pub(in crate::shard) fn batch() -> Draft {
    stream(&[Event::Batch { seq: 5, clear: false, entries: &entries() }])
}

pub(in crate::shard) fn edit(added: &[u64], removed: &[u64], log_start: u64) -> Edit {
    Edit {
        slice: 0,
        added: added.iter().map(|block| PatchEntry { block: *block, level: 0, run: 1 }).collect(),
        removed: removed.to_vec(),
        flushed_seq: 3,
        live_keys: 0,
        log_start,
        unlisted_from: 0,
    }
}

/// A shard's flash, and the hand-written log on it.
pub(in crate::shard) struct Hand {
    pub(in crate::shard) blocks: BlockLayer,
    pub(in crate::shard) faults: Faults,
    pub(in crate::shard) found: Vec<Found>,
    pub(in crate::shard) sequence: u64,
    pub(in crate::shard) clock: ExpiryClock,
}

impl Hand {
    async fn new(testbed: &Testbed, redundancy: Redundancy, runtime: &RuntimeHandle) -> Hand {
        let faults = Faults::default();
        let device = Arc::new(FaultyDevice::new(testbed.device(), faults.clone()));
        let queue = device.open_queue_pair(&testbed.layout.units_of(SHARD)).unwrap();
        let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
        let (flash, inventory) = mounted.unwrap();
        let uuid = device.info().uuid;
        let (blocks, _) = BlockLayer::new(flash, SHARD, uuid, &inventory, redundancy);
        let clock = ExpiryClock::new(runtime.clone(), ClockSource::Wall);
        Hand { blocks, faults, found: Vec::new(), sequence: 1, clock }
    }

    /// Writes a segment with frames that continue the earlier ones.
    pub(in crate::shard) async fn segment(
        &mut self,
        number: u64,
        after: u64,
        drafts: &[Draft],
    ) -> BlockId {
        let id = self.blocks.new_id();
        let (page_bytes, identity) = (self.blocks.page_bytes(), self.blocks.identity(id));
        let mut bytes: Vec<u8> = Vec::new();
        for draft in drafts {
            let page = (bytes.len() / page_bytes) as u32;
            let header = FrameHeader {
                shard: SHARD.0,
                role: draft.role,
                payload_len: draft.payload.len() as u32,
                segment: number,
                sequence: self.sequence,
                durable_before: draft.durable_before.unwrap_or(self.sequence),
                clock_ms: 0,
                first_event: if draft.payload.is_empty() { u32::MAX } else { 0 },
            };
            let pages = frame::pages(draft.payload.len(), page_bytes);
            let mut framed = vec![0; pages * page_bytes];
            framed[frame::HEADER_BYTES..][..draft.payload.len()].copy_from_slice(&draft.payload);
            frame::seal(&mut framed, &header, identity, page);
            if draft.is_lost {
                framed.fill(0x55);
            }
            bytes.append(&mut framed);
            self.sequence += 1;
        }
        let mut piece = IoBuf::zeroed(bytes.len());
        piece.copy_from_slice(&bytes);
        let kind = BlockKind::Log { segment: number, after };
        self.blocks.put(id, kind, vec![piece], Hint::LOG).await.unwrap();
        self.finds(id.0, kind);
        id
    }

    /// Adds a block to the result of the mount.
    pub(in crate::shard) fn finds(&mut self, id: u64, kind: BlockKind) {
        self.found.push(Found { id: BlockId(id), kind });
    }

    /// Recovers the shard.
    pub(in crate::shard) async fn recover(&self, on_log_loss: OnLogLoss) -> Result<Recovered> {
        let layout = layout();
        let (total, capacity) = (self.blocks.total_blocks(), self.blocks.capacity_bytes());
        let budget = Budget::new(&StoreOptions::default(), &layout, total, capacity);
        let on_flash = OnFlash { found: &self.found, damaged: &[], on_log_loss };
        let recovery = Recovery {
            shard: SHARD,
            layout: &layout,
            blocks: &self.blocks,
            on_flash,
            clock: &self.clock,
            decisions: &Decisions::default(),
            budget: &budget,
        };
        recovery.run().await
    }

    pub(in crate::shard) fn reader(&self) -> LogReader {
        LogReader::new(self.blocks.clone(), SHARD)
    }

    /// A test for commands to a page of one copy of a block.
    pub(in crate::shard) fn is_for(
        &self,
        id: BlockId,
        copy: usize,
        page: u32,
    ) -> impl Fn(&Target) -> bool + use<> {
        let superblock = self.blocks.superblocks(id)[copy];
        let page = page + HEADER_PAGES;
        move |target| {
            let here = (target.unit, target.blocks[0]) == (superblock.unit, superblock.index);
            here && (target.page..target.page + target.rows).contains(&page)
        }
    }

    /// Makes reads of a page of one copy of a block fail.
    pub(in crate::shard) fn fail_reads(
        &self,
        id: BlockId,
        copy: usize,
        page: u32,
        error: DeviceError,
    ) {
        let is_for = self.is_for(id, copy, page);
        self.faults.fail_if(move |command: &Command| {
            let is_read = OperationKind::of(&command.operation) == OperationKind::Read;
            (is_read && is_for(&command.target)).then(|| error.clone())
        });
    }

    /// Makes reads of a page of one copy of a block return a changed payload.
    pub(in crate::shard) fn alter_reads(&self, id: BlockId, copy: usize, page: u32) {
        let (is_for, page_bytes) = (self.is_for(id, copy, page), self.blocks.page_bytes());
        self.faults.alter_reads(move |target, bytes| {
            if is_for(target) {
                let start = (page + HEADER_PAGES - target.page) as usize * page_bytes;
                bytes[start + frame::HEADER_BYTES + 2] ^= 1;
            }
        });
    }
}

/// Runs a test on empty flash.
pub(in crate::shard) fn by_hand<R>(redundancy: Redundancy, test: impl AsyncFnOnce(Hand) -> R) -> R {
    by_hand_on(256 << 10, redundancy, test)
}

/// Runs a test on empty flash with superblocks of this size.
pub(in crate::shard) fn by_hand_on<R>(
    superblock_bytes: u64,
    redundancy: Redundancy,
    test: impl AsyncFnOnce(Hand) -> R,
) -> R {
    let testbed = Testbed::new(1, 2, 2, 48, superblock_bytes);
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async { test(Hand::new(&testbed, redundancy, &runtime).await).await })
}

/// The ids of blocks, in ascending order.
pub(in crate::shard) fn sorted(ids: &[BlockId]) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids
}
