use super::chain::{Chain, Segment, newest_evidence};
use super::reader::LogReader;
use super::*;
use crate::format::FormatError;
use crate::format::log::event::Checkpoint;
use crate::format::log::{End, EventStream, FrameRole, Replayed};
use crate::format::testing::rng;
use crate::format::version::Version;
use crate::options::{ClockSource, StoreOptions};
use crate::shard::values::ValueLog;
use crate::shard::values::ledger::Ledger;
use crate::value::Entry;
use bytes::Bytes;
use softflash_blocks::{BlockKind, Found, Redundancy};
use softflash_device::Device;
use softflash_flash::Flash;
use softflash_ftl::FtlConfig;
use softflash_runtime::RealExecutor;
use softflash_testing::Testbed;
use std::sync::Arc;

mod by_hand;
mod reading;

const SHARD: ShardId = ShardId(0);

/// A log on a real device. Its owner has no memtables and could name the current segment as the
/// start at any time.
struct Bench {
    log: Log,
    blocks: BlockLayer,
    reader: LogReader,
    seq: u64,
}

impl Bench {
    async fn new(testbed: &Testbed, runtime: &RuntimeHandle) -> Bench {
        Bench::on(testbed, testbed.device(), runtime).await
    }

    /// On the testbed's device, or a wrapper of it.
    async fn on(testbed: &Testbed, device: Arc<dyn Device>, runtime: &RuntimeHandle) -> Bench {
        let queue = device.open_queue_pair(&testbed.layout.units_of(SHARD)).unwrap();
        let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
        let (flash, inventory) = mounted.unwrap();
        let (blocks, _) =
            BlockLayer::new(flash, SHARD, device.info().uuid, &inventory, Redundancy::None);
        let clock = Rc::new(ExpiryClock::new(runtime.clone(), ClockSource::Wall));
        let log = Log::new(
            SHARD,
            blocks.clone(),
            runtime.clone(),
            clock,
            ValueLog::new(
                SHARD,
                blocks.clone(),
                runtime.clone(),
                &StoreOptions::default(),
                Ledger::default(),
            ),
            Durability::Flash,
            Resume { seq: 1, ..Resume::default() },
        );
        let maker = log.clone();
        log.start(Box::new(move || {
            let checkpoint = Checkpoint { log_start: maker.segment(), ..Checkpoint::default() };
            let mut stream = Vec::new();
            event::encode(&Event::Checkpoint(&checkpoint), &mut stream);
            stream
        }));
        log.written_soon(1).await.unwrap();
        let reader = LogReader::new(blocks.clone(), SHARD);
        Bench { log, blocks, reader, seq: 1 }
    }

    fn append_batch(&mut self, bytes: usize) {
        self.seq += 1;
        let key = Bytes::from_static(b"key");
        let entry = Entry::new(Bytes::from(vec![1; bytes]));
        let entries = [(key.clone(), Version::seal(&key, self.seq, Some(entry)).unwrap())];
        let batch = Event::Batch { seq: self.seq, clear: false, entries: &entries };
        self.log.append(&batch, self.seq);
    }

    /// Appends an edit that names the current segment as the start. Returns that segment.
    fn append_edit(&mut self, patches: u64) -> u64 {
        self.seq += 1;
        let log_start = self.log.segment();
        let added = (0..patches).map(|block| PatchEntry { block, level: 0, run: 1 }).collect();
        let edit = Edit {
            slice: 0,
            added,
            removed: Vec::new(),
            flushed_seq: self.seq,
            live_keys: 0,
            log_start,
            unlisted_from: 0,
        };
        self.log.append(&Event::Edit(&edit), self.seq);
        log_start
    }

    async fn chain(&self) -> Chain {
        let segments = self.log.inner.segments.position.borrow().segments.clone();
        let found: Vec<Found> =
            segments.into_iter().map(|(segment, id)| found(segment, id)).collect();
        // The log has grown since the last read.
        self.reader.clear_cache();
        Chain::of(&found, &self.reader).await.unwrap()
    }

    async fn segments(&self, chain: &mut Chain) -> Vec<Segment> {
        chain.whole(&self.reader).await.unwrap().to_vec()
    }
}

/// A segment that follows the one with the preceding number.
fn found(segment: u64, id: BlockId) -> Found {
    Found { id, kind: BlockKind::Log { segment, after: segment - 1 } }
}

fn on_bench<R>(test: impl AsyncFnOnce(Bench) -> R) -> R {
    let testbed = Testbed::new(1, 1, 2, 48, 256 << 10);
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async { test(Bench::new(&testbed, &runtime).await).await })
}

#[test]
fn a_checkpoint_in_the_stream_names_only_a_start_that_earlier_frames_record() {
    on_bench(async |mut bench| {
        for _ in 0..10 {
            // The edit lies between batches that are each longer than a segment.
            bench.append_batch(400_000);
            bench.append_edit(10);
            bench.append_batch(400_000);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let chain = bench.segments(&mut bench.chain().await).await;
        let (mut stream, mut recorded, mut checkpoints) = (EventStream::default(), None, 0);
        let scanned = bench.reader.scan(&chain, |frame| {
            let fed = stream.feed(&frame.header, frame.payload, |event| {
                match event {
                    Replayed::Checkpoint(checkpoint) => {
                        let expected = recorded.unwrap_or(frame.header.segment);
                        assert_eq!(checkpoint.log_start, expected, "{:?}", frame.at);
                        recorded = Some(expected);
                        checkpoints += 1;
                    }
                    Replayed::Edit(edit) => recorded = Some(edit.log_start),
                    Replayed::Batch { .. }
                    | Replayed::Commit(_)
                    | Replayed::Units(_)
                    | Replayed::Groups(_) => {}
                }
                Ok::<_, FormatError>(())
            });
            fed.map_err(|error| bench.reader.refuse(error))
        });
        scanned.await.unwrap();
        assert!(checkpoints > 10, "{checkpoints} segments");
    });
}

#[test]
fn an_edit_is_found_at_any_position_and_earlier_segments_are_not_needed() {
    on_bench(async |mut bench| {
        let (mut rng, mut over_two) = (rng(91), 0);
        for _ in 0..60 {
            bench.append_batch(rng.below(60_000) as usize);
            // Long enough that some edits span two segments.
            let named = bench.append_edit(rng.below(4_000));
            bench.log.written_soon(bench.seq).await.unwrap();
            over_two += u32::from(bench.log.segment() > named);
            bench.log.release_before(named);
            let mut chain = bench.chain().await;
            let evidence = newest_evidence(&mut chain, None, &bench.reader).await.unwrap();
            assert_eq!(evidence.map(|evidence| evidence.log_start), Some(named));
            assert_eq!(chain.first_number(), named);
        }
        assert!(over_two > 3, "{over_two} edits over two segments");
        assert!(bench.blocks.free_blocks() > 80, "segments were deleted");
    });
}

#[test]
fn an_edit_that_starts_in_the_last_segment_but_one_is_found() {
    on_bench(async |mut bench| {
        for _ in 0..4 {
            // Together longer than a segment, and shorter than two.
            bench.append_batch(100_000);
            let named = bench.append_edit(10_000);
            bench.log.written_soon(bench.seq).await.unwrap();
            assert!(bench.log.segment() > named);
            bench.log.release_before(named);
            let mut chain = bench.chain().await;
            let evidence = newest_evidence(&mut chain, None, &bench.reader).await.unwrap();
            let evidence = evidence.unwrap();
            assert_eq!(evidence.log_start, named, "not the start in the later checkpoint");
            // A limit at this frame includes its record; a limit before it gives an older record.
            let upto = newest_evidence(&mut chain, Some(evidence.at), &bench.reader).await.unwrap();
            assert_eq!(upto, Some(evidence));
            let before = Some(evidence.at.before());
            let older = newest_evidence(&mut chain, before, &bench.reader).await.unwrap();
            assert!(older.is_none_or(|older| older.at < evidence.at));
        }
    });
}

#[test]
fn of_two_segments_with_the_same_number_the_later_block_is_valid() {
    on_bench(async |mut bench| {
        bench.append_batch(300_000);
        bench.log.written_soon(bench.seq).await.unwrap();
        let segments = bench.segments(&mut bench.chain().await).await;
        let mut all: Vec<Found> = segments.iter().map(|s| found(s.number, s.block)).collect();
        let stale = BlockId(0);
        all.push(found(segments[0].number, stale));
        all.push(found(segments[0].number + 40, segments[0].block));
        let mut with_another = Chain::of(&all, &bench.reader).await.unwrap();
        assert_eq!(
            bench.segments(&mut with_another).await,
            segments,
            "a segment without an opening is not part of the log"
        );
        all.pop();
        let mut without = Chain::of(&all, &bench.reader).await.unwrap();
        assert_eq!(bench.segments(&mut without).await, segments);
    });
}

#[test]
fn a_closed_log_ends_with_an_end_frame() {
    on_bench(async |mut bench| {
        bench.append_batch(10_000);
        bench.log.close().await.unwrap();
        let segments = bench.segments(&mut bench.chain().await).await;
        let mut roles = Vec::new();
        let scanned = bench.reader.scan(&segments, |frame| {
            roles.push(frame.header.role);
            Ok(())
        });
        let end = scanned.await.unwrap();
        assert!(matches!(end, End::Clean { .. }), "{end:?}");
        assert_eq!(roles.last(), Some(&FrameRole::End));
    });
}
