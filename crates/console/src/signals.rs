//! The signals that end long-running commands: SIGINT, SIGTERM, and the SIGHUP of a terminal that
//! closes.

use crate::error::CliError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;

/// Exit code after a signal: the command has failed.
pub const INTERRUPTED: i32 = 1;

/// The signals that end a command. SIGHUP is one of them unless `nohup` has it ignored.
pub fn that_end() -> Vec<i32> {
    let ends = |signal: &i32| *signal != SIGHUP || !is_ignored(SIGHUP);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(ends).collect()
}

/// Whether the program was started with this signal ignored; proc(5) has the mask.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// From now on calls `on_signal`, on a thread of its own, at each of the signals.
pub fn watch(mut on_signal: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    let failed = |source| CliError::Io { what: "handling signals", source };
    let mut signals = Signals::new(that_end()).map_err(failed)?;
    let watch = move || signals.forever().for_each(|_| on_signal());
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}
