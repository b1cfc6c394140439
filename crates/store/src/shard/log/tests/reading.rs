//! Tests of the reader: single positions, and segments that are longer than its pieces.

use super::*;
use crate::format::log::{Frame, Position};
use softflash_device::{DeviceError, Operation};
use softflash_testing::faulty::{Faults, FaultyDevice};

/// A bench with segments of 4 MiB.
fn on_large_bench<R>(test: impl AsyncFnOnce(Bench) -> R) -> R {
    let testbed = Testbed::new(1, 1, 2, 16, 4 << 20);
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async { test(Bench::new(&testbed, &runtime).await).await })
}

async fn frames(reader: &LogReader, segments: &[Segment]) -> (Vec<Frame>, End) {
    let mut frames = Vec::new();
    let end = reader.scan(segments, |frame| {
        frames.push(frame);
        Ok(())
    });
    let end = end.await.unwrap();
    (frames, end)
}

#[test]
fn a_long_segment_is_read_to_its_end() {
    on_large_bench(async |mut bench| {
        // About 3 MiB in frames of 100 KB: more than the pieces of growing length.
        for _ in 0..30 {
            bench.append_batch(100_000);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let segments = bench.segments(&mut bench.chain().await).await;
        assert_eq!(segments.len(), 1);
        let (frames, end) = frames(&bench.reader, &segments).await;
        let data = frames.iter().filter(|frame| frame.header.payload_len > 100_000);
        assert_eq!(data.count(), 30);
        assert!(matches!(end, End::Clean { .. }), "{end:?}");
        assert_eq!(bench.reader.losses(), []);
        assert!(!bench.reader.has_lost_end());
    });
}

#[test]
fn a_scrub_reads_up_to_its_end_position() {
    on_bench(async |mut bench| {
        for _ in 0..20 {
            bench.append_batch(40_000);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let segments = bench.segments(&mut bench.chain().await).await;
        assert!(segments.len() > 2);
        let (all, _) = frames(&bench.reader, &segments).await;
        let last = segments.last().unwrap().number;
        let end = all.iter().rfind(|frame| frame.at.segment == last).unwrap().at;
        let reader = LogReader::for_scrub(bench.blocks.clone(), SHARD, end);
        let (seen, _) = frames(&reader, &segments).await;
        let before: Vec<Frame> = all.iter().filter(|frame| frame.at < end).cloned().collect();
        assert_eq!(seen, before, "all earlier segments, and the last one up to the end");
    });
}

#[test]
fn the_first_sequence_of_each_segment_is_read() {
    for large in [false, true] {
        let test = async |mut bench: Bench| {
            for _ in 0..14 {
                bench.append_batch(if large { 900_000 } else { 60_000 });
                bench.log.written_soon(bench.seq).await.unwrap();
            }
            let segments = bench.segments(&mut bench.chain().await).await;
            assert!(segments.len() > 2);
            for segment in &segments {
                let alone = frames(&bench.reader, std::slice::from_ref(segment)).await.0;
                let first = bench.reader.first_sequence(segment).await.unwrap();
                assert_eq!(first, Some(alone[0].header.sequence), "segment {}", segment.number);
            }
        };
        if large { on_large_bench(test) } else { on_bench(test) }
    }
}

#[test]
fn a_segment_is_proved_by_a_frame_after_its_opening() {
    on_bench(async |mut bench| {
        let number = bench.log.segment();
        let (_, block) = bench.log.inner.segments.position.borrow().segments[0];
        let segment = Segment { number, after: 0, block, superseded_from: None };
        let (opened, _) = frames(&bench.reader, &[segment]).await;
        let is_opening = opened.iter().all(|frame| frame.header.role != FrameRole::Stream);
        let stop = bench.reader.unproved_end(&segment).await.unwrap();
        let behind = opened.last().unwrap().behind(bench.reader.page_bytes());
        assert_eq!(stop, is_opening.then_some(behind));
        bench.append_batch(100);
        bench.log.written_soon(bench.seq).await.unwrap();
        bench.reader.clear_cache();
        assert_eq!(bench.reader.unproved_end(&segment).await.unwrap(), None);
    });
}

#[test]
fn a_log_continues_where_its_next_frame_starts() {
    on_bench(async |mut bench| {
        for _ in 0..3 {
            bench.append_batch(9_000);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let segments = bench.segments(&mut bench.chain().await).await;
        let (all, _) = frames(&bench.reader, &segments).await;
        let next = all.last().unwrap();
        let (at, sequence) = (next.at, next.header.sequence);
        let reader = &bench.reader;
        assert!(reader.continues_at(&segments, at, sequence).await.unwrap());
        assert!(!reader.continues_at(&segments, at, sequence + 1).await.unwrap());
        let inside = Position { page: at.page + 1, ..at };
        assert!(!reader.continues_at(&segments, inside, sequence).await.unwrap());
        let (behind, beyond) = (next.behind(reader.page_bytes()), Position { page: 62, ..at });
        assert!(!reader.continues_at(&segments, behind, sequence + 1).await.unwrap());
        assert!(!reader.continues_at(&segments, beyond, sequence + 1).await.unwrap());
        // No page is lost at the end of a full segment.
        assert!(reader.refuse_lost_page(&segments, beyond).await.is_ok());
        let elsewhere = Position { segment: at.segment + 1, ..at };
        assert!(!reader.continues_at(&segments, elsewhere, sequence).await.unwrap());
        // The same bytes, read as another segment or for another shard.
        let renamed = [Segment { number: at.segment + 1, ..segments[0] }];
        assert!(!reader.continues_at(&renamed, elsewhere, sequence).await.unwrap());
        let other_shard = LogReader::new(bench.blocks.clone(), ShardId(1));
        assert!(!other_shard.continues_at(&segments, at, sequence).await.unwrap());
    });
}

#[test]
fn an_unidentified_superblock_is_refused_if_it_holds_durable_frames() {
    on_bench(async |mut bench| {
        let number = bench.log.segment();
        let (_, block) = bench.log.inner.segments.position.borrow().segments[0];
        let superblock = bench.blocks.superblocks(block)[0];
        let look = async |reader: &LogReader, end| {
            reader.refuse_lost_segment(&superblock, end).await.map_err(|error| error.to_string())
        };
        for _ in 0..4 {
            bench.append_batch(100);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let refused = look(&bench.reader, number - 1).await.unwrap_err();
        assert!(refused.contains("it holds durable frames"), "{refused}");
        assert_eq!(look(&bench.reader, number).await, Ok(()), "later segments exist");
        let other_shard = LogReader::new(bench.blocks.clone(), ShardId(1));
        assert_eq!(look(&other_shard, number - 1).await, Ok(()), "for another shard");
    });
}

#[test]
fn a_newer_format_version_is_not_data_loss() {
    on_bench(async |bench| {
        let version = FormatError::Version { what: "the log", found: 9, known: 2 };
        assert!(matches!(bench.reader.refuse(version), StoreError::Unusable(_)));
        let torn = FormatError::Truncated { what: "an event" };
        assert!(matches!(bench.reader.refuse(torn), StoreError::DataLoss(_)));
        let reader = LogReader::new(bench.blocks.clone(), ShardId(3));
        assert_eq!((reader.shard(), reader.page_bytes()), (ShardId(3), 4096));
    });
}

#[test]
fn an_unreadable_page_that_was_programmed_is_refused_or_reported_as_a_loss() {
    let (testbed, faults) = (Testbed::new(1, 1, 2, 48, 256 << 10), Faults::default());
    let device = Arc::new(FaultyDevice::new(testbed.device(), faults.clone()));
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let mut bench = Bench::on(&testbed, device, &runtime).await;
        for _ in 0..3 {
            bench.append_batch(9_000);
            bench.log.written_soon(bench.seq).await.unwrap();
        }
        let segments = bench.segments(&mut bench.chain().await).await;
        let (all, _) = frames(&bench.reader, &segments).await;
        let at = all[all.len() - 2].at;
        assert!(bench.reader.refuse_lost_page(&segments, at).await.is_ok(), "it can be read");
        let superblock = bench.blocks.superblocks(segments[0].block)[0];
        // Two header pages precede the payload.
        let page = at.page + 2;
        faults.fail_if(move |command| {
            let target = command.target;
            let is_read = matches!(command.operation, Operation::Read(_));
            let here = (target.unit, target.blocks[0]) == (superblock.unit, superblock.index);
            let covered = (target.page..target.page + target.rows).contains(&page);
            (is_read && here && covered).then_some(DeviceError::Uncorrectable)
        });
        let refused = bench.reader.refuse_lost_page(&segments, at).await.unwrap_err();
        assert!(matches!(refused, StoreError::DataLoss(_)), "{refused}");
        assert!(refused.to_string().contains("cannot be read"), "{refused}");
        assert!(!bench.reader.has_lost_end());
        bench.reader.accept_losses();
        assert!(bench.reader.refuse_lost_page(&segments, at).await.is_ok());
        assert!(bench.reader.has_lost_end());
    });
}
