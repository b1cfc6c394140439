//! Records the requests of a connection for the clients that asked for it (FLASH.RECORD).

use softflash_nbd::{ByteRange, Command, Request};
use softflash_protocol::shared::recording::volume::{
    Begun, VolumeAccess, VolumeRecordings, VolumeRequest,
};
use softflash_runtime::RuntimeHandle;
use std::sync::Arc;

/// Records the requests of a connection.
#[derive(Clone)]
pub(super) struct RequestRecorder {
    recordings: Arc<VolumeRecordings>,
    export: String,
    runtime: RuntimeHandle,
}

/// A request under way; its latency is recorded on drop.
pub(super) struct Recorded {
    begun: Vec<Begun>,
    runtime: RuntimeHandle,
}

impl RequestRecorder {
    pub fn new(
        recordings: Arc<VolumeRecordings>,
        export: String,
        runtime: RuntimeHandle,
    ) -> RequestRecorder {
        RequestRecorder { recordings, export, runtime }
    }

    /// Records a request that has arrived as a whole, if anyone records.
    #[inline]
    pub fn begin(&self, request: &Request) -> Option<Recorded> {
        self.recordings.is_on().then(|| self.record(request))
    }

    fn record(&self, request: &Request) -> Recorded {
        let now_ns = self.runtime.now().0;
        let begin = |request| self.recordings.begin(&self.export, now_ns, request);
        let begun = recorded(request).into_iter().flatten().map(begin).collect();
        Recorded { begun, runtime: self.runtime.clone() }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let now_ns = self.runtime.now().0;
        self.begun.drain(..).for_each(|begun| begun.end(now_ns));
    }
}

/// What a request does to its volume. With FUA it includes a flush.
fn recorded(request: &Request) -> [Option<VolumeRequest>; 2] {
    let to = |access: VolumeAccess, range: ByteRange| {
        Some(VolumeRequest { access, offset_bytes: range.offset, bytes: range.bytes })
    };
    let flush = Some(VolumeRequest { access: VolumeAccess::Flush, offset_bytes: 0, bytes: 0 });
    let first = match request.command {
        Command::Read { range, .. } => return [to(VolumeAccess::Read, range), None],
        Command::Cache { .. } | Command::BlockStatus { .. } => return [None, None],
        Command::Flush => return [flush, None],
        // Refused without a change.
        Command::WriteZeroes { no_hole: true, fast: true, .. } => return [None, None],
        Command::Write { range } | Command::WriteZeroes { range, no_hole: true, .. } => {
            to(VolumeAccess::Write, range)
        }
        Command::Trim { range } | Command::WriteZeroes { range, .. } => {
            to(VolumeAccess::Discard, range)
        }
    };
    [first, flush.filter(|_| request.fua)]
}
