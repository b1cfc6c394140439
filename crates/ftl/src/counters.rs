//! Counts the commands and bytes of a unit.

use crate::hint::ProgramBytes;
use crate::op::Work;

/// Commands and bytes since the mount.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
    pub bytes_read: u64,
    pub programmed: ProgramBytes,
    pub errors: u64,
}

impl Counters {
    /// Counts a command that has ended, with the bytes of its buffer.
    pub fn add_command(&mut self, work: Work, bytes: u64, failed: bool) {
        match work {
            Work::Read { .. } | Work::Verification => {
                self.reads += 1;
                self.bytes_read += bytes;
            }
            Work::Append { origin, .. } => {
                self.programs += 1;
                *self.programmed.of(origin) += bytes;
            }
            Work::EraseHeader | Work::OpeningHeader => {
                self.programs += 1;
                self.programmed.header += bytes;
            }
            Work::Erase => self.erases += 1,
            Work::MarkBad => {}
            Work::Flush { .. } => return,
        }
        self.errors += u64::from(failed);
    }
}
