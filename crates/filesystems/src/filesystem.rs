//! The file systems: how each is made, mounted and checked.

use crate::Outcome;
use crate::run::output;
use crate::tool::limited;

/// A file system of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    Ext4,
    Xfs,
}

impl Filesystem {
    pub const ALL: [Filesystem; 2] = [Filesystem::Ext4, Filesystem::Xfs];

    /// Its name, as in `/proc/filesystems`.
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
        }
    }

    /// Makes an empty one on a device.
    pub fn make(self, device: &str) -> Outcome {
        let (program, force) = match self {
            Filesystem::Ext4 => ("mkfs.ext4", "-F"),
            Filesystem::Xfs => ("mkfs.xfs", "-f"),
        };
        output(limited(120, program).args(["-q", force, device])).map(drop)
    }

    /// Options of a mount in use: deleted files free space of the volume.
    pub fn options(self) -> &'static str {
        "noatime,discard"
    }

    /// Options of a mount that reads a frozen image as it is: without a replay of the journal.
    pub fn frozen_options(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ro,noload",
            Filesystem::Xfs => "ro,norecovery,nouuid",
        }
    }

    /// The file system's own check, which changes nothing. The journal has been replayed.
    pub fn check(self, device: &str) -> Outcome {
        let mut check = match self {
            Filesystem::Ext4 => limited(300, "e2fsck"),
            Filesystem::Xfs => limited(300, "xfs_repair"),
        };
        if self == Filesystem::Ext4 {
            check.arg("-f");
        }
        output(check.args(["-n", device])).map(drop)
    }
}
