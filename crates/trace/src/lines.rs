//! Lines of a stream, in a buffer of fixed size.

use memchr::memchr;
use std::io::{self, ErrorKind, Read};

/// The longest line that is decoded; a longer one is malformed and skipped.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// Room for a longest line and for large reads after it.
const BUFFER_BYTES: usize = 4 * MAX_LINE_BYTES;

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// The beginning of one that is too long.
    TooLong(&'a [u8]),
}

/// Splits a stream into lines.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The bytes read and not returned: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Up to here there is no line end.
    searched: usize,
    exhausted: bool,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        let buffer = vec![0; BUFFER_BYTES];
        Lines { input, buffer, start: 0, end: 0, searched: 0, exhausted: false, number: 0 }
    }

    /// The number of the line that was returned last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The beginning of the stream, at most the length of a longest line. Must be called before
    /// [`next`](Lines::next).
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.end - self.start < MAX_LINE_BYTES && !self.exhausted {
            self.fill()?;
        }
        let seen = self.end.min(self.start + MAX_LINE_BYTES);
        Ok(self.buffer.get(self.start..seen).unwrap_or_default())
    }

    /// The next line.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let unseen = self.buffer.get(self.searched..self.end).unwrap_or_default();
            if let Some(found) = memchr(b'\n', unseen) {
                return Ok(Some(self.take(self.searched + found, 1)));
            }
            self.searched = self.end;
            // One more byte may be the first half of a line end.
            if self.end - self.start > MAX_LINE_BYTES + 1 {
                return self.skip_long().map(Some);
            }
            if self.exhausted {
                return Ok((self.start < self.end).then(|| self.take(self.end, 0)));
            }
            self.fill()?;
        }
    }

    /// Returns the line that ends at `end`, and skips `separator` bytes after it.
    #[inline]
    fn take(&mut self, end: usize, separator: usize) -> Line<'_> {
        let start = self.start;
        self.start = end + separator;
        self.searched = self.start;
        self.number += 1;
        let line = self.buffer.get(start..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.get(..MAX_LINE_BYTES) {
            Some(beginning) if line.len() > MAX_LINE_BYTES => Line::TooLong(beginning),
            _ => Line::Whole(line),
        }
    }

    /// Skips the rest of a line that does not fit; its beginning stays at the front of the buffer.
    fn skip_long(&mut self) -> io::Result<Line<'_>> {
        self.buffer.copy_within(self.start..self.start + MAX_LINE_BYTES, 0);
        loop {
            let room = self.buffer.get_mut(MAX_LINE_BYTES..).unwrap_or_default();
            let read = read_some(&mut self.input, room)?;
            self.exhausted = read == 0;
            let found = memchr(b'\n', room.get(..read).unwrap_or_default());
            if found.is_none() && !self.exhausted {
                continue;
            }
            self.start = MAX_LINE_BYTES + found.map_or(0, |found| found + 1);
            self.end = MAX_LINE_BYTES + read;
            self.searched = self.start;
            self.number += 1;
            return Ok(Line::TooLong(self.buffer.get(..MAX_LINE_BYTES).unwrap_or_default()));
        }
    }

    /// Reads more bytes after the buffered ones. There is room, as the buffered ones are no longer
    /// than a line.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.searched -= self.start;
        self.end -= self.start;
        self.start = 0;
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = read_some(&mut self.input, room)?;
        self.exhausted = read == 0;
        self.end += read;
        Ok(())
    }
}

fn read_some(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns few bytes at a time, as pipes do.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let step = self.1.min(into.len());
            self.0.take(step as u64).read(into).inspect(|read| self.0 = &self.0[*read..])
        }
    }

    /// Each line's length and whether it is whole.
    fn lengths(text: &[u8], step: usize) -> Vec<(usize, bool)> {
        let mut lines = Lines::new(Trickle(text, step));
        let beginning = lines.peek().unwrap().to_vec();
        assert!(text.starts_with(&beginning));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(line) => (line.len(), true),
                Line::TooLong(line) => (line.len(), false),
            });
        }
        assert_eq!(lines.number(), found.len() as u64);
        found
    }

    #[test]
    fn lines_end_with_either_convention_and_the_last_one_without() {
        assert_eq!(lengths(b"ab\r\n\ncde\nf", 1), [(2, true), (0, true), (3, true), (1, true)]);
        assert_eq!(lengths(b"", 1), []);
        assert_eq!(lengths(b"\n", 7), [(0, true)]);
    }

    #[test]
    fn too_long_lines_are_skipped_whatever_the_reads_are() {
        let at_limit = MAX_LINE_BYTES;
        for step in [1000, MAX_LINE_BYTES, BUFFER_BYTES, 1 << 20] {
            for long in [at_limit + 1, at_limit + 2, 3 * at_limit, BUFFER_BYTES, 1_000_000] {
                let mut text = vec![b'x'; long];
                text.extend_from_slice(b"\nshort\n");
                text.resize(text.len() + at_limit, b'y');
                text.push(b'\n');
                text.resize(text.len() + long, b'z');
                let expected = [(at_limit, false), (5, true), (at_limit, true), (at_limit, false)];
                assert_eq!(lengths(&text, step), expected, "{long} by {step}");
            }
        }
    }
}
