//! Options other than those about exports: lists, unknown ones, and errors in general.

use crate::client::*;
use softflash_nbd::{Export, Step, TlsMode};

#[test]
fn a_list_has_one_reply_for_each_export_that_the_client_can_have_and_an_acknowledgement() {
    let mut client = Client::new(TlsMode::Off);
    client.table.exports.push(export("other"));
    let (last, listed) = client.many(LIST, &[]);
    assert_eq!(last, ACK);
    let expected: [&[u8]; 2] = [b"\0\0\0\x03vol", b"\0\0\0\x05other"];
    assert_eq!(listed.iter().map(|reply| &reply.data[..]).collect::<Vec<_>>(), expected);
    assert!(listed.iter().all(|reply| reply.kind == SERVER));
}

#[test]
fn a_list_can_be_empty_or_forbidden() {
    let mut client = Client::new(TlsMode::Off);
    client.table.exports.clear();
    assert_eq!(client.one(LIST, &[]), ACK);
    client.table.is_listed = false;
    assert_eq!(client.one(LIST, &[]), POLICY);
}

#[test]
fn names_that_are_no_valid_strings_are_not_listed() {
    let mut client = Client::new(TlsMode::Off);
    let longest = "n".repeat(4096);
    let names = ["a\0b".to_owned(), "n".repeat(4097), longest.clone()];
    client.table.exports = names.iter().map(|name| export(name)).collect();
    let (last, listed) = client.many(LIST, &[]);
    assert_eq!((last, listed.len()), (ACK, 1));
    assert_eq!(listed[0].data[4..], *longest.as_bytes());
}

#[test]
fn options_without_data_are_invalid_with_data() {
    let mut client = Client::new(TlsMode::Optional);
    for number in [LIST, STARTTLS, STRUCTURED_REPLY] {
        assert_eq!(client.one(number, b"x"), INVALID);
        assert_eq!(client.one(number, &[0; 20_000]), INVALID);
    }
    assert!(!client.go("vol").has_structured_replies());
}

#[test]
fn an_option_that_is_not_known_is_refused_and_the_next_one_is_understood() {
    let mut client = Client::new(TlsMode::Off);
    for number in [0, 4, EXTENDED_HEADERS, 12, 77, u32::MAX] {
        for data in [&[][..], b"IHAVEOPT\0\0\0\x03", &[1; 20_000]] {
            assert_eq!(client.one(number, data), UNSUP, "{number}");
        }
    }
    assert_eq!(client.many(LIST, &[]).0, ACK);
}

#[test]
fn no_refused_option_ends_the_connection() {
    let mut client = Client::new(TlsMode::Off);
    let refused: [(u32, Vec<u8>, u32); 9] = [
        (LIST, vec![0], INVALID),
        (STARTTLS, vec![], POLICY),
        (INFO, vec![], INVALID),
        (INFO, info_data("none", &[]), UNKNOWN),
        (GO, info_data("none", &[]), UNKNOWN),
        (GO, info_data("forbidden", &[]), POLICY),
        (GO, vec![0; 17_000], TOO_BIG),
        (SET_META_CONTEXT, context_data("vol", &[]), INVALID),
        (77, vec![], UNSUP),
    ];
    for (number, data, kind) in refused {
        assert_eq!(client.one(number, &data), kind);
    }
    assert!(matches!(client.option(GO, &info_data("vol", &[])).0, Step::Begin(_)));
}

#[test]
fn error_replies_have_a_message_for_people() {
    let mut client = Client::new(TlsMode::Off);
    let (_, replies) = client.option(GO, &info_data("none", &[]));
    assert_eq!(String::from_utf8_lossy(&replies[0].data), "no such export");
    let (_, replies) = client.option(GO, &info_data("damaged", &[]));
    assert_eq!(replies[0].kind, UNKNOWN);
    assert_eq!(String::from_utf8_lossy(&replies[0].data), "it is damaged");
}

#[test]
fn why_an_export_is_not_served_is_not_told_before_tls() {
    let mut client = Client::new(TlsMode::Optional);
    let answers = ["damaged", "none"].map(|name| client.option(GO, &info_data(name, &[])).1);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0][0].kind, TLS_REQD);
}

#[test]
fn structured_replies_can_be_asked_for_twice() {
    let mut client = Client::new(TlsMode::Off);
    assert_eq!([(); 2].map(|()| client.one(STRUCTURED_REPLY, &[])), [ACK; 2]);
    assert!(client.go("vol").has_structured_replies());
}

#[test]
fn one_call_answers_one_option() {
    let mut client = Client::new(TlsMode::Off);
    client.table.exports = vec![Export { description: "d".repeat(4000), ..export("vol") }];
    let bytes = option(INFO, &info_data("vol", &[2])).repeat(10);
    let (mut rest, mut output) = (&bytes[..], Vec::new());
    for left in (0..10).rev() {
        output.clear();
        let step = client.server.advance(&mut rest, &client.table, &mut output);
        assert_eq!((step, rest.len()), (Step::Continue, left * bytes.len() / 10));
        assert!((4000..4200).contains(&output.len()));
    }
}
