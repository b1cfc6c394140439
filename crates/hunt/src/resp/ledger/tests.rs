use super::*;
use crate::resp::command::Condition;
use crate::resp::command::Lifetime;
use crate::resp::wire::Reply;

const AT: Window = Window { from_ms: 100, to_ms: 100 };

/// Keys that begin with `a` are in shard 0, others in shard 1.
fn shard_of(key: &[u8]) -> u16 {
    u16::from(key[0] != b'a')
}

fn put(pairs: &[(&'static str, &'static str)]) -> Command {
    let pairs = pairs.iter().map(|(key, value)| (Bytes::from(*key), Bytes::from(*value)));
    Command::Mset(pairs.collect())
}

fn sent(ledger: &mut Ledger, commands: Vec<Command>) {
    ledger.sends(Sent { commands, from_ms: 0, together: false });
}

/// One exchange of commands and replies.
fn answered(ledger: &mut Ledger, commands: Vec<Command>) {
    sent(ledger, commands.clone());
    for command in commands {
        let act = |state: &State| command.answered(state, &Reply::OK, AT);
        ledger.learns(&command.keys(), &shard_of, act).unwrap();
    }
    ledger.is_answered();
}

fn with(pairs: &[(&'static str, &'static str)]) -> Ledger {
    let mut ledger = Ledger::default();
    answered(&mut ledger, vec![put(pairs)]);
    ledger
}

fn judged(
    ledger: &Ledger,
    pairs: &[(&'static str, &'static str)],
    slack: Slack,
) -> Result<BTreeSet<usize>, String> {
    let found = pairs.iter().map(|(key, value)| (Bytes::from(*key), (Bytes::from(*value), 0)));
    ledger.judge(&found.collect(), AT, 2, &shard_of, slack)
}

fn found(
    ledger: &Ledger,
    pairs: &[(&'static str, &'static str)],
) -> Result<BTreeSet<usize>, String> {
    judged(ledger, pairs, Slack::NONE)
}

#[test]
fn answered_commands_are_present_and_unanswered_ones_are_a_prefix() {
    let mut ledger = with(&[("a", "1")]);
    sent(&mut ledger, vec![put(&[("a", "2")]), put(&[("b", "2")]), put(&[("a2", "3")])]);
    for possible in [
        &[("a", "1")][..],
        &[("a", "2")],
        &[("a", "1"), ("b", "2")],
        &[("a", "2"), ("a2", "3"), ("b", "2")],
    ] {
        assert_eq!(found(&ledger, possible), Ok([0].into()), "{possible:?}");
    }
    assert!(found(&ledger, &[]).is_err(), "lost");
    assert!(found(&ledger, &[("a", "1"), ("a2", "3")]).is_err(), "the one before is missing");
    assert!(found(&ledger, &[("a", "1"), ("c", "3")]).is_err(), "invented");
    assert!(found(&ledger, &[("a", "0")]).unwrap_err().contains("1 bytes `1` was promised"));
}

#[test]
fn commands_over_shards_are_there_all_or_none() {
    let mut ledger = Ledger::default();
    sent(&mut ledger, vec![put(&[("a", "1"), ("b", "1")]), put(&[("b", "2")])]);
    assert!(found(&ledger, &[]).is_ok() && found(&ledger, &[("a", "1"), ("b", "1")]).is_ok());
    assert!(found(&ledger, &[("a", "1"), ("b", "2")]).is_ok());
    for slack in [Slack::NONE, Slack::INTERVAL] {
        let torn = judged(&ledger, &[("a", "1")], slack).unwrap_err();
        assert!(torn.contains("on several shards"), "{torn}");
        assert!(judged(&ledger, &[("b", "2")], slack).is_err());
    }
}

#[test]
fn an_unanswered_refusal_skips_a_command_before_others() {
    let mut ledger = with(&[("a", "1"), ("a2", "1")]);
    let commands = vec![
        Command::Append("a".into(), "2".into()),
        Command::Append("a".into(), "3".into()),
        Command::Del(vec!["a2".into()]),
    ];
    sent(&mut ledger, commands);
    assert!(found(&ledger, &[("a", "123")]).is_ok());
    assert!(found(&ledger, &[("a", "1")]).is_err(), "without the ones before it");
    ledger.may_be_refused(Refusals { full: true, ..Refusals::default() });
    for slack in [Slack::NONE, Slack { exchanges: 1, together: true }] {
        for possible in ["1", "12", "13", "123"] {
            assert!(judged(&ledger, &[("a", possible)], slack).is_ok(), "{possible}");
        }
        assert!(judged(&ledger, &[("a", "2")], slack).is_err(), "what was answered is there");
        assert!(judged(&ledger, &[("a", "1"), ("a2", "2")], slack).is_err(), "invented");
    }
}

#[test]
fn a_failed_log_refuses_commands_that_write_its_shard_and_not_later_ones_of_others() {
    let mut ledger = with(&[("a", "1"), ("b", "1")]);
    let commands = vec![
        Command::Append("b".into(), "2".into()),
        put(&[("a", "3"), ("b", "3")]),
        Command::Append("a".into(), "4".into()),
        Command::Append("b".into(), "5".into()),
    ];
    sent(&mut ledger, commands);
    let slack = [Slack::NONE, Slack { exchanges: 1, together: true }];
    let refused = [("a", "14"), ("b", "1")];
    for slack in slack {
        assert!(judged(&ledger, &refused, slack).is_err(), "no log has failed");
    }
    let failed_log = |shard| Refusals { failed_logs: [shard].into(), ..Refusals::default() };
    ledger.may_be_refused(failed_log(0));
    assert!(found(&ledger, &refused).is_err(), "shard 0 took a command after it had refused one");
    ledger.may_be_refused(failed_log(1));
    for slack in slack {
        for possible in [refused, [("a", "14"), ("b", "12")], [("a", "34"), ("b", "35")]] {
            assert!(judged(&ledger, &possible, slack).is_ok(), "{possible:?}");
        }
        let torn = judged(&ledger, &[("a", "34"), ("b", "12")], slack).unwrap_err();
        assert!(torn.contains("on several shards"), "{torn}");
        assert!(judged(&ledger, &[("a", "14"), ("b", "125")], slack).is_err(), "it has failed");
    }
}

#[test]
fn a_removal_is_atomic_over_shards() {
    let mut ledger = with(&[("a", "1"), ("b", "1")]);
    ledger.removal_begins();
    assert_eq!(found(&ledger, &[]), Ok([1].into()));
    assert_eq!(found(&ledger, &[("a", "1"), ("b", "1")]), Ok([0].into()));
    let torn = found(&ledger, &[("a", "1")]).unwrap_err();
    assert!(torn.contains("in one shard and not in another"), "{torn}");
    ledger.removals_ended(1);
    assert_eq!(found(&ledger, &[]), Ok([0].into()));
    assert!(found(&ledger, &[("a", "1"), ("b", "1")]).is_err());
}

#[test]
fn a_removal_may_be_anywhere_among_unanswered_commands() {
    let mut ledger = with(&[("a", "1"), ("b", "1")]);
    sent(&mut ledger, vec![Command::Append("a".into(), "2".into()), put(&[("b", "2")])]);
    ledger.removal_begins();
    // Not removed, and removed before, between and after; independently in each shard.
    assert_eq!(found(&ledger, &[("a", "12"), ("b", "2")]), Ok([0].into()));
    for removed in [&[("a", "2"), ("b", "2")][..], &[("b", "2")], &[("a", "2")], &[]] {
        assert_eq!(found(&ledger, removed), Ok([1].into()), "{removed:?}");
    }
    assert!(found(&ledger, &[("a", "12")]).is_err() && found(&ledger, &[("b", "1")]).is_err());
    ledger.removals_ended(1);
    assert!(found(&ledger, &[("a", "12"), ("b", "2")]).is_err(), "it was answered");
    assert_eq!(found(&ledger, &[("a", "2"), ("b", "2")]), Ok([0].into()));
    assert_eq!(found(&ledger, &[("b", "2")]), Ok([0].into()), "the first came before");
}

#[test]
fn a_command_answered_after_a_removal_may_have_run_before_it() {
    let mut ledger = with(&[("a", "1")]);
    let append = Command::Append("a".into(), "2".into());
    sent(&mut ledger, vec![append.clone()]);
    ledger.removal_begins();
    ledger.removals_ended(1);
    let after_reply = |length| {
        let mut ledger = ledger.clone();
        let act = |state: &State| append.answered(state, &Reply::Integer(length), AT);
        ledger.learns(&append.keys(), &shard_of, act).ok()?;
        ledger.is_answered();
        Some(ledger)
    };
    let before = after_reply(2).unwrap();
    assert!(found(&before, &[]).is_ok() && found(&before, &[("a", "12")]).is_err());
    let behind = after_reply(1).unwrap();
    assert!(found(&behind, &[("a", "2")]).is_ok() && found(&behind, &[]).is_err());
    assert!(after_reply(3).is_none());
}

#[test]
fn a_suffix_of_unflushed_writes_may_be_lost() {
    let mut ledger = with(&[("a", "1")]);
    answered(&mut ledger, vec![put(&[("a", "2")]), put(&[("a2", "1")])]);
    let losing = |exchanges, pairs: &[(&'static str, &'static str)]| {
        judged(&ledger, pairs, Slack { exchanges, together: true })
    };
    assert!(losing(2, &[]).is_ok() && losing(2, &[("a", "2")]).is_ok());
    assert!(losing(1, &[]).is_err() && losing(1, &[("a", "1")]).is_ok());
    assert!(losing(usize::MAX, &[("a", "1"), ("a2", "1")]).is_err());
    let mut ledger = ledger;
    ledger.settle(&[("a".into(), ("1".into(), 0))].into());
    assert!(found(&ledger, &[("a", "2")]).is_err(), "it reappeared later");
    assert!(found(&ledger, &[("a", "1")]).is_ok());
}

#[test]
fn an_expired_key_stays_dead_once_that_was_seen() {
    let mut ledger = Ledger::default();
    let set = Command::Set {
        key: "a".into(),
        value: "1".into(),
        lifetime: Lifetime::UntilMs(92),
        condition: Condition::Always,
        get: false,
    };
    answered(&mut ledger, vec![set]);
    assert!(found(&ledger, &[]).is_ok(), "it has expired");
    let early = Window { from_ms: 50, to_ms: 50 };
    let alive: Found = [("a".into(), ("1".into(), 92))].into();
    let judged = |ledger: &Ledger| ledger.judge(&alive, early, 2, &shard_of, Slack::NONE);
    assert!(judged(&ledger).is_ok());
    ledger.settle(&Found::new());
    assert!(judged(&ledger).is_err());
}
