//! Errors of adaptors.

use thiserror::Error;

/// Why a trace cannot be adapted.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum AdaptError {
    /// Not a finite number above 0.
    #[error("speed {0} is not a number above 0; 2 replays twice as fast, 0.5 half as fast")]
    Speed(f64),
    /// A time beyond the limit of nanoseconds in 64 bits.
    #[error("at speed {0} the trace lasts longer than 146 years; 0.5 replays half as fast")]
    TooSlow(f64),
    /// No copies.
    #[error("the number of copies is 0; 1 leaves the trace unchanged")]
    NoCopies,
    /// A device of 0 bytes.
    #[error("addresses cannot be wrapped onto a device of 0 bytes; give the size of the device")]
    EmptyDevice,
    /// A copy's address does not fit into 64 bits.
    #[error(
        "copy {copy} of a request at offset {offset_bytes} lies beyond the last address at a stride of {stride_bytes} \
         bytes; take a smaller stride or fewer copies, or wrap the trace first"
    )]
    CopyTooFar {
        /// The number of the copy, from 0.
        copy: u32,
        /// The offset of the request.
        offset_bytes: u64,
        /// The distance between copies.
        stride_bytes: u64,
    },
    /// A request does not lie on the device.
    #[error(
        "a request of {bytes} bytes at offset {offset_bytes} (device {device}, {at_ns} ns into the trace) ends beyond \
         the device of {device_bytes} bytes; take a larger device, or fold the addresses onto it with --wrap"
    )]
    BeyondDevice {
        /// The time of the request.
        at_ns: u64,
        /// Its device or volume.
        device: u32,
        /// Its offset.
        offset_bytes: u64,
        /// Its length.
        bytes: u64,
        /// The size of the device.
        device_bytes: u64,
    },
}
