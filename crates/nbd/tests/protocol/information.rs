//! `NBD_OPT_INFO` and `NBD_OPT_GO`.

use crate::client::*;
use softflash_nbd::{BlockSizes, Export, Features, Step, TlsMode};

/// The kinds of information in replies, with what follows them.
fn information(replies: &[OptionReply]) -> Vec<(u16, &[u8])> {
    let parts = replies.iter().map(|reply| {
        assert_eq!(reply.kind, INFORMATION);
        (u16::from_be_bytes([reply.data[0], reply.data[1]]), &reply.data[2..])
    });
    parts.collect()
}

#[test]
fn information_has_size_and_flags_and_size_constraints_also_if_nothing_is_wanted() {
    for number in [INFO, GO] {
        let (step, replies) = Client::new(TlsMode::Off).option(number, &info_data("vol", &[]));
        assert_eq!(matches!(step, Step::Begin(_)), number == GO);
        let (last, before) = replies.split_last().unwrap();
        assert_eq!((last.kind, last.data.len()), (ACK, 0));
        let sizes = [&512_u32.to_be_bytes()[..], &4096_u32.to_be_bytes(), &[0, 2, 0, 0]].concat();
        let expected: [(u16, &[u8]); 2] =
            [(0, &[0, 0, 0, 0, 0, 16, 0, 0, 0x0d, 0x6d]), (3, &sizes)];
        assert_eq!(information(before), expected);
    }
}

#[test]
fn name_and_description_are_given_if_they_are_wanted_and_known() {
    let mut client = Client::new(TlsMode::Off);
    client.table.exports[0].description = "the first".to_owned();
    let (last, replies) = client.many(INFO, &info_data("", &[2, 1]));
    assert_eq!(last, ACK);
    let found = information(&replies);
    assert!(found.contains(&(1, b"vol")) && found.contains(&(2, b"the first")), "{found:?}");
    client.table.exports[0].description.clear();
    let (_, replies) = client.many(INFO, &info_data("", &[1, 2]));
    assert!(information(&replies).iter().all(|(kind, _)| *kind != 2));
    let (_, replies) = client.many(INFO, &info_data("vol", &[]));
    assert_eq!(replies.len(), 2);
}

#[test]
fn kinds_that_are_not_known_or_wanted_twice_are_ignored() {
    let mut client = Client::new(TlsMode::Off);
    let (last, replies) = client.many(INFO, &info_data("vol", &[4, 999, 1, 1, 65_535]));
    assert_eq!(last, ACK);
    assert_eq!(information(&replies).iter().filter(|(kind, _)| *kind == 1).count(), 1);
    assert_eq!(replies.len(), 3);
}

#[test]
fn malformed_data_are_invalid() {
    let mut client = Client::new(TlsMode::Off);
    let whole = info_data("vol", &[1]);
    for end in 0..whole.len() {
        assert_eq!(client.one(GO, &whole[..end]), INVALID, "{end} bytes");
    }
    assert_eq!(client.one(GO, &[&whole[..], &[0]].concat()), INVALID);
    // A name longer than the option.
    assert_eq!(client.one(GO, b"\0\0\0\x04vol\0\0"), INVALID);
    assert_eq!(client.one(GO, b"\xff\xff\xff\xfevol\0\0"), INVALID);
    for name in ["vol\0", &"n".repeat(4097)] {
        assert_eq!(client.one(GO, &info_data(name, &[])), INVALID);
    }
    assert_eq!(client.one(GO, b"\0\0\0\x01\xff\0\0"), INVALID);
    assert_eq!(client.one(GO, &info_data(&"n".repeat(4096), &[])), UNKNOWN);
}

#[test]
fn go_right_after_info_gives_the_same_information() {
    let mut client = Client::new(TlsMode::Off);
    let question = info_data("vol", &[3, 1]);
    let (_, told) = client.many(INFO, &question);
    client.table.exports[0].size_bytes *= 2;
    client.table.exports[0].read_only = true;
    let (step, replies) = client.option(GO, &question);
    let Step::Begin(session) = step else { panic!("{step:?}") };
    assert_eq!(replies[..replies.len() - 1].iter().map(|it| &it.data).collect::<Vec<_>>(), {
        told.iter().map(|it| &it.data).collect::<Vec<_>>()
    });
    assert_eq!((session.export().size_bytes, session.export().read_only), (1 << 20, false));
}

#[test]
fn go_after_another_option_or_question_gives_the_information_of_now() {
    for between in [Some(option(77, &[])), None] {
        let mut client = Client::new(TlsMode::Off);
        client.many(INFO, &info_data("vol", &[1]));
        client.table.exports[0].size_bytes *= 2;
        let wanted: &[u16] = if between.is_none() { &[2] } else { &[1] };
        between.map(|bytes| client.send(&bytes));
        let (step, _) = client.option(GO, &info_data("vol", wanted));
        let Step::Begin(session) = step else { panic!("{step:?}") };
        assert_eq!(session.export().size_bytes, 2 << 20);
    }
}

#[test]
fn another_export_with_the_same_name_is_not_taken_for_the_earlier_one() {
    let mut client = Client::new(TlsMode::Off);
    client.many(INFO, &info_data("vol", &[]));
    client.table.exports[0] = Export { id: 43, size_bytes: 4096, ..export("vol") };
    let session = client.go("vol");
    assert_eq!((session.export().id, session.export().size_bytes), (43, 4096));
}

#[test]
fn an_export_that_has_gone_after_info_is_unknown() {
    let mut client = Client::new(TlsMode::Off);
    client.many(INFO, &info_data("vol", &[]));
    client.table.exports.clear();
    assert_eq!(client.one(GO, &info_data("vol", &[])), UNKNOWN);
}

#[test]
fn the_flag_for_unfragmented_reads_depends_on_structured_replies() {
    let flags = |structured: bool| {
        let mut client = Client::new(TlsMode::Off);
        if structured {
            client.one(STRUCTURED_REPLY, &[]);
        }
        let (_, replies) = client.many(INFO, &info_data("vol", &[]));
        u16::from_be_bytes(replies[0].data[10..12].try_into().unwrap())
    };
    assert_eq!((flags(false) & 0x80, flags(true) & 0x80), (0, 0x80));
}

#[test]
fn flags_are_those_of_the_export_and_the_first_is_always_set() {
    let flags = |export: Export| {
        let mut client = Client::new(TlsMode::Off);
        client.table.exports = vec![export];
        let (_, replies) = client.many(INFO, &info_data("vol", &[]));
        assert_eq!(replies[0].data.len(), 12);
        u16::from_be_bytes(replies[0].data[10..12].try_into().unwrap())
    };
    assert_eq!(flags(Export { features: Features::default(), ..export("vol") }), 0x001);
    assert_eq!(flags(export("vol")), 0xd6d);
    // Read-only: no trim, no zeroes.
    assert_eq!(flags(Export { read_only: true, ..export("vol") }), 0x50f);
    let features = Features { write_zeroes: false, ..ALL };
    assert_eq!(flags(Export { features, ..export("vol") }), 0x52d);
}

#[test]
fn size_constraints_have_14_bytes() {
    let mut client = Client::new(TlsMode::Off);
    client.table.exports[0].block_sizes = BlockSizes::default();
    let (_, replies) = client.many(INFO, &info_data("vol", &[3]));
    let sizes: Vec<&OptionReply> = replies.iter().filter(|it| it.data[..2] == [0, 3]).collect();
    assert_eq!(sizes.len(), 1);
    assert_eq!(sizes[0].data, b"\0\x03\0\0\0\x01\0\0\x10\0\x02\0\0\0");
}
