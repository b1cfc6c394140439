//! Admission of requests by the weights of their volumes. A volume that is alone is not held up.
//! While several compete, a bounded number of requests is under way, and the others wait in the
//! order of start-time fair queueing: SFQ(D) of Jin, Chase and Kaur, *Interposed proportional
//! sharing for a storage service utility*, SIGMETRICS 2004.
//!
//! The first request of a volume that has none under way begins at once, so that a volume with one
//! request at a time waits for no other. So at most one request of each volume exceeds the bound.

use crate::tenant::Tenant;
use softflash_policy::order::{StartTag, WeightedFair};
use softflash_runtime::Event;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Larger requests count as several.
const SLOT_BYTES: u64 = 64 << 10;

/// The least cost of a request, in bytes.
const LEAST_COST: u64 = 4096;

/// The requests of a domain that are under way, or wait for their turn.
pub(crate) struct Admission {
    queue: RefCell<Queue>,
}

/// The place of a waiting request: its tag, then the number of its arrival.
type Place = (StartTag, u64);

struct Queue {
    fair: WeightedFair,
    waiting: BTreeMap<Place, Waiting>,
    arrivals: u64,
    /// Slots of requests under way, and their bound.
    slots: u64,
    most: u64,
    /// Volumes with requests under way or waiting.
    tenants: u32,
}

struct Waiting {
    slots: u64,
    begins: Event,
}

/// A request that is under way, or waits; it ends when this is dropped.
pub(crate) struct Permit<'a> {
    admission: &'a Admission,
    tenant: &'a Tenant,
    slots: u64,
    place: Option<Place>,
}

impl Admission {
    /// The bound changes; a request that waits sees it when another one ends.
    pub fn set_most(&self, most: u32) {
        self.queue.borrow_mut().most = most.into();
    }

    /// At most so many requests are under way while volumes compete.
    pub fn new(most: u32) -> Admission {
        let queue = Queue {
            fair: WeightedFair::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
            slots: 0,
            most: most.into(),
            tenants: 0,
        };
        Admission { queue: RefCell::new(queue) }
    }

    /// Waits for the turn of a request.
    pub async fn enter<'a>(&'a self, tenant: &'a Tenant, bytes: u64) -> Permit<'a> {
        let slots = bytes.div_ceil(SLOT_BYTES).max(1);
        let queued = self.queue.borrow_mut().arrive(tenant, slots, bytes);
        let place = queued.as_ref().map(|(place, _)| *place);
        // From here on a caller that stops waiting gives its place up.
        let permit = Permit { admission: self, tenant, slots, place };
        if let Some((_, begins)) = queued {
            tenant.count(|counters| counters.weight_waits += 1);
            begins.wait().await;
        }
        permit
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.admission.queue.borrow_mut().leave(self);
    }
}

impl Queue {
    /// A request arrives; returns its place and the event of its beginning, if it has to wait.
    fn arrive(&mut self, tenant: &Tenant, slots: u64, bytes: u64) -> Option<(Place, Event)> {
        let before = tenant.requests.get();
        tenant.requests.set(before + 1);
        self.tenants += u32::from(before == 0);
        if self.tenants == 1 {
            self.slots += slots;
            return None;
        }
        let weight = u32::from(tenant.settings().weight);
        let tag = self.fair.arrive(tenant.volume.0, weight, bytes.max(LEAST_COST));
        let has_room = self.slots < self.most && self.waiting.is_empty();
        if has_room || before == 0 {
            if has_room {
                self.fair.serve(tag);
            }
            self.slots += slots;
            return None;
        }
        self.arrivals += 1;
        let (place, begins) = ((tag, self.arrivals), Event::new());
        self.waiting.insert(place, Waiting { slots, begins: begins.clone() });
        Some((place, begins))
    }

    /// A request has ended, or does not wait any more.
    fn leave(&mut self, permit: &Permit<'_>) {
        let waited = permit.place.is_some_and(|place| self.waiting.remove(&place).is_some());
        if !waited {
            self.slots -= permit.slots;
        }
        let left = permit.tenant.requests.get() - 1;
        permit.tenant.requests.set(left);
        self.tenants -= u32::from(left == 0);
        let is_alone = self.tenants <= 1;
        while (is_alone || self.slots < self.most)
            && let Some(((tag, _), next)) = self.waiting.pop_first()
        {
            self.fair.serve(tag);
            self.slots += next.slots;
            next.begins.set();
        }
        if is_alone {
            self.fair.rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ImageId, Images};
    use crate::tenant::Tenants;
    use futures_util::FutureExt;
    use std::pin::pin;

    const BOUND: u32 = 4;

    fn two() -> [std::rc::Rc<Tenant>; 2] {
        let tenants = Tenants::default();
        [1, 2].map(|volume| tenants.of(ImageId(volume), &Images::default()))
    }

    #[test]
    fn a_volume_that_is_alone_is_not_held_up() {
        let (admission, [first, _]) = (Admission::new(BOUND), two());
        let enter = |_| admission.enter(&first, 1 << 20).now_or_never();
        let permits: Vec<_> = (0..100).map(enter).collect();
        assert!(permits.iter().all(Option::is_some));
    }

    #[test]
    fn while_volumes_compete_a_bounded_number_is_under_way() {
        let (admission, [first, second]) = (Admission::new(BOUND), two());
        let enter = |tenant| admission.enter(tenant, 4096).now_or_never();
        let mut held: Vec<_> = (0..BOUND).map(|_| enter(&first)).collect();
        assert!(enter(&second).is_some(), "the first of a volume begins at once");
        held.push(enter(&second));
        let mut waits = pin!(admission.enter(&first, 4096));
        assert!((&mut waits).now_or_never().is_none());
        held.remove(0);
        assert!((&mut waits).now_or_never().is_none(), "the bound is reached without it");
        held.remove(0);
        assert!((&mut waits).now_or_never().is_some());
    }

    #[test]
    fn a_caller_that_stops_waiting_holds_up_nobody() {
        let (admission, [first, second]) = (Admission::new(BOUND), two());
        let enter = |tenant| admission.enter(tenant, 4096).now_or_never();
        let held: Vec<_> = (0..BOUND).map(|_| enter(&first)).collect();
        let other = enter(&second);
        assert!(enter(&first).is_none() && enter(&second).is_none(), "these stop waiting");
        assert!(admission.queue.borrow().waiting.is_empty());
        drop(held);
        assert_eq!(admission.queue.borrow().slots, 1);
        assert!((0..BOUND).all(|_| enter(&second).is_some()));
        drop(other);
        assert_eq!((admission.queue.borrow().slots, admission.queue.borrow().tenants), (0, 0));
    }
}
