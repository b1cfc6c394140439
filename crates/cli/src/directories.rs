//! Data directories of commands that work without a server.

use softflash_console::CliError;
use softflash_console::cleanup::Cleanup;
use softflash_datadir::{DataDir, DataDirError, Plan};
use softflash_runtime::RuntimeHandle;
use std::future::Future;

/// Creates a data directory. A signal meanwhile leaves nothing behind.
pub fn create(plan: Plan) -> Result<DataDir, CliError> {
    let prepared = plan.prepare()?;
    let cleanup = Cleanup::on_signal(prepared.leftovers())?;
    let unfinished = prepared.create()?;
    Ok(cleanup.finish(|| unfinished.finish())?)
}

/// Runs `work` on a new executor on this thread.
pub fn block_on<T, F: Future<Output = Result<T, CliError>>>(
    work: impl FnOnce(RuntimeHandle) -> F,
) -> Result<T, CliError> {
    softflash_datadir::block_on(work)
}

/// Adds to the error about a directory that a server uses what to do `instead`.
pub fn or_instead<T>(opened: Result<T, DataDirError>, instead: &str) -> Result<T, CliError> {
    match opened {
        Err(busy @ DataDirError::Busy { .. }) => {
            Err(CliError::Failed(format!("{busy}, or {instead}")))
        }
        opened => Ok(opened?),
    }
}
