//! Interrupts long work without losing results: the first SIGINT or SIGTERM requests the end, the
//! second ends the process.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first signal sets. The second ends the process immediately.
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
