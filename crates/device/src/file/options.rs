//! Options for opening a file device, and the effect of an erase.

use serde::{Deserialize, Serialize};

/// Whether to use a facility of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Use {
    /// If it works.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// What may be changed on a device that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Everything. A damaged copy of the label is repaired from the other one.
    #[default]
    Write,
    /// Nothing: the file is opened for reading only, and programs and erases fail. It may be shorter
    /// than its label says; reads beyond its end fail.
    Look,
    /// As [`Look`](Access::Look), but programs succeed: they change a copy in memory, which ends with
    /// the device.
    Scratch,
}

/// Options for opening a file device. The default is right for servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Asynchronous I/O; without it every command is executed inside `poll`.
    pub io_uring: Use,
    /// O_DIRECT, which bypasses the page cache.
    pub direct: Use,
    /// Buffers per queue pair that are registered with the kernel (0 for none). They are locked in
    /// memory and counted against RLIMIT_MEMLOCK.
    pub registered_buffers: u16,
    /// Bytes of each registered buffer; larger requests use plain buffers.
    pub registered_buffer_bytes: usize,
    /// Bytes of unused plain buffers that a queue pair keeps for reuse.
    pub retained_bytes: usize,
    /// What may be changed on the device.
    pub access: Access,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            io_uring: Use::Auto,
            direct: Use::Auto,
            registered_buffers: 64,
            registered_buffer_bytes: 32 << 10,
            retained_bytes: 64 << 20,
            access: Access::Write,
        }
    }
}

/// The effect of an erase on the file system or drive below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// Nothing: the extent stays reserved and keeps its old contents until they are overwritten.
    #[default]
    None,
    /// Zero the extent and keep it reserved (`FALLOC_FL_ZERO_RANGE`).
    ZeroRange,
    /// Free the extent (`FALLOC_FL_PUNCH_HOLE`), which drives see as a discard. On a shared file
    /// system a later program can then fail for want of space.
    Punch,
}

impl Discard {
    /// The `fallocate` mode; `None` if an erase does nothing.
    pub(super) fn fallocate_mode(self) -> Option<i32> {
        match self {
            Discard::None => None,
            Discard::ZeroRange => Some(libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE),
            Discard::Punch => Some(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE),
        }
    }
}
