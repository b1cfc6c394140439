//! Removal of unfinished files when a signal ends the program.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Whether a signal has come since the first cleanup.
static SIGNALLED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Time in which other threads that create a file end that.
const SETTLING: Duration = Duration::from_millis(2);

/// Files, and directories if empty, to be removed when a signal ends the program. Dropping
/// it cancels the removal.
pub struct Cleanup {
    paths: Arc<Mutex<Option<Vec<PathBuf>>>>,
}

impl Cleanup {
    /// From now on the signals remove `paths`, in this order, and end the program.
    pub fn on_signal(paths: Vec<PathBuf>) -> Result<Cleanup, CliError> {
        for signal in signals::that_end() {
            signal_hook::flag::register(signal, Arc::clone(&SIGNALLED))
                .map_err(|source| CliError::Io { what: "handling signals", source })?;
        }
        let paths = Arc::new(Mutex::new(Some(paths)));
        let doomed = Arc::clone(&paths);
        signals::watch(move || {
            // The lock is never released: work that would finish now waits until the process ends.
            let doomed = doomed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(paths) = doomed.as_ref() else { return };
            remove_all(paths);
            crate::output::say("softflash: interrupted; unfinished files were removed");
            std::process::exit(INTERRUPTED);
        })?;
        Ok(Cleanup { paths })
    }

    /// Runs the last step of the work without interruption by a signal, and keeps the files.
    pub fn finish<T>(self, last_step: impl FnOnce() -> T) -> T {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let result = last_step();
        *paths = None;
        result
    }
}

/// Whether a signal came while work with a [`Cleanup`] went on or after it: one that came too late
/// to end it has had no effect yet.
pub fn was_signalled() -> bool {
    SIGNALLED.load(Ordering::Relaxed)
}

/// Removes files, and directories if empty, that other threads may be creating: they open no more
/// from now on.
fn remove_all(paths: &[PathBuf]) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(0);
    let _ = setrlimit(Resource::Nofile, limit);
    // Files not created yet do not exist; a directory with other files stays.
    let remove = |path: &Path| fs::remove_file(path).or_else(|_| fs::remove_dir(path)).is_ok();
    let remove_each = || paths.iter().filter(|path| remove(path)).count();
    // A file that is being created at this moment is there a little later.
    remove_each();
    loop {
        thread::park_timeout(SETTLING);
        if remove_each() == 0 {
            return;
        }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
