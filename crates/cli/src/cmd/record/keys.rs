//! Accesses to keys, and the requests that they become.

use super::placement::{Placement, Range};
use super::source::Source;
use super::tape::Tape;
use serde::Serialize;
use softflash_console::plural::plural;
use softflash_trace::{Kind, Request};
use std::io::{self, Write};

/// Kind of access to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A value of this length was read; none: the key did not exist.
    Read(Option<u64>),
    /// A value of this length was written.
    Write(u64),
    /// The key was removed.
    Delete,
    /// All keys were removed.
    Clear,
}

/// An access to one key.
#[derive(Debug, Clone, Copy)]
pub struct KeyEvent {
    /// Time on the server's clock.
    at_ns: u64,
    /// Hash of the key.
    key: u64,
    /// Kind of access.
    access: Access,
}

/// A recording of all keys.
#[derive(Debug, Default)]
pub struct Keys {
    placement: Placement,
    misses: u64,
}

/// What the summary has of keys.
#[derive(Debug, Serialize)]
pub struct KeyFigures {
    /// Reads of keys that did not exist; they cause no request.
    misses: u64,
    /// Number of keys with a range at the end.
    keys: usize,
}

impl Source for Keys {
    type Event = KeyEvent;
    type Figures = KeyFigures;

    fn volume(&self) -> Option<&str> {
        None
    }

    /// `nanoseconds kind hash key-bytes value-bytes`
    fn event(line: &str) -> Option<KeyEvent> {
        let mut words = line.split(' ');
        let at_ns = words.next()?.parse().ok()?;
        let kind = words.next()?;
        let key = u64::from_str_radix(words.next()?, 16).ok()?;
        let _key_bytes = words.next()?;
        let value = words.next()?;
        let value = if value == "-" { None } else { Some(value.parse().ok()?) };
        let access = match (kind, value) {
            ("read", value) => Access::Read(value),
            ("write", Some(bytes)) => Access::Write(bytes),
            ("delete", _) => Access::Delete,
            ("clear", _) => Access::Clear,
            _ => return None,
        };
        Some(KeyEvent { at_ns, key, access })
    }

    fn put<W: Write>(&mut self, event: &KeyEvent, tape: &mut Tape<W>) -> io::Result<()> {
        let KeyEvent { at_ns, key, access } = *event;
        let (kind, bytes) = match access {
            Access::Read(None) => {
                self.misses += 1;
                return Ok(());
            }
            Access::Read(Some(bytes)) => (Kind::Read, bytes),
            Access::Write(bytes) => (Kind::Write, bytes),
            Access::Delete => return trim(at_ns, self.placement.remove(key), tape),
            Access::Clear => return trim(at_ns, self.placement.clear(), tape),
        };
        let (outgrown, range) = self.placement.place(key, bytes);
        trim(at_ns, outgrown, tape)?;
        request(at_ns, kind, range, tape)
    }

    fn figures(self) -> KeyFigures {
        KeyFigures { misses: self.misses, keys: self.placement.keys() }
    }

    fn tell(&self) -> (String, Vec<String>) {
        let misses = self.misses;
        let missed = (misses > 0)
            .then(|| format!("without a key and without a request: {}", plural(misses, "read")));
        (plural(self.placement.keys() as u64, "key"), missed.into_iter().collect())
    }
}

fn trim<W: Write>(at_ns: u64, freed: Option<Range>, tape: &mut Tape<W>) -> io::Result<()> {
    freed.map_or(Ok(()), |range| request(at_ns, Kind::Trim, range, tape))
}

fn request<W: Write>(at_ns: u64, kind: Kind, range: Range, tape: &mut Tape<W>) -> io::Result<()> {
    let Range { offset_bytes, bytes } = range;
    tape.write(Request { at_ns, device: 0, kind, offset_bytes, bytes }, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::record::tape::Counts;
    use softflash_trace::Format;
    use std::path::Path;

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let read =
            |line: &str| Keys::event(line).map(|event| (event.at_ns, event.key, event.access));
        assert_eq!(read("5 read ff 3 10"), Some((5, 255, Access::Read(Some(10)))));
        assert_eq!(read("5 read ff 3 -"), Some((5, 255, Access::Read(None))));
        assert_eq!(read("6 write 0a 3 0"), Some((6, 10, Access::Write(0))));
        assert_eq!(read("7 delete 01 3 -"), Some((7, 1, Access::Delete)));
        assert_eq!(read("7 clear 01 0 -"), Some((7, 1, Access::Clear)));
        for bad in ["", "5", "5 read", "5 read xyz 3 1", "5 write 01 3 -", "5 push 01 3 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    fn recorded(format: Format, limit: Option<u64>) -> (String, Counts, KeyFigures) {
        let mut tape = Tape::begin(Vec::new(), format, Path::new("trace"), limit).unwrap();
        let mut keys = Keys::default();
        for &(at_ns, key, access) in ACCESSES {
            keys.put(&KeyEvent { at_ns, key, access }, &mut tape).unwrap();
        }
        let (bytes, counts) = tape.finish().unwrap();
        (String::from_utf8(bytes).unwrap(), counts, keys.figures())
    }

    const ACCESSES: &[(u64, u64, Access)] = &[
        (1_000_000, 1, Access::Read(None)),
        (2_000_000, 1, Access::Write(5000)),
        (2_001_000, 2, Access::Read(Some(100))),
        (2_002_000, 1, Access::Read(Some(5000))),
        (2_003_000, 1, Access::Write(9000)),
        (2_004_000, 1, Access::Delete),
        (2_005_000, 1, Access::Delete),
        (2_006_000, 0, Access::Clear),
    ];

    #[test]
    fn events_become_requests_to_the_ranges_of_their_keys() {
        let (text, counts, figures) = recorded(Format::FioV3, None);
        let requests: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once(" /softflash/0 ").map(|(_, request)| request))
            .filter(|request| request.contains(' '))
            .collect();
        let expected = [
            "write 0 8192",
            "read 8192 4096",
            "read 0 8192",
            "trim 0 8192",
            "write 12288 12288",
            "trim 12288 12288",
            "trim 0 24576",
        ];
        assert_eq!(requests, expected);
        assert!(text.contains("\n0 /softflash/0 write 0 8192\n"), "times begin at 0: {text}");
        assert!(text.contains("\n6 /softflash/0 trim 0 24576\n"), "microseconds: {text}");
        assert_eq!((counts.requests, counts.reads, counts.writes, counts.trims), (7, 2, 2, 3));
        assert_eq!((figures.misses, figures.keys), (1, 0));
    }

    #[test]
    fn requests_that_a_format_lacks_do_not_count() {
        let (text, counts, _) = recorded(Format::Mqsim, None);
        assert_eq!(text.lines().count(), 4);
        assert_eq!((counts.requests, counts.trims, counts.left_out.trims), (4, 0, 3));
    }

    #[test]
    fn the_limit_is_exact() {
        let (text, counts, _) = recorded(Format::Mqsim, Some(3));
        assert_eq!((text.lines().count(), counts.requests), (3, 3));
    }
}
