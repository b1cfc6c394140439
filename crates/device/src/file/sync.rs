//! The fallback where io_uring is refused: every request is executed inside `poll`.

use super::calls::FileCalls;
use super::plan::{Done, Job, Kind};
use crate::command::DeviceError;
use std::io;

/// Requests that wait for the next poll.
#[derive(Debug, Default)]
pub(super) struct SyncEngine {
    waiting: Vec<Job>,
}

impl SyncEngine {
    /// Queues a request.
    pub(super) fn start(&mut self, job: Job) {
        self.waiting.push(job);
    }

    /// Requests accepted and not yet done.
    pub(super) fn pending(&self) -> usize {
        self.waiting.len()
    }

    /// Executes everything, in the order of submission.
    pub(super) fn poll(&mut self, file: &dyn FileCalls, done: &mut Vec<Done>) {
        done.extend(self.waiting.drain(..).map(|job| run(file, job)));
    }
}

fn run(file: &dyn FileCalls, job: Job) -> Done {
    let settles = job.kind.settles();
    let Job { ticket, kind, offset, len, mut buffer } = job;
    let bytes: &mut [u8] = buffer.as_deref_mut().unwrap_or_default();
    let result = match kind {
        Kind::Read => file.read_at(bytes, offset),
        Kind::Write { durable: false } => file.write_at(bytes, offset),
        Kind::Write { durable: true } => file.write_durable_at(bytes, offset),
        Kind::Discard { mode } => file.allocate(mode, offset, len),
        Kind::Sync => file.sync(),
    };
    Done { ticket, buffer, result: result.map_err(io_error), settles }
}

/// An I/O error for the layers above; an error without a number means that the file ended too soon.
pub(super) fn io_error(error: io::Error) -> DeviceError {
    DeviceError::Io { errno: error.raw_os_error().unwrap_or(libc::EIO) }
}
