//! Errors that clients see, and reasons to end a connection.

use thiserror::Error;

/// The error values of the protocol; a reply can have no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum ErrorCode {
    /// `NBD_EPERM`: for example a write to a read-only export.
    #[error("operation not permitted")]
    NotPermitted,
    /// `NBD_EIO`.
    #[error("input/output error")]
    Io,
    /// `NBD_ENOMEM`, to be avoided.
    #[error("cannot allocate memory")]
    NoMemory,
    /// `NBD_EINVAL`.
    #[error("invalid argument")]
    Invalid,
    /// `NBD_ENOSPC`: the volume is full, or a write goes beyond its end.
    #[error("no space left on the volume")]
    NoSpace,
    /// `NBD_EOVERFLOW`: a request that is too long, but allowed in smaller parts.
    #[error("value too large")]
    Overflow,
    /// `NBD_ENOTSUP`: only for a write of zeroes that would not be fast, but was asked to be.
    #[error("operation not supported")]
    NotSupported,
    /// `NBD_ESHUTDOWN`: the server is being shut down.
    #[error("the server is being shut down")]
    ShuttingDown,
}

impl ErrorCode {
    /// The number in the protocol.
    pub fn number(self) -> u32 {
        match self {
            ErrorCode::NotPermitted => 1,
            ErrorCode::Io => 5,
            ErrorCode::NoMemory => 12,
            ErrorCode::Invalid => 22,
            ErrorCode::NoSpace => 28,
            ErrorCode::Overflow => 75,
            ErrorCode::NotSupported => 95,
            ErrorCode::ShuttingDown => 108,
        }
    }

    /// The error for an `errno` of Linux. Quotas and file size limits are lack of space; what the
    /// protocol does not know is an I/O error.
    pub fn of_errno(errno: i32) -> ErrorCode {
        const EDQUOT: i32 = 122;
        const EFBIG: i32 = 27;
        const EROFS: i32 = 30;
        const EACCES: i32 = 13;
        match errno {
            1 | EACCES | EROFS => ErrorCode::NotPermitted,
            12 => ErrorCode::NoMemory,
            22 => ErrorCode::Invalid,
            28 | EDQUOT | EFBIG => ErrorCode::NoSpace,
            75 => ErrorCode::Overflow,
            95 => ErrorCode::NotSupported,
            108 => ErrorCode::ShuttingDown,
            _ => ErrorCode::Io,
        }
    }
}

/// Why the handshake ends without an export. The connection has to be closed, after everything in
/// the output has been sent; TLS is shut down first if it is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// The client aborted the negotiation, as it may.
    #[error("the client aborted the negotiation")]
    Aborted,
    /// Client flags that do not exist, or were not offered.
    #[error("unknown client flags {0:#x}")]
    UnknownClientFlags(u32),
    /// The bytes are not an option.
    #[error("{0:#018x} instead of the magic number of an option")]
    NotAnOption(u64),
    /// A client that does not speak fixed newstyle sent another option than the name of an export.
    #[error("option {0} from a client that does not speak fixed newstyle")]
    NotFixedNewstyle(u32),
    /// The client chose, in the old way, an export that it cannot have. There is no reply for this.
    #[error("the export does not exist, is refused, or needs TLS")]
    ExportRefused,
    /// The limit of options.
    #[error("more than {0} options in a handshake")]
    TooManyOptions(u32),
    /// The limit of bytes.
    #[error("more than {0} bytes in a handshake")]
    TooManyBytes(u64),
    /// The handshake had ended before, with a [`Session`](crate::Session).
    #[error("the handshake has ended")]
    Ended,
}

/// A violation of the protocol after which the stream cannot be understood any more, or is not
/// worth it. The connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// The bytes are not a request.
    #[error("{0:#010x} instead of the magic number of a request")]
    NotARequest(u32),
    /// A payload far above the maximum, taken for an attack.
    #[error("a payload of {bytes} bytes; more than {most} are not even skipped")]
    PayloadTooLong {
        /// Its length.
        bytes: u32,
        /// The longest payload that is skipped.
        most: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_numbers_of_the_protocol_and_back() {
        let numbers = [1, 5, 12, 22, 28, 75, 95, 108];
        for number in numbers {
            assert_eq!(ErrorCode::of_errno(number).number(), u32::try_from(number).unwrap());
        }
    }

    #[test]
    fn quotas_and_file_size_limits_are_lack_of_space_and_the_rest_is_an_io_error() {
        assert_eq!([122, 27].map(ErrorCode::of_errno), [ErrorCode::NoSpace; 2]);
        assert_eq!([30, 13].map(ErrorCode::of_errno), [ErrorCode::NotPermitted; 2]);
        assert_eq!([0, -1, 2, 61, i32::MAX].map(ErrorCode::of_errno), [ErrorCode::Io; 5]);
    }
}
