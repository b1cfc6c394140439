use super::*;
use crate::kv::testing::value;
use softflash_blocks::Redundancy;
use softflash_runtime::RuntimeHandle;
use softflash_testing::on_blocks;

/// Records that fill about five patches of 256 KiB.
const RECORDS: u64 = 300;
const RECORD_BYTES: usize = 4000;

fn writer(blocks: &BlockLayer) -> PatchWriter {
    PatchWriter::new(blocks.clone(), SliceId(0), Compression::None, Hint::FLUSH)
}

async fn write(writer: &mut PatchWriter) {
    for number in 0..RECORDS {
        let record = value(&format!("{number:04}"), 5, RECORD_BYTES);
        writer.add(&record).await.unwrap();
    }
}

async fn rest(runtime: &RuntimeHandle) {
    runtime.sleep_until(runtime.now() + 1_000_000_000).await;
}

#[test]
fn a_writer_that_is_dropped_unfinished_releases_its_patches() {
    for redundancy in [Redundancy::None, Redundancy::Copies, Redundancy::Parity { members: 2 }] {
        on_blocks(redundancy, async |blocks, runtime| {
            let free = blocks.free_blocks();
            let mut unfinished = writer(blocks);
            write(&mut unfinished).await;
            assert!(!unfinished.done.is_empty(), "some patches are finished");
            assert!(!unfinished.under_way.is_empty(), "and some are being written");
            let has_parity = matches!(redundancy, Redundancy::Parity { .. });
            assert_eq!(!unfinished.groups.is_empty(), has_parity);
            drop(unfinished);
            rest(runtime).await;
            assert_eq!((blocks.ids(), blocks.free_blocks()), (Vec::new(), free));
        });
    }
}

#[test]
fn finished_patches_stay_until_they_are_retired() {
    on_blocks(Redundancy::None, async |blocks, runtime| {
        let free = blocks.free_blocks();
        let mut finished = writer(blocks);
        write(&mut finished).await;
        let (patches, bytes) = finished.finish().await.unwrap();
        assert!(patches.len() >= 5 && bytes > RECORDS * RECORD_BYTES as u64);
        assert!(patches.is_sorted_by_key(|patch| patch.first_key().to_vec()));
        let ids: Vec<_> = patches.iter().map(|patch| patch.id()).collect();
        assert_eq!(blocks.ids(), ids);
        patches.iter().for_each(|patch| patch.retire());
        assert_eq!(blocks.ids(), ids, "a reader may hold them");
        drop(patches);
        rest(runtime).await;
        assert_eq!((blocks.ids(), blocks.free_blocks()), (Vec::new(), free));
    });
}

#[test]
fn a_record_that_no_block_can_hold_is_refused_and_other_records_are_written() {
    on_blocks(Redundancy::None, async |blocks, _| {
        let large = value("large", 5, blocks.capacity_bytes());
        for before in [0, 1] {
            let mut refusing = writer(blocks);
            for number in 0..before {
                refusing.add(&value(&format!("{number}"), 5, 10)).await.unwrap();
            }
            let refused = refusing.add(&large).await;
            assert!(
                matches!(&refused, Err(StoreError::Unusable(_))),
                "{refused:?} behind {before}"
            );
        }
        assert!(writer(blocks).finish().await.is_ok_and(|(patches, _)| patches.is_empty()));
    });
}
