use super::*;
use crate::format::log::event::{self, Event};
use crate::format::version::Version;
use crate::options::{ClockSource, StoreOptions};
use crate::value::Entry;
use bytes::Bytes;
use softflash_blocks::{Member, Redundancy};
use softflash_flash::Flash;
use softflash_ftl::FtlConfig;
use softflash_runtime::RealExecutor;
use softflash_testing::Testbed;

const SHARD: ShardId = ShardId(0);

pub(in crate::shard) fn layout() -> StoreLayout {
    StoreLayout::new(1, 2, 2)
}

fn frame(segment: u64, sequence: u64, role: FrameRole, payload: Bytes) -> Frame {
    let header = FrameHeader {
        role,
        payload_len: payload.len() as u32,
        segment,
        sequence,
        ..FrameHeader::default()
    };
    Frame { at: Position { segment, page: sequence as u32 }, header, payload }
}

fn encoded(event: &Event<'_>) -> Bytes {
    let mut stream = Vec::new();
    event::encode(event, &mut stream);
    stream.into()
}

fn edit(added: &[u64], removed: &[u64], unlisted_from: u64) -> Edit {
    Edit {
        slice: 0,
        added: added.iter().map(|block| PatchEntry { block: *block, level: 0, run: 1 }).collect(),
        removed: removed.to_vec(),
        flushed_seq: 9,
        live_keys: 3,
        log_start: 1,
        unlisted_from,
    }
}

fn checkpoint(patches: &[u64]) -> Checkpoint {
    let patches = patches.iter().map(|block| PatchEntry { block: *block, level: 0, run: 1 });
    let state = event::SliceState { slice: 0, patches: patches.collect(), ..Default::default() };
    Checkpoint { shards: 1, slices: 2, states: vec![state], ..Checkpoint::default() }
}

fn batch(transaction: Option<u64>, seq: u64) -> Replayed {
    Replayed::Batch { transaction, seq, clear: false, entries: Vec::new() }
}

fn group(parity: u64, members: &[u64]) -> ParityGroup {
    let members = members.iter().map(|block| Member { block: *block, pages: 4 }).collect();
    ParityGroup { parity, members }
}

fn listed(replay: &Replay<'_>) -> Vec<u64> {
    replay.manifest.get(&0).map_or(Vec::new(), |slice| slice.patches.keys().copied().collect())
}

/// Runs a test with blocks and a reader on a new device.
pub(in crate::shard) fn on_flash<R>(
    test: impl AsyncFnOnce(&BlockLayer, &LogReader, &ExpiryClock) -> R,
) -> R {
    let testbed = Testbed::new(1, 2, 2, 48, 256 << 10);
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let device = testbed.device();
        let queue = device.open_queue_pair(&testbed.layout.units_of(SHARD)).unwrap();
        let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
        let (flash, inventory) = mounted.unwrap();
        let (blocks, _) =
            BlockLayer::new(flash, SHARD, device.info().uuid, &inventory, Redundancy::None);
        let reader = LogReader::new(blocks.clone(), SHARD);
        test(&blocks, &reader, &ExpiryClock::new(runtime.clone(), ClockSource::Wall)).await
    })
}

#[test]
fn dead_patches_are_known_once_another_frame_follows() {
    let mut known = DeadPatches { unlisted_from: 5, ..DeadPatches::default() };
    let mut last = DeadPatches { unlisted_from: 7, removed: [1, 2].into(), cleared: true };
    known.add(&mut last);
    assert_eq!((known.unlisted_from, known.cleared), (7, true));
    assert_eq!(known.removed, BTreeSet::from([1, 2]));
    assert!(last.removed.is_empty() && !last.cleared, "they are moved");
    known.add(&mut DeadPatches { unlisted_from: 6, removed: [3].into(), cleared: false });
    assert_eq!((known.unlisted_from, known.removed.len(), known.cleared), (7, 3, true));
}

#[test]
fn the_end_of_a_log_is_the_segment_to_which_its_last_events_were_first_written() {
    let events = Bytes::from_static(b"events");
    let mut end = LogEnd::default();
    end.take(&frame(5, 10, FrameRole::Opening, events.clone()));
    assert_eq!((end.segment, end.next_frame), (None, Some(10)));
    end.take(&frame(5, 11, FrameRole::Stream, Bytes::new()));
    assert!(end.last_frame.is_none(), "a proof has no events");
    assert_eq!(end.next_frame, Some(10));
    end.take(&frame(5, 12, FrameRole::Stream, events.clone()));
    assert_eq!((end.segment, end.next_frame), (Some(5), Some(13)));
    end.take(&frame(6, 13, FrameRole::Copy, events.clone()));
    assert_eq!(
        (end.segment, end.next_frame),
        (Some(5), Some(14)),
        "its first version was in segment 5"
    );
    end.take(&frame(6, 14, FrameRole::Stream, events));
    assert_eq!((end.segment, end.next_frame), (Some(6), Some(15)));
    end.take(&frame(6, 15, FrameRole::End, Bytes::new()));
    assert_eq!(end.last_frame.as_ref().unwrap().header.sequence, 14);
    // A segment whose opening is lost and skipped.
    end.take(&frame(7, 20, FrameRole::Stream, Bytes::from_static(b"events")));
    assert_eq!((end.segment, end.next_frame), (Some(7), Some(21)));
}

#[test]
fn a_segment_with_the_generations_of_units_alone_is_not_kept() {
    on_flash(async |_, reader, clock| {
        let marks = [UnitMark { unit: 1, generation: 7 }, UnitMark { unit: 2, generation: 9 }];
        let units = encoded(&Event::Units(&marks));
        let commit = encoded(&Event::Commit(5));
        let layout = layout();
        let mut replay = Replay::new(&layout, SHARD);
        let mut take = |segment, sequence, payload: &[u8]| {
            let payload = Bytes::copy_from_slice(payload);
            let frame = frame(segment, sequence, FrameRole::Stream, payload);
            replay.take_frame(frame, reader, clock).unwrap();
            (replay.end.segment, replay.end.next_frame)
        };
        assert_eq!(take(3, 1, &commit), (Some(3), Some(2)));
        assert_eq!(take(3, 2, &units), (Some(3), Some(3)), "the segment is kept in any case");
        assert_eq!(take(4, 3, &units), (Some(3), Some(3)), "the next writer replaces it");
        assert_eq!(take(5, 4, &[&units[..], &commit].concat()), (Some(5), Some(5)));
        assert_eq!(take(6, 5, &[&commit[..], &units[..9]].concat()), (Some(6), Some(6)));
        assert_eq!(replay.units, marks);
    });
}

#[test]
fn a_segment_is_confirmed_once_a_frame_follows_its_proof() {
    on_flash(async |_, reader, clock| {
        let layout = layout();
        let mut replay = Replay::new(&layout, SHARD);
        let mut take = |segment, sequence, role| {
            replay.take_frame(frame(segment, sequence, role, Bytes::new()), reader, clock).unwrap();
            assert_eq!(replay.next_sequence(), sequence + 1);
            replay.confirmed_segments.iter().copied().collect::<Vec<_>>()
        };
        assert!(take(5, 10, FrameRole::Opening).is_empty());
        assert!(take(5, 11, FrameRole::Padding).is_empty());
        assert!(take(5, 12, FrameRole::Stream).is_empty(), "a later start may not read the proof");
        assert!(take(6, 13, FrameRole::Opening).is_empty(), "the frame is in another segment");
        assert!(take(6, 14, FrameRole::Stream).is_empty());
        assert_eq!(take(6, 15, FrameRole::Padding), [6]);
    });
}

#[test]
fn a_checkpoint_after_lost_frames_replaces_the_manifest() {
    on_flash(async |_, reader, clock| {
        let layout = layout();
        let take = |replay: &mut Replay<'_>, sequence, patches: &[u64]| {
            let event = encoded(&Event::Checkpoint(&checkpoint(patches)));
            let frame = frame(sequence, sequence, FrameRole::Opening, event);
            replay.take_frame(frame, reader, clock).unwrap();
            listed(replay)
        };
        let mut replay = Replay::new(&layout, SHARD);
        assert_eq!(take(&mut replay, 10, &[1]), [1]);
        assert_eq!(take(&mut replay, 11, &[1, 2]), [1], "a later checkpoint changes nothing");
        assert_eq!(take(&mut replay, 13, &[3]), [3], "frame 12 was lost, and may have had an edit");
        assert_eq!(take(&mut replay, 14, &[4]), [3]);
        assert_eq!(take(&mut replay, 16, &[5]), [5]);
        assert_eq!(replay.first_checkpoint, Some(10));
    });
}

#[test]
fn an_edit_changes_the_tree_and_reserves_its_numbers() {
    let layout = layout();
    let mut replay = Replay::new(&layout, SHARD);
    replay.take(Replayed::Checkpoint(checkpoint(&[1, 2])), 5).unwrap();
    replay.take(Replayed::Edit(edit(&[7, 12], &[2], 6)), 5).unwrap();
    assert_eq!(listed(&replay), [1, 7, 12]);
    assert_eq!((replay.last_seq, replay.next_block), (9, 13));
    assert_eq!(
        (replay.dead_by_last_frame.unlisted_from, &replay.dead_by_last_frame.removed),
        (6, &BTreeSet::from([2]))
    );
    assert_eq!(replay.known_dead.unlisted_from, 0, "not yet");
}

#[test]
fn group_changes_are_replayed() {
    let layout = layout();
    let mut replay = Replay::new(&layout, SHARD);
    let change = |added: &[ParityGroup], removed: &[u64]| {
        Replayed::Groups(GroupChange { added: added.to_vec(), removed: removed.to_vec() })
    };
    replay.take(change(&[group(30, &[20, 41]), group(31, &[22])], &[]), 5).unwrap();
    assert_eq!(replay.next_block, 42);
    replay.known_dead.add(&mut replay.dead_by_last_frame);
    replay.take(change(&[group(50, &[20])], &[30]), 5).unwrap();
    assert_eq!(replay.next_block, 51);
    assert_eq!(replay.groups.keys().copied().collect::<Vec<_>>(), [31, 50]);
    assert_eq!(replay.dead_by_last_frame.removed, BTreeSet::from([20, 30, 41]));
    // The last frame has changed the group of block 20, so the block may be needed without that
    // frame.
    let newly = replay.newly_dead();
    let dead = [20, 22, 30, 31, 41, 50].map(newly);
    assert_eq!(dead, [true, false, true, false, true, true]);
}

#[test]
fn a_removal_in_the_last_frame_keeps_all_blocks() {
    let layout = layout();
    let mut replay = Replay::new(&layout, SHARD);
    assert!(!replay.newly_dead()(3));
    let clear = Replayed::Batch { transaction: None, seq: 4, clear: true, entries: Vec::new() };
    replay.take(clear, 5).unwrap();
    assert!(replay.newly_dead()(3));
    replay.take(batch(None, 5), 5).unwrap();
    assert!(replay.newly_dead()(3), "the frame is still the last one");
}

#[test]
fn a_log_is_cut_at_the_first_transaction_without_a_commit() {
    let layout = layout();
    let with_parts = |parts: &[Option<u64>], commits: &[u64]| {
        let mut replay = Replay::new(&layout, SHARD);
        for (seq, part) in (1..).zip(parts) {
            replay.take(batch(*part, seq), 5).unwrap();
        }
        for commit in commits {
            replay.take(Replayed::Commit(*commit), 5).unwrap();
        }
        replay
    };
    let parts = [None, Some(7), Some(8), None, Some(9)];
    let left = |replay: &Replay<'_>| replay.batches.iter().map(|batch| batch.seq).collect();
    let none = BTreeSet::new();
    for (commits, elsewhere, cut, kept) in [
        (vec![7, 8, 9], vec![], false, vec![1, 2, 3, 4, 5]),
        (vec![7, 9], vec![8], false, vec![1, 2, 3, 4, 5]),
        (vec![], vec![7, 8, 9], false, vec![1, 2, 3, 4, 5]),
        (vec![7, 9], vec![], true, vec![1, 2]),
        (vec![], vec![9], true, vec![1]),
        (vec![8], vec![7], true, vec![1, 2, 3, 4]),
    ] {
        let decided: BTreeSet<u64> = elsewhere.into_iter().collect();
        let mut replay = with_parts(&parts, &commits);
        assert_eq!(replay.is_undecided(), commits.len() < 3, "{commits:?}");
        assert_eq!(replay.cut_undecided(&decided), cut, "{commits:?} {decided:?}");
        let seqs: Vec<u64> = left(&replay);
        assert_eq!(seqs, kept, "{commits:?} {decided:?}");
        let known = replay.decided_elsewhere();
        let expected: Vec<u64> = [(2, 7), (3, 8), (5, 9)]
            .into_iter()
            .filter(|(seq, number)| kept.contains(seq) && !commits.contains(number))
            .map(|(_, number)| number)
            .collect();
        assert_eq!(known, expected);
        // A repair drops only the transactions without a commit.
        let mut replay = with_parts(&parts, &commits);
        let is_committed = |number: &&u64| commits.contains(number) || decided.contains(number);
        let dropped = 3 - [7, 8, 9].iter().filter(is_committed).count() as u64;
        assert_eq!(replay.drop_undecided(&decided), dropped);
        let seqs: Vec<u64> = left(&replay);
        assert_eq!(seqs.len() as u64, 5 - dropped);
        assert!(seqs.contains(&1) && seqs.contains(&4));
        if dropped == 0 {
            assert!(!replay.cut_undecided(&decided));
        }
    }
    let mut plain = with_parts(&[None, None], &[]);
    assert!(!plain.is_undecided() && !plain.cut_undecided(&none));
}

#[test]
fn a_removal_clears_only_earlier_writes() {
    let layout = layout();
    let slices: Vec<Slice> = layout
        .slices_of(SHARD)
        .map(|id| Slice::new(SliceId(id), layout.compression_of(SliceId(id))))
        .collect();
    let patch_of = |flushed: u64, slice: &Slice| {
        slice.flushed_seq.set(flushed);
        slice.live_keys.set(5);
        slice.insert(&Bytes::from_static(b"key"), version(1, 10), 1, None);
    };
    patch_of(4, &slices[0]);
    patch_of(5, &slices[1]);
    clear(&slices, 5, &[]);
    assert_eq!(slices[0].live_keys.get(), 0, "flushed before it");
    assert_eq!(slices[1].live_keys.get(), 5, "the flush includes the removal");
    assert!(slices.iter().all(|slice| slice.memory_keys() == 0));
    patch_of(6, &slices[0]);
    clear(&slices, 5, &[]);
    assert_eq!(slices[0].live_keys.get(), 5);
}

fn version(seq: u64, bytes: usize) -> Version {
    let key = Bytes::from_static(b"key");
    Version::seal(&key, seq, Some(Entry::new(Bytes::from(vec![1; bytes])))).unwrap()
}

#[test]
fn replay_freezes_a_memtable_after_a_batch_and_not_within_it() {
    on_flash(async |blocks, _, _| {
        let layout = layout();
        let mut budget = Budget::new(&StoreOptions::default(), &layout, 48, 1 << 18);
        budget.most.freeze_bytes = 1000;
        let mut replay = Replay::new(&layout, SHARD);
        // Keys of one slice.
        let slice = layout.slice_of(b"key");
        let mut keys =
            (0..).map(|n| Bytes::from(format!("{n}"))).filter(|key| layout.slice_of(key) == slice);
        let mut entries = |count: usize, bytes| -> Vec<KeyChange> {
            keys.by_ref().take(count).map(|key| (key, version(1, bytes))).collect()
        };
        for (seq, entries) in (1..).zip([entries(1, 10), entries(4, 600), entries(1, 10)]) {
            let batch = Replayed::Batch { transaction: None, seq, clear: false, entries };
            replay.take(batch, 5).unwrap();
        }
        let slices = replay.build(blocks, &budget).await.unwrap();
        let slice = slices.iter().find(|found| found.id == slice).unwrap();
        let frozen: Vec<u64> = slice.frozen.borrow().iter().map(|frozen| frozen.last_seq).collect();
        assert_eq!(frozen, [2], "after the whole second batch");
        assert_eq!(slice.memory_keys(), 6);
        assert!((1..1000).contains(&slice.active_bytes()));
    });
}
