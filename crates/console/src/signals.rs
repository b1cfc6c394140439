//! SIGINT and SIGTERM for long-running commands.

use crate::error::CliError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code after a signal: the command has failed.
pub const INTERRUPTED: i32 = 1;

/// From now on calls `on_signal`, on a thread of its own, at each of the signals.
pub fn watch(mut on_signal: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    let failed = |source| CliError::Io { what: "handling signals", source };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let watch = move || signals.forever().for_each(|_| on_signal());
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}
