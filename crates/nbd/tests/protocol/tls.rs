//! The three modes of TLS.

use crate::client::*;
use softflash_nbd::{CloseReason, Step, TlsMode};

const OTHERS: [u32; 8] =
    [LIST, INFO, GO, STRUCTURED_REPLY, LIST_META_CONTEXT, SET_META_CONTEXT, EXTENDED_HEADERS, 77];

#[test]
fn without_tls_the_upgrade_is_refused_and_tls_is_never_asked_for() {
    let mut client = Client::new(TlsMode::Off);
    assert_eq!(client.one(STARTTLS, &[]), POLICY);
    assert_eq!(client.one(STARTTLS, &[0; 20_000]), POLICY);
    for name in ["secret", "none"] {
        for number in OTHERS {
            let (step, replies) = client.option(number, &info_data(name, &[]));
            assert_eq!(step, Step::Continue);
            assert!(replies.iter().all(|reply| reply.kind != TLS_REQD), "{replies:?}");
        }
    }
    assert_eq!(client.one(GO, &info_data("secret", &[])), POLICY);
}

#[test]
fn required_tls_refuses_every_option_but_the_upgrade_and_an_abort() {
    let mut client = Client::new(TlsMode::Required);
    for number in OTHERS {
        for data in [vec![], info_data("vol", &[]), vec![0; 20_000]] {
            assert_eq!(client.one(number, &data), TLS_REQD);
        }
    }
    let (step, replies) = client.option(ABORT, &[]);
    assert_eq!((step, replies[0].kind), (Step::Close(CloseReason::Aborted), ACK));
}

#[test]
fn required_tls_closes_on_an_export_name_before_it() {
    for flags in [FIXED, 0] {
        let mut client = Client::with_flags(TlsMode::Required, flags);
        assert_eq!(client.closed_by(&option(EXPORT_NAME, b"vol")), CloseReason::ExportRefused);
    }
}

#[test]
fn after_the_upgrade_all_is_as_without_tls_and_tls_is_not_asked_for_again() {
    for mode in [TlsMode::Optional, TlsMode::Required] {
        let mut client = Client::new(mode);
        client.start_tls();
        let (last, listed) = client.many(LIST, &[]);
        assert_eq!((last, listed.len()), (ACK, 2), "the secret one too");
        assert_eq!(client.one(STARTTLS, &[]), INVALID);
        assert_eq!(client.one(STARTTLS, &[1; 20_000]), INVALID);
        assert_eq!(client.one(GO, &info_data("none", &[])), UNKNOWN);
        assert_eq!(client.one(77, &[]), UNSUP);
        assert_eq!(client.go("secret").export().name, "secret");
    }
}

#[test]
fn an_export_name_works_after_the_upgrade() {
    let mut client = Client::new(TlsMode::Required);
    client.start_tls();
    assert!(matches!(client.send(&option(EXPORT_NAME, b"secret")).0, Step::Begin(_)));
}

#[test]
fn nothing_is_understood_between_the_upgrade_and_tls() {
    let mut client = Client::new(TlsMode::Optional);
    let injected = [option(STARTTLS, &[]), option(LIST, &[])].concat();
    let (mut rest, mut output) = (&injected[..], Vec::new());
    for _ in 0..3 {
        let step = client.server.advance(&mut rest, &client.table, &mut output);
        assert_eq!(step, Step::StartTls);
    }
    assert_eq!(rest, option(LIST, &[]), "left to the TLS handshake");
    assert_eq!(option_replies(&output).len(), 1);
}

#[test]
fn the_upgrade_forgets_what_was_negotiated() {
    let mut client = Client::new(TlsMode::Optional);
    client.one(STRUCTURED_REPLY, &[]);
    client.many(SET_META_CONTEXT, &context_data("vol", &["base:allocation"]));
    client.many(INFO, &info_data("vol", &[]));
    client.start_tls();
    let query = context_data("vol", &["base:allocation"]);
    assert_eq!(client.one(SET_META_CONTEXT, &query), INVALID);
    client.table.exports[0].size_bytes = 4096;
    let session = client.go("vol");
    assert!(!session.has_structured_replies() && !session.has_block_status());
    assert_eq!(session.export().size_bytes, 4096);
}

#[test]
fn the_upgrade_keeps_the_client_flags() {
    let mut client = Client::with_flags(TlsMode::Optional, FIXED | NO_ZEROES);
    client.start_tls();
    assert_eq!(client.send(&option(EXPORT_NAME, b"vol")).1.len(), 10);
}

#[test]
fn with_optional_tls_a_secret_export_looks_like_none() {
    let mut client = Client::new(TlsMode::Optional);
    for number in [INFO, GO] {
        let [secret, none] = ["secret", "none"].map(|name| {
            let (step, replies) = client.option(number, &info_data(name, &[1, 3]));
            assert_eq!((step, replies.len(), replies[0].kind), (Step::Continue, 1, TLS_REQD));
            replies[0].data.clone()
        });
        assert_eq!(secret, none);
    }
    let (last, listed) = client.many(LIST, &[]);
    assert_eq!((last, listed.len(), &listed[0].data[4..]), (ACK, 1, &b"vol"[..]));
    assert_eq!(client.go("vol").export().name, "vol");
}

#[test]
fn with_optional_tls_a_secret_export_name_closes() {
    for flags in [FIXED, 0] {
        let mut client = Client::with_flags(TlsMode::Optional, flags);
        assert_eq!(client.closed_by(&option(EXPORT_NAME, b"secret")), CloseReason::ExportRefused);
    }
}

#[test]
fn with_optional_tls_only_info_and_go_ask_for_it() {
    let mut client = Client::new(TlsMode::Optional);
    client.one(STRUCTURED_REPLY, &[]);
    for number in [LIST, STRUCTURED_REPLY, LIST_META_CONTEXT, SET_META_CONTEXT, 77] {
        for data in [vec![], context_data("secret", &[]), context_data("none", &[])] {
            let (_, replies) = client.option(number, &data);
            assert!(replies.iter().all(|reply| reply.kind != TLS_REQD), "{replies:?}");
        }
    }
    assert_eq!(client.one(LIST_META_CONTEXT, &context_data("secret", &[])), UNKNOWN);
}

#[test]
fn a_start_of_tls_that_was_not_agreed_changes_nothing() {
    let mut client = Client::new(TlsMode::Required);
    client.server.tls_started();
    assert_eq!(client.one(LIST, &[]), TLS_REQD);
}
