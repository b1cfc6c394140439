//! Greeting, client flags, the old way to choose an export, and the end of a handshake.

use crate::client::*;
use softflash_nbd::{CloseReason, HandshakeLimits, Negotiation, Step, TlsMode};

#[test]
fn the_greeting_offers_fixed_newstyle_and_no_zeroes_and_nothing_else() {
    let greeting = Negotiation::new(TlsMode::Off, HandshakeLimits::default()).greeting();
    assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
}

#[test]
fn unknown_client_flags_close_the_connection() {
    for flags in [4, 1 << 16, 1 << 31, 7, u32::MAX] {
        let mut client = Client::silent(TlsMode::Off);
        let reason = client.closed_by(&flags.to_be_bytes());
        assert_eq!(reason, CloseReason::UnknownClientFlags(flags));
        let (step, output) = client.send(&[]);
        assert_eq!((step, output.len()), (Step::Close(reason), 0), "it stays closed");
    }
    for flags in 0..=3 {
        Client::with_flags(TlsMode::Off, flags);
    }
}

#[test]
fn bytes_that_are_not_an_option_close_the_connection() {
    let mut client = Client::new(TlsMode::Off);
    let mut bytes = option(LIST, &[]);
    bytes[7] ^= 1;
    let reason = client.closed_by(&bytes);
    assert_eq!(reason, CloseReason::NotAnOption(0x4948_4156_454f_5055));
}

#[test]
fn an_export_name_is_answered_with_size_flags_and_zeroes_unless_both_sides_leave_them_out() {
    for (flags, zeroes) in [(FIXED, 124), (FIXED | NO_ZEROES, 0), (0, 124), (NO_ZEROES, 0)] {
        let mut client = Client::with_flags(TlsMode::Off, flags);
        let (step, output) = client.send(&option(EXPORT_NAME, b"vol"));
        let Step::Begin(session) = step else { panic!("{step:?}") };
        assert_eq!(output[..10], [0, 0, 0, 0, 0, 16, 0, 0, 0x0d, 0x6d]);
        assert_eq!(output[10..], vec![0; zeroes]);
        assert_eq!((session.export().id, session.has_structured_replies()), (42, false));
    }
}

#[test]
fn an_empty_name_is_the_default_export() {
    let mut client = Client::new(TlsMode::Off);
    assert!(matches!(client.send(&option(EXPORT_NAME, b"")).0, Step::Begin(_)));
    assert_eq!(Client::new(TlsMode::Off).go("").export().name, "vol");
}

#[test]
fn an_export_name_that_cannot_be_had_closes_the_connection() {
    let long = [b'x'; 5000];
    for name in [&b"none"[..], b"forbidden", b"secret", b"vol\0", b"\xff", &long] {
        let mut client = Client::new(TlsMode::Off);
        let reason = client.closed_by(&option(EXPORT_NAME, name));
        assert_eq!(reason, CloseReason::ExportRefused);
    }
}

#[test]
fn structured_replies_hold_for_the_old_way_too() {
    let mut client = Client::new(TlsMode::Off);
    assert_eq!(client.one(STRUCTURED_REPLY, &[]), ACK);
    let (step, output) = client.send(&option(EXPORT_NAME, b"vol"));
    let Step::Begin(session) = step else { panic!("{step:?}") };
    assert!(session.has_structured_replies());
    assert_eq!(output[8..10], [0x0d, 0xed]);
}

#[test]
fn a_client_without_fixed_newstyle_has_no_option_but_the_name() {
    for number in [LIST, STARTTLS, INFO, GO, STRUCTURED_REPLY, ABORT, 77] {
        let mut client = Client::with_flags(TlsMode::Optional, 0);
        let reason = client.closed_by(&option(number, &[]));
        assert_eq!(reason, CloseReason::NotFixedNewstyle(number));
    }
}

#[test]
fn the_bytes_after_the_handshake_are_left_for_the_transmission() {
    let mut client = Client::new(TlsMode::Off);
    let bytes = [option(GO, &info_data("vol", &[])), request(READ, 0, 1, 0, 512)].concat();
    let (mut rest, mut output) = (&bytes[..], Vec::new());
    let step = client.server.advance(&mut rest, &client.table, &mut output);
    assert!(matches!(step, Step::Begin(_)), "{step:?}");
    assert_eq!(rest, request(READ, 0, 1, 0, 512));
    let step = client.server.advance(&mut rest, &client.table, &mut output);
    assert_eq!(step, Step::Close(CloseReason::Ended));
}

#[test]
fn an_abort_is_acknowledged_and_its_data_are_ignored() {
    for data in [&[][..], b"data", &[7; 20_000]] {
        let (step, replies) = Client::new(TlsMode::Off).option(ABORT, data);
        assert_eq!(step, Step::Close(CloseReason::Aborted));
        assert_eq!(replies, [OptionReply { option: ABORT, kind: ACK, data: vec![] }]);
    }
}

#[test]
fn a_server_that_shuts_down_refuses_everything_but_an_abort() {
    let mut client = Client::new(TlsMode::Optional);
    client.server.shut_down();
    for number in [LIST, INFO, GO, STRUCTURED_REPLY, SET_META_CONTEXT, STARTTLS, 77] {
        assert_eq!(client.one(number, &info_data("vol", &[])), SHUTDOWN);
    }
    let (step, replies) = client.option(ABORT, &[]);
    assert_eq!((step, replies[0].kind), (Step::Close(CloseReason::Aborted), ACK));
    let mut client = Client::new(TlsMode::Off);
    client.server.shut_down();
    assert_eq!(client.closed_by(&option(EXPORT_NAME, b"vol")), CloseReason::ExportRefused);
}
