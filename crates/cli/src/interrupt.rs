//! Ending long work early without losing what is done: the first SIGINT or SIGTERM asks, the second ends.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first signal sets. The second ends the program there and then.
pub fn flag() -> Result<Arc<AtomicBool>, CliError> {
    let flag = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&flag);
    signals::watch(move || {
        if shared.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(flag)
}
