//! Ending long work early without losing what is done: the first SIGINT or SIGTERM asks, the second ends.

use crate::error::CliError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after a second signal: the command has failed.
const INTERRUPTED: i32 = 1;

/// A flag that the first signal sets. The second ends the program there and then.
pub fn flag() -> Result<Arc<AtomicBool>, CliError> {
    let failed = |source| CliError::Io { what: "handling signals", source };
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let guard = tokio.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(guard);
    let flag = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&flag);
    let watch = move || {
        tokio.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if shared.swap(true, Ordering::Relaxed) {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(flag)
}
