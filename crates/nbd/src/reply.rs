//! Replies to requests.

use crate::block_status::{self, Extent};
use crate::chunks::{self, Place};
use crate::error::ErrorCode;
use crate::output::Output;
use crate::read_reply::ReadReply;
use crate::request::{Command, Rejection, Request};
use crate::wire::chunk;
use softflash_base::cast;

/// Encodes the replies of a session. Replies may be sent in any order. Each one is whole in the
/// output before the next begins, except where [`ReadReply::is_divisible`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replies {
    pub(crate) structured: bool,
    pub(crate) allocation_context: Option<u32>,
    pub(crate) export_bytes: u64,
    pub(crate) max_payload_bytes: u32,
}

impl Replies {
    /// A request was carried out. With FUA its data are durable; before the reply to a flush, all
    /// writes are that were replied to.
    ///
    /// # Panics
    /// If the command is a read or asks for the block status; their replies have contents.
    pub fn done(&self, request: &Request, output: &mut impl Output) {
        let has_contents = matches!(request.command, Command::Read { .. })
            || matches!(request.command, Command::BlockStatus { .. });
        assert!(!has_contents, "{:?} is answered with contents", request.command);
        chunks::simple(request.cookie, None, output);
    }

    /// The beginning of a reply whose data are in memory, so that nothing can fail any more. The
    /// caller appends them, all of the range, to the output right after this.
    ///
    /// # Panics
    /// If the command is not a read.
    pub fn whole_read(&self, request: &Request, output: &mut impl Output) {
        let ReadReply { cookie, range, .. } = self.read(request);
        match self.structured {
            true => chunks::data(cookie, range.offset, range.bytes, Place::Last, output),
            false => chunks::simple(cookie, None, output),
        }
    }

    /// A reply in parts.
    ///
    /// # Panics
    /// If the command is not a read.
    pub fn read(&self, request: &Request) -> ReadReply {
        let is_read = matches!(request.command, Command::Read { .. });
        assert!(is_read, "{:?} is not a read", request.command);
        ReadReply {
            structured: self.structured,
            dont_fragment: matches!(request.command, Command::Read { dont_fragment: true, .. }),
            cookie: request.cookie,
            range: request.command.range().unwrap_or_default(),
            done_bytes: 0,
        }
    }

    /// The status of consecutive extents from the offset of the request on. Fewer than requested
    /// are enough, but there must be one. What the protocol does not allow is cut off.
    ///
    /// # Panics
    /// If the command does not ask for the block status.
    pub fn block_status(
        &self,
        request: &Request,
        extents: impl IntoIterator<Item = Extent>,
        output: &mut impl Output,
    ) {
        let asks = matches!(request.command, Command::BlockStatus { .. });
        assert!(asks, "{:?} does not ask for the block status", request.command);
        let one_extent = matches!(request.command, Command::BlockStatus { one_extent: true, .. });
        let range = request.command.range().unwrap_or_default();
        let (export_bytes, max_payload_bytes) = (self.export_bytes, self.max_payload_bytes);
        let found =
            block_status::descriptors(extents, range, one_extent, export_bytes, max_payload_bytes);
        let Some(context) = self.allocation_context.filter(|_| !found.is_empty()) else {
            return self.fail(request, ErrorCode::Io, "the block status is not known", output);
        };
        let bytes = cast::saturating_u32(4 + 8 * found.len());
        chunks::header(request.cookie, chunk::BLOCK_STATUS, Place::Last, bytes, output);
        output.put(&context.to_be_bytes());
        for descriptor in found {
            output.put(&descriptor.bytes.to_be_bytes());
            output.put(&descriptor.status.to_be_bytes());
        }
    }

    /// A request failed. The message is for people, and sent if replies are structured.
    pub fn fail(
        &self,
        request: &Request,
        error: ErrorCode,
        message: &str,
        output: &mut impl Output,
    ) {
        self.error(request, error, message, None, output);
    }

    /// A request failed at this offset of the export; before it, it may have been carried out.
    pub fn fail_at(
        &self,
        request: &Request,
        offset: u64,
        error: ErrorCode,
        message: &str,
        output: &mut impl Output,
    ) {
        let range = request.command.range().unwrap_or_default();
        let offset = (range.offset..range.end()).contains(&offset).then_some(offset);
        self.error(request, error, message, offset, output);
    }

    /// A request was refused.
    pub fn reject(&self, rejection: &Rejection, output: &mut impl Output) {
        let Rejection { cookie, error, reason } = *rejection;
        match self.structured {
            true => chunks::error(cookie, error, reason, None, output),
            false => chunks::simple(cookie, Some(error), output),
        }
    }

    fn error(
        &self,
        request: &Request,
        error: ErrorCode,
        message: &str,
        offset: Option<u64>,
        output: &mut impl Output,
    ) {
        // Clients understand this error only where they have asked for it.
        let is_fast = matches!(request.command, Command::WriteZeroes { fast: true, .. });
        let error = match error {
            ErrorCode::NotSupported if !is_fast => ErrorCode::Invalid,
            error => error,
        };
        match self.structured {
            true => chunks::error(request.cookie, error, message, offset, output),
            false => chunks::simple(request.cookie, Some(error), output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{ByteRange, Cookie};

    const RANGE: ByteRange = ByteRange { offset: 512, bytes: 512 };

    fn replies(structured: bool) -> Replies {
        Replies {
            structured,
            allocation_context: Some(1),
            export_bytes: 4096,
            max_payload_bytes: 1 << 16,
        }
    }

    fn request(command: Command) -> Request {
        Request { cookie: Cookie(5), fua: false, command }
    }

    #[test]
    #[should_panic(expected = "is answered with contents")]
    fn a_read_is_not_answered_without_data() {
        let command = Command::Read { range: RANGE, dont_fragment: false };
        replies(true).done(&request(command), &mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "Flush is not a read")]
    fn only_a_read_is_answered_with_data() {
        replies(true).whole_read(&request(Command::Flush), &mut Vec::new());
    }

    #[test]
    fn an_offset_outside_of_the_request_is_not_sent() {
        let (write, error) = (request(Command::Write { range: RANGE }), ErrorCode::Io);
        let length = |offset| {
            let mut output = Vec::new();
            replies(true).fail_at(&write, offset, error, "", &mut output);
            output.len()
        };
        assert_eq!([511, 512, 1023, 1024].map(length), [26, 34, 34, 26]);
    }

    #[test]
    fn no_status_at_all_is_an_error() {
        let command = Command::BlockStatus { range: RANGE, one_extent: false };
        let mut output = Vec::new();
        replies(true).block_status(&request(command), [], &mut output);
        assert_eq!(output[6..8], [0x80, 1]);
    }
}
