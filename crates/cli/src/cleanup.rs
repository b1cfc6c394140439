//! What to remove when a signal ends the program in the middle of its work.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Files, and directories if empty, that go when SIGINT or SIGTERM ends the program. Dropping it
/// forgets them.
pub struct Cleanup {
    paths: Arc<Mutex<Option<Vec<PathBuf>>>>,
}

impl Cleanup {
    /// From now on the signals remove `paths`, in this order, and end the program.
    pub fn on_signal(paths: Vec<PathBuf>) -> Result<Cleanup, CliError> {
        let paths = Arc::new(Mutex::new(Some(paths)));
        let doomed = Arc::clone(&paths);
        signals::watch(move || {
            // The lock is kept to the end: work that would finish now waits for an end that never comes.
            let doomed = doomed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(paths) = doomed.as_ref() else { return };
            for path in paths {
                // What was not made yet is not there; a directory with others' files stays.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            }
            crate::output::say("softflash: interrupted, nothing is left behind");
            std::process::exit(INTERRUPTED);
        })?;
        Ok(Cleanup { paths })
    }

    /// The work is done: does its last step so that no signal comes between, and keeps the files.
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
