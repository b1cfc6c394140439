//! The destination of encoded bytes.

use crate::wire::sendable;
use softflash_base::cast;

/// A stream to the client. A server may implement it over its own list of buffers, so that zeroes
/// need no memory.
pub trait Output {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
    /// Appends this many zero bytes.
    fn zeroes(&mut self, bytes: u32);
}

impl Output for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn zeroes(&mut self, bytes: u32) {
        self.resize(self.len() + cast::index(bytes), 0);
    }
}

/// A message that fits into a string of the protocol, with its length.
pub(crate) fn message(text: &str) -> (&str, u16) {
    let text = sendable(text);
    (text, cast::saturating_u16(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_takes_bytes_and_zeroes() {
        let mut output = vec![1];
        output.put(&[2, 3]);
        output.zeroes(2);
        assert_eq!(output, [1, 2, 3, 0, 0]);
    }

    #[test]
    fn a_message_has_the_length_of_what_is_sent() {
        assert_eq!(message("text"), ("text", 4));
        assert_eq!(message(&"x".repeat(70_000)).1, 4096);
    }
}
