//! Ctrl-C: what has been mounted must be unmounted.

use crate::Outcome;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

const POLL: Duration = Duration::from_millis(50);

/// From now on Ctrl-C ends the command by an error.
pub fn catch() -> Outcome {
    let flag = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends the command at once.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|error| format!("handling signals: {error}"))?;
    }
    // It is set once, by the only caller.
    let _ = INTERRUPTED.set(flag);
    Ok(())
}

/// An error after Ctrl-C.
pub fn check() -> Outcome {
    match INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        true => Err("interrupted".to_owned()),
        false => Ok(()),
    }
}

/// Waits until `is_done`, at most for `limit`; whether it was done.
pub fn wait(limit: Duration, mut is_done: impl FnMut() -> bool) -> Outcome<bool> {
    let started = Instant::now();
    loop {
        check()?;
        if is_done() {
            return Ok(true);
        }
        if started.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(POLL);
    }
}
