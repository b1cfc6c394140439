//! A reply as a tree.

use std::fmt;

/// A value of RESP2 or RESP3. Its kind is its first byte, so that types are compared as well.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frame {
    /// `+`, `-`, `:`, `_`, `#`, `,`: types without a body.
    Line(u8, Vec<u8>),
    /// `$`, `=`.
    Bulk(u8, Vec<u8>),
    /// `$-1`, `*-1`.
    Nil(u8),
    /// `*`, `~`, `%`.
    List(u8, Vec<Frame>),
}

impl Frame {
    /// The first frame of `bytes` and its length, if it is complete.
    pub fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
        let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let (kind, line, after) = (bytes[0], &bytes[1..line_end], line_end + 2);
        let count = || std::str::from_utf8(line).unwrap().parse::<i64>().unwrap();
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' => {
                Some((Frame::Line(kind, line.to_vec()), after))
            }
            b'$' | b'=' | b'*' | b'~' | b'%' if count() < 0 => Some((Frame::Nil(kind), after)),
            b'$' | b'=' => {
                let end = after + count() as usize;
                let body = bytes.get(after..end)?;
                assert_eq!(bytes.get(end..end + 2)?, b"\r\n", "a bulk string must end its line");
                Some((Frame::Bulk(kind, body.to_vec()), end + 2))
            }
            b'*' | b'~' | b'%' => {
                let count = count() * if kind == b'%' { 2 } else { 1 };
                let (mut items, mut at) = (Vec::new(), after);
                for _ in 0..count {
                    let (item, length) = Frame::parse(&bytes[at..])?;
                    items.push(item);
                    at += length;
                }
                Some((Frame::List(kind, items), at))
            }
            other => panic!("no reply begins with {:?}", char::from(other)),
        }
    }

    /// Parses `bytes` as exactly one frame.
    pub fn whole(bytes: &[u8]) -> Frame {
        let (frame, length) = Frame::parse(bytes).expect("a whole reply");
        assert_eq!(length, bytes.len(), "one reply");
        frame
    }

    pub fn items(&self) -> &[Frame] {
        match self {
            Frame::List(_, items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> &[u8] {
        match self {
            Frame::Line(_, text) | Frame::Bulk(_, text) => text,
            _ => &[],
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Frame::Line(b':', digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// With the items of the outer list sorted.
    pub fn sorted(mut self) -> Frame {
        if let Frame::List(_, items) = &mut self {
            items.sort();
        }
        self
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Line(kind, text) => write!(f, "{}{}", char::from(*kind), super::shown(text)),
            Frame::Bulk(kind, text) => write!(f, "{}{:?}", char::from(*kind), super::shown(text)),
            Frame::Nil(kind) => write!(f, "{}-1", char::from(*kind)),
            Frame::List(kind, items) => {
                write!(f, "{}", char::from(*kind))?;
                f.debug_list().entries(items).finish()
            }
        }
    }
}
