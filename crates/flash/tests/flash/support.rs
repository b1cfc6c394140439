//! A device in memory, and queue pairs that are watched.

use softflash_base::{IoBuf, Time, UnitId, UnitSet};
use softflash_device::{
    Command, Completion, Decorator, Device, DeviceError, ModelConfig, ModelDevice, Operation,
    QueuePair, Submit, Tag, Wake,
};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint, Inventory, OwnerTag, Superblock};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A device of so many units, of a channel each.
pub fn device(units: u16, seed: u64) -> ModelDevice {
    let mut config = ModelConfig::model();
    config.seed = seed;
    let geometry = &mut config.array.geometry;
    (geometry.channels, geometry.blocks_per_plane, geometry.pages_per_block) = (units, 12, 8);
    ModelDevice::in_memory(config).unwrap()
}

/// What a queue pair did.
#[derive(Default)]
pub struct Seen {
    pub flushes: Cell<u32>,
    /// The next flush fails.
    pub fails: Cell<bool>,
    pub is_dropped: Cell<bool>,
}

/// A queue pair and what it did.
struct Watched {
    inner: Box<dyn QueuePair>,
    seen: Rc<Seen>,
    failed: RefCell<Vec<Tag>>,
}

impl Decorator for Watched {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for Watched {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        if matches!(command.operation, Operation::Flush) {
            self.seen.flushes.set(self.seen.flushes.get() + 1);
            if self.seen.fails.take() {
                self.failed.borrow_mut().push(command.tag);
            }
        }
        self.inner.submit(now, command)
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        self.inner.poll(now, completions);
        let mut failed = self.failed.borrow_mut();
        for completion in completions.iter_mut() {
            if failed.extract_if(.., |tag| *tag == completion.tag).next().is_some() {
                completion.result = Err(DeviceError::Io { errno: 5 });
            }
        }
    }

    fn wake(&self) -> Wake {
        self.inner.wake()
    }

    fn give_up(&mut self, unit: UnitId) {
        self.inner.give_up(unit);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.seen.is_dropped.set(true);
    }
}

/// Runs a test in virtual time, on a device with power.
pub fn run<R>(test: impl AsyncFnOnce(RuntimeHandle) -> R) -> R {
    let executor = VirtualExecutor::new(1_000_000);
    executor.block_on(test(executor.handle()))
}

/// A queue pair that is watched.
pub fn watched(device: &ModelDevice, units: &UnitSet) -> (Box<dyn QueuePair>, Rc<Seen>) {
    let inner = device.open_queue_pair(units).unwrap();
    let seen = Rc::new(Seen::default());
    let failed = RefCell::default();
    (Box::new(Watched { inner, seen: Rc::clone(&seen), failed }), seen)
}

/// Mounts units by a queue pair of their own.
pub async fn mount(
    device: &ModelDevice,
    units: impl Into<UnitSet>,
    runtime: &RuntimeHandle,
) -> (Flash, Inventory, Rc<Seen>) {
    let (queue, seen) = watched(device, &units.into());
    let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
    let (flash, inventory) = mounted.unwrap();
    (flash, inventory, seen)
}

pub fn allocate(flash: &Flash, unit: u16) -> Superblock {
    flash.allocate(unit, OwnerTag([7; 64]), Hint::FLUSH).unwrap()
}

/// Pages that identify their superblock.
fn pages(flash: &Flash, superblock: &Superblock, count: u32) -> IoBuf {
    let mut bytes = flash.buffer(count as usize * flash.page_bytes());
    let seed = u64::from(superblock.unit.0) << 32 | u64::from(superblock.index);
    for (number, eight) in (0_u64..).zip(bytes.chunks_mut(8)) {
        eight.copy_from_slice(&(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + number).to_le_bytes());
    }
    bytes
}

/// Writes the first pages of a superblock, which a power cut may take.
pub async fn write(flash: &Flash, superblock: &Superblock, count: u32) {
    let data = pages(flash, superblock, count);
    let appended = flash.append(superblock, data, false, Hint::FLUSH);
    let (first, done) = appended.map_err(|(error, _)| error).unwrap();
    assert_eq!(first, 0);
    done.await.0.unwrap();
}

/// Reads the first pages of a superblock and compares them.
pub async fn verify(flash: &Flash, superblock: &Superblock, count: u32) {
    let read = flash.read(superblock, 0, count, Hint::FOREGROUND).await.unwrap();
    assert!(read.bytes[..] == pages(flash, superblock, count)[..], "{superblock} differs");
}

/// Lets the tasks that are ready run.
pub async fn settle(runtime: &RuntimeHandle) {
    runtime.sleep_until(runtime.now() + 1_000_000_000).await;
}
