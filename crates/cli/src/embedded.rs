//! A store inside this process, for commands that use a data directory without a server.

use crate::error::CliError;
use softflash_device::{Access, Device, OpenOptions};
use softflash_runtime::{RealExecutor, RuntimeHandle};
use softflash_server::{DataDir, DataDirError, ShardDomain};
use softflash_store::{ClockSource, Store, StoreError, StoreLayout, StoreOptions, open_all};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A data directory, locked, with its device open.
pub struct OpenDir {
    /// Its path.
    pub path: PathBuf,
    /// The device.
    pub device: Arc<dyn Device>,
    /// Layout of the store.
    pub layout: StoreLayout,
    /// The domain of each shard; none without volume units.
    pub domains: Vec<ShardDomain>,
    /// Holds the lock.
    _lock: DataDir,
}

impl OpenDir {
    /// Opens the directory at `path`. If a server uses it, the error suggests `instead`.
    pub fn open(path: &Path, instead: &str) -> Result<OpenDir, CliError> {
        OpenDir::open_with(path, instead, Access::Write)
    }

    /// As [`open`](OpenDir::open), but changes nothing: also on a file system that cannot be
    /// written, and on a device that is cut short.
    pub fn open_to_look(path: &Path, instead: &str) -> Result<OpenDir, CliError> {
        OpenDir::open_with(path, instead, Access::Look)
    }

    /// As [`open_to_look`](OpenDir::open_to_look); changes are kept in memory until the end of the
    /// command.
    pub fn open_to_try(path: &Path, instead: &str) -> Result<OpenDir, CliError> {
        OpenDir::open_with(path, instead, Access::Scratch)
    }

    fn open_with(path: &Path, instead: &str, access: Access) -> Result<OpenDir, CliError> {
        let opened = match access {
            Access::Write => DataDir::open(path),
            Access::Look | Access::Scratch => DataDir::open_to_look(path),
        };
        let options = OpenOptions { access, ..OpenOptions::default() };
        let data = match opened {
            Err(busy @ DataDirError::Busy { .. }) => {
                return Err(CliError::Failed(format!("{busy}, or {instead}")));
            }
            opened => opened?,
        };
        let (device, layout) = data.open_device(options)?;
        let domains = data.manifest().domains(device.info().units);
        Ok(OpenDir { path: path.to_owned(), device, layout, domains, _lock: data })
    }

    /// Opens the store, calls `work` with the handle of its first shard, and closes the store
    /// whether or not `work` succeeded. The store's clock stands still: only a server moves it.
    pub fn with_store<T, F: Future<Output = Result<T, CliError>>>(
        &self,
        options: &StoreOptions,
        work: impl FnOnce(Store) -> F,
    ) -> Result<T, CliError> {
        let options = &StoreOptions { clock: ClockSource::Recorded, ..options.clone() };
        block_on(|runtime| async move {
            let failed = |error: StoreError| CliError::store(&self.path)(error);
            let stores = open_all(Arc::clone(&self.device), &self.layout, options, &runtime)
                .await
                .map_err(failed)?;
            let first = stores.first().cloned().ok_or(StoreError::Closed).map_err(failed)?;
            let outcome = work(first).await;
            for store in &stores {
                store.close().await.map_err(failed)?;
            }
            outcome
        })
    }
}

/// Runs `work` on a new executor on this thread.
pub fn block_on<T, F: Future<Output = Result<T, CliError>>>(
    work: impl FnOnce(RuntimeHandle) -> F,
) -> Result<T, CliError> {
    let executor = RealExecutor::new()
        .map_err(|source| CliError::Io { what: "starting an executor", source })?;
    executor.block_on(work(executor.handle()))
}
