//! Counts the commands and bytes of a unit.

use crate::op::Work;
use crate::program_bytes::ProgramBytes;
use crate::service::Service;
use softflash_device::{Completion, Origin};

/// Commands and bytes since the mount.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
    pub bytes_read: u64,
    pub programmed: ProgramBytes,
    pub errors: u64,
    pub service: Service,
}

impl Counters {
    /// Counts a command that has ended.
    pub fn add_command(&mut self, work: Work, origin: Origin, ended: &Completion) {
        let bytes = ended.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64);
        match work {
            Work::Read { .. } | Work::Verification => {
                self.reads += 1;
                self.bytes_read += bytes;
            }
            Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader => {
                self.programs += 1;
                *self.programmed.of(origin) += bytes;
            }
            Work::Erase | Work::EraseIdle => self.erases += 1,
            Work::MarkBad => {}
            Work::Flush { .. } => return,
        }
        self.errors += u64::from(ended.result.is_err());
        if let (Ok(()), Some(kind)) = (&ended.result, work.kind()) {
            self.service.add(kind, ended.queue, ended.service_ns);
        }
    }
}
