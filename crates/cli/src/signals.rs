//! SIGINT and SIGTERM for long-running commands.

use crate::error::CliError;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code after a signal: the command has failed.
pub const INTERRUPTED: i32 = 1;

/// From now on calls `on_signal`, on a thread of its own, at each of the signals.
pub fn watch(mut on_signal: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    let failed = |source| CliError::Io { what: "handling signals", source };
    let tokio =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let guard = tokio.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(guard);
    let watch = move || {
        tokio.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                on_signal();
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}
