//! Interrupts long work without losing results: the first signal requests the end, the
//! second ends the process.

use crate::error::CliError;
use crate::signals::{self, INTERRUPTED};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first signal sets. The second removes the unfinished file, if there is one, and
/// ends the process immediately.
pub fn flag(unfinished: Option<PathBuf>) -> Result<Arc<AtomicBool>, CliError> {
    let flag = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&flag);
    signals::watch(move || {
        if shared.swap(true, Ordering::Relaxed) {
            // It may not exist yet, or have its name already.
            let _ = unfinished.as_ref().map(fs::remove_file);
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(flag)
}
