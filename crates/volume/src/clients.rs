//! The requests of clients: the tenants that make them, their turns, and the frames of their data.

use crate::admission::{Admission, Permit};
use crate::classes::Classes;
use crate::host_frames::HostFrames;
use crate::image::{ImageId, Images};
use crate::latencies::VolumeLatencies;
use crate::tenant::{Tenant, Tenants, VolumeCounters};
use std::rc::Rc;

/// The clients of a domain.
pub(crate) struct Clients {
    tenants: Tenants,
    admission: Admission,
    classes: Classes,
    frames: HostFrames,
}

impl Clients {
    /// At most so many requests are under way while volumes compete.
    pub fn new(competing_requests: u32, classes: Classes) -> Clients {
        Clients {
            tenants: Tenants::default(),
            admission: Admission::new(competing_requests),
            frames: HostFrames::new(classes.most()),
            classes,
        }
    }

    /// So many requests may be under way from now on while volumes compete.
    pub fn set_competing(&self, requests: u32) {
        self.admission.set_most(requests);
    }

    /// The tenant of a volume.
    pub fn tenant(&self, volume: ImageId, images: &Images) -> Rc<Tenant> {
        self.tenants.of(volume, images)
    }

    /// Waits for the turn of a request.
    pub async fn enter<'a>(&'a self, tenant: &'a Tenant, bytes: u64) -> Permit<'a> {
        self.admission.enter(tenant, bytes).await
    }

    /// The counters and latencies of a volume.
    pub fn figures(&self, volume: ImageId) -> (VolumeCounters, VolumeLatencies) {
        (self.tenants.counters(volume), self.tenants.latencies(volume))
    }

    /// The settings of volumes may have changed.
    pub fn adopt(&self, images: &Images) {
        self.tenants.update(images);
        self.classes.assign(images);
    }

    /// Lets requests that wait see that the domain is stopped.
    pub fn wake(&self) {
        self.tenants.wake();
    }

    /// The classes of the data.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The frames of the data.
    pub fn frames(&self) -> &HostFrames {
        &self.frames
    }
}
