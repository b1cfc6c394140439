//! The reply to a read, in parts: data and holes from front to back, then the end or an error.

use crate::chunks::{self, Place};
use crate::error::ErrorCode;
use crate::output::Output;
use crate::request::{ByteRange, Cookie};
use thiserror::Error;

/// An error after a part of a simple reply was sent: the client cannot be told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a read failed after the beginning of its reply; the connection must be closed")]
pub struct MustDisconnect;

/// A reply under way. Other replies may be sent between its parts only if
/// [`ReadReply::is_divisible`]. Ends with [`ReadReply::finish`] or [`ReadReply::fail`].
#[must_use]
#[derive(Debug)]
pub struct ReadReply {
    pub(crate) structured: bool,
    pub(crate) dont_fragment: bool,
    pub(crate) cookie: Cookie,
    pub(crate) range: ByteRange,
    /// Bytes that are replied to.
    pub(crate) done_bytes: u32,
}

impl ReadReply {
    /// Whether the parts are chunks of their own. Otherwise all data are in one piece, between
    /// whose parts nothing else may be sent.
    pub fn is_divisible(&self) -> bool {
        self.structured && !self.dont_fragment
    }

    /// The bytes that are still to be replied to.
    pub fn missing_bytes(&self) -> u32 {
        self.range.bytes - self.done_bytes
    }

    /// Announces the next bytes of data, which the caller appends to the output right after this.
    ///
    /// # Panics
    /// If more than [`ReadReply::missing_bytes`].
    pub fn data(&mut self, bytes: u32, output: &mut impl Output) {
        if bytes == 0 {
            return;
        }
        if self.is_divisible() {
            chunks::data(self.cookie, self.next_offset(), bytes, Place::Before, output);
        } else if self.done_bytes == 0 && self.structured {
            let ByteRange { offset, bytes } = self.range;
            chunks::data(self.cookie, offset, bytes, Place::Before, output);
        } else if self.done_bytes == 0 {
            chunks::simple(self.cookie, None, output);
        }
        self.replied(bytes);
    }

    /// The next bytes are a hole, and read as zeroes.
    ///
    /// # Panics
    /// If more than [`ReadReply::missing_bytes`].
    pub fn hole(&mut self, bytes: u32, output: &mut impl Output) {
        let is_whole = bytes == self.range.bytes;
        if self.is_divisible() && bytes > 0 || self.structured && is_whole {
            chunks::hole(self.cookie, self.next_offset(), bytes, output);
            self.replied(bytes);
        } else {
            self.data(bytes, output);
            output.zeroes(bytes);
        }
    }

    /// Ends the reply. If data are missing, it ends with an error.
    pub fn finish(self, output: &mut impl Output) -> Result<(), MustDisconnect> {
        if self.missing_bytes() > 0 {
            return self.fail(ErrorCode::Io, "the read ended early", output);
        }
        if self.structured {
            chunks::none(self.cookie, output);
        }
        Ok(())
    }

    /// Ends the reply with an error that happened after the last part.
    pub fn fail(
        self,
        error: ErrorCode,
        message: &str,
        output: &mut impl Output,
    ) -> Result<(), MustDisconnect> {
        let begun = self.done_bytes > 0;
        if !self.structured {
            if begun {
                return Err(MustDisconnect);
            }
            chunks::simple(self.cookie, Some(error), output);
            return Ok(());
        }
        if begun && self.dont_fragment {
            // The chunk was announced with its whole length.
            output.zeroes(self.missing_bytes());
        }
        let offset = (begun && self.missing_bytes() > 0).then(|| self.next_offset());
        chunks::error(self.cookie, error, message, offset, output);
        Ok(())
    }

    fn next_offset(&self) -> u64 {
        self.range.offset + u64::from(self.done_bytes)
    }

    fn replied(&mut self, bytes: u32) {
        let missing = self.missing_bytes();
        assert!(bytes <= missing, "{bytes} bytes for a read that needs {missing} more");
        self.done_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(structured: bool, dont_fragment: bool) -> ReadReply {
        let range = ByteRange { offset: 512, bytes: 100 };
        ReadReply { structured, dont_fragment, cookie: Cookie(1), range, done_bytes: 0 }
    }

    #[test]
    fn a_reply_knows_what_is_missing_and_whether_others_may_come_between() {
        let mut parts = reply(true, false);
        parts.data(10, &mut Vec::new());
        parts.hole(20, &mut Vec::new());
        assert_eq!((parts.missing_bytes(), parts.is_divisible()), (70, true));
        assert!(!reply(true, true).is_divisible());
        assert!(!reply(false, false).is_divisible());
    }

    #[test]
    fn parts_of_no_bytes_send_nothing() {
        for mut reply in [reply(false, false), reply(true, false), reply(true, true)] {
            let mut output = Vec::new();
            reply.data(0, &mut output);
            reply.hole(0, &mut output);
            assert_eq!((output.len(), reply.missing_bytes()), (0, 100));
        }
    }

    #[test]
    #[should_panic(expected = "101 bytes for a read that needs 100 more")]
    fn more_data_than_requested_is_a_mistake_of_the_owner() {
        reply(false, false).data(101, &mut Vec::new());
    }
}
