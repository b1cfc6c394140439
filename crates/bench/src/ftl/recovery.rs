//! Processor time of a mount after a power cut, by parts.

use super::cost;
use super::load::Load;
use super::null_device::{NullQueue, SharedMedium};
use super::testbed::Testbed;
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_console::allocator;
use softflash_console::measure::Stopwatch;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Ownership};
use softflash_runtime::VirtualExecutor;
use softflash_volume::{Domain, DomainConfig, VolumeError};

/// Share of the entries between two checkpoints that are behind the root at the cut: later, the
/// domain would make the next one.
const OF_CHECKPOINT: f64 = 0.97;
/// Mapping units that are read after the recovery.
const READ_AFTER: u64 = 10_000;

/// Processor time of mounts.
#[derive(Debug, Serialize)]
pub struct Recovery {
    /// The headers of the superblocks.
    pub headers_seconds: f64,
    /// Root and leaves of the map, and the state that follows from them.
    pub map_seconds: f64,
    /// The frames behind the root.
    pub replay_seconds: f64,
    /// The whole mount.
    pub seconds: f64,
    /// The whole mount for each TiB of flash.
    pub seconds_per_tib: f64,
    /// The share of the null device in the whole mount.
    pub device_seconds: f64,
    pub leaves: u32,
    pub frames: u64,
    /// Mapping units written and moved behind the root.
    pub entries: u64,
}

/// Measures mounts of the domain of a testbed, whose power is cut.
pub fn measure(
    testbed: Testbed,
    medium: &SharedMedium,
    config: &DomainConfig,
    load: Load,
    rng: &mut Rng,
) -> Result<Recovery, VolumeError> {
    testbed.run(testbed.domain.checkpoint())?;
    testbed.cut();
    let headers_seconds = mount_headers(medium)?;
    let (testbed, after_checkpoint) = mount(medium, config, load)?;

    let entries = fill_log(&testbed, rng)?;
    testbed.run(testbed.domain.flush())?;
    testbed.cut();
    let before = medium.borrow().commands();
    let (testbed, seconds) = mount(medium, config, load)?;
    let commands = medium.borrow().commands().since(before);
    testbed.read(READ_AFTER, rng)?;

    let bytes = testbed.domain.space().flash_bytes as f64;
    let recovery = Recovery {
        headers_seconds,
        map_seconds: after_checkpoint - headers_seconds,
        replay_seconds: seconds - after_checkpoint,
        seconds,
        seconds_per_tib: seconds * (1_u64 << 40) as f64 / bytes,
        device_seconds: cost::of_device(medium, commands),
        leaves: testbed.report.leaves,
        frames: testbed.report.frames,
        entries,
    };
    testbed.cut();
    Ok(recovery)
}

fn mount(
    medium: &SharedMedium,
    config: &DomainConfig,
    load: Load,
) -> Result<(Testbed, f64), VolumeError> {
    // Memory of the mount before: a mount in a new process has none to free.
    allocator::tidy_up();
    let watch = Stopwatch::start();
    let testbed = Testbed::mount(medium, config, load)?;
    Ok((testbed, watch.stop().cpu_seconds))
}

fn mount_headers(medium: &SharedMedium) -> Result<f64, VolumeError> {
    let executor = VirtualExecutor::new(0);
    let owner = Ownership::of(Domain::owner(DomainConfig::default().domain));
    let ftl = FtlConfig::default();
    let watch = Stopwatch::start();
    let queue = Box::new(NullQueue::new(medium));
    let (flash, _) = executor.block_on(Flash::mount_of(queue, ftl, owner, executor.handle()))?;
    let seconds = watch.stop().cpu_seconds;
    flash.stop();
    Ok(seconds)
}

/// Writes until the next checkpoint is near; returns the entries behind the last one.
fn fill_log(testbed: &Testbed, rng: &mut Rng) -> Result<u64, VolumeError> {
    let before = testbed.domain.counters();
    let most = (testbed.domain.checkpoint_entries() as f64 * OF_CHECKPOINT) as u64;
    let entries = || {
        let now = testbed.domain.counters();
        now.written + now.collected - before.written - before.collected
    };
    testbed.overwrite(u64::MAX, rng, |_| entries() < most)?;
    Ok(entries())
}

impl Recovery {
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let seconds = |seconds: f64| format!("{seconds:.3} s");
        vec![
            ("recovery", format!("{:.3} s, {:.2} s a TiB", self.seconds, self.seconds_per_tib)),
            ("headers", seconds(self.headers_seconds)),
            ("root and leaves", format!("{:.3} s, {} leaves", self.map_seconds, self.leaves)),
            (
                "replay",
                format!(
                    "{:.3} s, {} entries in {} frames",
                    self.replay_seconds, self.entries, self.frames
                ),
            ),
            ("device in these", seconds(self.device_seconds)),
        ]
    }
}
