//! Stores for tests, and small helpers.

use super::{encode, words};
use softflash_store::{Durability, Store};
use softflash_testing::Testbed;
use std::time::Duration;

/// A store that acknowledges writes before they are on flash.
pub fn testbed(shards: u16) -> Testbed {
    let mut testbed = Testbed::new(shards, shards * 2, 6, 24, 2 << 20);
    testbed.options.durability = Durability::Interval(Duration::from_millis(100));
    testbed
}

/// A pipeline of commands given as lines.
pub fn lines(commands: &[&str]) -> Vec<u8> {
    commands.iter().flat_map(|line| encode(&words(line))).collect()
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lets time pass.
pub async fn pause(store: &Store, ms: u64) {
    let runtime = store.runtime();
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}
