use super::*;
use std::sync::Arc;

fn token() -> WatchToken {
    WatchToken(Arc::default())
}

fn key(number: usize) -> Bytes {
    Bytes::from(format!("key{number}"))
}

#[test]
fn a_write_touches_all_tokens_of_its_key_and_no_others() {
    let mut watches = Watches::new(1024);
    let tokens = [token(), token(), token()];
    for (token, number) in tokens.iter().zip([1, 1, 2]) {
        watches.add(key(number), token.clone());
    }
    watches.touch(b"another");
    assert_eq!(tokens.each_ref().map(WatchToken::touched), [false, false, false]);
    watches.touch(&key(1));
    assert_eq!(tokens.each_ref().map(WatchToken::touched), [true, true, false]);
    assert_eq!(watches.tokens.len(), 1, "touched tokens are dropped");
    watches.touch_all();
    assert!(tokens[2].touched() && watches.tokens.is_empty());
}

#[test]
fn a_sweep_drops_orphaned_tokens_and_keeps_the_others() {
    let mut watches = Watches::new(1024);
    // Two held tokens: one alone with its key, one between orphaned tokens of the same key.
    let (alone, among) = (token(), token());
    watches.add(key(0), alone.clone());
    watches.add(key(1), token());
    watches.add(key(1), among.clone());
    for number in 1..=100 {
        watches.add(key(number), token());
    }
    assert_eq!(watches.tokens.len(), 101, "no sweep at every registration");
    for number in 101..3000 {
        watches.add(key(number), token());
    }
    assert!(watches.tokens.len() < 2000, "{} keys", watches.tokens.len());
    assert_eq!(watches.tokens.get(&key(1)).map(Vec::len), Some(1));
    assert!(!alone.touched() && !among.touched(), "a sweep touches no token");
    watches.touch(&key(0));
    watches.touch(&key(1));
    assert!(alone.touched() && among.touched());
}
