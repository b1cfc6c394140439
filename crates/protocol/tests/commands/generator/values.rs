//! The commands and their arguments.

use super::Generator;

const KEYS: [&[u8]; 14] = [
    b"a",
    b"b",
    b"c",
    b"counter",
    b"float",
    b"{tag}1",
    b"{tag}2",
    b"{tag}3",
    b"long-key-with-many-letters",
    b"\x00\xffbinary\r\n",
    b"k1",
    b"k2",
    b"k3",
    b"k4",
];

impl Generator {
    fn key(&mut self) -> Vec<u8> {
        if self.rng.chance(0.01) {
            return Vec::new();
        }
        KEYS[self.rng.below(KEYS.len() as u64) as usize].to_vec()
    }

    fn pick(&mut self, words: &[&str]) -> Vec<u8> {
        words[self.rng.below(words.len() as u64) as usize].as_bytes().to_vec()
    }

    pub(super) fn junk(&mut self) -> Vec<u8> {
        self.pick(&[
            "",
            "abc",
            "-1",
            "1.5",
            " 1",
            "NX",
            "0x10",
            "99999999999999999999",
            "GET",
            "\u{e9}",
        ])
    }

    fn integer(&mut self) -> Vec<u8> {
        match self.rng.below(8) {
            0 => self.junk(),
            1 => {
                self.pick(&["9223372036854775807", "-9223372036854775808", "0", "-0", "+1", "007"])
            }
            2 => self.rng.next_u64().cast_signed().to_string().into_bytes(),
            _ => (self.rng.below(2001) as i64 - 1000).to_string().into_bytes(),
        }
    }

    fn float(&mut self) -> Vec<u8> {
        match self.rng.below(6) {
            0 => self.pick(&[
                "nan",
                "inf",
                "-inf",
                "1e400",
                "1e-400",
                "0x1.8p1",
                ".5",
                "5.",
                "1e",
                "--1",
                "1e4932",
                "3.0e-18",
                "infinity",
                "-.0",
                "1e18",
                "123456789012345678901234567890",
                "1_0",
                "1e5000",
            ]),
            1 => self.integer(),
            2 => format!("{}e{}", self.rng.below(1 << 40), self.rng.below(30)).into_bytes(),
            3 => {
                format!("{}.{:017}", self.rng.below(1000), self.rng.below(100_000_000_000_000_000))
                    .into_bytes()
            }
            _ => format!("{}.{}", self.rng.below(2000) as i64 - 1000, self.rng.below(100_000))
                .into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.rng.below(20) {
            0..6 => self.integer(),
            6..10 => self.float(),
            10 => Vec::new(),
            11 => vec![b'v'; 17_000 + self.rng.below(10_000) as usize],
            12 if self.rng.chance(0.1) => vec![b'V'; 66_000 + self.rng.below(100_000) as usize],
            13 => {
                let mut bytes = vec![0; self.rng.below(200) as usize];
                self.rng.fill(&mut bytes);
                bytes
            }
            _ => format!("value-{}", self.rng.below(1000)).into_bytes(),
        }
    }

    /// A relative time, in seconds or milliseconds.
    fn span(&mut self) -> Vec<u8> {
        match self.rng.below(12) {
            0 => self.junk(),
            1 => self.pick(&[
                "0",
                "-1",
                "-100000",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "9223372036854776",
            ]),
            _ => (100_000 + self.rng.below(1_000_000)).to_string().into_bytes(),
        }
    }

    /// An absolute time.
    fn point(&mut self, seconds: bool) -> Vec<u8> {
        let unit = if seconds { 1000 } else { 1 };
        match self.rng.below(10) {
            0 => self.junk(),
            1 if self.lapses => self.pick(&["1", "10"]),
            1 => self.pick(&[
                "0",
                "-1",
                "-9223372036854775808",
                "9223372036854775807",
                "9223372036854775",
                "9223372036854776",
            ]),
            2 if self.lapses => ((self.now_ms - 100_000 - self.rng.below(1_000_000)) / unit)
                .to_string()
                .into_bytes(),
            _ => ((self.now_ms + 1_000_000 + self.rng.below(1_000_000)) / unit)
                .to_string()
                .into_bytes(),
        }
    }

    fn expiry_option(&mut self) -> Vec<Vec<u8>> {
        match self.rng.below(5) {
            0 => vec![b"EX".to_vec(), self.span()],
            1 => vec![b"PX".to_vec(), self.span()],
            2 => vec![b"EXAT".to_vec(), self.point(true)],
            3 => vec![b"PXAT".to_vec(), self.point(false)],
            _ if self.lapses => {
                vec![b"PXAT".to_vec(), (self.now_ms - 1).to_string().into_bytes()]
            }
            _ => vec![b"KEEPTTL".to_vec()],
        }
    }

    fn set_options(&mut self) -> Vec<Vec<u8>> {
        let mut options = Vec::new();
        for _ in 0..self.rng.below(4) {
            match self.rng.below(5) {
                0 => options.push(self.pick(&["NX", "XX", "nx", "xx"])),
                1 => options.push(b"GET".to_vec()),
                2 => options.push(self.pick(&["KEEPTTL", "keepttl", "PERSIST"])),
                _ => options.extend(self.expiry_option()),
            }
        }
        options
    }

    fn keys(&mut self, most: u64) -> Vec<Vec<u8>> {
        (0..=self.rng.below(most)).map(|_| self.key()).collect()
    }

    fn pairs(&mut self) -> Vec<Vec<u8>> {
        (0..=self.rng.below(4)).flat_map(|_| [self.key(), self.value()]).collect()
    }

    pub(super) fn command(&mut self) -> Vec<Vec<u8>> {
        let name = |name: &str| name.as_bytes().to_vec();
        let join = |head: &str, rest: Vec<Vec<u8>>| {
            let mut all = vec![name(head)];
            all.extend(rest);
            all
        };
        match self.rng.below(64) {
            0..4 => vec![name("GET"), self.key()],
            4..7 => vec![name("SET"), self.key(), self.value()],
            7..11 => {
                let mut all = vec![name("SET"), self.key(), self.value()];
                all.extend(self.set_options());
                all
            }
            11 => vec![name("SETNX"), self.key(), self.value()],
            12 => vec![name("SETEX"), self.key(), self.span(), self.value()],
            13 => vec![name("PSETEX"), self.key(), self.span(), self.value()],
            14 => vec![name("GETSET"), self.key(), self.value()],
            15 => vec![name("GETDEL"), self.key()],
            16 => {
                let mut all = vec![name("GETEX"), self.key()];
                match self.rng.below(4) {
                    0 => {}
                    1 => all.push(name("PERSIST")),
                    2 => all.extend(self.set_options()),
                    _ => all.extend(self.expiry_option()),
                }
                all
            }
            17 => {
                vec![self.pick(&["GETRANGE", "SUBSTR"]), self.key(), self.integer(), self.integer()]
            }
            18 => {
                let offset = match self.rng.below(4) {
                    0 => self.pick(&["-1", "67108864", "67108860", "9223372036854775807", "x"]),
                    _ => self.rng.below(300).to_string().into_bytes(),
                };
                // Without a value that would really be that long.
                let value = if offset == b"67108860" { b"12345".to_vec() } else { self.value() };
                vec![name("SETRANGE"), self.key(), offset, value]
            }
            19 => vec![name("STRLEN"), self.key()],
            20 => vec![name("APPEND"), self.key(), self.value()],
            21..23 => vec![self.pick(&["INCR", "DECR"]), self.key()],
            23..25 => vec![self.pick(&["INCRBY", "DECRBY"]), self.key(), self.integer()],
            25..28 => vec![name("INCRBYFLOAT"), self.key(), self.float()],
            28 => join("MGET", self.keys(6)),
            29 => join("MSET", self.pairs()),
            30 => join("MSETNX", self.pairs()),
            31 => join("DEL", self.keys(3)),
            32 => join("UNLINK", self.keys(3)),
            33 => join("EXISTS", self.keys(4)),
            34 => join("TOUCH", self.keys(4)),
            35 => vec![name("TYPE"), self.key()],
            36 => vec![
                name("KEYS"),
                self.pick(&["*", "k*", "[a-c]", "k?", "{tag}*", "nothing", "*g*", "\\*"]),
            ],
            37..42 => {
                let kind = self.rng.below(4);
                let (head, when) = match kind {
                    0 => ("EXPIRE", self.span()),
                    1 => ("PEXPIRE", self.span()),
                    2 => ("EXPIREAT", self.point(true)),
                    _ => ("PEXPIREAT", self.point(false)),
                };
                let mut all = vec![name(head), self.key(), when];
                for _ in 0..self.rng.below(3) {
                    all.push(self.pick(&["NX", "XX", "GT", "LT", "gt"]));
                }
                all
            }
            42 => vec![name("TTL"), self.key()],
            43 => vec![name("PTTL"), self.key()],
            44 => vec![self.pick(&["EXPIRETIME", "PEXPIRETIME"]), self.key()],
            45 => vec![name("PERSIST"), self.key()],
            46 => vec![self.pick(&["RENAME", "RENAMENX"]), self.key(), self.key()],
            47 => {
                let mut all = vec![name("COPY"), self.key(), self.key()];
                match self.rng.below(4) {
                    0 => all.push(name("REPLACE")),
                    1 => all.extend([name("DB"), self.pick(&["0", "1", "x"])]),
                    _ => {}
                }
                all
            }
            48 => vec![name("DBSIZE")],
            49 => vec![name("RANDOMKEY")],
            50 if self.rng.chance(0.1) && self.nobody_watches() => {
                vec![self.pick(&["FLUSHALL", "FLUSHDB"])]
            }
            50 => vec![name("ECHO"), self.value()],
            51..53 => vec![name("MULTI")],
            53..56 => vec![name("EXEC")],
            56 if self.rng.chance(0.3) => vec![name("DISCARD")],
            56 => vec![name("PING")],
            57 => join("WATCH", self.keys(2)),
            58 => vec![name("UNWATCH")],
            59 => vec![name("HELLO"), self.pick(&["2", "3", "4", "x"])],
            60 if self.rng.chance(0.2) => vec![name("RESET")],
            60 => vec![name("SELECT"), self.pick(&["0", "1", "x", "-1"])],
            61 => vec![name("CLIENT"), self.pick(&["ID", "GETNAME", "NOSUCH"])],
            62 => vec![name("CLIENT"), name("SETNAME"), self.pick(&["me", "", "a b", "you"])],
            63 => vec![self.pick(&["NOSUCH", "TIME", "CONFIG", "OBJECT", "QUITX"]), self.value()],
            _ => vec![name("PING"), self.value()],
        }
    }
}
