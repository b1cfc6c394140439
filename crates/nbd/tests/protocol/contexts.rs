//! `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.

use crate::client::*;
use softflash_nbd::{Step, TlsMode};

const ALLOCATION: &str = "base:allocation";

fn client() -> Client {
    let mut client = Client::new(TlsMode::Off);
    assert_eq!(client.one(STRUCTURED_REPLY, &[]), ACK);
    client
}

/// Ids and names of the contexts in a successful reply.
fn contexts(client: &mut Client, number: u32, queries: &[&str]) -> Vec<(u32, String)> {
    let (last, replies) = client.many(number, &context_data("vol", queries));
    assert_eq!(last, ACK);
    let parts = replies.into_iter().map(|reply| {
        assert_eq!(reply.kind, META_CONTEXT);
        let (id, name) = reply.data.split_at(4);
        (u32::from_be_bytes(id.try_into().unwrap()), String::from_utf8(name.to_vec()).unwrap())
    });
    parts.collect()
}

#[test]
fn all_contexts_are_listed_for_no_query_the_wildcard_and_the_name() {
    for queries in [&[][..], &["base:"], &[ALLOCATION], &["x:y", ALLOCATION, "base:", ALLOCATION]] {
        let listed = contexts(&mut client(), LIST_META_CONTEXT, queries);
        assert_eq!(listed, [(0, ALLOCATION.to_owned())]);
    }
}

#[test]
fn a_listed_context_is_not_selected() {
    let mut client = client();
    contexts(&mut client, LIST_META_CONTEXT, &[ALLOCATION]);
    assert!(!client.go("vol").has_block_status());
}

#[test]
fn a_selected_context_has_an_id_and_is_in_the_session() {
    let mut client = client();
    let selected = contexts(&mut client, SET_META_CONTEXT, &[ALLOCATION, ALLOCATION, "x-a:b"]);
    assert_eq!(selected, [(1, ALLOCATION.to_owned())], "once");
    assert!(client.go("vol").has_block_status());
}

#[test]
fn no_query_and_the_wildcard_select_nothing() {
    for queries in [&[][..], &["base:"]] {
        let mut client = client();
        assert!(contexts(&mut client, SET_META_CONTEXT, queries).is_empty());
        assert!(!client.go("vol").has_block_status());
    }
}

#[test]
fn queries_of_other_namespaces_and_unknown_leaves_are_ignored() {
    let mut client = client();
    for number in [LIST_META_CONTEXT, SET_META_CONTEXT] {
        let queries =
            ["qemu:allocation-depth", "base:unknown", "base:alloc", "x-y:", "nocolon", ""];
        assert!(contexts(&mut client, number, &queries).is_empty());
        let mut some = queries.to_vec();
        some.push(ALLOCATION);
        assert_eq!(contexts(&mut client, number, &some).len(), 1);
    }
}

#[test]
fn a_later_selection_replaces_the_earlier_one_also_if_it_fails() {
    let failures: [&dyn Fn(&mut Client); 5] = [
        &|client| drop(contexts(client, SET_META_CONTEXT, &[])),
        &|client| assert_eq!(client.one(SET_META_CONTEXT, &[]), INVALID),
        &|client| assert_eq!(client.one(SET_META_CONTEXT, &context_data("none", &[])), UNKNOWN),
        &|client| assert_eq!(client.one(SET_META_CONTEXT, &[0; 20_000]), TOO_BIG),
        &|client| {
            let query = context_data("forbidden", &[ALLOCATION]);
            assert_eq!(client.one(SET_META_CONTEXT, &query), POLICY);
        },
    ];
    for failure in failures {
        let mut client = client();
        assert_eq!(contexts(&mut client, SET_META_CONTEXT, &[ALLOCATION]).len(), 1);
        failure(&mut client);
        assert!(!client.go("vol").has_block_status());
    }
}

#[test]
fn a_selection_for_another_export_does_not_count() {
    let mut client = client();
    client.table.exports.push(export("other"));
    assert_eq!(contexts(&mut client, SET_META_CONTEXT, &[ALLOCATION]).len(), 1);
    assert!(!client.go("other").has_block_status());
}

#[test]
fn a_selection_holds_for_the_old_way_too() {
    let mut client = client();
    contexts(&mut client, SET_META_CONTEXT, &[ALLOCATION]);
    let (step, _) = client.send(&option(EXPORT_NAME, b"vol"));
    assert!(matches!(step, Step::Begin(session) if session.has_block_status()));
}

#[test]
fn contexts_need_structured_replies() {
    let mut client = Client::new(TlsMode::Off);
    for number in [LIST_META_CONTEXT, SET_META_CONTEXT] {
        assert_eq!(client.one(number, &context_data("vol", &[ALLOCATION])), INVALID);
    }
}

#[test]
fn malformed_data_are_invalid() {
    let mut client = client();
    let whole = context_data("vol", &[ALLOCATION, "x:y"]);
    let too_long = "q".repeat(4097);
    for number in [LIST_META_CONTEXT, SET_META_CONTEXT] {
        for end in 0..whole.len() {
            assert_eq!(client.one(number, &whole[..end]), INVALID, "{end} bytes");
        }
        assert_eq!(client.one(number, &[&whole[..], &[0]].concat()), INVALID);
        assert_eq!(client.one(number, b"\0\0\0\x03vol\0\0\0\x01\xff\xff\xff\xff"), INVALID);
        assert_eq!(client.one(number, b"\0\0\0\x03vol\xff\xff\xff\xff"), INVALID);
        assert_eq!(client.one(number, &context_data("vol", &["base:\0"])), INVALID);
        assert_eq!(client.one(number, &context_data("vol", &[&too_long])), INVALID);
        assert_eq!(client.one(number, &context_data("v\0l", &[])), INVALID);
    }
}
