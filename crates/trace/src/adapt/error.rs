//! Errors of adaptors.

use thiserror::Error;

/// Why a trace cannot be changed as asked.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum AdaptError {
    /// Not a finite number above 0.
    #[error("speed {0} is not a number above 0; 2 replays twice as fast, 0.5 half as fast")]
    Speed(f64),
    /// A time that 64 bits of nanoseconds do not hold.
    #[error("at speed {0} the trace lasts longer than 146 years; 0.5 replays half as fast")]
    TooSlow(f64),
    /// No copies.
    #[error("0 copies of a trace are no trace; 1 leaves it as it is")]
    NoCopies,
    /// A device without room.
    #[error("addresses cannot be wrapped onto a device of 0 bytes; give the size of the device")]
    EmptyDevice,
    /// A copy's address does not fit into 64 bits.
    #[error(
        "copy {copy} of a request at offset {offset_bytes} lies beyond the last address at a stride of {stride_bytes} \
         bytes; take a smaller stride or fewer copies, or wrap the trace first"
    )]
    CopyTooFar {
        /// Which copy, from 0.
        copy: u32,
        /// Where the request is.
        offset_bytes: u64,
        /// From copy to copy.
        stride_bytes: u64,
    },
    /// A request does not lie on the device.
    #[error(
        "a request of {bytes} bytes at offset {offset_bytes} (device {device}, {at_ns} ns into the trace) ends beyond \
         the device of {device_bytes} bytes; take a larger device, or fold the addresses onto it with --wrap"
    )]
    BeyondDevice {
        /// When.
        at_ns: u64,
        /// Of which device or volume.
        device: u32,
        /// Where it begins.
        offset_bytes: u64,
        /// How long it is.
        bytes: u64,
        /// The bytes that there are.
        device_bytes: u64,
    },
}
