//! What to remove when a signal ends the program in the middle of its work.

use crate::error::CliError;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after a signal: the command has failed.
const INTERRUPTED: i32 = 1;

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
        let failed = |source| CliError::Io { what: "handling signals", source };
        let tokio =
            tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
        let guard = tokio.enter();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        drop(guard);
        let watch = move || {
            tokio.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            // The lock is kept to the end: work that would finish now waits for an end that never comes.
            let doomed = doomed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(paths) = doomed.as_ref() else { return };
            for path in paths {
                // What was not made yet is not there; a directory with others' files stays.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            }
            crate::output::say("softflash: interrupted, nothing is left behind");
            std::process::exit(INTERRUPTED);
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
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
