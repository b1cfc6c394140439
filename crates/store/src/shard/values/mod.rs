//! The value log: large values, written once, in the order of their arrival, to value blocks of
//! their own. The shard's log and its trees have references to them.
//!
//! A write gives its values to the value log and its event to the shard's log at once. Tasks write
//! the values; the shard's log waits until they are durable before it writes the frame with their
//! references. So after a crash each reference that recovery reads has its value.
//!
//! The [`ledger`] lists the live values of each block. The collector (`collect.rs`) has the
//! live values of blocks that a policy ([`victim`]) chooses moved (`moving.rs`), and deletes empty
//! blocks.

mod block;
mod collect;
pub(crate) mod examine;
mod extents;
mod frontier;
mod gain;
pub mod ledger;
mod moving;
mod packing;
pub(crate) mod reading;
mod recovery;
mod relocation;
mod retiring;
mod stream;
mod unreadable;
mod victim;
mod writer;

pub(crate) use collect::Collection;
pub(crate) use moving::Mover;
pub use retiring::Collector;
pub use stream::ValueStream;
pub(crate) use unreadable::{LossReport, Unreadable};

use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::separated::Separated;
use crate::format::value::StoredValue;
use crate::options::{Durability, StoreOptions};
use crate::value::{Entry, Value};
use bytes::Bytes;
use frontier::Frontier;
use futures_util::future::try_join_all;
use gain::Gain;
use ledger::Ledger;
use packing::Packing;
use reading::read_stored;
use softflash_base::ShardId;
use softflash_base::cast::{index, saturating_u16};
use softflash_blocks::BlockLayer;
use softflash_ftl::Hint;
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use stream::StreamCounts;

/// A shard's value log. A clone is the same value log.
#[derive(Clone)]
pub struct ValueLog {
    inner: Rc<Inner>,
}

/// Clients' values to be written, and their writer's signal.
#[derive(Default)]
struct WriteQueue {
    items: RefCell<VecDeque<Item>>,
    /// Bytes of the items, and of values that are being written.
    bytes: Cell<usize>,
    /// Bytes of blocks that they need.
    space: Cell<usize>,
    queued_bytes: Cell<usize>,
    work: Notify,
}

/// A value to be written, or a fragment of one.
struct Item {
    stored: StoredValue,
    owner: Rc<Separated>,
    stream: ValueStream,
    /// Bytes of blocks that are reserved for it.
    space: usize,
}

struct Inner {
    shard: ShardId,
    blocks: BlockLayer,
    runtime: RuntimeHandle,
    durability: Durability,
    packing: Packing,
    streams: StreamCounts,
    /// Clients' values that are not written.
    fresh: WriteQueue,
    frontiers: RefCell<BTreeMap<ValueStream, Vec<Frontier>>>,
    ledger: RefCell<Ledger>,
    gain: Gain,
    /// Bytes of values written by clients: the clock of the ages of values.
    clock: Cell<u64>,
    /// The lifetime of blocks of short-lived values, a moving average.
    short_lifetime: Cell<u64>,
    /// Notified when values were written, or the value log has failed.
    progress: Notify,
    failure: RefCell<Option<StoreError>>,
    is_closed: Cell<bool>,
    written_bytes: Cell<u64>,
    moved_bytes: Cell<u64>,
}

impl ValueLog {
    /// A value log without blocks.
    pub fn new(
        shard: ShardId,
        blocks: BlockLayer,
        runtime: RuntimeHandle,
        options: &StoreOptions,
        ledger: Ledger,
    ) -> ValueLog {
        let packing = Packing {
            block_bytes: blocks.capacity_bytes(),
            page_bytes: blocks.page_bytes(),
            fragment_bytes: options.fragment_bytes,
        };
        let streams = StreamCounts::on(blocks.total_blocks());
        let inner = Inner {
            shard,
            blocks,
            runtime,
            durability: options.durability,
            packing,
            streams,
            fresh: WriteQueue::default(),
            frontiers: RefCell::default(),
            ledger: RefCell::new(ledger),
            gain: Gain::default(),
            clock: Cell::new(0),
            short_lifetime: Cell::new(u64::MAX),
            progress: Notify::new(),
            failure: RefCell::default(),
            is_closed: Cell::new(false),
            written_bytes: Cell::new(0),
            moved_bytes: Cell::new(0),
        };
        ValueLog { inner: Rc::new(inner) }
    }

    /// Takes the value of a client's write. `ttl_ms` is its time to live, `replaced` the reference
    /// of the value that it replaces.
    pub fn write(
        &self,
        key: &Bytes,
        seq: u64,
        separated: &Rc<Separated>,
        ttl_ms: Option<u64>,
        replaced: Option<Reference>,
    ) {
        let inner = &self.inner;
        let clock = inner.clock.get();
        let born = replaced.and_then(|replaced| inner.ledger.borrow().born(&replaced));
        let age = born.map(|born| clock.saturating_sub(born));
        let stream = inner.streams.fresh(ttl_ms, age, inner.short_lifetime.get());
        let bytes = inner.enqueue(key, seq, separated, stream);
        inner.clock.set(clock + bytes as u64);
    }

    /// Waits until the values are durable.
    pub async fn settle(&self, values: impl Iterator<Item = &Rc<Separated>>) -> Result<()> {
        let inner = &self.inner;
        for value in values {
            while !value.is_placed() {
                self.check()?;
                inner.progress.notified().await;
            }
        }
        inner.close_word_lines().await?;
        match inner.durability {
            // The appends themselves were durable.
            Durability::Flash => Ok(()),
            Durability::Interval(_) => Ok(inner.blocks.flash().flush(Hint::FOREGROUND).await?),
        }
    }

    /// The error of a value log that has failed.
    pub fn check(&self) -> Result<()> {
        self.inner.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Reads a separated value. `None` where one of its blocks was deleted meanwhile, because its
    /// values were moved or are dead: the caller looks the key up again.
    pub async fn read(
        &self,
        key: &[u8],
        references: &[Reference],
        expires_at_ms: u64,
        hint: Hint,
    ) -> Result<Option<Entry>> {
        let reads = references.iter().map(|reference| async move {
            let Some(handle) = self.inner.ledger.borrow().handle(reference.block()) else {
                return Ok::<_, StoreError>(None);
            };
            let stored = read_stored(&self.inner.blocks, reference, key, hint).await?;
            drop(handle);
            Ok(Some(stored.value))
        });
        let fragments = try_join_all(reads).await?;
        let fragments: Option<Vec<Bytes>> = fragments.into_iter().collect();
        Ok(fragments
            .map(|fragments| Entry { value: Value::from_fragments(fragments), expires_at_ms }))
    }

    /// The ledger.
    pub fn ledger(&self) -> &RefCell<Ledger> {
        &self.inner.ledger
    }

    /// The number of streams of moved values.
    pub fn moved_streams(&self) -> u32 {
        self.inner.streams.moved_streams()
    }

    /// The space that the collector gains.
    pub(crate) fn gain(&self) -> &Gain {
        &self.inner.gain
    }

    /// Bytes of values of clients that are not written.
    pub fn waiting_bytes(&self) -> usize {
        self.inner.fresh.bytes.get()
    }

    /// Bytes of blocks that they need, with those that stay unused at the ends of blocks.
    pub fn waiting_space(&self) -> usize {
        self.inner.fresh.space.get()
    }

    /// Bytes of blocks that a new value needs.
    pub fn space_of(&self, key: &[u8], value: &Value) -> usize {
        self.inner.packing.space(key.len(), value.len(), self.most_fragments(key, value))
    }

    /// The most fragments into which a new value is cut.
    pub fn most_fragments(&self, key: &[u8], value: &Value) -> usize {
        self.inner.packing.most_fragments(key.len(), value.len(), value.fragments().len())
    }

    /// The most bytes of a fragment of a value with this key.
    pub fn longest_fragment(&self, key: &[u8]) -> usize {
        self.inner.packing.longest_fragment(key.len())
    }

    /// Whether the shard has, or will have, value blocks.
    pub fn is_used(&self) -> bool {
        !self.inner.ledger.borrow().is_empty() || self.waiting_bytes() > 0
    }

    /// Notified when values were written, or could not be.
    pub fn progress(&self) -> &Notify {
        &self.inner.progress
    }

    /// Bytes of pages written for clients' values.
    pub fn written_bytes(&self) -> u64 {
        self.inner.written_bytes.get()
    }

    /// Bytes of pages written by the collector.
    pub fn moved_bytes(&self) -> u64 {
        self.inner.moved_bytes.get()
    }

    /// Ends the task that writes values.
    pub fn close(&self) {
        self.inner.is_closed.set(true);
        self.inner.fresh.work.notify_one();
        self.inner.progress.notify_all();
    }
}

impl Inner {
    /// Queues the fragments of a client's value; returns their bytes.
    fn enqueue(&self, key: &Bytes, seq: u64, owner: &Rc<Separated>, stream: ValueStream) -> usize {
        let queue = &self.fresh;
        let Some(value) = owner.value() else { return 0 };
        let fragments = value.fragments().len();
        let space =
            self.packing.space(key.len(), value.len(), fragments).div_ceil(fragments.max(1));
        let mut bytes = 0;
        for (fragment, value) in value.fragments().iter().enumerate() {
            let stored = StoredValue {
                key: key.clone(),
                seq,
                expires_at_ms: owner.expires_at_ms,
                fragment: saturating_u16(fragment),
                fragments: saturating_u16(fragments),
                value: value.clone(),
                checksum: owner.checksum(fragment),
            };
            bytes += stored.stored_len();
            let owner = Rc::clone(owner);
            queue.items.borrow_mut().push_back(Item { stored, owner, stream, space });
            queue.space.set(queue.space.get() + space);
        }
        queue.bytes.set(queue.bytes.get() + bytes);
        queue.queued_bytes.set(queue.queued_bytes.get() + bytes);
        queue.work.notify_one();
        bytes
    }

    /// The number of bytes of a block.
    fn capacity(&self) -> usize {
        self.blocks.capacity_bytes()
    }

    fn fail(&self, error: StoreError) {
        self.failure.borrow_mut().get_or_insert(error);
        self.progress.notify_all();
    }
}

/// The offset and the length of a value as numbers of bytes.
fn extent((offset, len): (u32, u32)) -> (usize, usize) {
    (index(offset), index(len))
}
