use super::*;

fn key() -> Bytes {
    Bytes::from("k")
}

fn holding(value: &'static str, dies: Option<(u64, u64)>) -> State {
    let dies = dies.map(|(from_ms, to_ms)| Window { from_ms, to_ms });
    [(key(), vec![Some(Held { value: value.into(), dies })])].into()
}

fn at(from_ms: u64, to_ms: u64) -> Window {
    Window { from_ms, to_ms }
}

fn answered(command: &Command, state: &State, reply: Reply, at: Window) -> Option<Possible> {
    let change = command.answered(state, &reply, at).ok()?;
    Some(change.after.get(&key()).cloned().unwrap_or_default())
}

#[test]
fn a_reply_shows_whether_a_key_had_expired() {
    let state = holding("v", Some((50, 60)));
    let get = Command::Get(key());
    let value = || Reply::Bulk("v".into());
    assert_eq!(answered(&get, &state, value(), at(10, 20)), Some(state[&key()].clone()));
    assert_eq!(answered(&get, &state, Reply::Nil, at(10, 20)), None, "too early");
    assert_eq!(answered(&get, &state, value(), at(60, 70)), None, "too late");
    assert_eq!(answered(&get, &state, Reply::Nil, at(40, 55)), Some(vec![None]));
    let narrowed = holding("v", Some((56, 60)));
    assert_eq!(answered(&get, &state, value(), at(55, 58)), Some(narrowed[&key()].clone()));
}

#[test]
fn a_time_to_live_narrows_the_expiry() {
    let state = holding("v", Some((50, 80)));
    let left = answered(&Command::Pttl(key()), &state, Reply::Integer(40), at(20, 22));
    assert_eq!(left, Some(holding("v", Some((60, 62)))[&key()].clone()));
    assert_eq!(answered(&Command::Pttl(key()), &state, Reply::Integer(90), at(20, 22)), None);
    assert_eq!(answered(&Command::Pttl(key()), &state, Reply::Integer(-1), at(20, 22)), None);
}

#[test]
fn expiry_is_kept_moved_and_dropped() {
    let state = holding("5", Some((50, 50)));
    let now = at(10, 12);
    let increment = Command::IncrBy(key(), 2);
    let seven = holding("7", Some((50, 50)));
    assert_eq!(answered(&increment, &state, Reply::Integer(7), now), Some(seven[&key()].clone()));
    let set = |lifetime| {
        let (value, condition) = (Bytes::from("x"), Condition::Always);
        Command::Set { key: key(), value, lifetime, condition, get: false }
    };
    let after = |lifetime| answered(&set(lifetime), &state, Reply::OK, now).unwrap();
    assert_eq!(after(Lifetime::Endless), holding("x", None)[&key()]);
    assert_eq!(after(Lifetime::Kept), holding("x", Some((50, 50)))[&key()]);
    assert_eq!(after(Lifetime::ForMs(7)), holding("x", Some((17, 19)))[&key()]);
    let persist = Command::Persist(key());
    let for_ever = holding("5", None);
    assert_eq!(answered(&persist, &state, Reply::Integer(1), now), Some(for_ever[&key()].clone()));
    let rename = Command::Rename(key(), "to".into());
    let moved = rename.answered(&state, &Reply::OK, now).unwrap();
    assert_eq!(
        (&moved.after[&key()], &moved.after[&Bytes::from("to")]),
        (&vec![None], &state[&key()])
    );
    assert_eq!(moved.written.len(), 2);
}

#[test]
fn an_unanswered_command_may_have_found_a_key_live_or_expired() {
    let state = holding("5", Some((50, 50)));
    let change = Command::IncrBy(key(), 1).unanswered(&state, Window::from(40));
    let one = Some(Held { value: "1".into(), dies: None });
    let six = Some(Held { value: "6".into(), dies: Some(at(50, 50)) });
    assert_eq!(change.after[&key()], [six, one]);
    let absent = Command::Set {
        key: key(),
        value: "n".into(),
        lifetime: Lifetime::Endless,
        condition: Condition::Absent,
        get: false,
    };
    let change = absent.unanswered(&state, Window::from(40));
    assert!(change.after[&key()].contains(&state[&key()][0]) && change.written.is_empty());
}

#[test]
fn parts_are_cut_and_pasted_as_redis_does() {
    let whole = Bytes::from("0123456789");
    assert_eq!(part_of(&whole, 2, 4), "234");
    assert_eq!(part_of(&whole, -3, -1), "789");
    assert_eq!((part_of(&whole, 5, 3), part_of(&whole, -3, -5)), ("".into(), "".into()));
    assert_eq!((part_of(&whole, -20, -15), part_of(&"".into(), -2, -1)), ("0".into(), "".into()));
    let patch = Command::SetRange(key(), 4, "x".into());
    let after = answered(&patch, &holding("ab", None), Reply::Integer(5), at(0, 0));
    assert_eq!(after, Some(holding("ab\0\0x", None)[&key()].clone()));
}

#[test]
fn accepted_contents_are_possible_states() {
    let possible = &holding("v", Some((50, 60)))[&key()];
    let found = |expires_at_ms| Some((Bytes::from("v"), expires_at_ms));
    let fits = |found: Option<(Bytes, u64)>, at| accepts(possible, found.as_ref(), at);
    assert!(fits(found(55), at(20, 20)) && !fits(found(61), at(20, 20)));
    assert!(!fits(found(0), at(20, 20)) && !fits(found(55), at(55, 55)));
    assert!(fits(None, at(50, 50)) && !fits(None, at(49, 49)));
}
