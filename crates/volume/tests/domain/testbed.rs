//! A device whose domain is mounted again and again.

use softflash_base::UnitSet;
use softflash_device::{Device, ModelConfig, ModelDevice, QueuePair};
use softflash_nand::faults::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_volume::{
    Domain, DomainConfig, Examined, MAPPING_UNIT_BYTES, Progress, RecoveryReport, VolumeError,
};
use std::sync::Arc;

pub const UNIT: usize = MAPPING_UNIT_BYTES;

pub struct Testbed {
    pub device: Arc<ModelDevice>,
    /// The units of the domain.
    pub units: UnitSet,
    pub config: DomainConfig,
}

impl Testbed {
    /// Four units of `superblocks` superblocks of `kib` KiB.
    pub fn new(superblocks: u32, kib: u32) -> Testbed {
        let mut config = ModelConfig::model();
        config.array.geometry.blocks_per_plane = superblocks;
        // Four blocks, one of each plane, make a superblock of pages of 4 KiB.
        config.array.geometry.pages_per_block = kib / 16;
        Testbed::of(config)
    }

    pub fn of(config: ModelConfig) -> Testbed {
        let device = Arc::new(ModelDevice::in_memory(config).unwrap());
        Testbed { units: device.info().all_units(), device, config: DomainConfig::default() }
    }

    /// Units of a die each.
    pub fn of_dies(units: u16) -> Testbed {
        let mut config = ModelConfig::model();
        config.array.geometry.channels = units;
        config.array.geometry.chips_per_channel = 1;
        config.array.geometry.blocks_per_plane = 60;
        config.array.geometry.pages_per_block = 16;
        Testbed::of(config)
    }

    /// Plans the death of the dies of these units at this time.
    pub fn kill(&self, units: &[u16], at_ns: u64) {
        let fault = |&unit: &u16| PlannedFault {
            place: FaultPlace::Die(unit.into()),
            when: FaultTime::AtNs(at_ns),
            what: Strike::Death,
        };
        let faults = units.iter().map(fault).collect();
        self.device.schedule_faults(&FaultSchedule { faults }).unwrap();
    }

    /// Mounts the domain and runs with it; the power is cut at the end.
    pub fn run<R>(
        &self,
        test: impl AsyncFnOnce(&Domain, &RuntimeHandle, &RecoveryReport) -> R,
    ) -> R {
        self.try_run(test).unwrap()
    }

    /// As [`run`](Testbed::run), where the domain may not be mounted.
    pub fn try_run<R>(
        &self,
        test: impl AsyncFnOnce(&Domain, &RuntimeHandle, &RecoveryReport) -> R,
    ) -> Result<R, VolumeError> {
        self.on_flash(async |queue, config, runtime| {
            let (domain, report) = Domain::mount(queue, config, runtime.clone()).await?;
            let result = test(&domain, &runtime, &report).await;
            domain.check_map().unwrap();
            domain.stop();
            Ok(result)
        })
    }

    /// What a check of the domain finds.
    pub fn examine(&self) -> Result<Examined, VolumeError> {
        self.on_flash(async |queue, config, runtime| {
            Domain::examine(queue, config, runtime, &Progress::default()).await
        })
    }

    /// Works with the flash; the power is cut at the end.
    pub fn on_flash<R>(
        &self,
        work: impl AsyncFnOnce(Box<dyn QueuePair>, DomainConfig, RuntimeHandle) -> R,
    ) -> R {
        let executor = VirtualExecutor::new(1_000_000);
        let result = executor.block_on(async {
            let queue = self.device.open_queue_pair(&self.units).unwrap();
            work(queue, self.config.clone(), executor.handle()).await
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
