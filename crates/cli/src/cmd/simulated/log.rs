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

/// A log that is written beside its file, and becomes it when it is complete.
pub struct RequestLog {
    path: PathBuf,
    part: PathBuf,
    written: Mutex<Written>,
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
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        let cleanup = Cleanup::on_signal(vec![part.clone()])?;
        let mut to = BufWriter::new(File::create(&part).map_err(CliError::file(&part))?);
        to.write_all(HEADER.as_bytes()).map_err(CliError::file(&part))?;
        let written = Mutex::new(Written { to, failed: None });
        Ok(RequestLog { path: path.to_owned(), part, written, cleanup })
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
        let RequestLog { path, part, written, cleanup } = self;
        let Written { mut to, failed } =
            written.into_inner().unwrap_or_else(PoisonError::into_inner);
        cleanup.finish(|| {
            let kept = match failed {
                Some(error) => Err(error),
                None => to.flush(),
            };
            let kept = kept.map_err(CliError::file(&part)).and(completed).and_then(|run| {
                fs::rename(&part, &path).map_err(CliError::file(&path))?;
                Ok(run)
            });
            if kept.is_err() {
                // Without a result there is no log; the error says why.
                let _ = fs::remove_file(&part);
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
