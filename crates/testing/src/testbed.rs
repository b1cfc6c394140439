//! A testbed: a store on a file device in a temporary directory, opened repeatedly.

use softflash_device::{Device, FileFormat, format_file, open};
use softflash_runtime::{RealExecutor, RuntimeHandle};
use softflash_store::check::{CheckReport, Progress, check};
use softflash_store::{Store, StoreLayout, StoreOptions, open_all};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Configuration of a testbed.
#[derive(Debug, Clone)]
pub struct Testbed {
    directory: Arc<TempDir>,
    /// Layout of the store.
    pub layout: StoreLayout,
    /// Options of the next run.
    pub options: StoreOptions,
}

impl Testbed {
    /// A new device of `units` units with `superblocks` superblocks of `superblock_bytes` each.
    pub fn new(
        shards: u16,
        slices: u16,
        units: u16,
        superblocks: u32,
        superblock_bytes: u64,
    ) -> Testbed {
        let directory = tempfile::tempdir().unwrap();
        let per_unit = (superblock_bytes + 2 * 4096) * u64::from(superblocks);
        let format = FileFormat {
            size_bytes: (1 << 20) + per_unit * u64::from(units),
            units,
            superblock_bytes,
            ..FileFormat::new(0, 0x5eed)
        };
        let testbed = Testbed {
            directory: Arc::new(directory),
            layout: StoreLayout::new(shards, slices, units),
            options: StoreOptions::default(),
        };
        format_file(&testbed.path(), &format).unwrap();
        testbed
    }

    /// Path of the device file.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("device")
    }

    /// The opened device.
    pub fn device(&self) -> Arc<dyn Device> {
        open(&self.path()).unwrap()
    }

    /// Opens the store, runs `test` and closes it.
    pub fn run<R>(&self, test: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R) -> R {
        self.session(test, true)
    }

    /// Opens the store, runs `test`, and drops everything, as when the process is killed.
    pub fn crash<R>(&self, test: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R) -> R {
        self.session(test, false)
    }

    fn session<R>(&self, test: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R, close: bool) -> R {
        let executor = RealExecutor::new().unwrap();
        let runtime = executor.handle();
        executor.block_on(async {
            let stores =
                open_all(self.device(), &self.layout, &self.options, &runtime).await.unwrap();
            let result = test(&stores, &runtime).await;
            if close {
                for store in &stores {
                    store.close().await.unwrap();
                }
            }
            result
        })
    }

    /// Checks the device offline.
    pub fn check(&self) -> CheckReport {
        let executor = RealExecutor::new().unwrap();
        let runtime = executor.handle();
        executor.block_on(check(self.device(), &self.layout, &runtime, &Progress::default()))
    }
}
