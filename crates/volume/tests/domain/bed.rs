//! A device whose domain is mounted again and again.

use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_volume::{Domain, DomainConfig, MAPPING_UNIT_BYTES, RecoveryReport, VolumeError};
use std::sync::Arc;

pub const UNIT: usize = MAPPING_UNIT_BYTES;

pub struct Bed {
    pub device: Arc<ModelDevice>,
    pub config: DomainConfig,
}

impl Bed {
    /// Four units of `superblocks` superblocks of `kib` KiB.
    pub fn new(superblocks: u32, kib: u32) -> Bed {
        let mut config = ModelConfig::model();
        config.array.geometry.blocks_per_plane = superblocks;
        // Four blocks, one of each plane, make a superblock of pages of 4 KiB.
        config.array.geometry.pages_per_block = kib / 16;
        Bed::of(config)
    }

    pub fn of(config: ModelConfig) -> Bed {
        let device = Arc::new(ModelDevice::in_memory(config).unwrap());
        Bed { device, config: DomainConfig::default() }
    }

    /// Mounts the domain and runs with it; the power is cut at the end.
    pub fn run<R>(
        &self,
        test: impl AsyncFnOnce(&Domain, &RuntimeHandle, &RecoveryReport) -> R,
    ) -> R {
        self.try_run(test).unwrap()
    }

    /// The same, unless the domain cannot be mounted.
    pub fn try_run<R>(
        &self,
        test: impl AsyncFnOnce(&Domain, &RuntimeHandle, &RecoveryReport) -> R,
    ) -> Result<R, VolumeError> {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let result = executor.block_on(async {
            let queue = self.device.open_queue_pair(0..self.device.info().units).unwrap();
            let mounted = Domain::mount(queue, self.config.clone(), runtime.clone()).await;
            let (domain, report) = mounted?;
            let result = test(&domain, &runtime, &report).await;
            domain.check_map().unwrap();
            domain.stop();
            Ok(result)
        });
        self.device.power_cut(executor.now(), 1).unwrap();
        result
    }
}

/// A mapping unit of this content.
pub fn unit(content: u64) -> Vec<u8> {
    content.to_le_bytes().repeat(UNIT / 8)
}

/// The content of a mapping unit, which must be all of one.
pub fn content(bytes: &[u8]) -> u64 {
    let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes.chunks(8).all(|word| word == first.to_le_bytes()), "a mixed mapping unit");
    first
}
