//! Volumes as users of their domain: what their requests need of the settings, and their counters.

use crate::image::{ImageId, Images};
use crate::latencies::VolumeLatencies;
use crate::settings::VolumeSettings;
use crate::token_bucket::TokenBucket;
use serde::Serialize;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_runtime::{ByteSemaphore, Notify};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Counts of the requests of a volume and of its snapshots since the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct VolumeCounters {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Requests that waited for the limit of requests.
    pub iops_waits: u64,
    /// Requests that waited for the limit of bytes.
    pub bandwidth_waits: u64,
    /// Requests that waited for their turn among competing volumes.
    pub weight_waits: u64,
    /// Writes that the quota refused.
    pub quota_refusals: u64,
    /// Writes that were refused because the domain was full.
    pub full_refusals: u64,
}

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Discard,
}

/// A limit of rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Iops,
    Bandwidth,
}

/// A volume with its snapshots.
pub(crate) struct Tenant {
    pub volume: ImageId,
    settings: Cell<VolumeSettings>,
    counters: Cell<VolumeCounters>,
    pub latencies: RefCell<VolumeLatencies>,
    iops: TokenBucket,
    bandwidth: TokenBucket,
    /// Held by the request that waits for a limit: the others wait behind it, in their order.
    pub turn: ByteSemaphore,
    /// Notified when the settings change.
    pub changed: Notify,
    /// Requests that were admitted, or wait for their turn among competing volumes.
    pub requests: Cell<u32>,
    /// Mapping units that will take space of a quota, and that the map does not name yet.
    growing: Cell<u32>,
}

/// A mapping unit that will take space; counted for its volume and for the domain until this is
/// dropped.
pub(crate) struct Growth {
    tenant: Rc<Tenant>,
    domain: Rc<Growing>,
}

/// The mapping units of a domain that will take space, and that the map does not name yet.
#[derive(Default)]
pub(crate) struct Growing {
    units: Cell<u32>,
    /// Notified when they become fewer.
    fewer: Notify,
}

impl Growing {
    /// How many there are.
    pub fn units(&self) -> u32 {
        self.units.get()
    }

    /// Waits until they become fewer.
    pub async fn fewer(&self) {
        self.fewer.notified().await;
    }
}

impl Growth {
    pub fn of(tenant: &Rc<Tenant>, domain: &Rc<Growing>) -> Growth {
        tenant.growing.set(tenant.growing.get() + 1);
        domain.units.set(domain.units.get() + 1);
        Growth { tenant: Rc::clone(tenant), domain: Rc::clone(domain) }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        let Growth { tenant, domain } = self;
        tenant.growing.set(tenant.growing.get() - 1);
        domain.units.set(domain.units.get() - 1);
        domain.fewer.notify_all();
    }
}

impl Tenant {
    /// Mapping units that will take space of a quota, and that the map does not name yet.
    pub fn growing(&self) -> u32 {
        self.growing.get()
    }

    fn new(volume: ImageId) -> Tenant {
        Tenant {
            volume,
            settings: Cell::default(),
            counters: Cell::default(),
            latencies: RefCell::default(),
            iops: TokenBucket::default(),
            bandwidth: TokenBucket::default(),
            turn: ByteSemaphore::new(1),
            changed: Notify::new(),
            requests: Cell::new(0),
            growing: Cell::new(0),
        }
    }

    /// The tenant of copies of a volume's data, which count for none of its limits.
    pub fn of_copies(volume: ImageId) -> Tenant {
        Tenant::new(volume)
    }

    /// Takes these settings.
    pub fn adopt(&self, settings: VolumeSettings) {
        if self.settings() != settings {
            self.set(settings);
        }
    }

    pub fn settings(&self) -> VolumeSettings {
        self.settings.get()
    }

    /// Takes new settings. The bucket of a limit that has changed is full.
    fn set(&self, settings: VolumeSettings) {
        let before = self.settings.replace(settings);
        if before.iops != settings.iops {
            self.iops.fill();
        }
        if before.bandwidth_bytes_per_second != settings.bandwidth_bytes_per_second {
            self.bandwidth.fill();
        }
        if !planted::bug(Bug::SettingsWakeNobody) {
            self.changed.notify_all();
        }
    }

    pub fn counters(&self) -> VolumeCounters {
        self.counters.get()
    }

    pub fn count(&self, change: impl FnOnce(&mut VolumeCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    /// Whether requests may have to wait for a limit.
    pub fn is_limited(&self) -> bool {
        let settings = self.settings.get();
        settings.iops.is_some() || settings.bandwidth_bytes_per_second.is_some()
    }

    /// The limit that lets a request wait longest, and when it may begin.
    pub fn ready_at(&self) -> (Limit, Time) {
        let settings = self.settings.get();
        let iops = settings.iops.map_or(Time::ZERO, |_| self.iops.ready_at());
        let bandwidth =
            settings.bandwidth_bytes_per_second.map_or(Time::ZERO, |_| self.bandwidth.ready_at());
        if iops >= bandwidth { (Limit::Iops, iops) } else { (Limit::Bandwidth, bandwidth) }
    }

    /// A request begins.
    pub fn take(&self, now: Time, bytes: u64) {
        let settings = self.settings.get();
        if let Some(iops) = settings.iops {
            self.iops.take(now, 1, iops.into());
        }
        if let Some(rate) = settings.bandwidth_bytes_per_second {
            self.bandwidth.take(now, bytes, rate);
        }
    }
}

/// The tenants of a domain: the volumes that have been opened.
#[derive(Default)]
pub(crate) struct Tenants {
    all: RefCell<BTreeMap<ImageId, Rc<Tenant>>>,
}

impl Tenants {
    /// The tenant of a volume.
    pub fn of(&self, volume: ImageId, images: &Images) -> Rc<Tenant> {
        let mut all = self.all.borrow_mut();
        let tenant = all.entry(volume).or_insert_with(|| {
            let tenant = Tenant::new(volume);
            tenant.set(images.get(volume).map(|image| image.settings).unwrap_or_default());
            Rc::new(tenant)
        });
        Rc::clone(tenant)
    }

    /// The counters of a volume.
    pub fn counters(&self, volume: ImageId) -> VolumeCounters {
        self.all.borrow().get(&volume).map(|tenant| tenant.counters()).unwrap_or_default()
    }

    /// The latencies of a volume.
    pub fn latencies(&self, volume: ImageId) -> VolumeLatencies {
        let all = self.all.borrow();
        all.get(&volume).map(|tenant| tenant.latencies.borrow().clone()).unwrap_or_default()
    }

    /// An operation has changed the images: takes the new settings. Requests to a deleted volume
    /// do not wait any more.
    pub fn update(&self, images: &Images) {
        self.all.borrow_mut().retain(|&volume, tenant| {
            let image = images.get(volume);
            let settings = image.map(|image| image.settings).unwrap_or_default();
            if tenant.settings() != settings {
                tenant.set(settings);
            }
            image.is_some()
        });
    }

    /// Lets requests that wait see that the domain is stopped.
    pub fn wake(&self) {
        self.all.borrow().values().for_each(|tenant| tenant.changed.notify_all());
    }
}
