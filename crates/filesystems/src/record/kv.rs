//! YCSB's workload A on SoftFlash's own store: a second server has its data in a file on the file
//! system, and a client reads and overwrites keys by Zipf's law, half each.

use super::subject::Labour;
use crate::Outcome;
use crate::random::Random;
use crate::server::Server;
use crate::sets;
use crate::work::Site;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Size of the store.
const DATA: &str = "3200MiB";

/// Keys, with values of ten fields of 100 bytes, as in YCSB.
const KEYS: u64 = 1_500_000;
const VALUE_BYTES: usize = 1000;

/// The exponent of Zipf's law.
const THETA: f64 = 0.99;

/// Requests that are sent together.
const DEPTH: u64 = 64;

pub struct Kv {
    server: Server,
    stream: BufReader<TcpStream>,
    random: Random,
    /// How likely the ranks up to each one are.
    law: Vec<f64>,
    value: Vec<u8>,
}

impl Kv {
    pub fn begin(site: &Site<'_>, program: &Path) -> Outcome<Kv> {
        let data = site.at.join("data");
        sets::format(program, &data, DATA, false)?;
        let server = Server::start(program, &data, false, &site.scratch.join("store.log"))?;
        let stream =
            TcpStream::connect(server.address()).map_err(|error| format!("store: {error}"))?;
        let mut sum = 0.0;
        let law = (1..=KEYS).map(|rank| {
            sum += (rank as f64).powf(-THETA);
            sum
        });
        let law = law.collect();
        let random = Random::new(site.variant);
        let stream = BufReader::new(stream);
        let mut kv = Kv { server, stream, random, law, value: vec![0; VALUE_BYTES] };
        for first in (0..KEYS).step_by(DEPTH as usize) {
            let keys = first..(first + DEPTH).min(KEYS);
            kv.exchange(keys.map(|key| (key, true)).collect())?;
        }
        Ok(kv)
    }

    /// Sends reads, and writes where it says so, and takes the answers.
    fn exchange(&mut self, requests: Vec<(u64, bool)>) -> Outcome {
        let mut text = Vec::new();
        for &(key, writes) in &requests {
            let key = format!("user{key:010}");
            if writes {
                self.renew();
                let head = format!("*3\r\n$3\r\nSET\r\n$14\r\n{key}\r\n${VALUE_BYTES}\r\n");
                text.extend_from_slice(head.as_bytes());
                text.extend_from_slice(&self.value);
                text.extend_from_slice(b"\r\n");
            } else {
                text.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n$14\r\n{key}\r\n").as_bytes());
            }
        }
        let failed = |error| format!("store: {error}");
        self.stream.get_mut().write_all(&text).map_err(failed)?;
        for _ in requests {
            let mut line = String::new();
            self.stream.read_line(&mut line).map_err(failed)?;
            match line.trim_end().split_at_checked(1) {
                Some(("+", "OK")) => {}
                Some(("$", length)) if length.parse() == Ok(VALUE_BYTES) => {
                    let mut value = vec![0; VALUE_BYTES + 2];
                    self.stream.read_exact(&mut value).map_err(failed)?;
                }
                _ => return Err(format!("store: {}", line.trim_end())),
            }
        }
        Ok(())
    }

    /// A value that does not compress.
    fn renew(&mut self) {
        let Kv { value, random, .. } = self;
        for word in value.chunks_mut(8) {
            let random = random.between(0, u64::MAX - 1).to_le_bytes();
            word.copy_from_slice(random.get(..word.len()).unwrap_or_default());
        }
    }

    /// A key by Zipf's law; popular ones are everywhere.
    fn key(&mut self) -> u64 {
        let most = self.law.last().copied().unwrap_or_default();
        let drawn = self.random.between(0, u64::MAX - 1) as f64 / u64::MAX as f64 * most;
        let rank = self.law.partition_point(|&up_to| up_to < drawn) as u64;
        Random::new(rank).between(0, KEYS - 1)
    }
}

impl Labour for Kv {
    fn step(&mut self) -> Outcome {
        let requests = (0..DEPTH).map(|_| (self.key(), self.random.between(0, 1) == 1));
        let requests = requests.collect();
        self.exchange(requests)
    }

    fn halt(&mut self) {
        self.server.kill();
    }
}
