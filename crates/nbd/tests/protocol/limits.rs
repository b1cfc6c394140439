//! What a client may use before it has chosen an export.

use crate::client::*;
use softflash_nbd::{CloseReason, HandshakeLimits, Negotiation, TlsMode};

fn client(limits: HandshakeLimits) -> Client {
    let mut client = Client::new(TlsMode::Optional);
    client.server = Negotiation::new(TlsMode::Optional, limits);
    client.send(&FIXED.to_be_bytes());
    client
}

#[test]
fn a_client_has_a_limited_number_of_options() {
    let mut client = client(HandshakeLimits { max_options: 3, ..Default::default() });
    for _ in 0..3 {
        assert_eq!(client.one(77, &[]), UNSUP);
    }
    assert_eq!(client.closed_by(&option(77, &[])), CloseReason::TooManyOptions(3));
}

#[test]
fn the_limit_goes_on_after_the_upgrade() {
    let mut client = client(HandshakeLimits { max_options: 2, ..Default::default() });
    client.start_tls();
    assert_eq!(client.one(77, &[]), UNSUP);
    assert_eq!(client.closed_by(&option(77, &[])), CloseReason::TooManyOptions(2));
}

#[test]
fn a_long_option_is_skipped_and_refused() {
    let limits = HandshakeLimits { max_option_bytes: 100, ..Default::default() };
    let mut client = client(limits);
    let name = |bytes: usize| info_data(&"n".repeat(bytes - 6), &[]);
    assert_eq!(client.one(GO, &name(100)), TLS_REQD);
    assert_eq!(client.one(GO, &name(101)), TOO_BIG);
    assert_eq!(client.one(LIST_META_CONTEXT, &[0; 101]), TOO_BIG);
    assert_eq!(client.one(77, &[0; 101]), UNSUP);
    client.go("vol");
}

#[test]
fn all_bytes_of_a_handshake_are_limited_when_they_are_announced() {
    let limits = HandshakeLimits { max_handshake_bytes: 4 + 16 + 1000 + 16, ..Default::default() };
    assert_eq!(client(limits).one(77, &[0; 1000]), UNSUP);
    let mut more = client(limits);
    more.one(77, &[0; 1000]);
    more.one(77, &[]);
    let too_many = CloseReason::TooManyBytes(1036);
    assert_eq!(more.closed_by(&option(77, &[])), too_many);
    // The client flags count too.
    let one_less = HandshakeLimits { max_handshake_bytes: 1035, ..Default::default() };
    let mut less = client(one_less);
    less.one(77, &[0; 1000]);
    assert_eq!(less.closed_by(&option(77, &[])), CloseReason::TooManyBytes(1035));
    // Only the header of an option that would be too long.
    let header = [b"IHAVEOPT", &77_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes()].concat();
    assert_eq!(client(limits).closed_by(&header), too_many);
}

#[test]
fn the_defaults_let_a_client_ask_about_hundreds_of_exports() {
    let mut client = client(HandshakeLimits::default());
    client.one(STRUCTURED_REPLY, &[]);
    for _ in 0..500 {
        assert_eq!(client.many(INFO, &info_data("vol", &[1, 2, 3])).0, ACK);
        assert_eq!(client.many(LIST_META_CONTEXT, &context_data("vol", &[])).0, ACK);
    }
    client.go("vol");
}
