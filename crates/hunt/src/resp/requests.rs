//! Draws requests.

use super::command::{Command, Condition, Lifetime};
use crate::client_model::Resp;
use crate::scenario::Clients;
use bytes::Bytes;
use softflash_base::random::Rng;

/// Bytes that are different from those of any other write, and not a number.
pub fn value(rng: &mut Rng, most: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(most + 1) as usize];
    let mark = rng.next_u64().to_le_bytes();
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = mark[at % 8] ^ (at / 8) as u8);
    if let Some(first) = bytes.first_mut() {
        *first = b'a' + *first % 26;
    }
    Bytes::from(bytes)
}

/// Inputs of the draw.
pub struct Draw<'a> {
    /// Key access pattern of the client.
    pub workload: &'a Clients,
    /// Its RESP client model.
    pub resp: &'a Resp,
    /// Current time.
    pub now_ms: u64,
    /// Its keys by number.
    pub key: &'a dyn Fn(u64) -> Bytes,
}

impl Draw<'_> {
    /// Any of the client's keys.
    pub fn any_key(&self, rng: &mut Rng) -> Bytes {
        (self.key)(rng.below(self.workload.keys))
    }

    /// Some keys, without repetitions.
    pub fn keys(&self, rng: &mut Rng) -> Vec<Bytes> {
        let mut keys: Vec<Bytes> = Vec::new();
        for _ in 0..1 + rng.below(self.workload.batch) {
            let key = self.any_key(rng);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn value(&self, rng: &mut Rng) -> Bytes {
        let most = self.workload.longest_value(rng);
        value(rng, most)
    }

    fn pairs(&self, rng: &mut Rng) -> Vec<(Bytes, Bytes)> {
        let keys = self.keys(rng);
        keys.into_iter().map(|key| (key, self.value(rng))).collect()
    }

    /// A command.
    pub fn command(&self, rng: &mut Rng) -> Command {
        if rng.chance(self.workload.reads) {
            return self.read(rng);
        }
        if rng.chance(self.workload.deletes) {
            return match rng.below(4) {
                0 => Command::GetDel(self.any_key(rng)),
                _ => Command::Del(self.keys(rng)),
            };
        }
        match rng.below(20) {
            0..=5 => self.set(rng),
            6..=8 => Command::Mset(self.pairs(rng)),
            9 => Command::MsetNx(self.pairs(rng)),
            10..=11 => Command::IncrBy(self.any_key(rng), 1 + rng.below(2) as i64 * 10),
            12..=13 => {
                let part = value(rng, self.workload.value_bytes.min(100));
                Command::Append(self.any_key(rng), part)
            }
            14 => {
                let part = value(rng, self.workload.value_bytes.min(100));
                let at = rng.below(self.workload.value_bytes.min(200) + 1) as usize;
                Command::SetRange(self.any_key(rng), at, part)
            }
            15 if self.lives(rng) => Command::Pexpire(self.any_key(rng), self.lifetime(rng)),
            16 if self.lives(rng) => Command::GetEx(self.any_key(rng), self.lifetime(rng)),
            15..=16 => Command::Persist(self.any_key(rng)),
            17 => Command::Rename(self.any_key(rng), self.any_key(rng)),
            18 => Command::Copy {
                from: self.any_key(rng),
                to: self.any_key(rng),
                replace: rng.chance(0.5),
            },
            _ => Command::GetEx(self.any_key(rng), Lifetime::Endless),
        }
    }

    /// A command that changes nothing.
    pub fn read(&self, rng: &mut Rng) -> Command {
        match rng.below(8) {
            0 => Command::Strlen(self.any_key(rng)),
            1 => {
                let place = |rng: &mut Rng| rng.below(40) as i64 - 20;
                Command::GetRange(self.any_key(rng), place(rng), place(rng))
            }
            2 => Command::Mget(self.keys(rng)),
            3 => Command::Exists(self.keys(rng)),
            4..=5 => Command::Pttl(self.any_key(rng)),
            _ => Command::Get(self.any_key(rng)),
        }
    }

    fn set(&self, rng: &mut Rng) -> Command {
        let lifetime = match rng.below(6) {
            0 => Lifetime::Kept,
            _ if self.lives(rng) => self.lifetime(rng),
            _ => Lifetime::Endless,
        };
        let condition = match rng.below(8) {
            0 => Condition::Absent,
            1 => Condition::Present,
            _ => Condition::Always,
        };
        Command::Set {
            key: self.any_key(rng),
            value: self.value(rng),
            lifetime,
            condition,
            get: rng.chance(0.1),
        }
    }

    fn lives(&self, rng: &mut Rng) -> bool {
        rng.chance(self.resp.expiry)
    }

    /// Log-uniform from one millisecond to the longest; relative or absolute.
    fn lifetime(&self, rng: &mut Rng) -> Lifetime {
        let longest = (self.resp.longest_life_ms.max(1) as f64).log2();
        let ms = (longest * rng.unit_f64()).exp2() as u64;
        match rng.below(3) {
            0 => Lifetime::UntilMs(self.now_ms + ms),
            1 if ms > 1000 => Lifetime::ForMs(ms / 1000 * 1000),
            _ => Lifetime::ForMs(ms.max(1)),
        }
    }
}
