//! The possible contents of one client's keys after a kill, recorded outside of the server process.
//!
//! A client has its own keys and one connection. Answered requests are certain. Of the last few
//! unanswered requests before a kill, each is present or absent as a whole: a key has the state
//! after some prefix of the unanswered requests that name it.

use softflash_base::random::Rng;
use std::collections::BTreeMap;

/// Number of keys of a client.
const KEYS: u64 = 60;
/// Maximum length of values.
const LONGEST: u64 = 20_000;

pub type Key = Vec<u8>;
pub type Value = Option<Vec<u8>>;

/// A request: commands that are sent together, each with a reply.
pub struct Change {
    pub commands: Vec<Vec<Vec<u8>>>,
}

/// One client's keys.
pub struct Oracle {
    client: u64,
    rng: Rng,
    /// State of each key after all answered requests.
    certain: BTreeMap<Key, Value>,
    /// Sent and unanswered requests, in order.
    pending: Vec<BTreeMap<Key, Value>>,
    /// Number of answered requests.
    pub answered: u64,
}

impl Oracle {
    pub fn new(client: u64, rng: Rng) -> Oracle {
        Oracle { client, rng, certain: BTreeMap::new(), pending: Vec::new(), answered: 0 }
    }

    /// A number below `n`.
    pub fn pick(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn key(&mut self) -> Key {
        format!("client:{}:{}", self.client, self.rng.below(KEYS)).into_bytes()
    }

    fn counter(&self) -> Key {
        format!("client:{}:count", self.client).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(10) {
            0 => self.rng.below(LONGEST),
            _ => self.rng.below(300),
        };
        let mut value = vec![0; len as usize];
        self.rng.fill(&mut value);
        value
    }

    /// State of the key after all requests sent.
    fn latest(&self, key: &[u8]) -> Value {
        let pending = self.pending.iter().rev().find_map(|writes| writes.get(key));
        pending.or_else(|| self.certain.get(key)).cloned().flatten()
    }

    /// The next request; it counts as sent.
    pub fn change(&mut self) -> Change {
        let mut writes = BTreeMap::new();
        let commands = match self.rng.below(10) {
            0..4 => {
                let (key, value) = (self.key(), self.value());
                writes.insert(key.clone(), Some(value.clone()));
                vec![vec![b"SET".to_vec(), key, value]]
            }
            4 => {
                let key = self.key();
                writes.insert(key.clone(), None);
                vec![vec![b"DEL".to_vec(), key]]
            }
            5 | 6 => {
                let key = self.counter();
                let before = self.latest(&key).unwrap_or_else(|| b"0".to_vec());
                let next = String::from_utf8(before).unwrap().parse::<u64>().unwrap() + 1;
                writes.insert(key.clone(), Some(next.to_string().into_bytes()));
                vec![vec![b"INCR".to_vec(), key]]
            }
            7 => {
                let mut command = vec![b"MSET".to_vec()];
                for _ in 0..3 {
                    let (key, value) = (self.key(), self.value());
                    command.extend([key.clone(), value.clone()]);
                    writes.insert(key, Some(value));
                }
                vec![command]
            }
            _ => {
                let mut commands = vec![vec![b"MULTI".to_vec()]];
                for _ in 0..3 {
                    let (key, value) = (self.key(), self.value());
                    commands.push(vec![b"SET".to_vec(), key.clone(), value.clone()]);
                    writes.insert(key, Some(value));
                }
                let key = self.key();
                commands.push(vec![b"DEL".to_vec(), key.clone()]);
                writes.insert(key, None);
                commands.push(vec![b"EXEC".to_vec()]);
                commands
            }
        };
        self.pending.push(writes);
        Change { commands }
    }

    /// The oldest unanswered request is answered.
    pub fn answer(&mut self) {
        self.certain.append(&mut self.pending.remove(0));
        self.answered += 1;
    }

    /// Every key that may exist.
    pub fn keys(&self) -> Vec<Key> {
        let numbered = (0..KEYS).map(|n| format!("client:{}:{n}", self.client).into_bytes());
        numbered.chain([self.counter()]).collect()
    }

    /// Checks the values found for [`keys`](Oracle::keys), which become the certain state. Returns
    /// what is wrong.
    pub fn judge(&mut self, found: &[Value]) -> Vec<String> {
        let found: BTreeMap<Key, Value> =
            self.keys().into_iter().zip(found.iter().cloned()).collect();
        let mut wrong = Vec::new();
        for (key, value) in &found {
            let certain = self.certain.get(key).cloned().flatten();
            let later = self.pending.iter().filter_map(|writes| writes.get(key));
            if *value != certain && !later.clone().any(|later| later == value) {
                let (key, pending) = (String::from_utf8_lossy(key), later.count());
                wrong.push(format!(
                    "{key}: found {}, acknowledged {}, {pending} changes unanswered",
                    shown(value),
                    shown(&certain)
                ));
            }
        }
        for (number, writes) in self.pending.iter().enumerate() {
            wrong.extend(self.half(number, writes, &found));
        }
        self.pending.clear();
        self.certain = found;
        wrong
    }

    /// Detects requests on several keys that took effect in part. Only keys that no other
    /// unanswered request names count, and only if the request changes them.
    fn half(
        &self,
        number: usize,
        writes: &BTreeMap<Key, Value>,
        found: &BTreeMap<Key, Value>,
    ) -> Option<String> {
        let alone = |key: &Key| {
            let mut others = self.pending.iter().enumerate().filter(|(other, _)| *other != number);
            !others.any(|(_, writes)| writes.contains_key(key))
        };
        let telling: Vec<bool> = writes
            .iter()
            .filter(|(key, value)| {
                alone(key) && self.certain.get(*key).cloned().flatten() != **value
            })
            .map(|(key, value)| found.get(key) == Some(value))
            .collect();
        let (all, none) = (telling.iter().all(|there| *there), telling.iter().all(|there| !*there));
        (!all && !none).then(|| {
            let keys: Vec<_> = writes.keys().map(|key| String::from_utf8_lossy(key)).collect();
            format!("of {} some keys were written and some were not", keys.join(", "))
        })
    }
}

/// A value, shortened.
fn shown(value: &Value) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(bytes) if bytes.len() < 30 => format!("`{}`", bytes.escape_ascii()),
        Some(bytes) => format!("{} bytes `{}...`", bytes.len(), bytes[..16].escape_ascii()),
    }
}
