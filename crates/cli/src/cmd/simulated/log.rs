//! The log of requests as CSV.

use crate::cleanup::Cleanup;
use crate::error::CliError;
use softflash_base::AccessKind;
use softflash_lab::LoggedRequest;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The header: times are virtual, from the beginning of the measured part.
const HEADER: &str = "arrival_ns,start_ns,end_ns,kind,offset_bytes,length_bytes\n";

/// A log that is written beside its file, and becomes it when it is complete. A pipe or device is
/// written at once.
pub struct RequestLog {
    path: PathBuf,
    unfinished: Option<Unfinished>,
    written: Mutex<Written>,
}

/// A file that a signal removes until the log is complete.
struct Unfinished {
    path: PathBuf,
    cleanup: Cleanup,
}

struct Written {
    to: BufWriter<File>,
    /// The first error, after which nothing is written.
    failed: Option<io::Error>,
}

impl RequestLog {
    /// Begins a log. A signal removes the unfinished file.
    pub fn create(path: &Path) -> Result<RequestLog, CliError> {
        let is_special = fs::metadata(path).is_ok_and(|existing| !existing.is_file());
        let unfinished = if is_special { None } else { Some(Unfinished::beside(path)?) };
        let to = unfinished.as_ref().map_or(path, |unfinished| &unfinished.path);
        let mut file = BufWriter::new(File::create(to).map_err(CliError::file(to))?);
        file.write_all(HEADER.as_bytes()).map_err(CliError::file(to))?;
        let written = Mutex::new(Written { to: file, failed: None });
        Ok(RequestLog { path: path.to_owned(), unfinished, written })
    }

    /// Adds a request; sets `stop` if it cannot be written.
    pub fn add(&self, request: &LoggedRequest, stop: &AtomicBool) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.failed.is_some() {
            return;
        }
        let LoggedRequest { arrival_ns, start_ns, end_ns, kind, offset_bytes, bytes } = request;
        let kind = name_of(*kind);
        let line =
            writeln!(written.to, "{arrival_ns},{start_ns},{end_ns},{kind},{offset_bytes},{bytes}");
        if let Err(error) = line {
            written.failed = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the log: keeps the file if `completed`, the run, was a success and all was written.
    pub fn finish<T>(self, completed: Result<T, CliError>) -> Result<T, CliError> {
        let RequestLog { path, unfinished, written } = self;
        let Written { mut to, failed } =
            written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flushed = match failed {
            Some(error) => Err(error),
            None => to.flush(),
        };
        // The error of the log is the cause if both have failed.
        let completed = flushed.map_err(CliError::file(&path)).and(completed);
        match unfinished {
            Some(unfinished) => unfinished.finish(&path, completed),
            None => completed,
        }
    }
}

impl Unfinished {
    fn beside(path: &Path) -> Result<Unfinished, CliError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = path.with_file_name(name);
        Ok(Unfinished { cleanup: Cleanup::on_signal(vec![path.clone()])?, path })
    }

    fn finish<T>(self, log: &Path, completed: Result<T, CliError>) -> Result<T, CliError> {
        let Unfinished { path, cleanup } = self;
        cleanup.finish(|| {
            let kept = completed.and_then(|run| {
                fs::rename(&path, log).map_err(CliError::file(log))?;
                Ok(run)
            });
            if kept.is_err() {
                // Without a result there is no log; the error says why.
                let _ = fs::remove_file(&path);
            }
            kept
        })
    }
}

fn name_of(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Trim => "trim",
    }
}
