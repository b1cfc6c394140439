//! Numbers of the protocol, and its fields: big-endian numbers and strings.

/// The longest string in bytes.
pub(crate) const MAX_STRING_BYTES: usize = 4096;

pub(crate) mod magic {
    /// `NBDMAGIC`.
    pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
    /// `IHAVEOPT`.
    pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
    pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
    pub(crate) const REQUEST: u32 = 0x2560_9513;
    pub(crate) const SIMPLE_REPLY: u32 = 0x6744_6698;
    pub(crate) const STRUCTURED_REPLY: u32 = 0x668e_33ef;
}

/// Handshake flags, and those of the client, which have the same bits.
pub(crate) mod handshake {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub(crate) const NO_ZEROES: u16 = 1 << 1;
}

/// Options.
pub(crate) mod opt {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Types of option replies.
pub(crate) mod rep {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub(crate) const ERR_POLICY: u32 = (1 << 31) + 2;
    pub(crate) const ERR_INVALID: u32 = (1 << 31) + 3;
    pub(crate) const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub(crate) const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub(crate) const ERR_SHUTDOWN: u32 = (1 << 31) + 7;
    pub(crate) const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Types of information about an export.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags.
pub(crate) mod flag {
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_CACHE: u16 = 1 << 10;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub(crate) mod cmd {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub(crate) mod cmd_flag {
    pub(crate) const FUA: u16 = 1 << 0;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// Types of chunks of a structured reply.
pub(crate) mod chunk {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = (1 << 15) + 1;
    pub(crate) const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The flag of the last chunk of a structured reply.
pub(crate) const DONE: u16 = 1 << 0;

/// The part of a text that can be sent: without a zero byte, and not too long.
pub(crate) fn sendable(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    text.get(..text.floor_char_boundary(MAX_STRING_BYTES)).unwrap_or_default()
}

/// A received string; none if it violates the rules for strings.
pub(crate) fn string(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    (text.len() <= MAX_STRING_BYTES && !text.contains('\0')).then_some(text)
}

/// Fields that are taken from the front of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_zero_byte_and_at_a_whole_character() {
        assert_eq!(sendable("name"), "name");
        assert_eq!(sendable("a\0b"), "a");
        let long = "ä".repeat(MAX_STRING_BYTES);
        assert_eq!(sendable(&long).len(), MAX_STRING_BYTES);
        let odd = format!("a{long}");
        assert_eq!(sendable(&odd).len(), MAX_STRING_BYTES - 1);
        assert!(string(sendable(&odd).as_bytes()).is_some());
    }

    #[test]
    fn a_string_that_is_too_long_or_has_a_zero_byte_or_is_no_text_is_refused() {
        assert_eq!(string(b""), Some(""));
        assert_eq!(string(&[b'a'; MAX_STRING_BYTES]).map(str::len), Some(MAX_STRING_BYTES));
        assert_eq!(string(&[b'a'; MAX_STRING_BYTES + 1]), None);
        assert_eq!(string(b"a\0"), None);
        assert_eq!(string(b"\xff"), None);
    }

    #[test]
    fn fields_are_big_endian_and_never_read_beyond_the_end() {
        let mut fields = Fields(&[1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 9]);
        assert_eq!((fields.u16(), fields.u32(), fields.u64()), (Some(0x0102), Some(3), Some(4)));
        assert_eq!((fields.u16(), fields.bytes(2)), (None, None));
        assert_eq!(fields.bytes(1), Some(&[9][..]));
        assert!(fields.0.is_empty());
    }
}
