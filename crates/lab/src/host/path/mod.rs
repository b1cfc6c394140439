//! The path between a device and its application: the host link and the host's software, in virtual
//! time. A decorator around any device that knows the times of its completions.
//!
//! ```text
//! submit ── submit_ns ──► link, host to device ──► device
//!        ──► link, device to host ──► interrupt ── complete_ns ──► poll
//! ```
//!
//! The data of a program cross the link before the device receives the command, those of a read
//! after its completion in the device. Each direction is first come, first served for all queue
//! pairs of the device. Commands without data to the device reach it at once, and their submission
//! time is added to the completion: the latency is the same, and the queue limits of the device
//! apply. So a read can overtake a program whose data are still on the link.
//!
//! Interrupts announce several completions of a queue pair at a time: when
//! [`completions_per_interrupt`](HostPathConfig::completions_per_interrupt) have gathered, or the
//! first has waited for [`interrupt_wait_ns`](HostPathConfig::interrupt_wait_ns).

mod gathering;
mod link;
mod queue_pair;

use link::Link;
use queue_pair::HostQueuePair;
use serde::{Deserialize, Serialize};
use softflash_base::UnitSet;
use softflash_device::DeviceInfo;
use softflash_device::{Device, OpenError, QueuePair};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Link and host software. The default costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPathConfig {
    /// Device to host, in bytes a second; 0: no limit.
    pub read_bytes_per_second: u64,
    /// Host to device, in bytes a second; 0: no limit.
    pub write_bytes_per_second: u64,
    /// Both directions share one medium.
    pub half_duplex: bool,
    /// From the call to the link, in nanoseconds, for each command.
    pub submit_ns: u64,
    /// From the interrupt to the caller, in nanoseconds, for each command.
    pub complete_ns: u64,
    /// Completions that one interrupt announces; 0 and 1: each its own.
    pub completions_per_interrupt: u32,
    /// The longest time that a completion waits to share an interrupt with others, in nanoseconds.
    pub interrupt_wait_ns: u64,
}

/// The traffic of a host path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostTraffic {
    /// Bytes to the host.
    pub read_bytes: u64,
    /// Bytes to the device.
    pub written_bytes: u64,
    /// Time of transfers to the host, in nanoseconds.
    pub read_busy_ns: u64,
    /// Time of transfers to the device, in nanoseconds.
    pub write_busy_ns: u64,
    /// Commands completed.
    pub completions: u64,
    /// Interrupts that announced them.
    pub interrupts: u64,
}

/// The state that all queue pairs of a device share.
struct Shared {
    config: HostPathConfig,
    path: Mutex<Path>,
}

struct Path {
    link: Link,
    traffic: HostTraffic,
}

impl Shared {
    fn path(&self) -> MutexGuard<'_, Path> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device behind a link and the host's software.
pub struct HostPath {
    inner: Arc<dyn Device>,
    shared: Arc<Shared>,
}

impl HostPath {
    /// Puts `inner` behind a link. It must know the times of its completions:
    /// [`Wake::At`](softflash_device::Wake::At).
    pub fn new(inner: Arc<dyn Device>, config: HostPathConfig) -> HostPath {
        let path = Path { link: Link::new(&config), traffic: HostTraffic::default() };
        HostPath { inner, shared: Arc::new(Shared { config, path: Mutex::new(path) }) }
    }

    /// The traffic so far, including transfers under way.
    pub fn traffic(&self) -> HostTraffic {
        self.shared.path().traffic
    }
}

impl Device for HostPath {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let inner = self.inner.open_queue_pair(units)?;
        Ok(Box::new(HostQueuePair::new(inner, Arc::clone(&self.shared))))
    }
}
