use super::*;
use crate::format::log::FrameRole;
use crate::format::log::{EventStream, FrameHeader};
use crate::format::testing::{cases, rng};
use proptest::prelude::*;
use softflash_base::random::Rng;
use softflash_blocks::Member;

fn any_changes(seq: u64) -> impl Strategy<Value = Vec<KeyChange>> {
    let bytes = |len| prop::collection::vec(any::<u8>(), 0..len).prop_map(Bytes::from);
    let entry = (prop::collection::vec(bytes(60), 1..4), any::<u64>()).prop_map(
        |(pieces, expires_at_ms)| Entry { value: Value::from_fragments(pieces), expires_at_ms },
    );
    let changes = prop::collection::vec((bytes(30), prop::option::of(entry)), 0..8);
    changes.prop_map(move |changes| {
        let seal = |(key, entry)| change(key, seq, entry);
        changes.into_iter().map(seal).collect()
    })
}

fn change(key: Bytes, seq: u64, entry: Option<Entry>) -> KeyChange {
    let version = Version::seal(&key, seq, entry).unwrap();
    (key, version)
}

fn any_patches() -> impl Strategy<Value = Vec<PatchEntry>> {
    let patch = (any::<u64>(), any::<u8>(), any::<u64>());
    prop::collection::vec(
        patch.prop_map(|(block, level, run)| PatchEntry { block, level, run }),
        0..9,
    )
}

fn any_groups() -> impl Strategy<Value = Vec<ParityGroup>> {
    let member = any::<(u64, u32)>().prop_map(|(block, pages)| Member { block, pages });
    let group = (any::<u64>(), prop::collection::vec(member, 1..5));
    prop::collection::vec(group.prop_map(|(parity, members)| ParityGroup { parity, members }), 0..4)
}

fn any_batch() -> impl Strategy<Value = Replayed> {
    let changes = any::<u64>().prop_flat_map(|seq| (Just(seq), any_changes(seq)));
    (prop::option::of(any::<u64>()), any::<bool>(), changes).prop_map(
        |(transaction, clear, (seq, entries))| Replayed::Batch { transaction, seq, clear, entries },
    )
}

fn any_event() -> impl Strategy<Value = Replayed> {
    let numbers = || prop::collection::vec(any::<u64>(), 0..6);
    let state = (any::<u16>(), any_patches(), any::<u64>(), any::<u64>()).prop_map(
        |(slice, patches, flushed_seq, live_keys)| SliceState {
            slice,
            patches,
            flushed_seq,
            live_keys,
        },
    );
    prop_oneof![
        any_batch(),
        any::<u64>().prop_map(Replayed::Commit),
        prop::collection::vec(any::<(u16, u64)>(), 0..5).prop_map(|units| {
            let mark = |(unit, generation)| UnitMark { unit, generation };
            Replayed::Units(units.into_iter().map(mark).collect())
        }),
        (any::<u16>(), any_patches(), numbers(), any::<[u64; 4]>()).prop_map(
            |(slice, added, removed, [flushed_seq, live_keys, log_start, unlisted_from])| {
                Replayed::Edit(Edit {
                    slice,
                    added,
                    removed,
                    flushed_seq,
                    live_keys,
                    log_start,
                    unlisted_from,
                })
            }
        ),
        (any_groups(), numbers())
            .prop_map(|(added, removed)| Replayed::Groups(GroupChange { added, removed })),
        (
            any::<[u16; 2]>(),
            any::<[u64; 5]>(),
            numbers(),
            prop::collection::vec(state, 0..4),
            any_groups()
        )
            .prop_map(
                |(
                    [shards, slices],
                    [seq, next_block, next_transaction, log_start, unlisted_from],
                    commits,
                    states,
                    groups,
                )| {
                    Replayed::Checkpoint(Checkpoint {
                        shards,
                        slices,
                        seq,
                        next_block,
                        next_transaction,
                        log_start,
                        unlisted_from,
                        commits,
                        states,
                        groups,
                    })
                }
            ),
    ]
}

fn append(event: &Replayed, stream: &mut Vec<u8>) {
    let event = match event {
        Replayed::Batch { transaction: None, seq, clear, entries } => {
            Event::Batch { seq: *seq, clear: *clear, entries }
        }
        Replayed::Batch { transaction: Some(number), seq, clear, entries } => {
            Event::Prepare { transaction: *number, seq: *seq, clear: *clear, entries }
        }
        Replayed::Commit(number) => Event::Commit(*number),
        Replayed::Edit(edit) => Event::Edit(edit),
        Replayed::Checkpoint(checkpoint) => Event::Checkpoint(checkpoint),
        Replayed::Units(units) => Event::Units(units),
        Replayed::Groups(change) => Event::Groups(change),
    };
    encode(&event, stream);
}

/// Payloads of frames that carry the stream, each with the offset of its first event.
fn cut(events: &[Replayed], rng: &mut Rng) -> Vec<(u32, Bytes)> {
    let (mut stream, mut starts) = (Vec::new(), Vec::new());
    for event in events {
        starts.push(stream.len());
        append(event, &mut stream);
    }
    let (stream, mut frames, mut at) = (Bytes::from(stream), Vec::new(), 0);
    while at < stream.len() {
        let longest = if rng.chance(0.5) { 6 } else { 400 };
        let end = (at + rng.below(longest) as usize).min(stream.len());
        let first = starts.iter().find(|start| (at..end).contains(start));
        frames.push((first.map_or(u32::MAX, |start| (start - at) as u32), stream.slice(at..end)));
        at = end;
    }
    frames
}

fn feed(stream: &mut EventStream, frames: &[(u32, Bytes)]) -> Result<Vec<Replayed>, FormatError> {
    let mut read = Vec::new();
    for (first_event, payload) in frames {
        let header = FrameHeader { first_event: *first_event, ..FrameHeader::default() };
        stream.feed(&header, payload.clone(), |event| {
            read.push(event);
            Ok::<_, FormatError>(())
        })?;
    }
    Ok(read)
}

proptest! {
    #![proptest_config(cases(500, 71))]

    #[test]
    fn events_are_read_back_however_frames_cut_them(
        events in prop::collection::vec(any_event(), 0..8),
        seed in any::<u64>(),
    ) {
        let frames = cut(&events, &mut Rng::seeded(seed));
        let mut stream = EventStream::default();
        prop_assert_eq!(feed(&mut stream, &frames).unwrap(), events);
        prop_assert_eq!(stream.abandoned(), 0);
    }

    #[test]
    fn any_suffix_of_the_frames_gives_the_events_that_start_in_it(
        events in prop::collection::vec(any_event(), 1..8),
        seed in any::<u64>(),
        from in any::<prop::sample::Index>(),
    ) {
        let frames = cut(&events, &mut Rng::seeded(seed));
        let suffix = &frames[from.index(frames.len())..];
        let read = feed(&mut EventStream::default(), suffix).unwrap();
        prop_assert_eq!(&read[..], &events[events.len() - read.len()..]);
        let start: usize = frames[..frames.len() - suffix.len()].iter().map(|(_, p)| p.len()).sum();
        let mut len = 0;
        let starting_later = events.iter().filter(|event| {
            let at = len;
            let mut bytes = Vec::new();
            append(event, &mut bytes);
            len += bytes.len();
            at >= start
        });
        prop_assert_eq!(read.len(), starting_later.count());
    }

    #[test]
    fn an_event_without_an_end_is_dropped_when_another_writer_continues(
        events in prop::collection::vec(any_event(), 1..5),
        later in prop::collection::vec(any_event(), 1..5),
        seed in any::<u64>(),
        torn_at in any::<prop::sample::Index>(),
    ) {
        let mut rng = Rng::seeded(seed);
        let frames = cut(&events, &mut rng);
        let before = &frames[..torn_at.index(frames.len())];
        let mut stream = EventStream::default();
        let mut read = feed(&mut stream, before).unwrap();
        prop_assert_eq!(&read[..], &events[..read.len()]);
        let whole = read.len();
        read.extend(feed(&mut stream, &cut(&later, &mut rng)).unwrap());
        prop_assert_eq!(&read[whole..], &later[..]);
    }

    #[test]
    fn cut_or_damaged_events_are_refused_or_are_events(
        event in any_event(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = Vec::new();
        append(&event, &mut bytes);
        let body = Bytes::from(bytes.split_off(4));
        prop_assert_eq!(decode(&body), Ok(event));
        let at = place.index(body.len());
        prop_assert!(decode(&body.slice(..at)).is_err(), "cut at {at}");
        let mut longer = body.to_vec();
        longer.push(0);
        prop_assert!(decode(&longer.into()).is_err());
        // The checksum of the frame detects this; without it, the decoder must return an error or
        // an event.
        let mut damaged = body.to_vec();
        damaged[at] = byte;
        let _ = decode(&damaged.into());
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), kind in 0..7u8) {
        let _ = decode(&bytes.clone().into());
        let kinded = [&[kind][..], &bytes].concat();
        let _ = decode(&kinded.into());
        let _ = feed(&mut EventStream::default(), &[(0, bytes.into())]);
    }
}

#[test]
fn an_unknown_kind_names_itself_and_the_version() {
    let unknown = decode(&Bytes::from_static(&[99, 0, 0]));
    assert_eq!(unknown, Err(FormatError::UnknownEvent { kind: 99, version: VERSION }));
}

#[test]
fn counts_that_the_bytes_cannot_hold_are_refused_at_once() {
    let mut bytes = vec![BATCH];
    bytes.extend_from_slice(&[0; 9]);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode(&bytes.into()), Err(FormatError::Truncated { what: WHAT }));
}

#[test]
fn a_checkpoint_between_the_parts_of_an_event_does_not_disturb_them() {
    let mut rng = rng(72);
    let entry = Entry::new(Bytes::from(vec![1; 900]));
    let batch = Replayed::Batch {
        transaction: None,
        seq: 5,
        clear: false,
        entries: vec![change(Bytes::from_static(b"key"), 5, Some(entry))],
    };
    let checkpoint = Replayed::Checkpoint(Checkpoint { seq: 4, ..Checkpoint::default() });
    let frames = cut(std::slice::from_ref(&batch), &mut rng);
    let mut bytes = Vec::new();
    append(&checkpoint, &mut bytes);
    let (front, back) = bytes.split_at(7);
    let mut stream = EventStream::default();
    let mut read = feed(&mut stream, &frames[..1]).unwrap();
    // An interrupted checkpoint, then a whole one.
    for (segment, part) in [(8, front), (9, front), (9, back)] {
        let header = FrameHeader {
            role: FrameRole::Checkpoint,
            segment,
            first_event: u32::MAX,
            ..FrameHeader::default()
        };
        let noted = stream.feed(&header, Bytes::copy_from_slice(part), |event| {
            read.push(event);
            Ok::<_, FormatError>(())
        });
        assert_eq!(noted, Ok(()));
    }
    read.extend(feed(&mut stream, &frames[1..]).unwrap());
    assert_eq!(read, [checkpoint, batch]);
}

#[test]
fn frames_that_do_not_fit_together_are_an_error() {
    let mut bytes = Vec::new();
    encode(&Event::Commit(7), &mut bytes);
    let (front, back) = (Bytes::copy_from_slice(&bytes[..6]), Bytes::copy_from_slice(&bytes[6..]));
    for first_event in [1, 3] {
        let mut stream = EventStream::default();
        let frames = [(0, front.clone()), (first_event, back.clone())];
        assert!(feed(&mut stream, &frames).is_err(), "first event at {first_event}");
    }
    let longer = Bytes::from([&back[..], &[0]].concat());
    assert!(feed(&mut EventStream::default(), &[(0, front), (u32::MAX, longer)]).is_err());
}

#[test]
fn no_flipped_bit_of_a_change_goes_unnoticed() {
    let pieces = [Bytes::from_static(b"first "), Bytes::from_static(b"second")];
    let entry = Entry { value: Value::from_fragments(pieces), expires_at_ms: 77 };
    // Two short pieces are kept: they are not more than twice as many as needed.
    let put = change(Bytes::from_static(b"put"), 5, Some(entry));
    let deleted = change(Bytes::from_static(b"deleted"), 5, None);
    let entries = [put, deleted];
    let mut bytes = Vec::new();
    encode(&Event::Batch { seq: 5, clear: false, entries: &entries }, &mut bytes);
    let body = bytes.split_off(LENGTH_BYTES);
    let whole =
        Replayed::Batch { transaction: None, seq: 5, clear: false, entries: entries.into() };
    assert_eq!(decode(&body.clone().into()), Ok(whole));
    // Only the frame's checksum covers the kind and the clear flag.
    for at in (1..body.len()).filter(|at| *at != 9) {
        for bit in 0..8 {
            let mut damaged = body.clone();
            damaged[at] ^= 1 << bit;
            assert!(decode(&damaged.into()).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_value_without_fragments_is_refused() {
    let mut body = vec![BATCH];
    body.put_u64_le(5);
    body.put_u8(0);
    body.put_u32_le(1);
    body.put_u32_le(0);
    body.put_u8(PUT);
    body.put_u64_le(0);
    body.put_u32_le(0);
    assert!(decode(&body.into()).is_err());
}

#[test]
fn version_1_has_these_bytes() {
    let entry = Entry { value: Value::from(Bytes::from_static(b"v")), expires_at_ms: 9 };
    let entries = [
        change(Bytes::from_static(b"k"), 5, Some(entry)),
        change(Bytes::from_static(b"d"), 5, None),
    ];
    let mut bytes = Vec::new();
    encode(&Event::Batch { seq: 5, clear: false, entries: &entries }, &mut bytes);
    let checksum = |place: usize| entries[place].1.checksums()[0].to_le_bytes();
    let mut expected = vec![58, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
    expected.extend_from_slice(&[1, 0, 0, 0, b'k', 1, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    expected.extend_from_slice(&checksum(0));
    expected.extend_from_slice(&[1, 0, 0, 0, b'v']);
    expected.extend_from_slice(&[1, 0, 0, 0, b'd', 0]);
    expected.extend_from_slice(&checksum(1));
    expected[0] = (expected.len() - LENGTH_BYTES) as u8;
    assert_eq!(bytes, expected);
}
