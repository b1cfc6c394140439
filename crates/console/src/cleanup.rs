//! Removal of unfinished files when a signal ends the program.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Files, and directories if empty, to be removed when SIGINT or SIGTERM ends the program. Dropping
/// it cancels the removal.
pub struct Cleanup {
    paths: Arc<Mutex<Option<Vec<PathBuf>>>>,
}

impl Cleanup {
    /// From now on the signals remove `paths`, in this order, and end the program.
    pub fn on_signal(paths: Vec<PathBuf>) -> Result<Cleanup, CliError> {
        let paths = Arc::new(Mutex::new(Some(paths)));
        let doomed = Arc::clone(&paths);
        signals::watch(move || {
            // The lock is never released: work that would finish now waits until the process ends.
            let doomed = doomed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(paths) = doomed.as_ref() else { return };
            for path in paths {
                // Files not created yet do not exist; a directory with other files stays.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            }
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

impl Drop for Cleanup {
    fn drop(&mut self) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
