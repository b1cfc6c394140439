//! Encoded replies: a growing buffer, with large values between its parts that are not copied.

use crate::error::CommandError;
use crate::resp::reply::{Protocol, Reply};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use softflash_store::value::Value;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Parts of values of at least this length, in bytes, are not copied.
pub const UNCOPIED_BYTES: usize = 16 << 10;

/// The bytes to send. As a [`Buf`] it supports vectored writes.
#[derive(Debug, Default)]
pub struct Output {
    pieces: VecDeque<Bytes>,
    pieces_bytes: usize,
    tail: BytesMut,
}

impl Output {
    /// Number of bytes to send.
    pub fn len(&self) -> usize {
        self.pieces_bytes + self.tail.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.pieces_bytes = 0;
        self.tail.clear();
    }

    /// All bytes in one buffer; copies if there are several.
    pub fn take_bytes(&mut self) -> Bytes {
        if self.pieces.is_empty() {
            return self.tail.split().freeze();
        }
        self.copy_to_bytes(self.len())
    }

    /// Appends another output.
    pub fn append(&mut self, other: &mut Output) {
        while let Some(piece) = other.pieces.pop_front() {
            self.bytes(&piece);
        }
        other.pieces_bytes = 0;
        self.bytes(&other.tail.split().freeze());
    }

    /// Encodes a reply in a version of the protocol; returns the version in effect after it.
    pub fn reply(&mut self, reply: &Reply, protocol: Protocol) -> Protocol {
        let resp3 = protocol == Protocol::Resp3;
        match reply {
            Reply::None => {}
            Reply::Ok => self.raw(b"+OK\r\n"),
            Reply::Status(text) => self.line(b'+', text.as_bytes()),
            Reply::Error(error) => self.error(error),
            Reply::Integer(number) => self.header(b':', *number),
            Reply::Value(value) => self.value(value),
            Reply::Bulk(bytes) => {
                self.length(b'$', bytes.len());
                self.bytes(bytes);
                self.raw(b"\r\n");
            }
            Reply::Text(text) => self.bulk(text.as_bytes()),
            Reply::Verbatim(text) if resp3 => {
                self.length(b'=', text.len() + 4);
                self.raw(b"txt:");
                self.raw(text.as_bytes());
                self.raw(b"\r\n");
            }
            Reply::Verbatim(text) => self.bulk(text.as_bytes()),
            Reply::Null | Reply::NullArray if resp3 => self.raw(b"_\r\n"),
            Reply::Null => self.raw(b"$-1\r\n"),
            Reply::NullArray => self.raw(b"*-1\r\n"),
            Reply::Array(items) => return self.list(b'*', items, protocol),
            Reply::Unannounced(items) => return self.items(items, protocol),
            Reply::Set(items) => {
                return self.list(if resp3 { b'~' } else { b'*' }, items, protocol);
            }
            Reply::Map(pairs) => return self.map(pairs, protocol),
            Reply::Double(number) if resp3 => self.line(b',', double(*number).as_bytes()),
            Reply::Double(number) => self.bulk(double(*number).as_bytes()),
            Reply::Boolean(true) if resp3 => self.raw(b"#t\r\n"),
            Reply::Boolean(false) if resp3 => self.raw(b"#f\r\n"),
            Reply::Boolean(yes) => self.header(b':', i64::from(*yes)),
            Reply::Switch(protocol, reply) => return self.reply(reply, *protocol),
        }
        protocol
    }

    fn list(&mut self, kind: u8, items: &[Reply], protocol: Protocol) -> Protocol {
        self.length(kind, items.len());
        self.items(items, protocol)
    }

    fn items(&mut self, items: &[Reply], mut protocol: Protocol) -> Protocol {
        for item in items {
            protocol = self.reply(item, protocol);
        }
        protocol
    }

    fn map(&mut self, pairs: &[(Reply, Reply)], mut protocol: Protocol) -> Protocol {
        match protocol {
            Protocol::Resp3 => self.length(b'%', pairs.len()),
            Protocol::Resp2 => self.length(b'*', pairs.len() * 2),
        }
        for (name, value) in pairs {
            protocol = self.reply(name, protocol);
            protocol = self.reply(value, protocol);
        }
        protocol
    }

    /// Encodes an error in one line, whatever its text contains.
    pub fn error(&mut self, error: &CommandError) {
        self.error_text(&error.text());
    }

    /// Writes the text of an error; line ends in it become spaces.
    pub fn error_text(&mut self, text: &[u8]) {
        let text = text.trim_ascii_end_of_lines();
        self.tail.reserve(text.len() + 3);
        self.tail.put_u8(b'-');
        for &byte in text {
            self.tail.put_u8(if matches!(byte, b'\r' | b'\n') { b' ' } else { byte });
        }
        self.raw(b"\r\n");
    }

    fn value(&mut self, value: &Value) {
        self.length(b'$', value.len());
        value.fragments().iter().for_each(|piece| self.bytes(piece));
        self.raw(b"\r\n");
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.tail.put_u8(kind);
        self.raw(text);
        self.raw(b"\r\n");
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.header(kind, i64::try_from(length).unwrap_or(i64::MAX));
    }

    fn header(&mut self, kind: u8, number: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        let mut line = [0u8; 24];
        let length = digits.len();
        line[0] = kind;
        if let Some(place) = line.get_mut(1..length + 3) {
            let (number, end) = place.split_at_mut(length);
            number.copy_from_slice(digits);
            end.copy_from_slice(b"\r\n");
        }
        self.raw(line.get(..length + 3).unwrap_or_default());
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    fn bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < UNCOPIED_BYTES {
            return self.raw(bytes);
        }
        if !self.tail.is_empty() {
            self.push(self.tail.len());
        }
        self.pieces_bytes += bytes.len();
        self.pieces.push_back(bytes.clone());
    }

    fn push(&mut self, length: usize) {
        let piece = self.tail.split_to(length).freeze();
        self.pieces_bytes += piece.len();
        self.pieces.push_back(piece);
    }
}

impl Buf for Output {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&self.tail, |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let tail = Some(&*self.tail).filter(|tail| !tail.is_empty());
        let chunks = self.pieces.iter().map(|piece| &**piece).chain(tail);
        let filled = slices.iter_mut().zip(chunks).map(|(slot, chunk)| *slot = IoSlice::new(chunk));
        filled.count()
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(front) = self.pieces.front_mut() {
            if count < front.len() {
                front.advance(count);
                self.pieces_bytes -= count;
                return;
            }
            count -= front.len();
            self.pieces_bytes -= front.len();
            self.pieces.pop_front();
        }
        self.tail.advance(count);
    }
}

/// Like C's `%.17g`, as Redis encodes a double; whole numbers without a fraction.
fn double(number: f64) -> String {
    if number.is_nan() {
        "nan".into()
    } else if number.is_infinite() {
        if number > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        format!("{number}")
    }
}

trait TrimLines {
    fn trim_ascii_end_of_lines(&self) -> &[u8];
}

impl TrimLines for [u8] {
    fn trim_ascii_end_of_lines(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
        self.get(..end.map_or(0, |end| end + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply, protocol: Protocol) -> String {
        let mut output = Output::default();
        output.reply(reply, protocol);
        String::from_utf8(output.take_bytes().to_vec()).unwrap()
    }

    #[test]
    fn each_version_has_its_own_types() {
        let cases = [
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::NullArray, "*-1\r\n", "_\r\n"),
            (Reply::Boolean(true), ":1\r\n", "#t\r\n"),
            (Reply::Double(2.5), "$3\r\n2.5\r\n", ",2.5\r\n"),
            (
                Reply::Map(vec![(Reply::Text("a"), Reply::Integer(-1))]),
                "*2\r\n$1\r\na\r\n:-1\r\n",
                "%1\r\n$1\r\na\r\n:-1\r\n",
            ),
            (Reply::Set(vec![Reply::Ok]), "*1\r\n+OK\r\n", "~1\r\n+OK\r\n"),
            (Reply::Verbatim("hi".into()), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
        ];
        for (reply, resp2, resp3) in cases {
            assert_eq!(written(&reply, Protocol::Resp2), resp2);
            assert_eq!(written(&reply, Protocol::Resp3), resp3);
        }
    }

    #[test]
    fn large_pieces_are_sent_as_they_are() {
        let large = Bytes::from(vec![b'x'; UNCOPIED_BYTES]);
        let mut output = Output::default();
        output.reply(&Reply::Ok, Protocol::Resp2);
        output.reply(&Reply::Value(large.clone().into()), Protocol::Resp2);
        output.reply(&Reply::Integer(7), Protocol::Resp2);
        assert!(output.pieces.iter().any(|piece| piece.as_ptr() == large.as_ptr()), "not copied");
        let expected = [&b"+OK\r\n$16384\r\n"[..], &large, b"\r\n:7\r\n"].concat();
        assert_eq!(output.len(), expected.len());

        let mut slices = [IoSlice::new(&[]); 8];
        let count = output.chunks_vectored(&mut slices);
        let gathered: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(gathered, expected);

        output.advance(7);
        assert_eq!(output.take_bytes(), expected[7..]);
        assert!(output.is_empty());
    }

    #[test]
    fn an_error_is_one_line() {
        let mut output = Output::default();
        output.error_text(b"ERR a\r\nb\n");
        assert_eq!(output.take_bytes(), "-ERR a  b\r\n");
    }

    #[test]
    fn the_smallest_number_fits() {
        assert_eq!(
            written(&Reply::Integer(i64::MIN), Protocol::Resp2),
            ":-9223372036854775808\r\n"
        );
    }
}
