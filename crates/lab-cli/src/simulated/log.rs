//! The log of requests as CSV.

use softflash_base::AccessKind;
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_lab::LoggedRequest;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The header: times are virtual, from the beginning of the measured part.
const HEADER: &str = "arrival_ns,start_ns,end_ns,kind,offset_bytes,length_bytes\n";

/// A log whose file gets its name when it is complete.
pub struct RequestLog {
    path: PathBuf,
    new: NewFile,
    written: Mutex<Written>,
}

struct Written {
    to: BufWriter<File>,
    /// The first error, after which nothing is written.
    failed: Option<io::Error>,
}

impl RequestLog {
    /// Begins a log. A signal removes the unfinished file.
    pub fn create(path: &Path, existing: Existing) -> Result<RequestLog, CliError> {
        let mut new = NewFile::removed_on_signal(path, existing)?;
        let mut to = BufWriter::new(new.create()?);
        to.write_all(HEADER.as_bytes()).map_err(CliError::file(path))?;
        let written = Mutex::new(Written { to, failed: None });
        Ok(RequestLog { path: path.to_owned(), new, written })
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
        let RequestLog { path, new, written } = self;
        let Written { to, failed } = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flushed = match failed {
            Some(error) => Err(error),
            None => to.into_inner().map_err(io::IntoInnerError::into_error),
        };
        // The error of the log is the cause if both have failed.
        let file = flushed.map_err(CliError::file(&path))?;
        let run = completed?;
        new.complete(&file)?;
        Ok(run)
    }
}

fn name_of(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Trim => "trim",
    }
}
