//! The words of a request.

use crate::resp::request::LARGE_ARGUMENT_BYTES;
use bytes::Bytes;

/// A copy of an argument that can be kept.
///
/// Arguments are slices of the network buffer, which lives as long as any of them: a kept key of
/// ten bytes would retain 16 KiB and more. Arguments that have a buffer of their own are not
/// copied.
pub(crate) fn own(argument: &Bytes) -> Bytes {
    if argument.len() < LARGE_ARGUMENT_BYTES {
        Bytes::copy_from_slice(argument)
    } else {
        argument.clone()
    }
}

/// Whether an argument is this option, in any case.
pub(crate) fn is(argument: &[u8], option: &str) -> bool {
    argument.eq_ignore_ascii_case(option.as_bytes())
}
