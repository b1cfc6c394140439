//! An open data directory, and its store in this process, without a server.

use crate::directory::DataDir;
use crate::error::DataDirError;
use crate::sets::FlashSet;
use crate::volume_units::ShardDomain;
use softflash_base::ShardId;
use softflash_device::{Access, Device, OpenOptions};
use softflash_runtime::{RealExecutor, RuntimeHandle};
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
    /// The sets of units.
    pub sets: Vec<FlashSet>,
    /// Layout of the store.
    pub layout: StoreLayout,
    /// The domains: one for each set for volumes.
    pub domains: Vec<ShardDomain>,
    /// Holds the lock.
    pub(crate) data: DataDir,
}

impl OpenDir {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// [`DataDirError`]: the directory or its device is invalid, or another process uses it.
    pub fn open(path: &Path) -> Result<OpenDir, DataDirError> {
        OpenDir::open_with(path, Access::Write)
    }

    /// As [`open`](OpenDir::open), but changes nothing: also on a file system that cannot be
    /// written, and on a device that is cut short.
    ///
    /// # Errors
    /// As [`open`](OpenDir::open).
    pub fn open_to_look(path: &Path) -> Result<OpenDir, DataDirError> {
        OpenDir::open_with(path, Access::Look)
    }

    /// As [`open_to_look`](OpenDir::open_to_look); changes are kept in memory until the end of the
    /// process.
    ///
    /// # Errors
    /// As [`open`](OpenDir::open).
    pub fn open_to_try(path: &Path) -> Result<OpenDir, DataDirError> {
        OpenDir::open_with(path, Access::Scratch)
    }

    fn open_with(path: &Path, access: Access) -> Result<OpenDir, DataDirError> {
        let opened = match access {
            Access::Write => DataDir::open(path),
            Access::Look | Access::Scratch => DataDir::open_to_look(path),
        };
        let options = OpenOptions { access, ..OpenOptions::default() };
        let data = opened?;
        let (device, layout) = data.open_device(options)?;
        let mut opened = OpenDir::of(data, device, layout);
        if access == Access::Write {
            opened.finish_move()?;
        }
        Ok(opened)
    }

    /// A directory whose device is open.
    pub(crate) fn of(data: DataDir, device: Arc<dyn Device>, layout: StoreLayout) -> OpenDir {
        let domains = data.manifest().domains(device.info().units);
        let sets = data.manifest().sets(device.info());
        OpenDir { path: data.path().to_owned(), device, sets, layout, domains, data }
    }

    /// Path of the device.
    pub fn device_path(&self) -> PathBuf {
        self.data.device_path()
    }

    /// Opens the store, calls `work` with the handle of its first shard, and closes the store
    /// whether or not `work` succeeded. The store's clock stands still: only a server moves it.
    ///
    /// # Errors
    /// Those of `work`, and [`DataDirError::Store`].
    pub fn with_store<T, E: From<DataDirError>, F: Future<Output = Result<T, E>>>(
        &self,
        options: &StoreOptions,
        work: impl FnOnce(Store) -> F,
    ) -> Result<T, E> {
        self.with_shard(ShardId(0), options, |store, _| work(store))
    }

    /// As [`with_store`](Self::with_store), with the handle of a shard, and the executor's runtime.
    ///
    /// # Errors
    /// As [`with_store`](Self::with_store).
    pub fn with_shard<T, E: From<DataDirError>, F: Future<Output = Result<T, E>>>(
        &self,
        shard: ShardId,
        options: &StoreOptions,
        work: impl FnOnce(Store, RuntimeHandle) -> F,
    ) -> Result<T, E> {
        let options = &StoreOptions { clock: ClockSource::Recorded, ..options.clone() };
        block_on(|runtime| async move {
            let failed = |error: StoreError| DataDirError::store(&self.path)(error);
            let stores = open_all(Arc::clone(&self.device), &self.layout, options, &runtime)
                .await
                .map_err(failed)?;
            let store = stores.get(shard.index()).cloned();
            let store = store.ok_or(StoreError::Closed).map_err(failed)?;
            let outcome = match self.device.mend_label() {
                Ok(()) => work(store, runtime).await,
                Err(error) => Err(DataDirError::from(error).into()),
            };
            for store in &stores {
                store.close().await.map_err(failed)?;
            }
            outcome
        })
    }
}

/// Runs `work` on a new executor on this thread.
///
/// # Errors
/// Those of `work`, and [`DataDirError::Executor`].
pub fn block_on<T, E: From<DataDirError>, F: Future<Output = Result<T, E>>>(
    work: impl FnOnce(RuntimeHandle) -> F,
) -> Result<T, E> {
    let executor = RealExecutor::new().map_err(DataDirError::Executor)?;
    executor.block_on(work(executor.handle()))
}
